#!/bin/sh
# check_man.sh DIRECTORY HEADER: every function of the header is named in the NAME section of a page
# and has its synopsis there, and pages name no function that the header has not.
set -eu
functions=$(grep -oE '\bpm_[a-z_]+\(' "$2" | tr -d '(' | sort -u |
  while read -r name; do
    grep -qE "^[a-z].*[ *]$name\(" "$2" && echo "$name"
  done)
status=0
for name in $functions; do
  if ! grep -qE "^$name[, ]|, $name[, ]" "$1"/*.3.scd; then
    echo "$name is in no manual page"
    status=1
  fi
done
for name in $(grep -hE '^pm_.* - ' "$1"/*.3.scd | grep -oE 'pm_[a-z_]+'); do
  echo "$functions" | grep -qx "$name" || { echo "$name is not in the header"; status=1; }
done
[ -n "$functions" ] || status=1
exit $status
