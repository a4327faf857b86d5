#!/bin/sh
# build_deb.sh OUT [BUILD [ARCHITECTURE]]: builds the Debian packages of this tree in a copy of it below OUT and leaves the
# files there. OUT is emptied of older ones first. BUILD: takes the programs of this folder, a release build of the
# tree, and compiles nothing; for tests and other architectures.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
if [ $# -gt 1 ]; then
  SCORED_BUILD=$(cd "$2" && pwd)
  DEB_BUILD_OPTIONS=noautodbgsym
  export SCORED_BUILD DEB_BUILD_OPTIONS
fi
version=$(dpkg-parsechangelog -l "$source/debian/changelog" -S Version)
tree=$out/scored-$version
rm -rf "$tree"
find "$out" -maxdepth 1 -type f -delete
mkdir "$tree"
tar -C "$source" --exclude-vcs --exclude=./build --exclude=node_modules --exclude=__pycache__ \
  --exclude='*.btr' -cf - . | tar -C "$tree" -xf -
cd "$tree"
# Packages of other releases than Debian 12 have versions of their own, which an upgrade of the system prefers.
release=$(. /etc/os-release && echo "$ID${VERSION_ID:-}")
[ "$release" = debian12 ] || sed -i "1s/($version)/($version+$release)/" debian/changelog
# Files in packages keep times that are older than the changelog's: every checkout has others.
find . -exec touch -h -d "@$(dpkg-parsechangelog -S Timestamp)" {} +
# debhelper gives the build a home of its own; the compiler cache stays the user's.
if command -v ccache >/dev/null 2>&1; then
  CCACHE_DIR=$(ccache --get-config cache_dir)
  export CCACHE_DIR
fi
[ $# -lt 3 ] || export DEB_BUILD_PROFILES='cross nocheck'
dpkg-buildpackage ${3:+--host-arch="$3"} --build=binary --no-sign --jobs="$(nproc)" >"$out/build.log" 2>&1 ||
  { tail -n 40 "$out/build.log" >&2; echo "build_deb: failed: $out/build.log" >&2; exit 1; }
ls "$out"/*.deb
