"""Machines with systemd as PID 1, on a network of their own.

A holder process has its own mount, network and PID namespaces: it mounts cgroup2 over /sys/fs/cgroup (whatever
hierarchies the host has), a tmpfs for the files of the machines, and a bridge. systemd-nspawn starts each machine in
these namespaces, without the host's systemd. The holder is PID 1 of its namespace and ends when this process closes
its pipe or dies; the kernel then ends every process of the bed and drops mounts, bridge and links with the
namespaces. Only the empty cgroups remain, which close() removes."""
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import time

LIMIT = 120  # seconds for a boot, a command or a wait; only a fault takes that long
NETWORK = '10.77.0.'

HOLDER = r'''
set -eu
cgroup=$1
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$cgroup"
mount -t tmpfs -o mode=755 none /mnt
mount -t tmpfs -o mode=755 none /run
ip link set lo up
ip link add name lan type bridge
ip address add "$2/24" dev lan
ip link set lan up
echo ready
exec cat
'''

# Its files are the base system's until it writes them. It may call bpf(2), as hosts do: systemd filters addresses and
# devices of units by it.
MACHINE = r'''
set -eu
name=$1
lower=$2
cgroup=$3
shift 3
root=/mnt/$name
if [ ! -d "$root" ]; then
  mkdir -p "$root" "/mnt/.$name/upper" "/mnt/.$name/work"
  mount -t overlay -o "lowerdir=$lower,upperdir=/mnt/.$name/upper,workdir=/mnt/.$name/work" none "$root"
  echo "$name" >"$root/etc/hostname"
  tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
fi
mkdir -p "/sys/fs/cgroup/$cgroup/$name"
echo 0 >"/sys/fs/cgroup/$cgroup/$name/cgroup.procs"
exec systemd-nspawn --quiet --register=no --keep-unit --machine="$name" --directory="$root" --network-bridge=lan \
  --link-journal=no --resolv-conf=off --timezone=off --capability=all --drop-capability=CAP_SYS_TIME,CAP_SYS_MODULE \
  --system-call-filter=bpf \
  --console=pipe --boot "$@"
'''


class Bed:
    """A bridge and the machines on it. `lower`: directories, the uppermost first, of which machines are made."""

    numbers = itertools.count()  # several per process

    def __init__(self, lower):
        self.lower = lower
        self.cgroup = f'scored-boot-{os.getpid()}-{next(Bed.numbers)}'
        self.machines = {}
        self.enabled = []  # controllers that the host had not enabled
        self.holder = subprocess.Popen(
            ['unshare', '--mount', '--net', '--pid', '--fork', '--kill-child=KILL', '--mount-proc', '--propagation',
             'private', 'sh', '-c', HOLDER, 'holder', self.cgroup, NETWORK + '1'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != 'ready\n':
            problem = self.holder.stderr.read().strip()
            self.close()
            raise OSError(problem)
        self.pid = children(self.holder.pid)[0]

    def enter(self, *command, **options):
        """Starts a command in the namespaces of the bed."""
        return subprocess.Popen(['nsenter', '-t', str(self.pid), '-m', '-n', '-p', '--', *command], **options)

    def run(self, *command):
        """Runs a command in the namespaces of the bed, such as ip or nft for the bridge."""
        process = self.enter(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True)
        out, _ = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, f'{command}: {out}'
        return out

    def machine(self, name, lower=None):
        """A new machine; boot() starts it. Its address follows the order in which machines were made."""
        self.machines[name] = Machine(self, name, NETWORK + str(len(self.machines) + 10), lower or self.lower)
        hosts = ''.join(f'{m.address} {m.name}\n' for m in self.machines.values())
        for machine in self.machines.values():
            machine.hosts = '127.0.0.1 localhost\n' + hosts
        return self.machines[name]

    def close(self):
        if self.holder.stdin:
            self.holder.stdin.close()
        self.holder.wait(LIMIT)
        self.holder.stdout.close()
        self.holder.stderr.close()
        for machine in self.machines.values():
            machine.forget()
        # In a mount of its own: the host may have no cgroup2 mount.
        subprocess.run(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', f'''
            umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && cd /sys/fs/cgroup &&
            if [ -d {self.cgroup} ]; then find {self.cgroup} -depth -type d -exec rmdir {{}} +; fi
            for name in {' '.join(self.enabled)}; do echo -$name >cgroup.subtree_control; done'''], check=True)


class Machine:
    """A booted system. Its files stay when it stops or is killed, as those on a disk do."""

    def __init__(self, bed, name, address, lower):
        self.bed, self.name, self.address, self.hosts = bed, name, address, ''
        self.lower = ':'.join(map(str, lower))
        self.process = None

    def boot(self, *arguments):
        """Returns when the system is up; arguments are those of PID 1."""
        is_new = self.process is None
        self.console_file = open(f'/proc/self/fd/{os.memfd_create("console")}', 'w+')
        self.process = self.bed.enter(
            'sh', '-c', MACHINE, 'machine', self.name, self.lower, self.bed.cgroup, *arguments,
            stdin=subprocess.DEVNULL, stdout=self.console_file, stderr=subprocess.STDOUT)
        wait_until(lambda: self.leader() or self.process.poll() is not None, f'{self.name} starts')
        wait_until(self.is_up, f'{self.name} boots')
        if is_new:
            self.join_network()

    def join_network(self):
        self.write('/etc/hosts', self.hosts)
        self.write('/etc/systemd/network/10-host0.network',
                   f'[Match]\nName=host0\n[Network]\nAddress={self.address}/24\nLinkLocalAddressing=no\n')
        self.run('systemctl', 'enable', '--now', 'systemd-networkd', 'systemd-networkd-wait-online')

    def is_up(self):
        assert self.process.poll() is None, f'{self.name} ended: {self.console()}'
        if not self.leader():
            return False
        return self.run('systemctl', 'is-system-running', code=None).stdout.strip() in ('running', 'degraded')

    def leader(self):
        """The pid, outside, of the machine's PID 1; None: not started yet."""
        for nspawn in children(self.process.pid):
            for pid in children(nspawn):
                with contextlib.suppress(OSError):
                    if pathlib.Path(f'/proc/{pid}/comm').read_text().strip() == 'systemd':
                        return pid
        return None

    def command(self, words, user=None):
        leader = self.leader()
        assert leader, f'{self.name} is not running: {self.console()}'
        home = f'/home/{user}' if user else '/root'
        become = ['setpriv', f'--reuid={user}', f'--regid={user}', '--init-groups'] if user else []
        return ['nsenter', '-t', str(leader), '-m', '-u', '-i', '-n', '-p', '-C', '--', 'env', '-i', '-C', home,
                'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', f'HOME={home}',
                f'USER={user or "root"}', 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive', *become, *words]

    def start(self, *words, user=None, **options):
        """Starts a command on the machine; gives its Popen."""
        options = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) | options
        return subprocess.Popen(self.command([str(word) for word in words], user), text=True, **options)

    def run(self, *words, user=None, code=0, input=None, limit=LIMIT):
        """Runs a command on the machine to its end; code None: any exit code."""
        process = self.start(*words, user=user, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE)
        try:
            out, err = process.communicate(input, timeout=limit)
        except subprocess.TimeoutExpired:
            for child in children(process.pid):  # nsenter waits for it
                os.kill(child, 9)
            out, err = process.communicate()
            raise AssertionError(f'{self.name}: {words}: not done after {limit} s\n{out}\n{err}\n{self.journal()}')
        assert code in (None, process.returncode), \
            f'{self.name}: {words}: status {process.returncode}\n{out}\n{err}\n{self.journal()}'
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def json(self, *words):
        return json.loads(self.run(*words, '--json').stdout)

    def read(self, path):
        return self.run('cat', path).stdout

    def write(self, path, text, mode='644'):
        self.run('install', '-D', '-m', mode, '/dev/stdin', path, input=text)

    def copy(self, source, target):
        """A file of the host, with its mode."""
        with open(source, 'rb') as data:
            mode = format(os.fstat(data.fileno()).st_mode & 0o777, 'o')
            subprocess.run(self.command(['install', '-D', '-m', mode, '/dev/stdin', target]), stdin=data, check=True)

    def enable_controller(self, name, *cgroups):
        """Down to these cgroups of the machine, each below the one before. False: the host has it not in version 2."""
        write = 'for place; do echo "$0" >"/sys/fs/cgroup$place/cgroup.subtree_control" || exit 1; done'
        if name not in self.bed.run('cat', '/sys/fs/cgroup/cgroup.controllers').split():
            return False
        if name not in self.bed.run('cat', '/sys/fs/cgroup/cgroup.subtree_control').split():
            self.bed.enabled.append(name)
        self.bed.run('sh', '-c', write, f'+{name}', '', f'/{self.bed.cgroup}', f'/{self.bed.cgroup}/{self.name}')
        self.run('sh', '-c', write, f'+{name}', '', *cgroups)
        return True

    def journal(self, *options):
        """The last lines of the machine's journal."""
        command = self.command(['journalctl', '--no-pager', '-q', '-n', '40', *options])
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def console(self):
        self.console_file.seek(0)
        return self.console_file.read()

    def reboot(self):
        """In order, through its service manager."""
        self.run('systemctl', 'reboot', code=None)
        status = self.process.wait(LIMIT)
        assert status == 133, f'{self.name} ended with {status} instead of a reboot: {self.console()}'
        self.console_file.close()
        self.boot()

    def kill(self):
        """As if its power failed; boot() starts it again."""
        os.kill(self.leader(), 9)
        self.process.wait(LIMIT)
        self.console_file.close()

    def forget(self):
        if self.process:
            self.process.wait(LIMIT)
            self.console_file.close()

    def cut(self):
        """Pulls its cable: the bridge drops its frames until heal()."""
        self.bed.run('nft', f'add table bridge cut_{self.name}')
        for direction, hook in (('iifname', 'prerouting'), ('oifname', 'postrouting')):
            self.bed.run('nft', f'add chain bridge cut_{self.name} {hook} '
                                f'{{ type filter hook {hook} priority 0; }}')
            self.bed.run('nft', f'add rule bridge cut_{self.name} {hook} {direction} vb-{self.name} drop')

    def heal(self):
        self.bed.run('nft', f'delete table bridge cut_{self.name}')


def children(pid):
    """Of a process; empty if it is gone."""
    try:
        tasks = list(pathlib.Path(f'/proc/{pid}/task').iterdir())
        return [int(child) for task in tasks for child in (task / 'children').read_text().split()]
    except OSError:
        return []


def wait_until(holds, what, limit=LIMIT):
    end = time.monotonic() + limit
    while not (result := holds()):
        assert time.monotonic() < end, f'not so after {limit} s: {what}'
        time.sleep(0.05)
    return result


def why_impossible():
    """Why this host cannot boot machines; None: it can, as far as one can tell before."""
    if os.geteuid() != 0:
        return 'booting machines needs root'
    for program, package in (('systemd-nspawn', 'systemd-container'), ('nft', 'nftables'), ('ip', 'iproute2')):
        if not shutil.which(program):
            return f'{program} is not installed: apt-get install {package}'
    if 'cgroup2' not in pathlib.Path('/proc/filesystems').read_text():
        return 'the kernel has no cgroup v2'
    return None
