#!/bin/sh
# in_debian.sh SUITE SYSTEM COMMAND [ARGUMENT...]: runs COMMAND in this tree, in a Debian SUITE that debootstrap makes once in
# the user's cache (scored/elsewhere/SYSTEM). The tree's build folder there is build/elsewhere/SYSTEM.
set -eu
suite=$1
system=$2
shift 2
source=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/scored/elsewhere/$system
root=$cache/root
build=$source/build/elsewhere/$system
[ "$(id -u)" = 0 ] || { echo "elsewhere: only root can run programs in a Debian of their own" >&2; exit 1; }

mkdir -p "$cache/ccache" "$build"
exec 9>"$cache/lock"
flock -n 9 || { echo "elsewhere: waiting for another run in $root" >&2; flock 9; }
[ -d "$root" ] || python3 "$source/tests/boot/base_system.py" "$suite" "$root" >&2
cp -L /etc/resolv.conf "$root/etc/"
# Certificates that this host's administrator added, such as a proxy's.
if [ -d /usr/local/share/ca-certificates ]; then
  cp -R /usr/local/share/ca-certificates "$root/usr/local/share/"
  chroot "$root" update-ca-certificates >/dev/null 2>&1
fi

# The kernel ends every process and drops the mounts when this command ends. /run is empty, so that packages start no
# services.
unset XDG_CACHE_HOME
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec unshare --mount --pid --fork --kill-child --propagation private sh -euc '
  root=$1 source=$2 build=$3 ccache=$4
  shift 4
  mount --bind "$root" "$root"
  mkdir -p "$root/usr/src/scored" "$root/root/.cache/ccache"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount --bind "$source" "$root/usr/src/scored"
  mount --bind "$build" "$root/usr/src/scored/build"
  mount --bind "$ccache" "$root/root/.cache/ccache"
  cd "$root"
  pivot_root . .
  umount -l .
  cd /usr/src/scored
  "$@"
' sh "$root" "$source" "$build" "$cache/ccache" "$@"
