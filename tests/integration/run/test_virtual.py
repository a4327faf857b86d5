"""score virtual: exit codes, and nothing left behind whatever ends it."""
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest
from cluster import BIN, LIMIT, Cluster, as_user, started, users_of, wait_until

SCORE = str(BIN / 'score')
YIELD = 'OMPI_MCA_mpi_yield_when_idle'
INTERFACES, LEFT_OUT = 'OMPI_MCA_btl_tcp_if_include', 'OMPI_MCA_btl_tcp_if_exclude'


def virtual(*words, **options):
    return subprocess.run([SCORE, 'virtual', *map(str, words)], capture_output=True, text=True,
                          timeout=LIMIT, **options)


def boot(*words, **options):
    """Up, running a `sleep`; gives the process and where the cluster is."""
    process = subprocess.Popen([SCORE, 'virtual', '--print-json', *map(str, words), '--', 'sleep', '600'],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    text = ''
    for line in process.stdout:
        text += line
        if line == '}\n':
            break
    return process, described(text)


def described(text):
    """What --print-json printed, and when each daemon started."""
    description = json.loads(text)
    daemons = [description['head'], *description['nodes'], *description['launchers']]
    return description | {'started': {daemon['pid']: started(daemon['pid']) for daemon in daemons}}


def check_gone(description):
    directory = pathlib.Path(description['directory'])
    wait_until(lambda: not directory.exists())
    assert users_of(directory) == []
    if description['cgroup']:
        assert not pathlib.Path(description['cgroup']).exists()
    assert not [path for path in description.get('priorities', []) if path.exists()]
    assert not [pid for pid, at in description['started'].items() if started(pid) == at]


def priority_directories(description):
    """Of its jobs, in the version 1 hierarchy of the cpu controller; none elsewhere."""
    nodes = pathlib.Path(description['cgroup']).iterdir() if description['cgroup'] else []
    inodes = [node.stat().st_ino for node in nodes if node.is_dir()]
    return [path for inode in inodes for path in pathlib.Path('/sys/fs/cgroup/cpu/scored/jobs').glob(f'scored_{inode}_job_*')]


def start_stubborn_job(description):
    """Ignores TERM, has forked twice, is on every node."""
    env = dict(os.environ, SCORED_SERVER=description['socket'])
    script = 'trap "" TERM; (setsid sh -c "trap \\"\\" TERM; while :; do sleep 1; done" &); while :; do sleep 1; done'
    count = len(description['nodes'])
    subprocess.run([SCORE, 'scrun', '--detach', '-N', str(count), 'sh', '-c', script], env=env,
                   check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    description['priorities'] = priority_directories(description)


@pytest.mark.parametrize('command, code', [
    (['true'], 0), (['sh', '-c', 'exit 9'], 9), (['sh', '-c', 'kill -9 $$'], 137),
    (['no-such-command'], 127), (['/etc/passwd'], 126)])
def test_exit_code_is_the_commands(command, code):
    assert virtual('--nodes', 2, '--', *command).returncode == code


@pytest.mark.parametrize('cores, given, expected', [(1000, None, '1'), (1000, '0', '0'), (1, None, '-')])
def test_open_mpi_yields_where_nodes_share_processors(cores, given, expected):
    env = {name: value for name, value in os.environ.items() if name != YIELD} | ({YIELD: given} if given else {})
    result = virtual('--nodes', 1, '--cores', cores, '--', 'sh', '-c', f'echo ${{{YIELD}--}}', env=env)
    assert (result.returncode, result.stdout) == (0, f'{expected}\n'), result.stderr


@pytest.mark.parametrize('given, option, expected', [
    ({}, [], 'lo'), ({INTERFACES: 'eth0'}, [], 'eth0'), ({LEFT_OUT: 'eth0'}, [], '-'), ({}, ['--netns'], '-')])
def test_open_mpi_uses_the_loopback_that_nodes_share(given, option, expected):
    if option and os.geteuid() != 0:
        pytest.skip('--netns needs root')
    env = {name: value for name, value in os.environ.items() if name not in (INTERFACES, LEFT_OUT)} | given
    result = virtual('--nodes', 1, *option, '--', 'sh', '-c', f'echo ${{{INTERFACES}--}}', env=env)
    assert (result.returncode, result.stdout) == (0, f'{expected}\n'), result.stderr


def test_command_finds_the_cluster():
    result = virtual('--nodes', 3, '--', 'sh', '-c', 'scnodes --no-header -o node,state')
    assert result.stdout.split() == ['node00', 'up', 'node01', 'up', 'node02', 'up']


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_left_after_a_signal(number):
    process, description = boot('--nodes', 3)
    start_stubborn_job(description)
    process.send_signal(number)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + number
    check_gone(description)


def test_a_signal_that_was_ignored_at_the_start_stays_ignored(tmp_path):
    """As nohup(1) starts it."""
    script = f'touch {tmp_path}/on; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exit 3'
    process = subprocess.Popen([BIN / 'score', 'virtual', '--nodes', '2', '--', 'sh', '-c', script],
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_until((tmp_path / 'on').exists)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    (tmp_path / 'go').touch()
    assert process.wait(timeout=LIMIT) == 3


def test_nothing_left_after_sigkill_of_the_starter():
    process, description = boot('--nodes', 3)
    start_stubborn_job(description)
    process.kill()
    process.communicate(timeout=LIMIT)
    check_gone(description)


@pytest.mark.parametrize('options', [[], ['--no-cgroup']])
def test_next_start_sweeps_what_sigkill_of_everything_left(options):
    process, description = boot('--nodes', 3, *options)
    start_stubborn_job(description)
    os.kill(description['supervisor_pid'], signal.SIGSTOP)  # so that neither clears up after the other
    process.kill()
    os.kill(description['supervisor_pid'], signal.SIGKILL)
    process.communicate(timeout=LIMIT)
    # Somebody's shell may know the way to the cluster; it is not the cluster's.
    bystander = subprocess.Popen(['sleep', '600'], env=dict(os.environ, SCORED_SERVER=description['socket']))
    try:
        assert virtual('--nodes', 2, '--', 'true').returncode == 0
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    check_gone(description)


# Makes a server for PMIx start, and says where it keeps its files.
TOUCHES_PMIX = r'''
import os, re, socket, sys, time
host, port = re.search(r"tcp4://([\d.]+):(\d+)", os.environ["PMIX_SERVER_URI4"]).groups()
held = socket.create_connection((host, int(port)))
place = os.path.join(sys.argv[1], os.environ["SCORE_RANK"])
open(place + ".new", "w").write(os.environ["PMIX_SERVER_TMPDIR"])
os.rename(place + ".new", place)
time.sleep(600)
'''


def test_next_start_removes_leftovers_of_pmix_servers(tmp_path):
    """Killed with its cgroup, a shepherd has no time to remove what its PMIx server left."""
    process, description = boot('--nodes', 2)
    env = dict(os.environ, SCORED_SERVER=description['socket'])
    subprocess.run([SCORE, 'scrun', '--detach', '-N', '2', '--mpi=pmix', '/usr/bin/python3', '-c', TOUCHES_PMIX, tmp_path], env=env,
                   check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
    wait_until(lambda: all((tmp_path / rank).exists() for rank in '01'))
    made = [pathlib.Path((tmp_path / rank).read_text()) for rank in '01']
    wait_until(lambda: all(path.exists() for path in made))
    os.kill(description['supervisor_pid'], signal.SIGSTOP)
    process.kill()
    os.kill(description['supervisor_pid'], signal.SIGKILL)
    process.communicate(timeout=LIMIT)
    assert virtual('--nodes', 2, '--', 'true').returncode == 0
    check_gone(description)
    wait_until(lambda: not any(path.exists() for path in made))


def test_a_silent_client_of_the_supervisor_delays_no_other():
    process, description = boot('--nodes', 2)
    control = str(pathlib.Path(description['directory']) / 'control')
    with contextlib.ExitStack() as crowd:
        for i in range(40):
            silent = crowd.enter_context(socket.socket(socket.AF_UNIX))
            silent.connect(control)
            with contextlib.suppress(OSError):  # others took its place
                silent.sendall(b'restart nod' if i % 2 else b'')
        restarted = virtual('--restart', 'node01', description['directory'])
        assert restarted.returncode == 0 and int(restarted.stdout) > 0, restarted
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + signal.SIGINT
    check_gone(description)


def test_supervisor_killed_is_cleared_by_the_starter():
    process, description = boot('--nodes', 3)
    start_stubborn_job(description)
    os.kill(description['supervisor_pid'], signal.SIGKILL)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 125
    check_gone(description)


def test_kept_cluster_is_listed_and_stopped():
    result = virtual('--nodes', 2, '--keep', '--print-json')
    description = described(result.stdout)
    assert f'--stop {description["directory"]}' in result.stderr
    assert description['directory'] in virtual('--list').stdout.split()
    start_stubborn_job(description)
    assert virtual('--stop', description['directory']).returncode == 0
    check_gone(description)
    assert virtual('--stop', description['directory']).returncode == 125


def test_leftovers_of_another_user_are_not_touched(as_root, tmp_path):
    left = tmp_path / 'left'
    left.mkdir()
    (left / 'lock').touch()
    (left / 'cgroup').write_text('/sys/fs/cgroup')
    os.chown(left, 65534, 65534)
    result = virtual('--stop', left)
    assert result.returncode == 125 and 'owner' in result.stderr, result
    assert (left / 'cgroup').exists()


def test_many_starts_at_once():
    processes = [subprocess.Popen([SCORE, 'virtual', '--nodes', '2', '--', 'scrun', '-N', '2', 'echo', str(i)],
                                  stdout=subprocess.PIPE, text=True) for i in range(6)]
    for i, process in enumerate(processes):
        assert process.communicate(timeout=LIMIT)[0] == f'{i}\n' * 2


@pytest.mark.parametrize('options', [[], ['--no-cgroup']])
def test_jobs_share_by_either_method(options):
    result = virtual('--nodes', 2, *options, '--', 'sh', '-c',
                     'scrun -N 2 sh -c "echo x" && scnodes --json')
    assert result.stdout.startswith('x\nx\n')
    methods = {node['switch_method'] for node in json.loads(result.stdout[4:])['nodes']}
    assert len(methods) == 1
    if options:
        assert methods == {'signals'}


def test_plain_user(as_root, tmp_path_factory):
    if not as_user(65534) or shutil.which('setpriv') is None:
        pytest.skip('no setpriv')
    if subprocess.run(as_user(65534) + ['test', '-x', SCORE]).returncode != 0:
        pytest.skip('a plain user cannot reach the programs')
    env = {key: value for key, value in os.environ.items() if key != 'XDG_RUNTIME_DIR'}
    env['HOME'] = '/tmp'
    cluster = Cluster(4, '--slice', '20ms', user=65534, environment=env)
    try:
        jobs = [cluster.start('scrun', '-N', 4, 'sh', '-c', 'id -u; sleep 1') for _ in range(2)]
        for job in jobs:
            assert job.communicate(timeout=LIMIT)[0] == '65534\n' * 4
    finally:
        cluster.stop()
    assert pwd.getpwuid(65534)


@pytest.mark.parametrize('occupied', [False, True])
def test_the_directory_in_tmpdir_avoids_an_occupied_name(occupied):
    """Any program can make names in /tmp: a file, or a directory that others may open."""
    uid = os.geteuid()
    with tempfile.TemporaryDirectory(prefix='s', dir='/tmp') as place:
        env = {key: value for key, value in os.environ.items() if key != 'XDG_RUNTIME_DIR'} | {'TMPDIR': place}
        name = pathlib.Path(place, f'scored-virtual-{uid}')
        if occupied:
            name.mkdir(mode=0o755)
        registries = []
        first, second = Cluster(1, environment=env), Cluster(1, environment=env)
        try:
            for cluster in (first, second):
                registries.append(cluster.directory.parent)
            listed = subprocess.run([SCORE, 'virtual', '--list'], env=env, capture_output=True, text=True, check=True).stdout
            assert {str(cluster.directory) for cluster in (first, second)} <= set(listed.split())
        finally:
            first.stop()
            second.stop()
        assert registries[0] == registries[1] and registries[0].parent == name.parent
        assert registries[0].stat().st_mode & 0o777 == 0o700
        assert (registries[0] == name) != occupied and registries[0].name.startswith(name.name)


def test_netns(as_root):
    if shutil.which('ip') is None:
        pytest.skip('no iproute2')
    result = virtual('--nodes', 3, '--netns', '--', 'scrun', '-N', 3, 'sh', '-c',
                     'ip -4 -o addr show eth0 | wc -l; readlink /proc/self/ns/net')
    lines = result.stdout.split()
    assert result.returncode == 0, result
    assert lines.count('1') == 3
    assert len({line for line in lines if line.startswith('net:')}) == 3


def test_private_files():
    process, description = boot('--nodes', 2)
    directory = pathlib.Path(description['directory'])
    try:
        assert directory.stat().st_mode & 0o777 == 0o700
        for key in [directory / 'key', *directory.glob('node*/key')]:
            assert key.stat().st_mode & 0o777 == 0o600
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT)
    check_gone(description)


def test_a_daemon_stays_small(many):
    for node in many.json('scnodes')['nodes']:
        assert node['rss_bytes'] < 8 << 20, node
