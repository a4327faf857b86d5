#!/bin/sh
# The launcher runs as root and the shepherd is static: neither links libsystemd or another library
# of the daemon's.
# usage: check_linked.sh SCORED_LAUNCHER SCORED_SHEPHERD
set -eu
for program; do
  more=$(objdump -p "$program" | sed -n 's/^ *NEEDED *//p' | grep -vE '^(libc|libm|ld-linux.*)\.so' || true)
  [ -z "$more" ] || { echo "$program links $more"; exit 1; }
done
[ -z "$(objdump -p "$2" | grep NEEDED)" ] || { echo "$2 is not static"; exit 1; }
