#!/bin/sh
# elsewhere_trixie.sh [COMMAND [ARGUMENT...]]: runs `./try COMMAND` in Debian 13 (default: build).
[ $# -gt 0 ] || set -- build
exec "$(dirname "$0")/in_debian.sh" trixie trixie ./try "$@"
