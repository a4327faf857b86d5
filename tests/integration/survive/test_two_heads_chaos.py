"""Two heads under random faults: nothing acknowledged is lost, no job runs twice, a replaced head answers nothing.

By hand: SCORE_CHAOS_SECONDS=600, SCORE_CHAOS_SEED=7 for the same choices again."""
import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import sqlite3
import struct
import subprocess
import time

import pytest

from cluster import wait_until
from etcd_chaos import EtcdFaults, EtcdLinks, etcd_for
from figures import figure
from heads_chaos import HEADS, Drainer, Faults, Ledger, Links, Reader, Servers, Submitter

SECONDS = int(os.environ.get('SCORE_CHAOS_SECONDS', 30))
SEED = int(os.environ.get('SCORE_CHAOS_SEED', time.time()))
# Also restores disks, and fails if the heads and nodes had to be helped to agree after a fault.
IS_STRICT = os.environ.get('SCORE_CHAOS_STRICT', '1') == '1'
CLOCK = pathlib.Path(__file__).resolve().parents[1] / 'gang/wall_clock.c'


def with_wall_clock(place):
    """(the environment whose wall clock is set by a file, the file); (None, None) without a compiler."""
    if shutil.which('cc') is None:
        return None, None
    shim, ahead = place / 'wall_clock.so', place / 'ahead'
    subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-o', shim, CLOCK], check=True)
    ahead.write_bytes(struct.pack('@ll', 0, 0))
    return dict(os.environ, LD_PRELOAD=str(shim), WALL_CLOCK_AHEAD=str(ahead)), ahead


def jobs_of(cluster, head):
    """{name: job} in a head's database."""
    with contextlib.closing(sqlite3.connect(f'file:{cluster.directory}/{head}/jobs.db?mode=ro', uri=True)) as database:
        return {name: job for job, name in database.execute('SELECT id, name FROM jobs')}


@pytest.fixture
def ready(fresh, as_root, tmp_path):
    """(cluster, the file of its wall clock or None): two heads and five nodes, each in a network namespace."""
    if shutil.which('ip') is None:
        pytest.skip('needs ip')
    print(f'seed {SEED}')
    environment, clock = with_wall_clock(tmp_path)
    return fresh(5, '--heads', '2', '--netns', '--slice', '50ms', environment=environment), clock


def test_two_heads_under_chaos(ready, tmp_path):
    cluster, clock = ready
    links, ledger = Links(cluster), Ledger()
    run_chaos(Faults(cluster, random.Random(SEED), ledger, links, clock), ledger, links, tmp_path / 'ran', 'heads')


def test_two_heads_with_etcd_under_chaos(ready, tmp_path):
    """The lease is in an etcd of three members, which are killed, stopped and cut off too."""
    cluster, clock = ready
    with etcd_for(cluster, tmp_path / 'etcd', clock) as members:
        links, ledger = EtcdLinks(cluster, members), Ledger()
        faults = EtcdFaults(cluster, random.Random(SEED), ledger, links, clock, members=members)
        run_chaos(faults, ledger, links, tmp_path / 'ran', 'two-heads-etcd')


def run_chaos(faults, ledger, links, ran, name):
    cluster = faults.cluster
    ran.touch()
    faults.wait_ready()
    at_node = {'SCORED_SERVER': str(cluster.directory / 'node00/commands.sock')}
    faults.job = cluster.submit('sleep', 1_000_000, extra_env=at_node)
    servers = Servers(cluster, random.Random(SEED + 1))
    workers = [*(Submitter(ledger, servers, f'w{number}', ran) for number in range(3)), Drainer(ledger, servers),
               *(Reader(ledger, servers, cluster.directory / head / 'head.sock') for head in HEADS)]
    for worker in workers:
        worker.start()
    try:
        faults.run(SECONDS, IS_STRICT)
    finally:
        links.heal()
        for worker in workers:
            worker.is_over.set()
        for worker in workers:
            worker.join()
        links.close()
    assert not ledger.errors, ledger.errors
    check(cluster, faults, ledger, ran, at_node, name)


def check(cluster, faults, ledger, ran, at_node, figure_name):
    faults.wait_ready()
    long_job = json.loads(cluster.run('score', 'job', faults.job, '--json', extra_env=at_node).stdout)['job']
    assert long_job['state'] == 'running', long_job
    cluster.run('sccancel', '--grace', '0', faults.job, extra_env=at_node)
    wait_until(lambda: not json.loads(cluster.run('scq', '--active', '--json', extra_env=at_node).stdout)['jobs'], what=cluster.logs)
    faults.wait_ready()
    lost = [(head, name) for head in HEADS for known in [jobs_of(cluster, head)]
            for name, job in ledger.submitted.items() if known.get(name) != job]
    counts = collections.Counter(ran.read_text().split())
    twice = [name for name, count in counts.items() if count > 1]
    unknown = set(counts) - ledger.attempted
    listed = json.loads(cluster.run('scq', '-a', '--json', extra_env=at_node).stdout)['jobs']
    states = {job['name']: job['state'] for job in listed}
    unrun = [name for name, state in states.items() if state == 'completed' and name in ledger.submitted and not counts[name]]
    never = collections.Counter(state for name, state in states.items() if name in ledger.submitted and not counts[name])
    take_overs = sorted(faults.take_overs) or [0]
    kinds = ', '.join(f'{count} {name.replace("_", " ")}' for name, count in sorted(faults.counts.items()))
    figure(figure_name, f'{SECONDS} s, seed {SEED}: {kinds}; {len(ledger.submitted)} submissions and {ledger.drains} settings acknowledged, '
           f'{len(lost)} lost; {len(twice)} jobs run twice; {ledger.reads} reads, {len(ledger.wrong)} stale; {len(ledger.late)} answers '
           f'by a replaced head; take-over {take_overs[len(take_overs) // 2]:.1f} s median, {take_overs[-1]:.1f} s at most; '
           f'ended without running: {dict(never)}')
    assert not lost, lost[:20]
    assert not twice and not unknown, (twice, unknown)
    assert not unrun, unrun
    assert not ledger.wrong, ledger.wrong[:20]
    assert not ledger.late, ledger.late
    assert not IS_STRICT or not faults.counts['needed help'], faults.counts
