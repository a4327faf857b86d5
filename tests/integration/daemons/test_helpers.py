"""Programs of Scored that run as the user of a job: where they run, and what other processes of the user can do to them."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import time

import pytest
from cluster import BIN, wait_until
from figures import figure
from login_users import other_user

NOBODY = 65534
LAUNCHES = 100
needs_pmix = pytest.mark.skipif(not (BIN / 'scored-pmix').exists(), reason='built without PMIx')
needs_volumes = pytest.mark.skipif(not (BIN / 'scored-pario-mount').exists() or not os.access('/dev/fuse', os.R_OK | os.W_OK)
                                   or not shutil.which('fusermount3'), reason='no scored-pario-mount, /dev/fuse or fusermount3')


def cgroups_of(pid):
    """Its path in each hierarchy; that of version 2 has the name ''."""
    lines = pathlib.Path(f'/proc/{pid}/cgroup').read_text().splitlines()
    return {line.split(':', 2)[1]: line.split(':', 2)[2] for line in lines}


def found_in(cgroup):
    """Pids of the processes in a cgroup, by name."""
    found = {}
    for pid in map(int, (cgroup / 'cgroup.procs').read_text().split()):
        with contextlib.suppress(OSError):
            found.setdefault(pathlib.Path(f'/proc/{pid}/comm').read_text().strip(), []).append(pid)
    return found


def place_of(cluster, job):
    """The directory of the job's cgroups; skips the test where there is none."""
    root = pathlib.Path(cluster.description['cgroup'] or '/none')
    if not root.exists():
        pytest.skip('no cgroups here')
    place, = root.glob(f'node00/job_{job * 256 + 1}')
    return place


def idle_of(pid, place):
    """cpu.idle of the job; None where the kernel or the cgroups have none."""
    for path in (place / 'cpu.idle', pathlib.Path('/sys/fs/cgroup/cpu', cgroups_of(pid).get('cpu', '').lstrip('/')).parent / 'cpu.idle'):
        if path.exists():
            return path.read_text().strip()
    return None


def is_frozen(cgroup):
    return 'frozen 1' in (cgroup / 'cgroup.events').read_text()


def open_to_all(path):
    """Lets other users reach the files below this directory."""
    for one in (path, *path.parents):
        if one not in (pathlib.Path('/'), pathlib.Path('/tmp')):
            one.chmod(0o755)


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', port), 1):
        return True
    return False


def can_trace(pid, uid):
    """Whether a process of that user can."""
    program = f'import ctypes; print(ctypes.CDLL(None).ptrace(0x4206, {pid}, 0, 0))'
    return subprocess.run(['/usr/bin/python3', '-c', program], user=uid, group=uid, extra_groups=[], capture_output=True, text=True,
                          check=True).stdout.strip() == '0'


@needs_volumes
def test_servers_of_a_volume_have_the_jobs_limits_and_little_time(fresh, as_root):
    cluster = fresh(1, '--scratch', '64M')
    job = cluster.submit('--scratch', '16M', 'sh', '-c', 'cp /bin/true $SCORE_SCRATCH/ready; while :; do sleep 0.1; done')
    cluster.wait_job(job, 'running')
    place = place_of(cluster, job)
    names = ('scored-pario', 'scored-pario-m')
    wait_until(lambda: all(any(name.startswith(one) for name in found_in(place / 'helpers')) for one in names), what=cluster.logs)
    helpers = [pid for name, pids in found_in(place / 'helpers').items() if name.startswith('scored-pario') for pid in pids]
    task = found_in(place / 'tasks')['sh'][0]
    for pid in helpers:
        assert {name: path for name, path in cgroups_of(pid).items() if name} == {name: path for name, path in cgroups_of(task).items() if name}
    assert set(found_in(place / 'shepherd')) == {'scored-shepherd'}, 'no helper escapes the limits'
    cluster.run('score', 'suspend', job)
    wait_until(lambda: is_frozen(place / 'tasks'))
    assert not is_frozen(place / 'helpers')
    wait_until(lambda: idle_of(task, place) in ('1', None))
    cluster.run('score', 'resume', job)
    wait_until(lambda: not is_frozen(place / 'tasks') and idle_of(task, place) in ('0', None))
    cluster.cancel(job)
    wait_until(lambda: not place.exists())


@pytest.mark.skipif(not (BIN / 'scored-pario').exists(), reason='scored-pario is not built')
def test_a_task_cannot_trace_the_server_of_its_volume(as_root, tmp_path):
    """Also not where the program is readable, as in a build tree."""
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    volume, data = tmp_path / 'volume', tmp_path / 'data'
    volume.write_text(f'name job-1\nkey {"0f" * 16}\nserver 127.0.0.1:{port}\n')
    volume.chmod(0o600)
    data.mkdir()
    for path in (volume, data):
        os.chown(path, NOBODY, NOBODY)
    open_to_all(tmp_path)
    server = subprocess.Popen([BIN / 'scored-pario', '--volume', volume, '--index', '0', '--directory', data,
                               '--capacity', '16M'], user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        wait_until(lambda: answers(port))
        assert not can_trace(server.pid, NOBODY)
    finally:
        server.kill()
        server.wait()


# A client of PMIx as far as the start of the server is concerned.
TOUCHES = r'''
import os, re, socket, time
address = re.search(r"tcp4://([\d.]+):(\d+)", os.environ["PMIX_SERVER_URI4"])
print(address[1], address[2], flush=True)
while not os.path.exists(os.environ["GO"]): time.sleep(0.05)
held = socket.create_connection((address[1], int(address[2])))
time.sleep(1000)
'''


def closes(address, uid):
    """Whether the server at this address closes a connection of that user, which comes from outside the job."""
    program = f'import socket; s = socket.create_connection({address}); s.settimeout(20); print(s.recv(1))'
    done = subprocess.run(['/usr/bin/python3', '-c', program], user=uid, group=uid, extra_groups=[], capture_output=True, text=True)
    return done.stdout == "b''\n" or 'ConnectionReset' in done.stderr


@needs_pmix
def test_a_server_for_mpi_runs_among_the_tasks_and_for_them_alone(fresh, as_root, tmp_path):
    go, out = tmp_path / 'go', tmp_path / 'out'
    cluster = fresh(1)
    with other_user(cluster) as user:
        open_to_all(tmp_path)
        out.touch()
        out.chmod(0o666)
        job = user.submit('--mpi=both', '-o', out, 'python3', '-c', TOUCHES, GO=str(go))
        wait_until(lambda: out.read_text().count('\n') == 1, what=cluster.logs)
        host, port = out.read_text().split()
        place = place_of(cluster, job)
        for uid in (1, user.uid):  # another user; another job of the same one
            assert closes((host, int(port)), uid)
        assert 'scored-pmix' not in found_in(place / 'tasks')
        go.touch()
        wait_until(lambda: 'scored-pmix' in found_in(place / 'tasks'), what=cluster.logs)
        server, = found_in(place / 'tasks')['scored-pmix']
        assert set(found_in(place / 'shepherd')) == {'scored-shepherd'}
        assert all(closes((host, int(port)), uid) for uid in (1, user.uid))
        assert not can_trace(server, user.uid)
        cluster.run('score', 'suspend', job)
        wait_until(lambda: is_frozen(place / 'tasks'))
        cluster.run('score', 'resume', job)
        cluster.cancel(job)


# Traces each shepherd and spawner as soon as the launcher has forked it, for as long as it starts.
TRACER = r'''
import ctypes, sys, time
libc = ctypes.CDLL(None)
launcher, tried = int(sys.argv[1]), set()
def children(pid):
    try: return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError: return []
print("ready", flush=True)
while True:
    for pid in set(children(launcher)) - tried:
        tried.add(pid)
        end = time.monotonic() + 0.03
        while time.monotonic() < end:
            for target in (pid, *children(pid)):
                if libc.ptrace(0x4206, target, 0, 0) == 0: print("traced", target, flush=True)
'''


def install(place):
    """The part of the build that has the shepherd, as `cmake --install` makes it."""
    script = BIN.parent / 'scored' / 'cmake_install.cmake'
    if not script.exists() or not shutil.which('cmake'):
        pytest.skip('needs the build tree and cmake')
    subprocess.run(['cmake', f'-DCMAKE_INSTALL_PREFIX={place}', '-P', script], check=True, stdout=subprocess.DEVNULL)
    return place / 'libexec' / 'scored'


def launch(daemon, attempt):
    """A shepherd of nobody; its pid."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind('')
    listener.listen(1)
    protocol = (pathlib.Path(__file__).parents[3] / 'scored/privileged/launcher/protocol.hpp').read_text()
    version = int(re.search(r'kVersion = (\d+);', protocol)[1])
    socket.send_fds(daemon, [struct.pack('<IIQIHH', 0x4c524353, version, attempt, NOBODY, 0, 0) + bytes(1024)], [listener.fileno()])
    error, shepherd = struct.unpack_from('<4xI8xi', daemon.recv(64))
    assert error == 0, os.strerror(error)
    return shepherd, listener


def test_no_shepherd_can_be_traced_from_its_first_instruction_on(as_root, tmp_path):
    open_to_all(tmp_path)
    programs, run = install(tmp_path / 'installed'), tmp_path / 'run'
    run.mkdir(mode=0o755)
    launcher = subprocess.Popen([programs / 'scored-launcher', '--rundir', run, '--shepherd', programs / 'scored-shepherd'])
    tracer = None
    try:
        wait_until(lambda: (run / 'launcher.sock').exists())
        tracer = subprocess.Popen(['/usr/bin/python3', '-c', TRACER, str(launcher.pid)], user=NOBODY, group=NOBODY, extra_groups=[],
                                  stdout=subprocess.PIPE, text=True)
        assert tracer.stdout.readline() == 'ready\n'
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemon:
            daemon.connect(str(run / 'launcher.sock'))
            for attempt in range(1, LAUNCHES + 1):
                shepherd, listener = launch(daemon, attempt)
                time.sleep(0.03)  # for the tracer
                os.kill(shepherd, 9)
                listener.close()
    finally:
        for process in (tracer, launcher):
            if process:
                process.kill()
    traced = tracer.stdout.read().splitlines()
    tracer.wait()
    launcher.wait()
    figure('rule-12', f'{len(traced)} of {LAUNCHES} shepherds traced by another process of their user')
    assert traced == []
