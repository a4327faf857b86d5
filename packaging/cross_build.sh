#!/bin/sh
# cross_build.sh [build | test [REGEX] | package]: what elsewhere_arm64.sh does in its Debian.
set -eu
build=build/release
case ${1:-build} in build | test | package) ;; *) echo "elsewhere: arm64 takes build, test or package, not $1" >&2; exit 2 ;; esac

# What debian/control lists, for arm64, and what the tests need.
tools='ccache crossbuild-essential-arm64 qemu-user-static libgtest-dev:arm64 librapidcheck-dev:arm64'
stamp=/var/lib/scored-cross
wanted=$(echo "$tools" | cat - debian/control | sha256sum)
if [ "$(cat $stamp 2>/dev/null)" != "$wanted" ]; then
  export DEBIAN_FRONTEND=noninteractive
  dpkg --add-architecture arm64
  apt-get -q update
  # shellcheck disable=SC2086
  apt-get -q -y --no-install-recommends install $tools
  apt-get -q -y --no-install-recommends build-dep -a arm64 -P cross,nocheck .
  apt-get clean
  echo "$wanted" >$stamp
fi >&2

cmake --preset release -DCMAKE_TOOLCHAIN_FILE=cmake/arm64.cmake >&2
case ${1:-build} in
  build) ninja -C $build -k 0 all score_tests ;;  # all errors in one pass
  test)
    ninja -C $build score_unit_tests >&2
    cannot=$(sed -n 's/^\([^ #]*\) .*/\1/p' packaging/qemu_cannot.txt | paste -sd '|')
    ctest --test-dir $build --output-on-failure -L '^unit$' -R "${2:-.}" -E "^($cannot)"
    ;;
  package)
    ninja -C $build all >&2
    packaging/build_deb.sh build/packages $build arm64
    ;;
esac
