#!/bin/sh
# Checks that programs and libraries of a release build have the hardening of cmake/options.cmake.
# usage: check_hardening.sh PROGRAM...
set -eu
for program; do
  # Undefined symbols come from glibc; a static program contains them. __stack_chk_fail is not one of them.
  names=$(nm -D "$program" 2>/dev/null; nm "$program" 2>/dev/null || true)
  checked=$(printf '%s\n' "$names" | grep -oE '__[a-z]+_chk(@|$)' | sort -u | wc -l)
  # One shows the option, but a static program has such a function of glibc's own.
  least=2
  if readelf -lW "$program" | grep -q INTERP; then least=1; fi
  [ "$checked" -ge "$least" ] || { echo "$program: no function of _FORTIFY_SOURCE"; exit 1; }
  printf '%s\n' "$names" | grep -q __stack_chk_fail || { echo "$program: no stack protector"; exit 1; }
  readelf -lW "$program" | grep -q GNU_RELRO || { echo "$program: no RELRO"; exit 1; }
  if readelf -lW "$program" | grep -E 'GNU_STACK.*RWE'; then echo "$program: executable stack"; exit 1; fi
  if readelf -lW "$program" | grep -q INTERP; then
    readelf -dW "$program" | grep -q 'NOW' || { echo "$program: lazy binding"; exit 1; }
    readelf -hW "$program" | grep -q 'DYN ' || { echo "$program: not position-independent"; exit 1; }
  fi
  echo "$program: $checked checked functions"
done
