#!/bin/sh
# elsewhere_arm64.sh [build | test [REGEX] | package]: builds for arm64 with the cross compiler of Debian 12; `test` runs the
# unit tests under qemu-user (default: build).
exec "$(dirname "$0")/in_debian.sh" bookworm arm64 packaging/cross_build.sh "$@"
