#!/bin/sh
# hide.sh THING... -- PROGRAM [ARGUMENT...]: runs a program in a mount namespace of its own (unshare -m) in which
# these things are not there: fuse, fusermount3, mpich, openmpi, python3, shm, cgroup, systemd. Needs root.
set -eu
[ "$(readlink /proc/self/ns/mnt)" != "$(readlink /proc/1/ns/mnt)" ] ||
  { echo 'hide.sh: it would hide things from the whole machine: start it with unshare -m' >&2; exit 125; }
libraries=/usr/lib/$(uname -m)-linux-gnu
place=$(mktemp -d /tmp/score-parts-hide.XXXXXX)
mount -t tmpfs hidden "$place"

# Every entry of /dev but one, each bound to where it was.
without_device() {
  mkdir "$place/dev"
  mount --rbind /dev "$place/dev"
  mount -t tmpfs -o mode=755 dev /dev
  for entry in "$place"/dev/*; do
    name=${entry##*/}
    [ "$name" != "$1" ] || continue
    if [ "$name" = ptmx ]; then
      ln -s pts/ptmx /dev/ptmx  # bound, it would look for its terminals in a /dev without them
    elif [ -L "$entry" ]; then
      ln -s "$(readlink "$entry")" "/dev/$name"
    elif [ -d "$entry" ]; then
      mkdir "/dev/$name" && mount --rbind "$entry" "/dev/$name"
    else
      : > "/dev/$name" && mount --bind "$entry" "/dev/$name"
    fi
  done
  umount -l "$place/dev" && rmdir "$place/dev"
}

# Removes files of /usr, of which this namespace gets a copy that can be written.
without_files() {
  if [ ! -d "$place/upper" ]; then
    mkdir "$place/upper" "$place/work"
    mount -t overlay usr -o "lowerdir=/usr,upperdir=$place/upper,workdir=$place/work" /usr
  fi
  rm -rf "$@"
}

while [ "$1" != -- ]; do
  case $1 in
    fuse | shm) without_device "$1" ;;
    fusermount3) without_files /usr/bin/fusermount3 ;;
    mpich) without_files "$libraries"/libmpich* "$libraries"/mpich ;;
    openmpi) without_files "$libraries"/libmpi.so* "$libraries"/libopen-* "$libraries"/openmpi ;;
    python3) without_files /usr/bin/python3* ;;
    cgroup) mount -t tmpfs -o mode=755 none /sys/fs/cgroup ;;
    systemd) without_files /usr/bin/systemctl /usr/lib/systemd; [ ! -d /run/systemd ] || mount -t tmpfs none /run/systemd ;;
    *) echo "hide.sh: unknown thing '$1'" >&2; exit 125 ;;
  esac
  shift
done
shift
umount -l "$place" && rmdir "$place"
exec "$@"
