"""Links that come and go. By hand: SCORE_CUTS=100."""
import contextlib
import os
import random
import time

from cluster import wait_until
from figures import figure
from progress import start_progress
from trouble import cut_off, need_nftables, nft

CUTS = int(os.environ.get('SCORE_CUTS', 6))
LONGEST = 20.0 if CUTS > 20 else 6.0  # seconds


@contextlib.contextmanager
def mute(node):
    """What it sends is lost; it hears everything."""
    nft(node, 'add table inet mute')
    nft(node, 'add chain inet mute out { type filter hook output priority 0; }')
    nft(node, 'add rule inet mute out drop')
    yield
    nft(node, 'delete table inet mute')


@contextlib.contextmanager
def both(node):
    with cut_off(node), mute(node):
        yield


def advances(jobs, ranks):
    """Every rank of every job has counted further."""
    before = [counters.counter(rank) for _, counters in jobs for rank in range(ranks)]
    wait_until(lambda: all(after > b for after, b in zip(
        [counters.counter(rank) for _, counters in jobs for rank in range(ranks)], before)))


def test_links_that_flap(fresh, as_root, tmp_path):
    need_nftables()
    cluster = fresh(3, '--netns', '--cores', 1, '--slice', '50ms')
    chance = random.Random(8)
    jobs = [start_progress(cluster, tmp_path, name, 3, '--no-requeue') for name in ('a', 'b')]
    directions, cut_time = [cut_off, mute, both], 0.0
    for number in range(CUTS):
        node = cluster.daemon(f'node{chance.randrange(3):02}')
        seconds = min(LONGEST, 0.1 * (LONGEST / 0.1) ** chance.random())  # as many short ones as long ones
        with directions[number % 3](node):
            time.sleep(seconds)
        cut_time += seconds
        time.sleep(chance.uniform(0, 0.5))
    began = time.monotonic()
    cluster.wait_up()
    healed = time.monotonic() - began
    advances(jobs, 3)
    for job, _ in jobs:
        status = cluster.job(job)
        assert (status['state'], status['restarts']) == ('running', 0), status
    assert cluster.run('scrun', '-q', '-N', 3, 'echo', 'x').stdout == 'x\n' * 3
    cluster.cancel_all()
    for row in ('F08', 'partition-heals'):
        figure(row, f'{CUTS} cuts, {cut_time:.0f} s in all: no job ended, nodes up {healed:.1f} s after the last one')


def test_a_head_that_restarts_without_a_node(fresh, as_root, tmp_path):
    need_nftables()
    cluster = fresh(2, '--netns', '--cores', 1, '--slice', '50ms')
    job, counters = start_progress(cluster, tmp_path, 'job', 2)
    with both(cluster.daemon('node01')):
        cluster.kill('head')
        cluster.restart('head')
        cluster.wait_up(1)
        before = counters.counter(1)
        states = set()
        for _ in range(20):
            states.add((cluster.job(job)['state'], cluster.job(job)['restarts']))
            time.sleep(0.1)
        assert states == {('running', 0)}, states
        wait_until(lambda: counters.counter(1) > before, what=lambda: 'the cut node goes on with its job')
    cluster.wait_up()
    assert (cluster.job(job)['state'], cluster.job(job)['restarts']) == ('running', 0)
    cluster.cancel_all()
    figure('F07', 'running, 0 restarts')
