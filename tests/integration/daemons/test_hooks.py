"""Hooks of the site: prolog, epilog, submit and health, and what happens when they fail, hang or are unsafe."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import pytest
from cluster import BIN, is_alive, wait_until

HOOKS = pathlib.Path(__file__).parents[3] / 'examples/hooks'
LOG = 'echo "$SCORE_HOOK $SCORE_JOB_ID $SCORE_NODE $SCORE_JOB_TASKS of $SCORE_JOB_NODES" >> '


def first_time(site):
    """A condition of a script that is true in one of several hooks."""
    return f'mkdir {site.directory}/once 2> /dev/null'


class Site:
    """The hooks of a test, in a directory that only this user may write."""

    def __init__(self, directory):
        self.directory = directory
        self.log = directory / 'log'
        self.log.touch()
        self.lines = {}

    def write(self, hook, script, shell='/bin/sh'):
        path = self.directory / hook
        new = path.with_suffix('.new')
        new.write_text(f'#!{shell}\n{script}\n')
        new.chmod(0o755)
        new.rename(path)
        self.lines[hook] = f'{hook} = "{path}"'
        return path

    def set(self, **values):
        self.lines.update({key: f'{key} = "{value}"' for key, value in values.items()})

    def config(self):
        path = self.directory / 'hooks.toml'
        path.write_text('\n'.join(['[hooks]', *self.lines.values(), '']))
        return path

    def seen(self):
        return self.log.read_text().splitlines()


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def boot(fresh, site, nodes=2):
    return fresh(nodes, '--slice', '20ms', '--cores', 2, '--hooks', site.config())


def node(cluster, name):
    return next(one for one in cluster.json('scnodes')['nodes'] if one['node'] == name)


def drained(cluster):
    return {one['node']: one['reason'] for one in cluster.json('scnodes')['nodes'] if one['drained']}


def events(cluster, job):
    return cluster.run('score', 'job', job, '--events').stdout


# ---- prolog and epilog

def test_hooks_run_once_per_job_and_node(fresh, site):
    for hook in ('prolog', 'epilog'):
        site.write(hook, f'{LOG}{site.log}')
    cluster = boot(fresh, site)
    out = cluster.run('scrun', '-N', 2, '-n', 4, 'sh', '-c', f'cat {site.log}; sleep 0.3').stdout
    assert out.count('prolog 1 node00 2 of 2') == 4 and out.count('prolog 1 node01 2 of 2') == 4, out
    assert 'epilog' not in out
    assert sorted(site.seen()) == [f'{hook} 1 node0{n} 2 of 2' for hook in ('epilog', 'prolog') for n in (0, 1)]
    script = site.directory / 'job.sh'
    script.write_text('#!/bin/sh\nscrun -n 1 true\nscrun -n 1 true\n')
    job = int(cluster.run('scbatch', '-n', 1, '-o', '/dev/null', script).stdout.split()[-1])
    cluster.wait_job(job, 'completed')
    assert [line.split()[0] for line in site.seen()[4:]] == ['prolog', 'epilog'], site.seen()
    cluster.run('scout', '-w', 'node00', 'true', code=None)
    assert len(site.seen()) == 6


def test_steps_share_the_hooks_of_their_batch_job(fresh, site):
    for hook in ('prolog', 'epilog'):
        site.write(hook, f'{LOG}{site.log}')
    cluster = boot(fresh, site)
    script = site.directory / 'job.sh'
    script.write_text(f'#!/bin/sh\nscrun true\nscrun true\ngrep -c epilog {site.log} || true\n')
    job = int(cluster.run('scbatch', '-N', 2, '-o', site.directory / 'out', script).stdout)
    cluster.wait_job(job, 'completed')
    wait_until(lambda: len(site.seen()) >= 4)
    seen = [line.split()[:3] for line in site.seen()]
    assert sorted(seen) == sorted([hook, str(job), name] for hook in ('prolog', 'epilog') for name in ('node00', 'node01')), seen
    assert (site.directory / 'out').read_text() == '0\n'  # the epilogs follow the last step
    assert not list((cluster.directory / 'node01/hooks').iterdir())


def test_a_failed_prolog_drains_the_node_and_requeues_the_job(fresh, site):
    site.write('prolog', f'echo one; if {first_time(site)}; then echo "no /scratch" >&2; exit 1; fi')
    site.write('epilog', f'{LOG}{site.log}')
    cluster = boot(fresh, site)
    job = cluster.submit('-n', 1, '-o', '/dev/null', 'true')
    cluster.wait_job(job, 'completed')
    (bad, reason), = drained(cluster).items()
    assert reason == f'prolog of job {job} failed: no /scratch'
    told = events(cluster, job)
    assert 'will be launched again, no task ran' in told and 'prolog failed: no /scratch' in told, told
    assert [line.split()[2] for line in site.seen()] == [bad, 'node01' if bad == 'node00' else 'node00']
    cluster.run('scadm', 'resume', bad)
    assert drained(cluster) == {}


def test_a_job_that_no_node_can_prepare_waits(fresh, site):
    site.write('prolog', 'echo broken; exit 1')
    cluster = boot(fresh, site, nodes=1)
    job = cluster.submit('-n', 1, '-o', '/dev/null', 'true')
    wait_until(lambda: drained(cluster))
    wait_until(lambda: 'drained' in cluster.run('scq', '--why', job).stdout)
    site.write('prolog', 'exit 0')
    cluster.run('scadm', 'resume', 'node00')
    cluster.wait_job(job, 'completed')


def test_a_hanging_prolog_is_killed_with_what_it_forked(fresh, site):
    pid = site.directory / 'pid'
    site.write('prolog', f'if {first_time(site)}; then exec sh {site.directory}/stuck; fi')
    (site.directory / 'stuck').write_text(
        f'setsid sh -c "echo \\$\\$ > {pid}; exec sleep 100000" &\necho stuck\nsleep 100000')
    site.set(timeout='2s')
    cluster = boot(fresh, site)
    job = cluster.submit('-n', 1, '-o', '/dev/null', 'true')
    cluster.wait_job(job, 'completed')
    (_, reason), = drained(cluster).items()
    assert 'it did not end within 2s; its last line: stuck' in reason
    wait_until(lambda: not is_alive(int(pid.read_text())))


def test_a_failed_epilog_drains_the_node_and_keeps_the_result(fresh, site):
    site.write('epilog', 'head -c 1000000000 /dev/zero')
    cluster = boot(fresh, site)
    job = cluster.submit('-n', 1, '-o', '/dev/null', 'sh', '-c', 'exit 3')
    cluster.wait_job(job, 'failed')
    assert cluster.job(job)['exit_code'] == 3
    name, reason = drained(cluster).popitem()
    assert reason.startswith(f'epilog of job {job} failed: it printed more than 16M'), reason
    assert f'drained {name}' in events(cluster, job)


def test_a_job_may_be_cancelled_in_its_prolog(fresh, site):
    site.write('prolog', f'touch {site.directory}/began; sleep 100000')
    site.write('epilog', f'{LOG}{site.log}')
    cluster = boot(fresh, site, nodes=1)
    job = cluster.submit('-n', 1, '-o', '/dev/null', 'true')
    wait_until((site.directory / 'began').exists)
    cluster.cancel(job)
    assert cluster.job(job)['state'] == 'cancelled'
    wait_until(lambda: len(site.seen()) == 1)
    assert drained(cluster) == {}


def test_epilogs_survive_the_node_daemon(fresh, site):
    go = site.directory / 'go'
    site.write('prolog', f'[ $SCORE_JOB_ID = 1 ] || {{ touch {site.directory}/second; sleep 100000; }}')
    site.write('epilog', f'{LOG}{site.log}')
    cluster = boot(fresh, site, nodes=1)
    job = cluster.submit('-n', 1, '-o', '/dev/null', 'sh', '-c', f'while [ ! -e {go} ]; do sleep 0.05; done')
    cluster.wait_job(job, 'running')
    cluster.kill('node00')
    cluster.restart('node00')
    cluster.wait_up()
    assert site.seen() == []
    go.touch()
    cluster.wait_job(job, 'completed')
    assert [line.split()[:2] for line in site.seen()] == [['epilog', '1']]
    second = cluster.submit('-n', 1, '-o', '/dev/null', 'true')
    wait_until((site.directory / 'second').exists)
    site.write('prolog', 'exit 0')
    cluster.kill('node00')
    cluster.restart('node00')
    cluster.wait_job(second, 'completed')
    wait_until(lambda: len(site.seen()) >= 2)
    assert not list((cluster.directory / 'node00/hooks').iterdir())


@pytest.mark.parametrize('fault', ['missing', 'writable', 'not executable'])
def test_unsafe_hooks_do_not_run(fresh, site, fault):
    path = site.write('prolog', f'{LOG}{site.log}')
    cluster = boot(fresh, site, nodes=1)
    config = cluster.directory / 'node00/scored.toml'
    check = [BIN / 'scored', '--role=node', '--config', config, '--check-config']
    assert subprocess.run(check, check=False).returncode == 0
    if fault == 'missing':
        path.unlink()
    else:
        path.chmod(0o757 if fault == 'writable' else 0o644)
    says = {'missing': 'No such file', 'writable': 'is writable by others', 'not executable': 'not an executable file'}[fault]
    checked = subprocess.run(check, check=False, capture_output=True, text=True)
    assert checked.returncode == 1 and says in checked.stderr and len(checked.stderr.splitlines()) == 1, checked
    job = cluster.submit('-n', 1, '-o', '/dev/null', 'true')
    wait_until(lambda: drained(cluster))
    assert says in drained(cluster)['node00'] and site.seen() == []
    cluster.cancel(job)


# ---- submit

def refusal(cluster, *words):
    done = cluster.run('scrun', '-q', '--detach', *words, 'true', code=None)
    assert done.returncode != 0 and len(done.stderr.splitlines()) == 1, done
    return done.stderr


def test_a_submit_hook_accepts_refuses_and_changes(fresh, site):
    site.write('submit', f'tee {site.directory}/request | /usr/bin/python3 {site.directory}/answer.py')
    answer = site.directory / 'answer.py'
    answer.write_text('import json, sys\nasked = json.load(sys.stdin)\n'
                      'if asked["name"] == "bad": print(json.dumps({"refuse": "no bad jobs here"}))\n'
                      'if asked["name"] == "slow": print(json.dumps({"queue": "high", "name": "changed", "wall_limit": "1h"}))\n')
    cluster = boot(fresh, site, nodes=1)
    job = cluster.submit('-n', 2, 'echo', 'hello')
    cluster.wait_job(job, 'completed')
    asked = json.loads((site.directory / 'request').read_text())
    assert asked['uid'] == os.geteuid() and asked['tasks'] == 2 and asked['queue'] == 'normal', asked
    assert asked['programs'][0]['argv'] == ['echo', 'hello'], asked
    assert refusal(cluster, '-J', 'bad').endswith('no bad jobs here\n')
    changed = cluster.job(cluster.submit('-J', 'slow', 'true'))
    assert changed['name'] == 'changed' and changed['queue'] == 'high', changed
    assert json.loads((site.directory / 'request').read_text())['schema'] == 'scored.submission/1'


@pytest.mark.parametrize('script, why', [
    ('sleep 100000', 'it did not end within 1s'),
    ('exec head -c 1000000000 /dev/zero', 'its answer has more than 64K'),
    ('echo rubbish', 'invalid answer: no JSON'),
    ('echo "{\\"user\\": \\"root\\"}"', 'user is not a change that a submit hook may make'),
    ('echo oh no >&2; exit 1', 'oh no'),
    ('kill -9 $$', 'it was killed by signal 9'),
])
def test_a_submit_hook_that_fails_refuses_or_accepts(fresh, site, script, why):
    site.write('submit', script)
    site.set(submit_timeout='1s')
    cluster = boot(fresh, site, nodes=1)
    assert why in refusal(cluster)
    config = cluster.directory / 'head/scored.toml'
    config.write_text(config.read_text().replace('[hooks]\n', '[hooks]\nsubmit_failure = "accept"\n'))
    cluster.run('scadm', 'reload')
    cluster.wait_job(cluster.submit('true'), 'completed')


def test_a_hanging_submit_hook_delays_nobody_else(fresh, site):
    site.write('submit', 'sleep 100000')
    site.set(submit_timeout='5s')
    cluster = boot(fresh, site, nodes=1)
    waiting = [cluster.start('scrun', '-q', '--detach', 'true') for _ in range(12)]
    times = []
    while any(one.poll() is None for one in waiting):
        began = time.monotonic()
        cluster.run('scq')
        times.append(time.monotonic() - began)
    for one in waiting:
        out, err = one.communicate()
        assert one.returncode != 0 and 'it did not end within 5s' in err, (out, err)
    times.sort()
    assert len(times) > 20 and times[len(times) // 2] < 2, times[-5:]


# ---- health

def test_the_health_check_drains_and_resumes(fresh, site):
    bad = site.directory / 'bad'
    site.write('health', f'if [ -e {bad}-$SCORE_NODE ]; then echo "disk is full"; exit 1; fi')
    site.set(health_every='1s')
    cluster = boot(fresh, site)
    pathlib.Path(f'{bad}-node01').touch()
    wait_until(lambda: drained(cluster) == {'node01': 'health check: disk is full'})
    cluster.kill('head')  # the drain is on disk
    cluster.restart('head')
    cluster.wait_up()
    assert drained(cluster) == {'node01': 'health check: disk is full'}
    pathlib.Path(f'{bad}-node01').unlink()
    wait_until(lambda: drained(cluster) == {})
    cluster.run('scadm', 'drain', 'node00', '-m', 'new fans')
    time.sleep(3)  # some checks pass meanwhile
    assert list(drained(cluster)) == ['node00']


# ---- root's part

class HooksSocket:
    """scored-hooks.socket of systemd: starts scored-hooks for each connection, with a configuration of its own."""

    def __init__(self, path, config):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen(64)
        self.config = config
        self.calls = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            with connection:
                self.calls += 1
                command = [BIN / 'scored-hooks', '--config', self.config, '--daemon-user', 'root']
                threading.Thread(target=subprocess.Popen(command, stdin=connection).wait, daemon=True).start()


def test_hooks_of_root_come_from_roots_configuration(fresh, site, as_root):
    site.write('prolog', f'{LOG}{site.log}')
    cluster = boot(fresh, site, nodes=1)
    own = site.directory / 'root.toml'
    other = site.directory / 'other'
    other.write_text(f'#!/bin/sh\necho "root runs for $SCORE_JOB_ID" >> {site.log}\n')
    other.chmod(0o755)
    own.write_text(f'[hooks]\nprolog = "{other}"\n')
    cluster.kill('node00')
    sockets = HooksSocket(cluster.directory / 'node00/hooks.sock', own)
    cluster.restart('node00')
    cluster.wait_up()
    cluster.wait_job(cluster.submit('-o', '/dev/null', 'true'), 'completed')
    assert site.seen() == ['root runs for 1'] and sockets.calls == 1
    own.chmod(0o666)  # others could name another program
    job = cluster.submit('-o', '/dev/null', 'true')
    wait_until(lambda: drained(cluster))
    assert 'root.toml' in drained(cluster)['node00'] and len(site.seen()) == 1
    cluster.cancel(job)


# ---- the examples

def test_example_check_mounts(tmp_path):
    text = (HOOKS / 'check_mounts').read_text()
    for mounts, code, says in (('/proc', 0, ''), ('/proc /nowhere', 1, '/nowhere is not mounted\n')):
        hook = tmp_path / 'check_mounts'
        hook.write_text(text.replace('mounts="/home /scratch"', f'mounts="{mounts}"'))
        done = subprocess.run(['sh', hook], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (code, says), done


def test_example_scrub_tmp(tmp_path):
    scratch = tmp_path / 'tmp'
    (scratch / 'deep').mkdir(parents=True)
    (scratch / 'deep/mine').touch()
    (scratch / 'other').touch()
    (scratch / 'outside').symlink_to(tmp_path / 'kept')
    (tmp_path / 'kept').touch()
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    if os.geteuid() == 0:
        for path in (scratch / 'deep', scratch / 'deep/mine', scratch / 'outside'):
            shutil.chown(path, uid) if not path.is_symlink() else os.lchown(path, uid, -1)
    hook = tmp_path / 'scrub_tmp'
    hook.write_text((HOOKS / 'scrub_tmp').read_text().replace('/tmp /var/tmp', str(scratch)))
    none_left = tmp_path / 'pgrep'
    environment = {'PATH': f'{tmp_path}:/usr/bin:/bin', 'SCORE_JOB_UID': str(uid)}
    for exit_code, left in ((0, True), (1, False)):  # the user has processes; has none
        none_left.write_text(f'#!/bin/sh\nexit {exit_code}\n')
        none_left.chmod(0o755)
        subprocess.run(['sh', hook], check=True, env=environment)
        assert (scratch / 'deep/mine').exists() == left
    assert (tmp_path / 'kept').exists() and scratch.exists()
    assert (scratch / 'other').exists() == (os.geteuid() == 0)


def test_example_limit_nodes(fresh, site):
    source = importlib.machinery.SourceFileLoader('limit_nodes', str(HOOKS / 'limit_nodes'))
    example = importlib.util.module_from_spec(importlib.util.spec_from_loader('limit_nodes', source))
    source.exec_module(example)
    asked = {'operator': False, 'nodes': 101}
    assert 'refuse' in example.answer(asked, 4)
    assert example.answer(asked, 5) == example.answer(asked | {'nodes': 100}, 0) == {'accept': True}
    assert example.answer(asked | {'operator': True}, 0) == {'accept': True}
    site.write('submit', (HOOKS / 'limit_nodes').read_text().split('\n', 1)[1], '/usr/bin/python3')
    cluster = boot(fresh, site, nodes=1)
    cluster.wait_job(cluster.submit('true'), 'completed')


