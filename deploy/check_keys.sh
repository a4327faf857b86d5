#!/bin/sh
# Checks the README's steps for keys: one cluster key, a different key per node, and nothing is overwritten.
# usage: check_keys.sh SCORED
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
printf '[head]\nnodes = "node[00-01]"\nkey_file = "%s/key"\n' "$dir" >scored.toml
head() { "$scored" --role=head --config "$dir/scored.toml" "$@"; }
scored=$1
head --new-key
head --node-key node00
head --node-key node01
for file in key node00.key node01.key; do
  [ "$(stat -c %a "$file")" = 600 ] || { echo "$file: mode is not 600"; exit 1; }
done
[ "$(cat key node00.key node01.key | sort -u | wc -l)" = 3 ] || { echo "there are not three different keys"; exit 1; }
before=$(cat key)
! head --new-key 2>error && grep -q 'exists' error || { echo "an existing key was not refused"; exit 1; }
[ "$(cat key)" = "$before" ] || { echo "the key was overwritten"; exit 1; }
out=$("$scored" --role=head --check-config 2>&1) || case $out in
  */etc/scored/scored.toml*) ;;
  *) echo "the file is not read from its usual place: $out"; exit 1 ;;
esac
! head --node-key node77 2>error && grep -q 'node77' error || { echo "an unknown node has a key"; exit 1; }
