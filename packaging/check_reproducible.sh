#!/bin/sh
# check_reproducible.sh OUT: builds the packages twice, in folders of different depth below OUT and without the
# compiler cache, and compares them byte by byte. Takes two whole builds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
rm -rf "$out/first" "$out/another"
for place in "$out/first" "$out/another/and/deeper"; do
  CCACHE_DISABLE=1 "$here/build_deb.sh" "$place" >/dev/null
done
same=0
differing=
for package in "$out"/first/*.deb; do
  other=$out/another/and/deeper/$(basename "$package")
  if cmp -s "$package" "$other"; then
    same=$((same + 1))
    continue
  fi
  differing="$differing $(basename "$package")"
  if command -v diffoscope >/dev/null 2>&1; then
    diffoscope --max-report-size 20000 "$package" "$other" || true
  fi
done
[ -z "$differing" ] || { echo "$same packages are the same, these differ:$differing"; exit 1; }
echo "all $same packages are the same"
