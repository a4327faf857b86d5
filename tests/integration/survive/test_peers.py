"""Hostile peers of the inner protocols: they know every message and state, and make nonsense of it.

A conversation comes from a number; a failure prints it. By hand: SCORE_FUZZ_SECONDS=600, SCORE_SEED=N to begin with."""
import array
import contextlib
import ctypes
import fcntl
import os
import pathlib
import pwd
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import pytest
from cluster import BIN, is_alive, wait_until
from figures import figure
from frames import Schema
from progress import start_progress

SECONDS = float(os.environ.get('SCORE_FUZZ_SECONDS', 5))
SEED = int(os.environ.get('SCORE_SEED', 1))
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NOBODY = pwd.getpwnam('nobody').pw_uid
SCHEMA = Schema()


def conversations():
    """Numbers, until the time is over."""
    end, seed = time.monotonic() + SECONDS, SEED
    while time.monotonic() < end:
        yield seed, random.Random(seed)
        seed += 1


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


# ---- the launcher

def launcher_request():
    """(magic, version, format, names of the fields) as protocol.hpp has them."""
    text = (ROOT / 'scored/privileged/launcher/protocol.hpp').read_text(encoding='utf-8')
    constant = {name: int(value, 0) for name, value in re.findall(r'constexpr std::uint32_t (kMagic|kVersion) = (\w+);', text)}
    bytes_of = dict(re.findall(r'constexpr std::size_t (\w+) = (\d+);', text))
    body = text[text.index('struct StartRequest {'):text.index('};', text.index('struct StartRequest {'))]
    fields = re.findall(r'^\s+(std::uint8_t|std::uint16_t|std::uint32_t|std::uint64_t|char) (\w+)(?:\[(\w+)\])? = ', body, re.M)
    sizes = {'std::uint8_t': 'B', 'std::uint16_t': 'H', 'std::uint32_t': 'I', 'std::uint64_t': 'Q'}
    layout = '=' + ''.join(sizes.get(kind) or bytes_of[length] + 's' for kind, _, length in fields)
    return constant['kMagic'], constant['kVersion'], layout, {name: b'' if kind == 'char' else 0 for kind, name, _ in fields}


MAGIC, VERSION, LAYOUT, FIELDS = launcher_request()


def launch(number):
    """A request that is as it must be; it comes with a listening socket."""
    values = FIELDS | {'magic': MAGIC, 'version': VERSION, 'user': NOBODY, 'attempt': number << 8 | 1}
    return struct.pack(LAYOUT, *values.values())


def packet(chance):
    values = {name: chance.choice((0, 0, 1, 2, 2**8 - 1)) for name in FIELDS}
    values |= {'magic': MAGIC, 'version': VERSION, 'user': chance.choice((NOBODY, NOBODY, 4000000000, 54321)),
               'attempt': chance.choice((0, 1, 256, 257, 2**63))}
    values['denied'] = chance.choice((b'', b'', b'c1:3', b'c1:3 b7:*', b'c' * 2000, b'../x', b'c-1:9999999999', chance.randbytes(60)))
    data = bytearray(struct.pack(LAYOUT, *values.values()))
    if chance.random() < 0.2:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.1:
        data = data[:chance.randrange(1, len(data))] + bytes(chance.choice((0, 0, 8)))
    return bytes(data)


@contextlib.contextmanager
def some_descriptors(chance, kinds=None):
    made = []
    for kind in kinds or [chance.randrange(4) for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 7, 8, 20)))]:
        if kind == 0:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind('')
            listener.listen()
            made.append(listener.detach())
        else:
            made.append([lambda: os.open('/dev/null', os.O_RDONLY), lambda: os.memfd_create('x'),
                         lambda: os.eventfd(0)][kind - 1]())
    yield made
    for descriptor in made:
        os.close(descriptor)


def send_packet(peer, data, fds):
    with contextlib.suppress(OSError):  # closed on us
        peer.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [], socket.MSG_DONTWAIT)
        peer.settimeout(0.05)
        reply = peer.recv(4096)
        return struct.unpack_from('=IIQi', reply)[3] if len(reply) >= 20 else 0  # the shepherd's pid
    return 0


def children_of(pid):
    text = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text()
    return [int(word) for word in text.split()]


def kill_children(pid):
    """Until none is left: the launcher inherits those of the killed."""
    def none_left():
        for child in children_of(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return not children_of(pid)
    wait_until(none_left, 60, lambda: children_of(pid))


def test_a_hostile_node_daemon_at_the_launcher(fresh, as_root, tmp_path):
    """It has the socket of node01's launcher; a job on the other node goes on."""
    cluster = fresh(2, '--node-timeout', '1h')
    _, counters = start_progress(cluster, tmp_path, 'job', 1, '-w', 'node00')
    launcher, path = cluster.daemon('launcher-node01')['pid'], cluster.directory / 'node01/launcher.sock'
    cluster.kill('node01')
    before, count, started = descriptors(launcher), 0, 0
    for seed, chance in conversations():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.connect(str(path))
            for _ in range(chance.randrange(1, 12)):
                is_launch = chance.random() < 0.15
                with some_descriptors(chance, [0] if is_launch else None) as fds:
                    started += send_packet(peer, launch(1000 + count) if is_launch else packet(chance), fds) > 0
                count += 1
        assert is_alive(launcher), f'SCORE_SEED={seed}: {cluster.logs()}'
        if seed % 20 == 0:
            kill_children(launcher)
    kill_children(launcher)
    assert is_alive(launcher)
    wait_until(lambda: descriptors(launcher) <= before + 1, 60, lambda: (before, descriptors(launcher)))
    progress = counters.total()
    wait_until(lambda: counters.total() > progress)
    cluster.restart('node01')
    cluster.wait_up()
    assert cluster.run('scrun', '-q', '-N', 2, 'echo', 'x').stdout == 'x\n' * 2
    cluster.cancel_all()
    assert started > 0, 'no request was as it must be'
    figure('peer-launcher', f'{count} packets, {started} shepherds started and ended; launcher alive, no descriptor left')


# ---- a shepherd

def start_shepherd(place):
    """As the launcher does it. (pid of the shepherd, path of its socket)"""
    path = place / 's'
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(8)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
                mode = 'shepherd' if os.fork() else 'spawner'
                if mode == 'spawner':
                    os.setsid()
                high = os.dup(listener.fileno()), os.dup((ours if mode == 'shepherd' else theirs).fileno())
                low = [os.open('/dev/null', os.O_RDWR) for _ in range(8)][-1]
                high = [fd if fd > 10 else os.dup2(fd, 100 + fd) for fd in high]
                os.dup2(low, 0)
                os.dup2(low, 1)
                os.dup2(high[0], 3)
                os.dup2(high[1], 4)
                if mode == 'spawner':
                    os.close(3)
                os.closerange(5, 256)
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                os.execve(BIN / 'scored-shepherd', ['scored-shepherd', mode], {})
            finally:
                os._exit(98)
        ours.close()
        theirs.close()
    return pid, path


def plan(marker, script):
    spec = SCHEMA.encode('LaunchSpec', job=7, programs=[{'argv': [b'/bin/sh', b'-c', script.encode(), marker.encode()]}],
                         env=[b'PATH=/bin:/usr/bin'], directory=b'/', umask=0o22)
    return {'attempt': 1793, 'tasks_on_node': [2], 'spec': spec, 'node_name': b'n0'}


def hostile_daemon(peer, chance, hints, valid):
    names = SCHEMA.sent_by('NODE_DAEMON')
    if chance.random() < 0.6:
        peer.sendall(SCHEMA.frame('ShepherdPrepare', **valid))
        if chance.random() < 0.8:
            peer.sendall(SCHEMA.frame('StartTasks', attempt=1793))
    count = 0
    for _ in range(chance.randrange(1, 40)):
        data = SCHEMA.random_frame(names, chance, hints)[1]
        peer.sendall(data if chance.random() < 0.97 else data[:chance.randrange(len(data))])
        count += 1
        while select.select([peer], [], [], 0)[0]:
            if not peer.recv(65536):
                return count
    return count


def processes_with(marker):
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and marker.encode() in (entry / 'cmdline').read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def test_a_hostile_node_daemon_at_the_shepherd(as_root, tmp_path):
    count = rounds = 0
    for seed, chance in conversations():
        place = pathlib.Path(tempfile.mkdtemp(prefix='scored-peer-', dir='/tmp'))
        place.chmod(0o755)
        marker = f'hostile-{os.getpid()}-{seed}'
        valid = plan(marker, chance.choice(('exit 0', 'sleep 600', 'echo x; read line; echo $line', 'exec 1>&-; sleep 600')))
        hints = {'attempt': [1793, 1793, 1794], 'tasks_on_node': [1, 2], 'tasks': [1, 2], 'spec': [valid['spec']], 'argv': [b'true'],
                 'directory': [b'/'], 'stdin_path': [b''], 'stdout_path': [b''], 'stderr_path': [b''], 'signal': [9, 15, 19, 18, 0],
                 'node_index': [0, 0, 5], 'sequence': [1, 1, 2], 'count': [0, 1, 32, 33], 'interface': [b'lo'], 'pmix_env': [b'A=b']}
        shepherd, path = start_shepherd(place)
        try:
            for _ in range(chance.choice((1, 1, 2, 4))):
                with socket.socket(socket.AF_UNIX) as peer, contextlib.suppress(OSError):
                    peer.settimeout(1)
                    peer.connect(str(path))
                    count += hostile_daemon(peer, chance, hints, valid)
            path.unlink()
            with contextlib.suppress(ProcessLookupError):
                os.kill(shepherd, signal.SIGTERM)
            ended = []
            wait_until(lambda: ended.append(os.waitpid(shepherd, os.WNOHANG)) or ended[-1][0] == shepherd, 60)
            status = ended[-1][1]
            is_crash = os.WIFSIGNALED(status) and os.WTERMSIG(status) not in (signal.SIGTERM, signal.SIGKILL)
            assert not is_crash, f'SCORE_SEED={seed}: ended by signal {os.WTERMSIG(status)}'
            wait_until(lambda: not processes_with(marker), 60, lambda: f'SCORE_SEED={seed}: {processes_with(marker)}')
            rounds += 1
        finally:
            shutil.rmtree(place, ignore_errors=True)
    figure('peer-shepherd', f'{count} frames in {rounds} conversations with a shepherd: none crashed, no process left')


def test_a_hostile_shepherd_at_the_node_daemon(fresh, as_root, tmp_path):
    """Each job of node01 is a conversation; a job of the other node goes on."""
    cluster = fresh(2, '--slice', '20ms')
    if not cluster.description['cgroup']:
        pytest.skip('needs cgroups')
    _, counters = start_progress(cluster, tmp_path, 'job', 1, '-w', 'node00')
    place = tmp_path / 'shepherd'
    place.mkdir()
    shutil.copy(HERE / 'hostile_shepherd.py', place / 'shepherd.py')
    (place / 'shepherd.py').chmod(0o755)
    (place / 'path').write_text('\n'.join(map(str, (HERE.parent / 'support', HERE.parents[2] / 'bench/support'))))
    (place / 'seed').write_text(str(SEED))
    node = cluster.daemon('node01')['pid']
    words = pathlib.Path(f'/proc/{cluster.daemon("launcher-node01")["pid"]}/cmdline').read_bytes().decode().split('\0')[:-1]
    words[words.index('--shepherd') + 1] = str(place / 'shepherd.py')
    cluster.kill('launcher-node01')
    with open(tmp_path / 'launcher.log', 'wb') as log:
        launcher = subprocess.Popen([BIN / 'scored-launcher', *words[1:]], stderr=log)
    rounds = 0
    try:
        wait_until(lambda: cluster.run('scrun', '-q', '-w', 'node01', '--time', '1s', 'true', code=None).returncode is not None)
        for seed, chance in conversations():
            job = cluster.submit('-w', 'node01', '--no-requeue', 'true')
            time.sleep(chance.choice((0, 0.05, 0.3)))
            cluster.cancel(job)
            assert is_alive(node), f'SCORE_SEED={seed}: {cluster.logs()}'
            rounds += 1
    finally:
        launcher.kill()
        launcher.wait()
    cluster.restart('launcher-node01')
    progress = counters.total()
    wait_until(lambda: counters.total() > progress)
    wait_until(lambda: cluster.run('scrun', '-q', '-N', 2, 'echo', 'x', code=None).stdout == 'x\n' * 2)
    assert cluster.daemon('node01')['pid'] == node and cluster.nodes_up() == 2
    cluster.cancel_all()
    figure('peer-shepherd', f'{rounds} hostile shepherds: node daemon alive, other jobs went on, every job ended')


# ---- the PMIx server

def start_pmix():
    """The server, the socket to it, and the address at which it serves clients."""
    ours, theirs = socket.socketpair()
    listener = socket.create_server(('127.0.0.1', 0))
    listener.setblocking(False)
    ends = (theirs.fileno(), listener.fileno())
    words = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', str(BIN / 'scored-pmix')]

    def place_descriptors():
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 100) for end in ends]
        for number, end in enumerate(high, 3):
            os.dup2(end, number, True)

    process = subprocess.Popen(words, close_fds=False, preexec_fn=place_descriptors, env={'PATH': '/usr/bin:/bin'}, stderr=subprocess.DEVNULL)
    theirs.close()
    with listener:
        return process, ours, listener.getsockname()


@contextlib.contextmanager
def client_of_nobody(address):
    """A connection that the server takes for one of its tasks: of its user, in its cgroup."""
    os.seteuid(NOBODY)
    try:
        client = socket.socket()  # create_connection() would load a codec, which this user may not read
        client.settimeout(1)
        client.connect(address)
    finally:
        os.seteuid(0)
    with client:
        yield client


def test_hostile_peers_of_the_pmix_server(as_root):
    if not (BIN / 'scored-pmix').exists():
        pytest.skip('built without PMIx')
    count = rounds = connections = 0
    for seed, chance in conversations():
        place = pathlib.Path(tempfile.mkdtemp(prefix='scored-peer-', dir='/tmp'))
        os.chown(place, NOBODY, NOBODY)
        process, peer, address = start_pmix()
        try:
            spec = SCHEMA.encode('LaunchSpec', job=12, programs=[{'argv': [b'true']}], directory=b'/', mpi=3, key_space=b'score.1')
            start = SCHEMA.encode('ShepherdPrepare', attempt=1793, tasks_on_node=[2, 2], spec=spec, node_name=b'n0')
            peer.settimeout(20)
            hints = {'attempt': [1793], 'node_index': [0, 1, 2], 'sequence': [1, 1, 2, 3], 'rank': [0, 1, 2, 3, 9], 'kind': [1, 2, 3, 4, 5, 6],
                     'request': [1, 2, 3], 'ranks': [0, 1, 2, 3], 'plan': [start], 'keys': [b'a', b'b', b'pmix.loc']}
            with contextlib.suppress(OSError):
                if chance.random() < 0.9:
                    peer.sendall(SCHEMA.frame('PmixStart', plan=start, directory=str(place).encode()))
                    with contextlib.suppress(OSError), client_of_nobody(address) as task:
                        task.sendall(chance.randbytes(chance.choice((1, 20, 100, 5000))))
                        connections += 1
                for _ in range(chance.randrange(1, 60)):
                    data = SCHEMA.random_frame(['PmixFenceDone', 'JobRelay', 'JobRelay', 'JobRelay', 'PmixStart'], chance, hints)[1]
                    peer.sendall(data)
                    count += 1
                    while select.select([peer], [], [], 0)[0] and peer.recv(65536):
                        pass
            peer.close()
            assert process.wait(60) >= 0, f'SCORE_SEED={seed}: ended by signal {-process.returncode}'
            rounds += 1
        finally:
            peer.close()
            process.kill()
            process.wait()
            shutil.rmtree(place, ignore_errors=True)
    assert connections > 0, 'no server came up'
    figure('peer-pmix', f'{count} frames and {connections} connections in {rounds} conversations: none crashed')
