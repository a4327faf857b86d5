#!/bin/sh
# build_packages.sh SOURCE BUILD: the packages that the machines install, of what BUILD has, in half a minute.
# exit 77: this host lacks what builds packages, or root for the machines
set -eu
[ "$(id -u)" = 0 ] || { echo "needs root, as the machines do"; exit 77; }
command -v dpkg-buildpackage >/dev/null || { echo "dpkg-dev is not installed"; exit 77; }
cd "$1"
dpkg-checkbuilddeps 2>&1 || exit 77
packaging/build_deb.sh build/packages "$2"
