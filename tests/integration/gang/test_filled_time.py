"""Jobs that fill use the processor time that the gang in turn leaves. No one watches: nodes report it with their heartbeats."""
import os
import pathlib

import pytest
from cluster import BIN, wait_until
from progress import start_progress
from web import Web, faults, value

RARELY = (BIN / 'scbench-phases', 'alone', 0, 2_000_000, 18_000_000, 1 << 40, 1)  # works 2 ms, sleeps 18 ms, in turns
NODES = 2


@pytest.fixture(autouse=True)
def fill_is_on(pair):
    pair.run('scadm', 'set', 'fill', 'on')
    yield
    pair.run('scadm', 'set', 'fill', 'off')


def works_rarely(cluster, *options):
    return cluster.submit('-N', NODES, *options, *RARELY)


def filled(cluster, job):
    shown = cluster.job(job)
    assert not shown['final'], shown
    return shown['filled_s']


def fills(cluster, job):
    before = filled(cluster, job)
    wait_until(lambda: filled(cluster, job) > before, what=lambda: cluster.job(job))


def stays(cluster, *jobs, cycles=20):
    """Whether no filled time is added to these jobs while each has so many more slices."""
    slices = [cluster.job(job)['slices'] for job in jobs]
    before = [filled(cluster, job) for job in jobs]
    wait_until(lambda: all(cluster.job(job)['slices'] >= had + cycles for job, had in zip(jobs, slices)))
    return [filled(cluster, job) for job in jobs] == before


def priorities(cluster):
    """What cpu.idle of this cluster's jobs holds, in either hierarchy."""
    nodes = [node for node in pathlib.Path(cluster.description['cgroup']).iterdir() if node.is_dir()]
    files = [file for node in nodes for file in node.glob('job_*/cpu.idle')]
    for node in nodes:
        files += pathlib.Path('/sys/fs/cgroup/cpu/scored/jobs').glob(f'scored_{node.stat().st_ino}_job_*/cpu.idle')
    return [file.read_text().strip() for file in files]


def needs_priorities(cluster):
    if not cluster.description['cgroup'] or os.geteuid() != 0:
        pytest.skip('needs cgroups')


def test_two_jobs_that_block_fill_each_others_slices(pair):
    needs_priorities(pair)
    jobs = [works_rarely(pair), works_rarely(pair)]
    for job in jobs:
        fills(pair, job)
    assert 'filled' in pair.run('score', 'job', jobs[0]).stdout
    web = Web(pair.json('score', 'info')['dashboard_url'])
    for node in range(NODES):
        figure = 'score_job_fill_seconds_total', f'{{node="node0{node}"}}'
        wait_until(lambda figure=figure: ''.join(figure) in (text := web.ask('/metrics').body.decode()) and value(text, *figure) > 0)
    for job in jobs:
        pair.cancel(job)
    listed = {job['job']: job for job in pair.json('scacct')['jobs']}
    assert all(listed[job]['filled_s'] > 0 for job in jobs)


def test_a_viewer_sees_who_fills_and_what_it_used(pair):
    needs_priorities(pair)
    jobs = [works_rarely(pair), works_rarely(pair)]
    web = Web(pair.json('score', 'info')['dashboard_url'])
    states, filled_jobs, most = set(), set(), {job: 0 for job in jobs}
    for document in web.stream('?rate=10'):
        assert faults(document) == [], faults(document)[:5]
        filled_jobs |= {job for _, job, _, _ in document['slices']['fills']}
        names = document['processes']['columns']
        for values in document['processes']['rows']:
            row = dict(zip(names, values))
            states.add(row['state'])
            most[row['job']] = max(most[row['job']], row['filled'])
        if 'fill' in states and filled_jobs == set(jobs) and min(most.values()) > 0:
            break
    assert all(node['filled'] is not None for node in document['nodes'])


def test_off_stops_filling(pair):
    needs_priorities(pair)
    jobs = [works_rarely(pair), works_rarely(pair)]
    fills(pair, jobs[0])
    pair.run('scadm', 'set', 'fill', 'off')
    assert pair.json('score', 'info')['fill'] == 'off'
    wait_until(lambda: stays(pair, *jobs))  # the last timetable with filling may still be in force


def test_a_job_that_refuses_neither_fills_nor_is_filled(pair):
    needs_priorities(pair)
    refusing, other = works_rarely(pair, '--no-fill'), works_rarely(pair)
    assert pair.job(refusing)['no_fill'] is True
    assert stays(pair, refusing, other)
    assert filled(pair, refusing) == filled(pair, other) == 0


def test_an_exclusive_job_is_not_filled(pair):
    first = works_rarely(pair)
    exclusive = works_rarely(pair, '--queue', 'exclusive')
    pair.wait_job(exclusive, 'running', 'pending')
    assert filled(pair, exclusive) == 0
    pair.cancel(first)


def test_a_busy_gang_leaves_a_filler_nothing_to_count(pair, tmp_path):
    """Both go on and finish their turns: a filler that always wants the processor does not stop the gang in turn."""
    jobs = [start_progress(pair, tmp_path, f'busy{number}', NODES) for number in range(2)]
    before = [counters.total() for _, counters in jobs]
    wait_until(lambda: all(counters.total() > had for (_, counters), had in zip(jobs, before)))
    assert {pair.job(job)['share'] for job, _ in jobs} == {0.5}


def test_jobs_of_a_dead_node_daemon_have_their_priority_back(pair):
    needs_priorities(pair)
    jobs = [works_rarely(pair), works_rarely(pair)]
    for job in jobs:
        fills(pair, job)
    pair.kill('node00')
    pair.restart('node00')
    pair.wait_up()
    for job in jobs:
        assert pair.job(job)['state'] == 'running'
        fills(pair, job)
    pair.run('scadm', 'set', 'fill', 'off')
    wait_until(lambda: set(priorities(pair)) <= {'0'}, what=lambda: priorities(pair))
