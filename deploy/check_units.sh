#!/bin/sh
# Installs into a temporary directory and checks the units there with systemd-analyze.
# usage: check_units.sh BUILD_DIR        exit 77: no systemd-analyze
set -eu
command -v systemd-analyze >/dev/null 2>&1 || { echo "systemd-analyze is not installed"; exit 77; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root cmake --install "$1" --prefix /usr >/dev/null
units=$root/lib/systemd/system
install -D /usr/bin/sleep "$root/usr/bin/sleep"
for target in network-online sysinit basic sockets shutdown multi-user; do
  printf '[Unit]\nDescription=%s\n' "$target" >"$units/$target.target"
done
for unit in scored-head.service scored-head.socket scored-jobs.service scored-node.service scored-launcher.service scored-hooks.socket scored-hooks@.service scored-park.socket scored-park@.service; do
  out=$(systemd-analyze --root="$root" --man=no verify "$units/$unit" 2>&1) || true
  out=$(printf '%s\n' "$out" | grep -E "scored-|$unit" || true)
  [ -z "$out" ] || { echo "verify $unit: $out"; exit 1; }
done
for unit in scored-head scored-node scored-launcher scored-hooks@; do
  # The program of ExecStart must be installed.
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$units/$unit.service")
  [ -x "$root$program" ] || { echo "$unit: $program is not installed"; exit 1; }
done
[ -f "$root/usr/lib/systemd/catalog/scored.catalog" ] || { echo "no message catalog"; exit 1; }
# Its cgroup contains the jobs, so filters of the cgroup would apply to them.
if grep -E '^(Device(Policy|Allow)|PrivateDevices|ProtectClock|IP(Address|Ingress|Egress).*|SocketBind.*|RestrictNetworkInterfaces|BPFProgram)=' \
  "$units/scored-jobs.service"; then
  echo "scored-jobs.service filters jobs"
  exit 1
fi
for unit in scored-node scored-jobs; do
  grep -qx 'Slice=scored.slice' "$units/$unit.service" || { echo "$unit is not in the slice where the daemon looks for the jobs"; exit 1; }
done
# An earlier version may have left jobs in the cgroup of the unit, which an upgrade must not end.
grep -qx 'KillMode=process' "$units/scored-node.service" || { echo "an upgrade ends the jobs"; exit 1; }
for unit in scored-head scored-jobs scored-node scored-launcher; do
  grep -qx 'StartLimitIntervalSec=0' "$units/$unit.service" || { echo "$unit gives up after five failures"; exit 1; }
done
grep -qx 'ExecStopPost=-/usr/libexec/scored/scored-thaw' "$units/scored-node.service" || { echo "no program thaws jobs after the daemon"; exit 1; }
[ -x "$root/usr/libexec/scored/scored-thaw" ] || { echo "scored-thaw is not installed"; exit 1; }
for unit in scored-head scored-jobs scored-node scored-launcher; do
  grep -qx 'OOMScoreAdjust=-900' "$units/$unit.service" || { echo "the kernel may end $unit first when memory is short"; exit 1; }
done
for unit in scored-head scored-node scored-park@; do
  grep -qx 'MemorySwapMax=0' "$units/$unit.service" || { echo "$unit may be in swap"; exit 1; }
done
grep -qx 'LimitMEMLOCK=infinity' "$units/scored-launcher.service" || { echo "jobs may not lock memory"; exit 1; }
# A copied key keeps its mode and owner only below directories of root.
grep -qE '^d +/etc/scored +0755 root +root ' "$root/usr/lib/tmpfiles.d/scored.conf" || { echo "owner of /etc/scored"; exit 1; }
# A second installation keeps the administrator's configuration, and creates it if it is absent.
config=$root/etc/scored/scored.toml
cmp "$config" "$root/usr/share/scored/scored.toml"
echo '# mine' >"$config"
DESTDIR=$root cmake --install "$1" --prefix /usr >/dev/null
[ "$(cat "$config")" = '# mine' ] || { echo "the configuration was overwritten"; exit 1; }
# The unit gives the reason for each open item. The launcher has no hardening, because jobs would inherit it.
for bound in head=1.3 node=1.5; do
  unit=${bound%=*}
  exposure=$(systemd-analyze security --offline=true "$units/scored-$unit.service" |
    sed -n 's/.*exposure level.*: \([0-9.]*\).*/\1/p')
  echo "exposure of the $unit: $exposure"
  awk -v e="$exposure" -v b="${bound#*=}" 'BEGIN { exit !(e > 0 && e <= b) }' || { echo "more than $bound"; exit 1; }
done
systemd-sysusers --root="$root" --dry-run "$root/usr/lib/sysusers.d/scored.conf" >/dev/null
