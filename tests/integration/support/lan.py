"""A small network of pretended hosts on this machine: each has its own network, process and mount namespaces, its own
/tmp and /run, and a real sshd with keys of its own. Nothing of the machine's ssh configuration or users is used."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from cluster import BIN, LIMIT, wait_until

UID = 4242  # of the user `tester`, whom only the namespaces know
SSHD = shutil.which('sshd') or '/usr/sbin/sshd'
NEEDED = ['unshare', 'nsenter', 'setpriv', 'ip', 'ssh', 'ssh-keygen', SSHD]

SSHD_CONFIG = """Port 22
HostKey {base}/host_key
AuthorizedKeysFile {base}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowUsers tester
"""
SSH_CONFIG = """IdentityFile {base}/user_key
IdentitiesOnly yes
GlobalKnownHostsFile {base}/known_hosts
UserKnownHostsFile {base}/known_hosts
Host me
HostName 127.0.0.1
HostKeyAlias h00
"""
# The namespaces of the login host, from which the others are made.
LOGIN = """set -e
for f in passwd group shadow hosts; do mount --bind {base}/etc/$f /etc/$f; done
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp
hostname login
ip link set lo up
ip link add br0 type bridge
ip addr add 10.78.0.1/16 dev br0
ip link set br0 up
touch {base}/up/login
exec sleep infinity
"""
HOST = """set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp
hostname {name}
touch {base}/up/{name}
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip addr add {address}/16 dev eth0
ip link set eth0 up
{services}
{sshd} -D -e -f {base}/sshd_config 2> {base}/log/sshd-{name} &
until grep -q listening {base}/log/sshd-{name}; do sleep 0.05; done
touch {base}/up/{name}.net
while :; do sleep 3600; done
"""
# A user manager as after a login. The host's root cgroup is a directory of the user's.
USER_MANAGER = """umount -l /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /run/systemd/system /run/user/{uid}
chown {uid}:{uid} /run/user/{uid}
chmod 700 /run/user/{uid}
as_user="setpriv --reuid={uid} --regid={uid} --clear-groups env -i PATH=/usr/bin:/bin HOME={base}/home XDG_RUNTIME_DIR=/run/user/{uid}"
$as_user dbus-daemon --session --nopidfile --address=unix:path=/run/user/{uid}/bus --fork
$as_user /lib/systemd/systemd --user > {base}/log/manager-{name} 2>&1 &
until [ "$($as_user systemctl --user is-system-running 2>/dev/null)" = running ]; do sleep 0.1; done"""


def cgroup2_mount():
    """Where this machine has cgroup2; None if nowhere."""
    lines = [line.split() for line in pathlib.Path('/proc/mounts').read_text().splitlines()]
    return next((pathlib.Path(words[1]) for words in lines if words[2] == 'cgroup2'), None)


def missing():
    """Why no such network can be made here; '' if it can."""
    if os.geteuid() != 0:
        return 'needs root'
    absent = [name for name in NEEDED if not shutil.which(name)]
    return f'needs {", ".join(absent)} (openssh-server, iproute2, util-linux)' if absent else ''


def address(index):
    return f'10.78.{(index + 2) // 250}.{(index + 2) % 250 + 1}'


class Lan:
    """`count` hosts h00, h01, ... and the login host, where commands are run as `tester`. `prepare` may change the
    files before; `services` are shell lines that start more daemons on each host. `user_manager`: tester has a user
    manager of systemd on each host."""

    def __init__(self, count, prepare=lambda lan: None, services='', user_manager=False):
        self.services = USER_MANAGER if user_manager else services
        self.cgroups = {}
        self.names = [f'h{index:02}' for index in range(count)]
        self.base = pathlib.Path(tempfile.mkdtemp(prefix='scored-lan-', dir='/var/tmp'))
        self.processes = {}
        self.namespaces = set()  # the network namespace of each host that there was
        self.clients = []
        self.served = set()
        try:
            self.write_files()
            prepare(self)
            if user_manager:
                self.make_cgroups()
            self.make_login()
            self.make_hosts()
        except BaseException:
            self.close()
            raise

    # ---- making it

    def write_files(self):
        base = self.base
        base.chmod(0o755)
        for name in ['etc', 'up', 'log', 'home']:
            (base / name).mkdir()
        os.chown(base / 'home', UID, UID)
        entries = {'passwd': f'tester:x:{UID}:{UID}:Tester:{base}/home:/bin/sh\n', 'group': f'tester:x:{UID}:\n',
                   'shadow': 'tester:*:19000:0:99999:7:::\n'}
        for name, line in entries.items():
            shutil.copy(f'/etc/{name}', base / 'etc' / name)
            with open(base / 'etc' / name, 'a') as file:
                file.write(line)
        hosts = [f'{address(i)} {name}\n' for i, name in enumerate(self.names)]
        (base / 'etc/hosts').write_text('127.0.0.1 localhost\n10.78.0.1 login\n' + ''.join(hosts))
        for key in ['host_key', 'user_key']:
            subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', key, '-f', base / key], check=True)
        os.chown(base / 'user_key', UID, UID)
        (base / 'sshd_config').write_text(SSHD_CONFIG.format(base=base))
        (base / 'ssh_config').write_text(SSH_CONFIG.format(base=base))
        public = ' '.join((base / 'host_key.pub').read_text().split()[:2])
        (base / 'known_hosts').write_text(''.join(f'{name} {public}\n' for name in self.names))

    def make_cgroups(self):
        for name in self.names:
            path = cgroup2_mount() / f'{self.base.name}-{name}'
            path.mkdir()
            for owned in [path, *(path / file for file in ['cgroup.procs', 'cgroup.threads', 'cgroup.subtree_control'])]:
                os.chown(owned, UID, UID)
            self.cgroups[name] = path
        with open(self.base / 'sshd_config', 'a') as config:
            config.write(f'SetEnv XDG_RUNTIME_DIR=/run/user/{UID}\n')

    def make_login(self):
        self.processes['login'] = subprocess.Popen(
            ['unshare', '--net', '--mount', '--uts', '--propagation', 'private', 'sh', '-c',
             LOGIN.format(base=self.base)])
        self.wait_for('login')

    def make_hosts(self):
        for name in self.names:
            self.start_host(name)
        batch = ''
        for name in self.names:
            self.wait_for(name)
            batch += (f'link add v{name} type veth peer name eth0 netns {self.processes[name].pid}\n'
                      f'link set v{name} master br0 up\n')
        subprocess.run([*self.inside('login', root=True), 'ip', '-batch', '-'], input=batch.encode(), check=True)
        for name in self.names:
            self.wait_for_mark(f'{name}.net')

    def start_host(self, name):
        script = HOST.format(base=self.base, name=name, address=address(self.names.index(name)), sshd=SSHD,
                             services=self.services.format(base=self.base, name=name, uid=UID))
        words = ['nsenter', '-t', str(self.processes['login'].pid), '-m', 'unshare', '--net', '--mount', '--uts', '--pid',
                 '--cgroup', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', script]
        if name in self.cgroups:
            words = ['sh', '-c', f'echo $$ > {self.cgroups[name]}/cgroup.procs; exec "$@"', 'sh', *words]
        self.processes[name] = subprocess.Popen(words)

    def serve(self, name, *words):
        """Starts a daemon of root on the login host, which ends with the network."""
        log = open(self.base / 'log' / name, 'wb')
        self.processes[name] = subprocess.Popen([*self.inside('login', root=True), *map(str, words)], stdout=log,
                                                stderr=log, stdin=subprocess.DEVNULL, cwd='/')
        log.close()
        self.served.add(name)

    def wait_for(self, name):
        """Until the host has its namespaces."""
        self.wait_for_mark(name)
        self.namespaces.add(network_namespace(self.processes[name].pid))

    def wait_for_mark(self, mark):
        wait_until((self.base / 'up' / mark).exists, 60, lambda: mark)

    # ---- using it

    def inside(self, name, root=False):
        """The words that run a command on a host, as `tester`."""
        pid = self.processes[name].pid
        if name != 'login':
            pid = self.init_of(name)
        words = ['nsenter', '-t', str(pid), '-m', '-n', '-u', *(['-p'] if name != 'login' else []), '--']
        return words if root else [*words, 'setpriv', f'--reuid={UID}', f'--regid={UID}', '--clear-groups']

    def init_of(self, name):
        """The first process of a host's process namespace."""
        pid = self.processes[name].pid
        return int(pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()[0])

    def environment(self, **extra):
        kept = {name: os.environ[name] for name in ['LANG', 'LC_ALL'] if name in os.environ}
        return dict(kept, PATH='/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', HOME=str(self.base / 'home'),
                    USER='tester', LOGNAME='tester', SHELL='/bin/sh', **extra)

    def popen(self, *words, env=None, on='login', **options):
        """Starts a command, on the login host or another."""
        process = subprocess.Popen([*self.inside(on), *map(str, words)], text=True, cwd='/',
                                   env=self.environment(**(env or {})), **options)
        self.clients.append(process)
        return process

    def run(self, *words, code=0, limit=LIMIT, **options):
        process = self.popen(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options)
        out, err = process.communicate(timeout=limit)
        if code is not None:
            assert process.returncode == code, f'{words}: {process.returncode}\n{out}\n{err}\n{self.logs()}'
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def start(self, *words, hosts=None, **options):
        """`score start` by ssh to the hosts (all)."""
        return self.run(*self.start_words(*words, hosts=hosts), **options)

    def start_words(self, *words, hosts=None):
        names = ','.join(self.names if hosts is None else hosts)
        return [BIN / 'score', 'start', '--ssh', f'ssh -F {self.base}/ssh_config', '--hosts', names, *words]

    def logs(self):
        return ''.join(f'{path.name}: {path.read_text(errors="replace")[-2000:]}\n'
                       for path in sorted((self.base / 'log').iterdir()))[-8000:]

    # ---- what is left

    def left_processes(self):
        """Living processes of `tester`, on any host of this network: another test may have hosts at the same time."""
        found = []
        for entry in pathlib.Path('/proc').iterdir():
            with contextlib.suppress(OSError, IndexError):
                if (entry.name.isdigit() and entry.stat().st_uid == UID
                        and network_namespace(entry.name) in self.namespaces):
                    if (entry / 'stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z':
                        found.append((int(entry.name), (entry / 'cmdline').read_bytes().replace(b'\0', b' ')))
        return found

    def left_files(self):
        """What is in the hosts' /tmp beside empty directories of registries."""
        found = []
        for name in ['login', *(name for name in self.names if name in self.processes)]:
            pid = self.processes[name].pid if name == 'login' else self.init_of(name)
            root = pathlib.Path(f'/proc/{pid}/root/tmp')
            found += [(name, path) for path in tree(root) if is_left(path)]
        return found

    def check_clean(self, limit=60):
        wait_until(lambda: not self.left_processes(), limit, lambda: str(self.left_processes()))
        wait_until(lambda: not self.left_files(), limit, lambda: str(self.left_files()))

    # ---- ending it

    def lose(self, name):
        """The host vanishes: everything on it is gone at once."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self):
        for process in self.clients:
            if process.poll() is None:
                process.kill()
                process.wait()
        for name, process in reversed([*self.processes.items()]):
            if name in self.served:
                process.terminate()  # so that it waits for its children
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
            process.kill()
            process.wait()
        self.end_strangers()
        for path in self.cgroups.values():
            wait_until(lambda path=path: remove_cgroup(path), 10, lambda path=path: str(path))
        shutil.rmtree(self.base, ignore_errors=True)

    def end_strangers(self):
        """Processes of `tester` that a failed test has left on the login host."""
        end = time.monotonic() + 10
        while time.monotonic() < end and (left := self.left_processes()):
            for pid, _ in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def network_namespace(pid):
    return os.readlink(f'/proc/{pid}/ns/net')


def remove_cgroup(path):
    """True once it is gone; False while a process is in it."""
    for below in sorted(path.rglob('*/'), reverse=True):
        with contextlib.suppress(OSError):
            below.rmdir()
    with contextlib.suppress(OSError):
        path.rmdir()
    return not path.exists()


def tree(root):
    """Paths below the directory; what vanishes meanwhile is left out."""
    for directory, folders, files in os.walk(root):
        yield from (os.path.relpath(os.path.join(directory, name), root) for name in folders + files)


def is_left(path):
    registries = (f'scored-start-{UID}', f'scored-start-node-{UID}')
    return path not in registries and path not in [f'{registry}/.lock' for registry in registries]
