"""What jobs used: measured on the nodes, recorded with their end, shown by scacct, score job and score efficiency."""
import json
import os
import pathlib
import signal
import time

import pytest
from cluster import EXAMPLES, wait_until

USES = pathlib.Path(__file__).with_name('uses.py')
PART = 0.02  # by which a record may differ from what the program says of itself


@pytest.fixture(scope='module')
def nodes():
    from cluster import Cluster
    cluster = Cluster(4, '--slice', '20ms', '--cores', '2', '--memory', '2G')
    yield cluster
    cluster.stop()


def uses(seconds, megabytes=20, writes=0, path='unused'):
    return '/usr/bin/python3', USES, seconds, megabytes, writes, path


def record(cluster, job):
    """The record of an ended job, which is stored a moment after its end."""
    wait_until(lambda: cluster.run('scacct', job, code=None).returncode == 0)
    return cluster.json('scacct', job)['jobs'][0]


def run_job(cluster, folder, *words):
    """Runs a job to its end; returns its record and its output."""
    job = cluster.submit('-o', folder / 'output', *words)
    cluster.wait_job(job, 'completed')
    return record(cluster, job), (folder / 'output').read_text()


def near(found, expected, least=0.0):
    return abs(found - expected) <= max(PART * expected, least)


def said(text):
    """The figures that the ranks printed, rank by rank."""
    return [tuple(float(word) for word in line.split()) for line in text.splitlines()]


def is_on_disk(path):
    return os.stat(path).st_dev != os.stat('/dev/shm').st_dev and b'tmpfs' not in filesystem(path)


def filesystem(path):
    mounts = [line.split() for line in pathlib.Path('/proc/self/mounts').read_bytes().splitlines()]
    holds = [(len(mount[1]), mount[2]) for mount in mounts if os.fsencode(str(path)).startswith(mount[1])]
    return max(holds)[1]


def test_a_program_on_four_nodes_is_recorded(nodes, tmp_path):
    script = f'exec /usr/bin/python3 {USES} 3.0 400 100 {tmp_path}/$SCORE_RANK'
    row, out = run_job(nodes, tmp_path, '-N', 4, 'sh', '-c', script)
    figures = said(out)
    assert len(figures) == 4, out
    cpu = row['cpu_user_s'] + row['cpu_system_s']
    assert near(cpu, sum(figure[0] for figure in figures), 0.1), (row, figures)
    assert near(row['memory_peak_bytes'], max(figure[1] for figure in figures)), (row, figures)
    assert near(row['memory_peak_sum_bytes'], sum(figure[1] for figure in figures)), (row, figures)
    if is_on_disk(tmp_path):
        assert near(row['write_bytes'], 4 * 100 << 20), row
    assert row['page_faults'] > 4 * (400 << 20) / 4096, row
    assert row['switches_voluntary'] > 0 and row['nodes_unknown'] == 0 and not row['out_of_memory'], row


def test_children_that_have_ended_count(nodes, tmp_path):
    program = ' '.join(str(word) for word in uses(0.5))
    row, out = run_job(nodes, tmp_path, '-n', 1, 'sh', '-c', f'{program} & {program} & wait')
    assert near(row['cpu_user_s'] + row['cpu_system_s'], sum(figure[0] for figure in said(out)), 0.1), row


def test_a_process_that_nobody_waits_for_counts(nodes, as_root, tmp_path):
    program = ' '.join(str(word) for word in uses(0.5))
    script = f'(setsid sh -c "{program} >{tmp_path}/ended" &); until [ -s {tmp_path}/ended ]; do sleep 0.1; done'
    row, _ = run_job(nodes, tmp_path, '-n', 1, 'sh', '-c', script)
    assert row['cpu_user_s'] + row['cpu_system_s'] >= 0.5, row


def test_a_suspended_job_and_a_restarted_daemon_lose_nothing(nodes):
    job = nodes.submit('-N', 2, *uses(2.0))
    nodes.wait_job(job, 'running')
    nodes.run('score', 'suspend', job)
    nodes.kill('node00')
    nodes.restart('node00')
    nodes.wait_up()
    nodes.run('score', 'resume', job)
    nodes.wait_job(job, 'completed')
    row = record(nodes, job)
    assert near(row['cpu_user_s'] + row['cpu_system_s'], 4.0, 0.1), row


def test_a_restarted_head_counts_nothing_twice(nodes, tmp_path):
    program = ' '.join(str(word) for word in uses(0.5))
    job = nodes.submit('-N', 2, 'sh', '-c', f'if [ $SCORE_RANK = 0 ]; then {program}; touch {tmp_path}/ended; '
                       f'else until [ -e {tmp_path}/go ]; do sleep 0.1; done; fi')
    wait_until((tmp_path / 'ended').exists)
    time.sleep(1)  # the first node has reported its end
    nodes.kill('head')
    nodes.restart('head')
    nodes.wait_up()
    (tmp_path / 'go').touch()
    nodes.wait_job(job, 'completed')
    row = record(nodes, job)
    assert 0.5 <= row['cpu_user_s'] + row['cpu_system_s'] < 0.95, row


def test_steps_count_once_in_their_job(nodes, tmp_path):
    script = tmp_path / 'steps.sh'
    words = ' '.join(str(word) for word in uses(0.5, 100))
    script.write_text(f'#!/bin/sh\nscrun -n 2 {words}\nscrun -n 1 {words} &\nscrun -n 1 {words} &\nwait\n')
    job = int(nodes.run('scbatch', '-N', 2, '-o', tmp_path / 'out', script).stdout.split()[-1])
    nodes.wait_job(job, 'completed')
    row = record(nodes, job)
    figures = said((tmp_path / 'out').read_text())
    assert len(figures) == 4, figures
    cpu = row['cpu_user_s'] + row['cpu_system_s']
    alone = sum(figure[0] for figure in figures)
    assert alone <= cpu <= alone + 1.0, (row, figures)  # the script and its scruns come on top
    assert row['memory_peak_bytes'] >= 100 << 20, row


def test_tasks_of_an_array_have_their_own_records(nodes):
    job = nodes.submit('--array', '0-4', '-n', 1, *uses(0.3))
    nodes.wait_job(job, 'completed')
    tasks = [row for row in nodes.json('scacct', job)['jobs'] if 'array_task' in row]
    assert len(tasks) == 5
    for row in tasks:
        assert near(row['cpu_user_s'] + row['cpu_system_s'], 0.3, 0.1), row


def test_a_task_that_was_killed_is_recorded(nodes):
    job = nodes.submit('-n', 1, *uses(60))
    nodes.wait_job(job, 'running')
    wait_until(lambda: nodes.job(job)['slices'] > 20)
    nodes.run('sccancel', '--signal', 'KILL', job)
    nodes.wait_job(job, 'failed')
    row = record(nodes, job)
    assert row['signal'] == signal.SIGKILL and row['cpu_user_s'] > 0, row


def test_messages_through_pm_are_counted(nodes, tmp_path):
    row, _ = run_job(nodes, tmp_path, '-N', 2, EXAMPLES / 'pm_pingpong', 100)
    assert row['pm_messages'] >= 200 and row['pm_bytes'] > 0, row


def test_efficiency_gives_advice(nodes):
    job = nodes.submit('-n', 1, '-c', 2, '--mem', '1G', *uses(1.0, 50))
    nodes.wait_job(job, 'completed')
    text = nodes.run('score', 'efficiency', job).stdout
    assert f'job {job} ' in text and 'advice: --mem ' in text, text
    document = json.loads(nodes.run('score', 'efficiency', '--json', job).stdout)['jobs'][0]
    assert 0 < document['cpu_efficiency'] < 1 and document['memory_per_node_bytes'] == 1 << 30, document
    assert all(len(line) <= 80 for line in text.splitlines()), text


def test_sums_and_columns(nodes, tmp_path):
    run_job(nodes, tmp_path, '-n', 1, *uses(0.3))
    rows = nodes.json('scacct')['jobs']
    sums = nodes.json('scacct', '--by', 'user')['sums'][0]
    assert near(sums['cpu_user_s'], sum(row['cpu_user_s'] for row in rows), 0.001), sums
    header = nodes.run('scacct', '--csv', '-o', 'job,cpu_user_s,memory_peak_bytes,pm_bytes').stdout.splitlines()[0]
    assert header == 'job,cpu_user_s,memory_peak_bytes,pm_bytes'
    assert 'MEMORY' in nodes.run('scacct', '--long').stdout
