"""Small systems of other releases: made once by debootstrap, kept in the user's cache directory, never written to."""
import fcntl
import os
import shutil
import subprocess

import base_system

UBUNTU = '/usr/share/debootstrap/scripts/jammy'  # also for releases that debootstrap does not know
UBUNTU_SUITES = ('jammy', 'noble')
KEYRING = 'usr/share/keyrings/ubuntu-archive-keyring.gpg'  # in Debian 13, not in 12

# The first argument is the system, the second the programs, the third the user. The kernel ends all processes and drops
# the mounts with this command. The network is a loopback device, so that ports are free.
ENTER = '''
root=$1 programs=$2 user=$3
shift 3
mount -t tmpfs tmpfs /mnt
cd /mnt
mkdir upper work root
mount -t overlay -o lowerdir="$root",upperdir=/mnt/upper,workdir=/mnt/work overlay root
cd root
mkdir -p opt/elsewhere home/someone
mount --bind "$programs" opt/elsewhere
mount -o remount,bind,ro opt/elsewhere
mount --rbind /sys sys
mount -t proc proc proc
mount -t tmpfs -o mode=755 tmpfs dev
mkdir -m 1777 dev/shm
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
[ ! -e /dev/fuse ] || mknod -m 666 dev/fuse c 10 229
mkdir dev/pts
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
echo someone:x:1234:1234::/home/someone:/bin/sh >>etc/passwd
echo someone:x:1234: >>etc/group
chown 1234:1234 home/someone
ip link set lo up
pivot_root . mnt
umount -l mnt
cd /home/someone
exec setpriv --reuid "$user" --regid "$user" --clear-groups env -i HOME=/home/someone PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
  SCORED=/opt/elsewhere "$@"
'''


def missing():
    """Why no command can run in a system here; empty if one can."""
    if os.geteuid() != 0:
        return 'needs root'
    tools = [name for name in ('debootstrap', 'ip', 'setpriv', 'unshare') if not shutil.which(name)]
    return f'not installed: {", ".join(tools)}' if tools else ''


def default_mirror(script, suite):
    """The mirror that a script of debootstrap names first."""
    architecture = subprocess.run(['dpkg', '--print-architecture'], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run(['sh', '-c', 'default_mirror() { echo "$1"; exit; }; . "$0"', script], capture_output=True, text=True,
                          env={'ARCH': architecture, 'SUITE': suite}, check=True)
    return done.stdout.strip()


def debootstrap(suite, directory, log):
    options = ['--variant=minbase', '--force-check-gpg']
    source = [base_system.mirror()]
    if suite in UBUNTU_SUITES:
        options.append(f'--keyring={root("trixie") / KEYRING}')
        source = [default_mirror(UBUNTU, suite), UBUNTU]
    elif suite == 'trixie':
        options.append('--include=ubuntu-keyring')
    # An interrupted debootstrap leaves its mounts in a namespace that ends with it.
    command = ['unshare', '--mount', 'debootstrap', *options, suite, directory, *source]
    with open(log, 'wb') as out:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False).returncode


def root(suite):
    """The directory of a release's smallest system. Throws CannotMake if its archive cannot be reached."""
    cache = base_system.cache_directory().parent / 'tarball'
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f'{suite}.lock', 'w') as lock:  # two test runs make it once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / suite).exists():
            unfinished = cache / f'unfinished-{suite}'
            shutil.rmtree(unfinished, ignore_errors=True)
            log = cache / f'{suite}.log'
            if debootstrap(suite, unfinished, log) != 0:
                raise base_system.CannotMake(f'debootstrap failed; its messages: {log}')
            unfinished.rename(cache / suite)
    return cache / suite


def run(system, programs, script, user=1234, limit=600):
    """Runs a shell script in the system; $SCORED is the directory of the programs."""
    command = ['unshare', '--mount', '--pid', '--net', '--fork', '--kill-child', '--propagation', 'private',
               'sh', '-euc', ENTER, 'sh', str(system), str(programs), str(user), 'bash', '-euc', script]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit, check=False)
