"""Daemons that are killed: nothing acknowledged is lost, jobs go on, exit codes are kept."""
import os
import signal
import subprocess
import threading
import time

import pytest

from cluster import LIMIT, wait_until
from progress import start_progress, wait_shares
from trouble import cut_off, need_nftables, small_disk, stopped


def test_head_killed_amid_100_submissions_loses_none(fresh):
    cluster = fresh(4)
    acknowledged = []

    def submit_25(worker):
        for i in range(25):
            words = ['scrun', '--detach', '-J', f'job-{worker}-{i}', 'true']
            while (result := cluster.run(*words, code=None)).returncode != 0:
                assert 'cannot reach the head' in result.stderr, result
                time.sleep(0.05)
            acknowledged.append((int(result.stdout), f'job-{worker}-{i}'))

    workers = [threading.Thread(target=submit_25, args=(w,)) for w in range(4)]
    for worker in workers:
        worker.start()
    wait_until(lambda: len(acknowledged) > 15)
    cluster.kill('head')
    time.sleep(0.5)
    cluster.restart('head')
    for worker in workers:
        worker.join()
    cluster.wait_up()
    assert len(acknowledged) == 100, 'a command that had reached the head asks again'
    known = {job['job']: job['name'] for job in cluster.json('scq', '-a')['jobs']}
    lost = [pair for pair in acknowledged if known.get(pair[0]) != pair[1]]
    assert not lost, (lost, len(acknowledged))
    names = list(known.values())
    assert len(names) == len(set(names)), 'a job ran twice'
    wait_until(lambda: all(cluster.job(job)['final'] for job, _ in acknowledged))
    ended = [cluster.job(job) for job, _ in acknowledged]
    assert {job['state'] for job in ended} == {'completed'}, [job for job in ended if job['state'] != 'completed'][:3]


def test_front_end_survives_a_restart_of_the_head(fresh):
    cluster = fresh(4)
    script = 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done; exit 3'
    front = cluster.start('scrun', '-n', 1, 'sh', '-c', script)
    assert front.stdout.readline() == '1\n'
    cluster.kill('head')
    cluster.restart('head')
    out, err = front.communicate(timeout=LIMIT)
    assert (out, front.returncode) == ('2\n3\n4\n5\n6\n', 3), err
    assert 'reconnected to the head' in err


def test_output_of_many_nodes_is_shown_once_over_restarts_of_the_head(fresh):
    cluster = fresh(4)
    script = 'for i in $(seq 1 3000); do echo $i; [ $((i % 20)) = 0 ] && sleep 0.02; done'
    front = cluster.start('scrun', '-l', '-N', 4, 'sh', '-c', script + '; true')
    lines = [front.stdout.readline()]
    for after in (500, 3000):
        while len(lines) < after:
            lines.append(front.stdout.readline())
        cluster.kill('head')
        cluster.restart('head')
    lines += front.stdout.readlines()  # communicate() would leave out what readline() has read ahead
    _, err = front.communicate(timeout=LIMIT)
    assert front.returncode == 0, err
    for rank in range(4):
        numbers = [int(line.split()[1]) for line in lines if line.startswith(f'{rank}: ')]
        assert numbers == list(range(1, 3001)), (rank, len(numbers))


def test_node_daemon_killed_is_adopted(fresh, tmp_path):
    cluster = fresh(4, '--slice', '50ms')
    job, counters = start_progress(cluster, tmp_path, 'a', 4)
    ender = cluster.submit('-N', 4, 'sh', '-c', 'sleep 4; exit 5')
    cluster.wait_job(ender, 'running')
    cluster.kill('node02')
    time.sleep(0.3)
    cluster.restart('node02')
    cluster.wait_up()
    assert cluster.job(job)['state'] == 'running'
    before = counters.counter(2)
    wait_until(lambda: counters.counter(2) > before)
    assert cluster.wait_job(ender, 'failed')['exit_code'] == 5
    cluster.cancel_all()


def test_nothing_stays_frozen_without_its_node_daemon(fresh, tmp_path):
    cluster = fresh(2, '--slice', '50ms')
    jobs = [start_progress(cluster, tmp_path, name, 2) for name in ('a', 'b')]
    cluster.kill('node00')
    before = [c.counter(0) for _, c in jobs]
    wait_until(lambda: all(c.counter(0) > b for (_, c), b in zip(jobs, before)))
    time.sleep(2)  # the lease is over: both run, neither waits for the other
    before = [c.counter(0) for _, c in jobs]
    wait_until(lambda: all(c.counter(0) > b for (_, c), b in zip(jobs, before)))


def test_a_stopped_node_daemon_leaves_its_jobs_the_whole_node_timeout(fresh, tmp_path):
    cluster = fresh(2, '--node-timeout', '1h')
    job, counters = start_progress(cluster, tmp_path, 'job', 2)
    os.kill(cluster.daemon('node01')['pid'], signal.SIGTERM)
    states = lambda: {node['node']: node['state'] for node in cluster.json('scnodes')['nodes']}
    wait_until(lambda: states()['node01'] == 'suspect')
    time.sleep(4)  # longer than the head waits for a daemon that died
    assert states()['node01'] == 'suspect' and cluster.job(job)['state'] == 'running'
    before = counters.counter(1)
    wait_until(lambda: counters.counter(1) > before)
    cluster.restart('node01')
    wait_until(lambda: states()['node01'] == 'up')
    assert cluster.job(job)['state'] == 'running' and cluster.job(job)['restarts'] == 0


def test_node_lost_ends_its_jobs_with_the_reason(fresh, tmp_path):
    cluster = fresh(3)
    lost, _ = start_progress(cluster, tmp_path, 'lost', 3)
    other, counters = start_progress(cluster, tmp_path, 'other', 1, '-w', 'node00')
    cluster.kill('node02')
    end = cluster.wait_job(lost, 'node-failed')
    assert any('node02' in reason for reason in end['reasons']), end
    assert cluster.job(other)['state'] == 'running'
    before = counters.total()
    wait_until(lambda: counters.total() > before)
    nodes = {node['node']: node['state'] for node in cluster.json('scnodes')['nodes']}
    assert nodes['node02'] == 'down'
    cluster.cancel_all()


@pytest.mark.parametrize('trouble, options', [(stopped, []), (cut_off, ['--netns'])])
def test_a_silent_node_is_given_up_and_comes_back(fresh, as_root, tmp_path, trouble, options):
    """It hangs, or its link says nothing: jobs end, others go on; later its old tasks are killed first."""
    if options:
        need_nftables()
    cluster = fresh(3, '--cores', 1, '--node-timeout', '4s', *options)
    lost, of_lost = start_progress(cluster, tmp_path, 'lost', 3)
    other, of_other = start_progress(cluster, tmp_path, 'other', 1, '-w', 'node00')
    with trouble(cluster.daemon('node02')):
        end = cluster.wait_job(lost, 'node-failed')
        assert any('node02 lost: ' in reason for reason in end['reasons']), end
        before = of_other.total()
        wait_until(lambda: of_other.total() > before)
    cluster.wait_up()
    assert cluster.run('scrun', '-q', '-N', 3, 'echo', 'x').stdout == 'x\n' * 3
    before = of_lost.counter(2)
    time.sleep(0.5)
    assert of_lost.counter(2) == before, 'a task of the attempt that was given up lives on'
    assert cluster.job(other)['state'] == 'running'
    cluster.cancel_all()


def state_of(cluster, name):
    return next(node['state'] for node in cluster.json('scnodes')['nodes'] if node['node'] == name)


def test_a_node_that_is_silent_for_a_while_keeps_its_jobs(fresh, as_root, tmp_path):
    """Nothing new is placed there meanwhile."""
    cluster = fresh(3, '--cores', 1)
    job, counters = start_progress(cluster, tmp_path, 'job', 3)
    with stopped(cluster.daemon('node02')):
        wait_until(lambda: state_of(cluster, 'node02') == 'suspect')
        new = cluster.submit('-N', 3, 'true')
        time.sleep(2)  # 5 s of silence in all
        assert cluster.job(new)['state'] == 'pending'
        assert cluster.job(job)['state'] == 'running'
    cluster.wait_up()
    assert cluster.wait_job(new, 'completed')['exit_code'] == 0
    assert cluster.job(job)['state'] == 'running'
    before = counters.counter(2)
    wait_until(lambda: counters.counter(2) > before)
    cluster.cancel_all()


def test_a_full_disk_refuses_and_loses_nothing(fresh, as_root):
    """The head's directory is a small file system of its own."""
    cluster = fresh(2)
    with small_disk(cluster, '1m') as filler:
        acknowledged, refused = [], None
        while refused is None and len(acknowledged) < 100:
            result = cluster.run('scrun', '--detach', 'true', 'x' * 60000, code=None)
            if result.returncode == 0:
                acknowledged.append(int(result.stdout))
            else:
                refused = result
        assert refused is not None and refused.returncode == 125 and 'full' in refused.stderr, refused
        assert len(refused.stderr.splitlines()) == 1, refused
        subprocess.run(['mount', '-o', 'remount,size=64m', str(filler.parent)], check=True)
        assert cluster.run('scrun', '-q', 'echo', 'again').stdout == 'again\n'
        wait_until(lambda: all(cluster.job(job)['final'] for job in acknowledged))
        cluster.kill('head')
        cluster.restart('head')
        cluster.wait_up()
        assert {cluster.job(job)['state'] for job in acknowledged} == {'completed'}


def test_drain_and_resume(fresh):
    cluster = fresh(4)
    running = cluster.submit('-N', 4, 'sleep', '600')
    cluster.wait_job(running, 'running')
    cluster.run('scadm', 'drain', 'node[01-02]', '-m', 'new fans')
    nodes = {node['node']: node for node in cluster.json('scnodes')['nodes']}
    assert nodes['node01']['drained'] and nodes['node01']['reason'] == 'new fans'
    assert cluster.job(running)['state'] == 'running'
    waiting = cluster.submit('-N', 4, 'true')
    assert cluster.job(waiting)['state'] == 'pending'
    assert 'drain' in cluster.run('scq', '--why', waiting).stdout
    assert 'node01' not in cluster.run('scrun', '-q', '-N', 2, 'sh', '-c', 'echo $SCORE_NODEID').stderr
    cluster.run('scadm', 'resume', 'node[01-02]')
    assert cluster.wait_job(waiting, 'completed')['exit_code'] == 0
    cluster.cancel_all()


def test_executable_missing_on_one_node(fresh, tmp_path, as_root):
    """The launcher of one node sees another file system: a mount namespace hides the program."""
    import pathlib
    import subprocess
    cluster = fresh(4)
    tmp_path.chmod(0o755)
    program = tmp_path / 'bin' / 'program'
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho ran >> {tmp_path}/ran\n')
    program.chmod(0o755)
    launcher = cluster.daemon('launcher-node02')
    words = pathlib.Path(f'/proc/{launcher["pid"]}/cmdline').read_bytes().decode().split('\0')[:-1]
    cluster.kill('launcher-node02')
    from cluster import BIN
    hidden = subprocess.Popen(['unshare', '-m', 'sh', '-c',
                               'mount -t tmpfs none "$0" && exec "$@"', str(program.parent),
                               str(BIN / 'scored-launcher'), *words[1:]])
    try:
        result = None

        def is_refused():
            nonlocal result
            assert hidden.poll() is None, 'the new launcher has ended'
            result = cluster.run('scrun', '-q', '-N', 4, program, code=None)
            return result.returncode == 127  # until the node has found the new launcher

        wait_until(is_refused, what=lambda: result)
        assert 'node02' in result.stderr and str(program) in result.stderr, result
        assert not (tmp_path / 'ran').exists(), 'a task ran although one node refused'
        assert not cluster.json('scq', '--active')['jobs']
        assert cluster.run('scrun', '-N', 2, '-w', 'node[00-01]', program).returncode == 0
    finally:
        hidden.kill()
        hidden.wait()


def test_a_repeated_quantum_change_is_harmless(fresh, tmp_path):
    cluster = fresh(4, '--slice', '20ms')
    jobs = [start_progress(cluster, tmp_path, name, 4) for name in ('a', 'b')]
    for quantum in ('5ms', '200ms', '1ms', '30ms') * 3:
        cluster.run('scadm', 'set', 'quantum', quantum)
    wait_shares([c for _, c in jobs], lambda got: 0.25 < got[0] / sum(got) < 0.75, 2)
    cluster.cancel_all()


def test_a_job_that_lost_a_node_starts_again(fresh):
    cluster = fresh(3)
    script = 'echo try $SCORE_RESTART_COUNT; test $SCORE_RESTART_COUNT = 1 || sleep 1000'
    front = cluster.start('scrun', '--requeue', '-N', 2, '-J', 'again', 'sh', '-c', script)
    assert [front.stdout.readline() for _ in range(2)] == ['try 0\n'] * 2
    job = cluster.json('scq', '--active')['jobs'][0]
    lost = job['nodes'][0]
    cluster.kill(lost)
    out, err = front.communicate(timeout=LIMIT)
    assert (out, front.returncode) == ('try 1\n' * 2, 0), err
    assert 'lost a node and is restarted (restart 1)' in err
    ended = cluster.job(job['job'])
    assert (ended['state'], ended['restarts']) == ('completed', 1)
    assert lost not in ended['nodes']
    row, = cluster.json('scacct')['jobs']
    assert (row['job'], row['restarts']) == (job['job'], 1)
    cluster.restart(lost)
    cluster.wait_up()


def test_a_job_that_does_not_want_to_start_again_ends(fresh):
    cluster = fresh(2)
    job = cluster.submit('--no-requeue', '-N', 1, 'sleep', 1000)
    node = cluster.wait_job(job, 'running')['nodes'][0]
    cluster.kill(node)
    assert cluster.wait_job(job, 'node-failed')['restarts'] == 0
    cluster.restart(node)
    cluster.wait_up()


def test_a_reload_adds_nodes_and_takes_none_away(fresh):
    cluster = fresh(2)
    file = cluster.directory / 'head/scored.toml'
    text = file.read_text()
    file.write_text(text.replace('node[00-01]', 'node[00-02]'))
    cluster.run('scadm', 'reload')
    rows = cluster.run('scnodes', '--no-header', '-o', 'node,state,cores,memory,free,heard').stdout.splitlines()
    assert rows[-1].split() == ['node02', 'unknown', '-', '-', '-', '-']
    assert cluster.run('scrun', '-N', 2, '-x', 'node02', 'echo', 'x').stdout == 'x\n' * 2
    file.write_text(text)
    assert 'node02' in cluster.run('scadm', 'reload', code=125).stderr


def states(cluster):
    return {node['node']: node['state'] for node in cluster.json('scnodes')['nodes']}


def test_nodes_are_removed_and_added_while_jobs_run(fresh, tmp_path):
    cluster = fresh(3)
    job, counters = start_progress(cluster, tmp_path, 'job', 2, '-w', 'node[00-01]')
    other = cluster.submit('-w', 'node02', 'sleep', 1000)
    cluster.wait_job(other, 'running')
    refused = lambda *words: cluster.run('scadm', 'node', *words, code=125).stderr
    assert 'node02 is not drained: first run `scadm drain node02`' in refused('remove', 'node02')
    cluster.run('scadm', 'drain', 'node02')
    assert 'jobs are still on node02' in refused('remove', 'node02')
    cluster.run('sccancel', '--grace', 0, other)
    assert cluster.run('scadm', 'node', 'remove', 'node02').stderr == 'node02 removed\n'
    assert set(states(cluster)) == {'node00', 'node01'}
    assert 'no node node02' in refused('remove', 'node02')
    assert 'requested 3 nodes; the cluster has 2' in cluster.run('scrun', '-N', 3, 'true', code=125).stderr
    assert 'no node node02' in cluster.run('scrun', '-w', 'node02', 'true', code=125).stderr
    assert 'node00 is a node of this cluster already' in refused('add', 'node00')
    assert 'is not a host name' in refused('add', 'no de')
    cluster.kill('head')  # the change is stored, and not in the file
    cluster.restart('head')
    wait_until(lambda: cluster.run('scnodes', code=None).returncode == 0)
    wait_until(lambda: states(cluster) == {'node00': 'up', 'node01': 'up'})
    assert cluster.job(job)['state'] == 'running'
    added = cluster.run('scadm', 'node', 'add', 'node[02-03]').stderr
    assert added == 'node[02-03] added; `scadm key rotate node[02-03]` prints the line to run there\n'
    wait_until(lambda: states(cluster)['node02'] == 'up')
    assert states(cluster)['node03'] == 'unknown'
    assert cluster.run('scrun', '-N', 3, '-x', 'node03', 'echo', 'x').stdout == 'x\n' * 3
    cluster.run('scadm', 'reload')
    assert set(states(cluster)) == {'node00', 'node01', 'node02', 'node03'}
    before = counters.total()
    wait_until(lambda: counters.total() > before)
    cluster.cancel_all()


def test_the_head_goes_on_without_its_only_node(fresh):
    cluster = fresh(1)
    job = cluster.submit('sleep', 1000)
    cluster.wait_job(job, 'running')
    head = cluster.daemon('head')['pid']
    cluster.kill('node00')
    cluster.wait_job(job, 'node-failed')
    time.sleep(1)  # the daemons' network is closed
    assert cluster.daemon('head')['pid'] == head and states(cluster) == {'node00': 'down'}
    cluster.restart('node00')
    cluster.wait_up()
    assert cluster.run('scrun', 'echo', 'x').stdout == 'x\n'
