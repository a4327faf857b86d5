#!/bin/sh
# Checks the libraries of programs. Launcher and rings run as root, and shepherd and guard are static, so
# none may link libsystemd or other libraries of the daemon. The launcher must not contain the C++
# runtime: no exceptions, no iostream, no new.
# usage: check_linked.sh SCORED_LAUNCHER SCORED_SHEPHERD SCORED_THAW SCORED_RINGS
set -eu
for program; do
  more=$(objdump -p "$program" | sed -n 's/^ *NEEDED *//p' | grep -vE '^(libc|libm|ld-linux.*)\.so' || true)
  [ -z "$more" ] || { echo "$program links $more"; exit 1; }
done
for program in "$2" "$3"; do
  [ -z "$(objdump -p "$program" | grep NEEDED)" ] || { echo "$program is not static"; exit 1; }
done
runtime=$(objdump -tT "$1" 2>/dev/null | grep -oE '__cxa_(throw|allocate_exception|begin_catch)|_Zn[wa]m|_ZNSt8ios_base\w*' | sort -u || true)
[ -z "$runtime" ] || { echo "$1 has parts of the C++ runtime: $runtime"; exit 1; }
