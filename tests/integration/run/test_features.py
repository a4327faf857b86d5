"""Features of nodes and generic resources: --constraint, --gres, what tasks see of them, and what they may open."""
import os
import stat

import pytest
from cluster import wait_until

FIRST = os.makedev(10, 232)
SECOND = os.makedev(10, 200)
OPEN = '''
import os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDWR))
        print("yes", flush=True)
    except PermissionError:
        print("no", flush=True)
'''
SHOW = 'echo $SCORE_GRES $CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES'
HOLD = ('sleep', '1000')
GPUS = '[gres.gpu]\ncount = 2\nmemory = "8G"\n[gres.nic]\ncount = 1\n'


@pytest.fixture
def cluster(fresh, tmp_path):
    """node00 and node01 have two gpus each, and features; node02 has a shared unit; node03 has nothing."""
    tables = {
        'node00': f'features = ["ib", "left"]\n{GPUS}',
        'node01': f'features = ["ib", "right"]\n{GPUS}',
        'node02': '[gres.part]\ncount = 1\nshared = true\nmemory = "10G"\n',
    }
    words = []
    for node, text in tables.items():
        (tmp_path / node).write_text(text)
        words += ['--node-config', f'{node}={tmp_path / node}']
    return fresh(4, '--cores', 2, *words)


def refusal(cluster, *words):
    done = cluster.run('scrun', '-q', *words, 'true', code=None)
    assert done.returncode != 0 and len(done.stderr.splitlines()) == 1, done
    return done.stderr


def nodes_of(cluster):
    return {node['node']: node for node in cluster.json('scnodes')['nodes']}


def used(cluster, node, kind='gpu'):
    return next(one['used'] for one in nodes_of(cluster)[node]['gres'] if one['name'] == kind)


def test_nodes_show_what_they_have(cluster):
    nodes = nodes_of(cluster)
    assert nodes['node00']['features'] == ['ib', 'left'] and nodes['node03']['features'] == []
    assert nodes['node00']['gres'] == [
        {'name': 'gpu', 'count': 2, 'used': 0, 'shared': False, 'memory_bytes': 8 << 30},
        {'name': 'nic', 'count': 1, 'used': 0, 'shared': False, 'memory_bytes': 0}]
    table = cluster.run('scnodes', '--no-header', '-o', 'node,features,gres').stdout
    assert table.splitlines()[0].split() == ['node00', 'ib,left', 'gpu:0/2,nic:0/1'], table


def test_jobs_run_where_the_constraint_says(cluster):
    def where(*words):
        return sorted(cluster.run('scrun', '-q', *words, 'sh', '-c', 'echo $SCORE_NODENAME').stdout.split())
    assert where('-C', 'right') == ['node01']
    assert where('--constraint', 'ib&left') == ['node00']
    assert where('-N', '2', '-C', 'left|right') == ['node00', 'node01']
    script = cluster.directory / 'job.sh'
    for line in ('#SCORE --constraint=right', '#SBATCH -C right', '#SBATCH --constraint=ib&right --gres=gpu:1'):
        script.write_text(f'#!/bin/sh\n{line}\necho $SCORE_NODENAME\n')
        job = int(cluster.run('scbatch', '-o', cluster.directory / 'out', script).stdout.split()[-1])
        cluster.wait_job(job, 'completed')
        assert (cluster.directory / 'out').read_text().split() == ['node01']
    shown = cluster.run('scalloc', '-C', 'right', 'sh', '-c', 'scrun -q sh -c "echo \\$SCORE_NODENAME"').stdout
    assert shown.split()[-1] == 'node01'


REFUSED = [
    (['-C', 'opa'], "no node has feature 'opa'"),
    (['-C', 'opa|tape'], "no node has feature 'opa' or 'tape'"),
    (['-C', 'left&right'], "no node has all of 'left&right'"),
    (['-N', '3', '-C', 'ib'], "requested 3 nodes; constraint 'ib' leaves 2"),
    (['-C', 'a&b|c'], 'use one of them'),
    (['-C', '[a|b]'], "only 'a&b' (all of them) and 'a|b' (one of them)"),
    (['--gres', 'fpga'], "no node has generic resource 'fpga'; there are: gpu, nic, part"),
    (['--gres', 'gpu:3'], 'requested 3 gpu per node; the node with most has 2'),
    (['-N', '3', '--gres', 'gpu:1'], 'requested 3 nodes with gpu:1; 2 have that'),
    (['--gres', 'gpu:0'], 'the count is not between 1 and 256'),
    (['--gres', 'gpu:1000000000'], 'the count is not between 1 and 256'),
    (['--gres', 'gpu:two'], 'the count is not between 1 and 256'),
    (['--gres', 'gpu:1:mem=80G'], 'of each gpu; the largest has'),
    (['--gres', 'gpu,gpu'], "'gpu' is there twice"),
    (['--gpus', '2'], '--gres gpu:N')]


def test_bad_input_gets_one_line(cluster):
    for words, why in REFUSED:
        assert why in refusal(cluster, *words), words
    assert not cluster.json('scq')['jobs'], 'nothing is half submitted'


def test_jobs_compete_for_units(cluster):
    first = cluster.submit('-w', 'node00', '--gres', 'gpu:2,nic', *HOLD)
    cluster.wait_job(first, 'running')
    assert used(cluster, 'node00') == 2 and used(cluster, 'node00', 'nic') == 1
    second = cluster.submit('-w', 'node00', '--gres', 'gpu:1', 'sh', '-c', f'{SHOW} >{cluster.directory}/second')
    assert 'gpu:1 per node is not free on node00' in cluster.run('scq', '--why', second).stdout
    cluster.restart('head')
    cluster.wait_up()
    assert cluster.job(second)['state'] == 'pending'
    cluster.kill('node00')
    cluster.restart('node00')
    cluster.wait_up()
    assert cluster.job(first)['state'] == 'running' and used(cluster, 'node00') == 2
    cluster.run('sccancel', first)
    cluster.wait_job(second, 'completed')
    assert (cluster.directory / 'second').read_text().split() == ['gpu:0', '0', '0']
    assert used(cluster, 'node00') == 0
    rows = {row['job']: row['gres'] for row in cluster.json('scacct')['jobs']}
    assert rows[int(first)] == 'gpu:2,nic:1' and rows[int(second)] == 'gpu:1'


def test_each_job_has_units_of_its_own(cluster):
    lines = []
    for name in ('one', 'two'):
        out = cluster.directory / name
        job = cluster.submit('-w', 'node00', '--gres', 'gpu', 'sh', '-c', f'{SHOW} >{out}; sleep 1000')
        cluster.wait_job(job, 'running')
        wait_until(lambda path=out: path.exists() and path.read_text().endswith('\n'))
        lines.append(out.read_text().split())
    assert lines == [['gpu:0', '0', '0'], ['gpu:1', '1', '1']]
    assert cluster.run('scrun', '-q', '-w', 'node00', 'sh', '-c', 'echo "<$SCORE_GRES>"').stdout.split() == ['<>']


def test_shared_units_go_round_in_time(cluster):
    jobs = [cluster.submit('--gres', f'part:1:mem={memory}G', 'sh', '-c', 'while :; do :; done') for memory in (4, 6)]
    for job in jobs:
        cluster.wait_job(job, 'running')
    assert used(cluster, 'node02', 'part') == 1
    slots = {cluster.job(job)['slot'] for job in jobs}
    assert len(slots) == 2, 'they never run at the same time, although each has a core of its own'
    wait_until(lambda: all(abs(cluster.job(job)['share'] - 0.5) < 0.01 for job in jobs))
    third = cluster.submit('--gres', 'part:1:mem=1G', 'true')
    assert 'part:1:mem=1G per node is not free on node02' in cluster.run('scq', '--why', third).stdout
    cluster.run('sccancel', jobs[0])
    cluster.wait_job(third, 'completed')


def test_steps_have_the_units_of_their_job(cluster):
    shown = cluster.run('scalloc', '-w', 'node00', '--gres', 'gpu:2', 'sh', '-c',
                        f"scrun -q sh -c '{SHOW}'; scrun -q --gres gpu:3 true", code=None)
    assert shown.stdout.split()[-3:] == ['gpu:0,1', '0,1', '0,1'], shown
    assert 'needs gpu:3 per node' in shown.stderr


def test_steps_divide_the_units_of_their_job(cluster):
    """Each has one, and a third waits until one of them has ended."""
    place = cluster.directory
    step = f"scrun -q --gres gpu:1 sh -c '{SHOW} >{place}/step.$SCORE_STEP_ID; while [ ! -e {place}/go ]; do sleep 0.05; done'"
    job = cluster.start('scalloc', '-w', 'node00', '-n', 4, '--gres', 'gpu:2', 'sh', '-c',
                        f"{step.replace('scrun', 'scrun -n 1', 1)} & {step.replace('scrun', 'scrun -n 1', 1)} & wait")
    shown = [place / f'step.{index}' for index in range(2)]
    wait_until(lambda: all(path.exists() and len(path.read_text().split()) == 3 for path in shown),
               what=lambda: [path.exists() and path.read_text() for path in shown])
    assert sorted(path.read_text().split()[0] for path in shown) == ['gpu:0', 'gpu:1']
    (place / 'go').touch()
    assert job.wait(60) == 0


@pytest.fixture
def devices(fresh, as_root, tmp_path):
    """One node whose two gpus are device files of this test: the kernel decides by number, whatever the path."""
    tmp_path.chmod(0o755)
    files = []
    for index, number in enumerate((FIRST, SECOND)):
        files.append(tmp_path / f'gpu{index}')
        try:
            os.mknod(files[-1], stat.S_IFCHR | 0o666, number)
            files[-1].chmod(0o666)
            os.close(os.open(files[-1], os.O_RDWR))
        except OSError as error:
            pytest.skip(f'cannot open {files[-1]} here: {error}')
    lines = tmp_path / 'lines'
    lines.write_text('[gres.gpu]\nfiles = [%s]\n' % ', '.join(f'"{file}"' for file in files))
    cluster = fresh(1, '--cores', 4, '--node-config', f'node00={lines}')
    if not cluster.description['cgroup']:
        pytest.skip('needs cgroup version 2')
    return cluster, files


def test_tasks_open_only_the_devices_of_their_units(devices):
    cluster, files = devices

    def opens(*words):
        return cluster.run('scrun', '-q', *words, 'python3', '-c', OPEN, *files).stdout.split()
    assert opens() == ['no', 'no']
    assert opens('--gres', 'gpu:2') == ['yes', 'yes']
    assert opens('--gres', 'gpu') == ['yes', 'no']
    held = cluster.submit('--gres', 'gpu', *HOLD)
    cluster.wait_job(held, 'running')
    assert opens('--gres', 'gpu') == ['no', 'yes']
    # A driver counts only what it can open.
    assert cluster.run('scrun', '-q', '--gres', 'gpu', 'sh', '-c', SHOW).stdout.split() == ['gpu:1', '0', '0']
    files[1].unlink()
    done = cluster.run('scrun', '-q', '--gres', 'gpu', 'true', code=None)
    assert done.returncode != 0 and f'gpu 1: {files[1]}' in done.stderr, done


def test_a_restarted_daemon_leaves_devices_restricted(devices):
    cluster, files = devices
    out = cluster.directory / 'out'
    script = f'import os, time\nwhile not os.path.exists("{out}.go"): time.sleep(0.05)\n{OPEN}'
    job = cluster.submit('--gres', 'gpu', '-o', out, 'python3', '-c', script, *files)
    cluster.wait_job(job, 'running')
    cluster.kill('node00')
    cluster.restart('node00')
    cluster.wait_up()
    (cluster.directory / 'out.go').touch()
    cluster.wait_job(job, 'completed')
    assert out.read_text().split() == ['yes', 'no']
