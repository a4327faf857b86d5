"""Faults while gangs are switched: bad links, tasks that come and go, nodes that lag, no head."""
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from cluster import EXAMPLES, LIMIT, wait_until
from progress import start_progress

TALK = EXAMPLES / 'pm_talk'
# By hand: SCORE_LOSS_SECONDS=100 makes 10^4 switches a node.
LOSS_SECONDS = float(os.environ.get('SCORE_LOSS_SECONDS', 3))
LOSS_PERCENT = 20
RESTLESS_ROUNDS = int(os.environ.get('SCORE_RESTLESS_ROUNDS', 2))


def switches(cluster):
    """Of each node, since its daemon started."""
    return [int(node['switches']) for node in cluster.json('scnodes')['nodes']]


def resent(cluster):
    nodes = cluster.json('scadm', 'trace', '--seconds', 1)['nodes']
    return sum(int(node['channels']['frames_resent']) for node in nodes)


def lose(cluster):
    """What PM sends is lost on its way into each node; what the daemons say is not."""
    chance = f'numgen random mod 100 < {LOSS_PERCENT} drop'
    for node in cluster.describe()['nodes']:
        for words in ('table netdev loss', 'chain netdev loss in { type filter hook ingress device eth0 priority 0; }',
                      f'rule netdev loss in ip protocol udp {chance}', f'rule netdev loss in ether type 0x88b5 {chance}'):
            done = subprocess.run(['nsenter', '-t', str(node['pid']), '-n', 'nft', 'add ' + words],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                pytest.skip(f'nftables cannot do: {words}: {done.stderr}')


@pytest.mark.parametrize('device', ['udp', 'ethernet'])
def test_talkative_jobs_bear_bad_links(fresh, as_root, device):
    for program in ('ip', 'nft', 'nsenter'):
        if shutil.which(program) is None:
            pytest.skip(f'needs {program}')
    cluster = fresh(2, '--netns', '--slice', '10ms', '--channels', 1, '--device', device)
    lose(cluster)
    before = switches(cluster)
    jobs = [cluster.start('scrun', '-q', '-N', 2, TALK, LOSS_SECONDS) for _ in range(2)]
    seen = 0
    while any(job.poll() is None for job in jobs):
        seen = max(seen, resent(cluster))
        time.sleep(0.2)
    for job in jobs:
        out, err = job.communicate()
        assert job.returncode == 0 and out.count(': correct') == 2, (out, err, cluster.logs())
    assert seen > 0, 'nothing was lost'
    # Heartbeats carry the counters.
    wait_until(lambda: min(after - b for after, b in zip(switches(cluster), before)) > 30 * LOSS_SECONDS)
    print('switches of each node:', [after - b for after, b in zip(switches(cluster), before)], 'resent:', seen)


FORKS = 'i=0; while [ $i -lt 300 ]; do /bin/true & i=$((i+1)); [ $((i % 20)) = 0 ] && wait; done; wait; exit 3'
MAPS = '''
import mmap
for _ in range(300):
    area = mmap.mmap(-1, 1 << 20)
    area[::4096] = bytes(256)
    area.close()
raise SystemExit(4)
'''


# Each of them does so in any phase of some switch; which one is up to chance.
def test_tasks_that_fork_map_exit_and_are_cancelled_hurt_no_switch(fresh):
    cluster = fresh(2, '--slice', '5ms', '--channels', 1, '--cores', 1)
    chance = random.Random(5)
    talker = cluster.start('scrun', '-q', '-N', 2, TALK, 4 * RESTLESS_ROUNDS)
    for _ in range(RESTLESS_ROUNDS):
        jobs = {cluster.start('scrun', '-q', '-N', 2, *words): code
                for words, code in ((('sh', '-c', FORKS), 3), (('python3', '-c', MAPS), 4), (('true',), 0),
                                    (('sh', '-c', 'kill -9 $$'), 128 + 9))}
        cancelled = [cluster.submit('-N', 2, TALK, 600) for _ in range(3)]
        for job in cancelled:
            time.sleep(chance.uniform(0, 0.3))
            cluster.run('sccancel', '--grace', 0, job)
        for process, code in jobs.items():
            out, err = process.communicate(timeout=LIMIT)
            assert process.returncode == code, (process.args, process.returncode, out, err, cluster.logs())
        for job in cancelled:
            cluster.wait_job(job, 'cancelled')
    out, err = talker.communicate(timeout=LIMIT)
    assert talker.returncode == 0 and out.count(': correct') == 2, (out, err, cluster.logs())
    assert cluster.nodes_up() == 2


# ---- barrier mode

def entered(cluster, node, seconds):
    """How often each job entered on the node lately."""
    trace = cluster.json('scadm', 'trace', '--seconds', seconds)
    records = next(n for n in trace['nodes'] if n['node'] == node)['switches']
    counts = {}
    for record in records:
        for attempt in record['entered']:
            counts[attempt // 256] = counts.get(attempt // 256, 0) + 1
    return counts


def test_a_straggler_in_barrier_mode_costs_its_own_job_alone(fresh, tmp_path):
    cluster = fresh(3, '--slice', '20ms', '--switch-mode', 'barrier', '--cores', 1)
    wide, of_wide = start_progress(cluster, tmp_path, 'wide', 3)
    narrow, of_narrow = start_progress(cluster, tmp_path, 'narrow', 2, '-w', 'node00,node01')
    wait_until(lambda: {wide, narrow} <= set(entered(cluster, 'node00', 1)))
    straggler = cluster.daemon('node02')['pid']
    os.kill(straggler, signal.SIGSTOP)
    steps = []

    def narrow_goes_on_alone():
        before = of_wide.counter(0), of_narrow.counter(0)
        time.sleep(0.5)
        steps.append((of_wide.counter(0) - before[0], of_narrow.counter(0) - before[1]))
        return steps[-1][0] == 0 and steps[-1][1] > 0

    try:
        wait_until(narrow_goes_on_alone, what=lambda: steps)  # in the first the slice under way may end
        assert [cluster.job(job)['state'] for job in (wide, narrow)] == ['running', 'running']
    finally:
        os.kill(straggler, signal.SIGCONT)
    wide_after = of_wide.counter(0)
    wait_until(lambda: of_wide.counter(0) > wide_after)
    assert [cluster.job(job)['state'] for job in (wide, narrow)] == ['running', 'running']
    cluster.cancel_all()


def test_barrier_mode_goes_on_without_the_head(fresh, tmp_path):
    cluster = fresh(2, '--slice', '20ms', '--switch-mode', 'barrier', '--cores', 1)
    jobs = [start_progress(cluster, tmp_path, name, 2) for name in ('a', 'b')]
    counters = [c for _, c in jobs]

    def all_advance():
        before = [c.counter(rank) for c in counters for rank in range(2)]
        wait_until(lambda: all(c > b for c, b in zip([c.counter(r) for c in counters for r in range(2)], before)))

    wait_until(lambda: {job for job, _ in jobs} <= set(entered(cluster, 'node00', 1)))
    cluster.kill('head')
    for _ in range(10):  # some of their turns each
        all_advance()
        time.sleep(0.1)
    cluster.restart('head')
    cluster.wait_up()
    for _ in range(10):
        all_advance()
        time.sleep(0.1)
    assert [cluster.job(job)['state'] for job, _ in jobs] == ['running', 'running']
    cluster.cancel_all()
