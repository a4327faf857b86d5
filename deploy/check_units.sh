#!/bin/sh
# Installs into a directory of its own and has systemd-analyze look at the units there.
# usage: check_units.sh BUILD_DIR        exit 77: no systemd-analyze
set -eu
command -v systemd-analyze >/dev/null 2>&1 || { echo "systemd-analyze is not installed"; exit 77; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root cmake --install "$1" --prefix /usr >/dev/null
units=$root/lib/systemd/system
mkdir -p "$root/bin"
cp /bin/kill "$root/bin/kill"
for target in network-online sysinit basic sockets shutdown multi-user; do
  printf '[Unit]\nDescription=%s\n' "$target" >"$units/$target.target"
done
for unit in scored-head.service scored-head.socket scored-node.service scored-launcher.service; do
  out=$(systemd-analyze --root="$root" --man=no verify "$units/$unit" 2>&1) || true
  out=$(printf '%s\n' "$out" | grep -E "scored-|$unit" || true)
  [ -z "$out" ] || { echo "verify $unit: $out"; exit 1; }
done
for unit in scored-head scored-node scored-launcher; do
  # The program that ExecStart names is installed.
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$units/$unit.service")
  [ -x "$root$program" ] || { echo "$unit: $program is not installed"; exit 1; }
done
[ -f "$root/usr/lib/systemd/catalog/scored.catalog" ] || { echo "no message catalog"; exit 1; }
exposure=$(systemd-analyze security --offline=true "$units/scored-head.service" |
  sed -n 's/.*exposure level.*: \([0-9.]*\).*/\1/p')
echo "exposure of the head: $exposure"
awk -v e="$exposure" 'BEGIN { exit !(e > 0 && e <= 2.0) }' || { echo "more than 2.0"; exit 1; }
systemd-sysusers --root="$root" --dry-run "$root/usr/lib/sysusers.d/scored.conf" >/dev/null
