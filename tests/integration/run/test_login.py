"""Commands on a login node: through its node daemon, as the user the kernel names there."""
import contextlib
import os
import pathlib
import pwd
import random
import socket
import tempfile

import pytest
from cluster import BIN, LIMIT, wait_until
from figures import figure
from frames import read_frame
from stolen_key import StolenKey

HELLO = b'SCRD\x01\x00\x01\x00' + (4).to_bytes(4, 'little') + bytes(4) + b'\x08\x01\x10\x01'


def add_key(cluster, name, table, line):
    path = cluster.directory / name / 'scored.toml'
    text = path.read_text()
    assert f'[{table}]\n' in text
    path.write_text(text.replace(f'[{table}]\n', f'[{table}]\n{line}\n', 1))


def open_login(cluster, place):
    """Makes node01 a login node; node02 has a socket too, but is none."""
    add_key(cluster, 'head', 'head', 'login_nodes = "node01"')
    sockets = {}
    for name in ('node01', 'node02'):
        sockets[name] = f'{place}/{name}.sock'
        add_key(cluster, name, 'node', f'login_socket = "{sockets[name]}"')
    for name in ('head', 'node01', 'node02'):
        cluster.kill(name)
        cluster.restart(name)
    cluster.wait_up()
    wait_until(lambda: all(pathlib.Path(path).exists() for path in sockets.values()))
    cluster.sockets = sockets


@pytest.fixture
def login(fresh):
    cluster = fresh(4)
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        open_login(cluster, place)
        yield cluster
        cluster.cancel_all()


def through(cluster, name, *words, **options):
    return cluster.run(*words, extra_env={'SCORED_SERVER': cluster.sockets[name]}, **options)


def test_a_job_of_a_login_node_is_as_any(login):
    script = 'cat; [ "$SCORE_RANK" = 0 ] && exit 3; sleep 60'  # the other one has no input, and must not end the job first
    result = through(login, 'node01', 'scrun', '-N', 2, 'sh', '-c', script, code=3, input='in\n')
    assert result.stdout == 'in\n'
    big = through(login, 'node01', 'scrun', '-N', 1, 'sh', '-c', 'seq 200000')
    assert big.stdout.splitlines() == [str(i) for i in range(1, 200001)]
    job = int(through(login, 'node01', 'scrun', '--detach', 'sleep', 1000).stdout)
    assert f' {job} ' in through(login, 'node01', 'scq').stdout
    through(login, 'node01', 'sccancel', job)
    assert login.wait_job(job, 'cancelled')['uid'] == os.geteuid()


def test_the_user_is_the_one_the_kernel_names(login, as_root):
    nobody = pwd.getpwnam('nobody')
    job = int(login.submit('sleep', 1000))
    server = {'SCORED_SERVER': login.sockets['node01']}

    def ask(*words):
        process = login.start(*words, extra_env=server, user=nobody.pw_uid, group=nobody.pw_gid,
                              extra_groups=[], cwd='/')
        out, err = process.communicate(timeout=LIMIT)
        return process.returncode, out, err

    code, out, err = ask('scrun', 'id', '-u')
    assert (code, out) == (0, f'{nobody.pw_uid}\n'), err
    for words, key in ((['--weight', 101], 'max_weight'), (['--priority', 1], 'max_priority'),
                       (['--queue', 'exclusive'], 'queues')):
        code, out, err = ask('scrun', *words, 'true')
        assert (code, err.count('\n')) == (125, 1) and f'(limits.{key} of the head' in err, err
    code, out, err = ask('scout', '-w', 'node03', 'id -u')
    assert (code, out) == (0, f'node03:\n{nobody.pw_uid}\n'), err
    code, out, err = ask('sccancel', job)
    assert code != 0 and len(err.splitlines()) == 1, (code, out, err)
    assert login.job(job)['state'] == 'running'
    for words, action in ((['set', 'quantum', '50ms'], 'set quantum'), (['drain', 'node03'], 'drain'), (['reload'], 'reload')):
        assert ask('scadm', *words)[1:] == ('', f'scadm: only operators may {action}\n'), words


def test_a_node_that_is_no_login_node_is_refused(login):
    result = through(login, 'node02', 'scq', code=None)
    assert (result.returncode, result.stdout) == (125, '')
    assert result.stderr.count('\n') == 1 and 'node02 is not a login node' in result.stderr


STEPS = '''#!/bin/sh
export SCORED_SERVER=/none
scrun -N 2 sh -c 'echo "step on $SCORE_NODENAME"'
scrun -N 1 sh -c 'exit 7'; echo "code $?"
scrun -N 1 sleep 1000 & sleep 1; sccancel $SCORE_JOB_ID.2; wait; echo cancelled
scq > /dev/null; echo "list $?"
exec 2>&1
sccancel {other}
scrun --job {other} true
scrun --job none -N 1 true
scadm set quantum 50ms
echo end
'''


def test_steps_are_started_on_any_node_of_their_job(login, tmp_path):
    """Neither node02 nor node03 is a login node; the script cannot reach the head's own socket."""
    other = login.submit('-N', 1, '-w', 'node00', 'sleep', 1000)
    (tmp_path / 'job.sh').write_text(STEPS.format(other=other))
    job = int(login.run('scbatch', '-w', 'node02,node03', 'job.sh', cwd=tmp_path).stdout)
    login.wait_job(job, 'completed')
    lines = (tmp_path / f'score-{job}.out').read_text().splitlines()
    assert sorted(lines[:2]) == ['step on node02', 'step on node03'], lines
    assert {'code 7', 'cancelled', 'list 0'} <= set(lines), lines
    refusals = [line for line in lines if 'is not a login node: ' in line]
    assert len(refusals) == 4 and lines[-1] == 'end', lines
    assert login.job(int(other))['state'] == 'running'


NESTED = '''#!/bin/sh
export SCORED_SERVER=/none
scrun -N 1 -n 1 sh -c 'echo "outer on $SCORE_NODENAME"; scrun -N 2 -n 2 --overlap sh -c "echo nested on \\$SCORE_NODENAME"'
(setsid sh -c 'scrun -N 1 -n 1 --overlap echo from a daemon > daemon.txt 2>&1; touch daemon.end' &)
until [ -e daemon.end ]; do sleep 0.1; done
cat daemon.txt
env -i SCORED_SERVER=/none SCORE_COMMANDS_SOCKET=$SCORE_COMMANDS_SOCKET {scrun} --job $SCORE_JOB_ID -N 1 -n 1 --overlap /bin/echo from a clean environment
until [ -e restarted ]; do sleep 0.1; done
scrun -N 2 -n 2 echo after restarts
'''


def test_children_of_tasks_start_steps(login, tmp_path):
    """Nested steps, daemons of a task, and children without its environment; also after daemon and head were restarted."""
    (tmp_path / 'job.sh').write_text(NESTED.replace('{scrun}', str(BIN / 'scrun')))
    job = int(login.run('scbatch', '-w', 'node02,node03', 'job.sh', cwd=tmp_path).stdout)
    output = tmp_path / f'score-{job}.out'
    wait_until(lambda: output.exists() and 'clean environment' in output.read_text())
    for name in ('node02', 'head'):
        login.kill(name)
        login.restart(name)
        login.wait_up()
    (tmp_path / 'restarted').touch()
    login.wait_job(job, 'completed')
    lines = output.read_text().splitlines()
    nested = sorted(line for line in lines if line.startswith('nested'))
    assert nested == ['nested on node02', 'nested on node03'], lines
    assert {'outer on node02', 'from a daemon', 'from a clean environment'} <= set(lines), lines
    assert lines.count('after restarts') == 2, lines


def test_a_stolen_node_key_cannot_act_as_a_user(login, tmp_path):
    """The key of node03 is stolen. A job has node02 and node03, and a task on node02 alone."""
    user = os.geteuid()
    (tmp_path / 'job.sh').write_text('#!/bin/sh\nsleep 3600\n')
    job = int(login.run('scbatch', '-w', 'node02,node03', 'job.sh', cwd=tmp_path).stdout)
    login.wait_job(job, 'running')
    attempt = job * 256 + 1
    mark = tmp_path / 'mark'
    stamps = [{'user': user}, {'user': user, 'attempt': attempt}, {'user': user, 'attempt': attempt, 'secret': bytes(32)},
              {'user': user, 'attempt': attempt, 'secret': os.urandom(32)}, {'user': 65534}]
    for stamp in stamps:
        with StolenKey(login, 'node03') as rogue:
            rogue.send('LoginHello', **stamp)
            rogue.send('ClientHello', lowest_version=1, highest_version=2, program=b'rogue')
            rogue.send('Submit', tag=1, request_id=os.urandom(16), detached=True, allow_root=True,
                       resources={'nodes': 1, 'tasks': 1, 'inside': job, 'overlap': True},
                       spec={'programs': [{'argv': [b'/usr/bin/touch', str(mark).encode()]}], 'directory': b'/', 'stdin_rank': 2**64 - 2})
            assert rogue.answer() == 'Failed', stamp
            assert rogue.answer() is None, stamp
    assert not login.job(job).get('steps') and not mark.exists()
    assert login.job(job)['state'] == 'running'


def test_the_error_names_an_unreachable_head(login):
    login.kill('head')
    result = through(login, 'node01', 'scq', code=None)
    assert result.returncode == 125
    assert result.stderr.count('\n') == 1 and 'cannot reach the head at' in result.stderr
    login.restart('head')
    login.wait_up()


def test_random_bytes_do_not_harm_the_socket(login):
    chance = random.Random(7)
    for length in (1, 15, 16, 17, 4096, 65536):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(login.sockets['node01'])
            try:
                peer.sendall(chance.randbytes(length))
            except OSError:
                pass  # closed while we sent
    crowd = []

    def join(first=b''):
        crowd.append(socket.socket(socket.AF_UNIX))
        crowd[-1].connect(login.sockets['node01'])
        crowd[-1].sendall(first)

    for _ in range(80):
        join()
    through(login, 'node01', 'scq')  # connections that say nothing give way
    for _ in range(64):
        join(HELLO)
        read_frame(crowd[-1])
    result = through(login, 'node01', 'scq', code=None)
    assert result.returncode == 125 and 'too many commands' in result.stderr, result
    for peer in crowd:
        peer.close()
    wait_until(lambda: through(login, 'node01', 'scq', code=None).returncode == 0)
    assert login.nodes_up() == 4


def test_root_of_a_login_node_is_not_root_of_the_cluster(fresh, as_root):
    cluster = fresh(3, user=pwd.getpwnam('nobody').pw_uid)
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as peer:
        os.chmod(place, 0o777)
        open_login(cluster, place)
        peer.settimeout(LIMIT)
        peer.connect(cluster.sockets['node01'])  # as root, which may connect to any socket
        with contextlib.suppress(BrokenPipeError):  # the head may refuse before it has read anything
            peer.sendall(HELLO)
        answer = b''
        while part := peer.recv(4096):
            answer += part
    assert b'root of node01 is not root of this cluster' in answer, answer
    assert 'why="root of a login node"' in (cluster.directory / 'log' / 'head').read_text()
    figure('hole-14', 'a stamp of uid 0 is refused')
