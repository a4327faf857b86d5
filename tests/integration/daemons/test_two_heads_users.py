"""Two heads as their users see them: commands and screens find the head in charge."""
import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import threading
import time

from cluster import BIN, LIMIT, wait_until
from test_two_heads import at_node, boot, in_charge, is_ready, other


def test_errors_name_the_addresses_tried(fresh):
    cluster = boot(fresh)
    for head in ('head', 'head2'):
        cluster.kill(head)
    commands = (['scq'], ['scnodes'], ['scrun', 'true'], ['scattach', '1'], ['scadm', 'set', 'slots', '4'], ['score', 'info'])
    for failed in [cluster.start(*words) for words in commands]:  # each asks for some seconds
        out, err = failed.communicate(timeout=LIMIT)
        assert failed.returncode == 125 and out == '' and err.count('\n') == 1, (failed.args, failed.returncode, out, err)
        assert 'no head answers: ' in err, (failed.args, err)
        for socket in cluster.env['SCORED_SERVER'].split(','):
            assert f'{socket}: Connection refused' in err, (failed.args, err)
    at_login = cluster.run('scq', code=125, extra_env=at_node(cluster)).stderr
    assert at_login.count('\n') == 1 and 'head' in at_login, at_login
    cluster.restart('head')
    cluster.restart('head2')
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    assert cluster.run('scq').returncode == 0


def test_scrun_of_a_login_node_leaves_a_silent_head(fresh):
    """A host without power closes no connection: SIGSTOP stands for it."""
    cluster = boot(fresh)
    first = in_charge(cluster)
    end = cluster.directory / 'end'
    script = 'i=0; while [ ! -e "$0" ]; do i=$((i+1)); echo $i; sleep 0.2; done; exit 3'
    front = cluster.start('scrun', '-n', 1, 'sh', '-c', script, end, extra_env=at_node(cluster))
    lines, messages = [], []
    readers = [threading.Thread(target=lambda file=file, into=into: into.extend(iter(file.readline, '')))
               for file, into in ((front.stdout, lines), (front.stderr, messages))]
    for reader in readers:
        reader.start()
    wait_until(lambda: lines)
    pid = cluster.daemon(first)['pid']
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: in_charge(cluster) == other(first), what=cluster.logs)
        wait_until(lambda: 'reconnected to the head' in ''.join(messages), what=lambda: messages)
        seen = len(lines)
        wait_until(lambda: len(lines) > seen + 5)
    finally:
        os.kill(pid, signal.SIGCONT)
    end.write_text('')
    assert front.wait(LIMIT) == 3
    for reader in readers:
        reader.join()
    numbers = [int(line) for line in lines]
    assert numbers == list(range(1, len(numbers) + 1)), 'output is lost or repeated'


def test_score_top_goes_on_with_the_other_head(fresh):
    cluster = boot(fresh)
    top = cluster.start('score', 'top', '--json', '--rate', '5', '--parts', 'jobs')
    documents = []
    reader = threading.Thread(target=lambda: documents.extend(map(json.loads, iter(top.stdout.readline, ''))))
    reader.start()
    try:
        wait_until(lambda: documents)
        for _ in range(2):
            wait_until(lambda: is_ready(cluster), what=cluster.logs)
            first, before = in_charge(cluster), documents[-1]['head']
            cluster.kill(first)
            wait_until(lambda: documents[-1]['head'] != before, what=lambda: (top.poll(), cluster.logs()))
            cluster.restart(first)
        assert top.poll() is None
    finally:
        top.kill()
        top.wait()
        reader.join()


def test_sctop_goes_on_with_the_other_head(fresh):
    cluster = boot(fresh)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(BIN / 'sctop', ['sctop', '--rate', '5'],
                  dict(cluster.env, TERM='xterm', LANG='C.UTF-8', LINES='40', COLUMNS='120'))
    shown = bytearray()

    def shows(name):
        while select.select([terminal], [], [], 0)[0]:
            shown.extend(os.read(terminal, 65536))
        return name.encode() in shown

    try:
        cluster.submit('-J', 'before', 'sleep', 100_000)
        wait_until(lambda: shows('before'), what=lambda: bytes(shown[-2000:]))
        cluster.kill(in_charge(cluster))
        cluster.submit('-J', 'afterwards', 'sleep', 100_000)
        wait_until(lambda: shows('afterwards'), what=lambda: bytes(shown[-2000:]))
        os.write(terminal, b'q')
        with contextlib.suppress(OSError):  # the terminal's other end is closed
            while True:
                os.read(terminal, 65536)
        assert os.waitpid(pid, 0) == (pid, 0)
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(terminal)


def test_a_batch_script_waits_for_its_job_through_take_overs(fresh):
    cluster = boot(fresh)
    end = cluster.directory / 'end'
    script = cluster.directory / 'script'
    script.write_text(f'#!/bin/sh\nwhile [ ! -e {end} ]; do sleep 0.1; done\nexit 7\n')
    waiting = cluster.start('scbatch', '--wait', '-o', cluster.directory / 'out', script)
    assert waiting.stdout.readline()
    first = in_charge(cluster)
    cluster.kill(first)
    wait_until(lambda: in_charge(cluster) == other(first), what=cluster.logs)
    time.sleep(1)  # it asks twice a second
    assert waiting.poll() is None, waiting.stderr.read()
    end.write_text('')
    assert waiting.wait(LIMIT) == 7, waiting.stderr.read()
    cluster.restart(first)


def test_a_command_of_an_installed_cluster_uses_the_sockets_of_its_configuration(fresh, as_root, tmp_path):
    """/etc/scored of a mount namespace: the configuration names two heads and where this host's sockets are."""
    cluster = boot(fresh)
    text = '[head]\nheads = ["head-a:7421", "head-b:7421"]\nsocket = "%s"\n[node]\nlogin_socket = "%s"\n'
    sockets = [str(tmp_path / 'none.sock'), at_node(cluster)['SCORED_SERVER']]
    config = tmp_path / 'etc' / 'scored.toml'
    config.parent.mkdir()
    config.write_text(text % tuple(sockets))
    environment = {name: value for name, value in cluster.env.items() if name != 'SCORED_SERVER'}

    def run(*words):
        mount = f'mount -t tmpfs none /etc/scored 2>/dev/null || exit 77; cp {config} /etc/scored/scored.toml; exec "$@"'
        there = os.path.isdir('/etc/scored')
        if not there:
            os.mkdir('/etc/scored')
        try:
            return subprocess.run(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', mount, 'sh', *words],
                                  env=environment, capture_output=True, text=True, timeout=LIMIT)
        finally:
            if not there:
                os.rmdir('/etc/scored')

    listed = run(str(BIN / 'scnodes'))
    assert listed.returncode == 0 and 'node03' in listed.stdout, listed
    for head in ('head', 'head2'):
        cluster.kill(head)
    failed = run(str(BIN / 'scnodes'))
    assert failed.returncode == 125 and failed.stderr.count('\n') == 1, failed
    assert f'no head answers: {sockets[0]}: No such file or directory; {sockets[1]}: ' in failed.stderr, failed
    assert 'the heads of this cluster are head-a:7421 and head-b:7421' in failed.stderr, failed
    for head in ('head', 'head2'):
        cluster.restart(head)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
