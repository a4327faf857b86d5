#!/bin/sh
# build_trixie.sh SOURCE: in Debian 13, builds the tree without warnings, runs its unit tests and jobs of both MPIs on a
# virtual cluster, and makes packages. exit 77: no Debian 13 on this host
set -eu
cd "$1"
inside() { packaging/in_debian.sh trixie trixie "$@"; }
inside apt-get update -qq -o APT::Update::Error-Mode=any || { echo "no Debian 13 here: see above"; exit 77; }
mkdir -p build/elsewhere
log=$PWD/build/elsewhere/trixie.log
./try elsewhere trixie build >"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
if grep 'warning:' "$log"; then exit 1; fi
./try elsewhere trixie test unit
./try elsewhere trixie test tests/integration/mpi/test_mpi.py
inside tests/boot/build_packages.sh . build/release
