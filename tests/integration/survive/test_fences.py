"""Jobs that exchange very much through PMI: the head keeps little of it, and other users go on."""
import pathlib
import subprocess
import time

import pytest
from cluster import LIMIT, Cluster, wait_until
from figures import figure

NODES, TASKS_PER_NODE, JOBS = 16, 4, 4
KILLS = 3
BYTES = 250_000  # of values per task: a task may put 256 KiB
MOST_MB = 64


@pytest.fixture(scope='module')
def program(tmp_path_factory):
    built = tmp_path_factory.mktemp('fences') / 'pmi_put'
    source = pathlib.Path(__file__).with_name('pmi_put.c')
    subprocess.run(['cc', '-O2', '-Wall', '-o', built, source], check=True)
    return built


@pytest.fixture
def sixteen():
    cluster = Cluster(NODES, '--cores', '8')
    yield cluster
    cluster.stop()


def memory_mb(cluster, what):
    lines = pathlib.Path(f'/proc/{cluster.daemon("head")["pid"]}/status').read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(what))) / 1024


def lost_links(cluster):
    """Returns how many lines of the head's log report a lost connection to a node."""
    return (cluster.directory / 'log' / 'head').read_text(errors='replace').count('Lost connection to node')


def commands_ms(cluster, until):
    """Runs commands one after the other until `until` returns true, at least 20; returns how long each took."""
    took = []
    while len(took) < 20 or not until():
        began = time.monotonic()
        cluster.run('scq')
        took.append((time.monotonic() - began) * 1000)
    return sorted(took)


def p99(values):
    return values[min(len(values) - 1, int(0.99 * len(values)))]


def test_large_puts_cost_the_head_little(sixteen, program):
    """Four jobs on sixteen nodes put 16 MB each. The head's memory grows by less than MOST_MB, no connection to a node breaks,
    every rank gets every value, and a small job goes on meanwhile."""
    words = ['-N', NODES, '-n', NODES * TASKS_PER_NODE, '--mpi', 'pmi1', '--overcommit']
    quiet = commands_ms(sixteen, lambda: True)
    pathlib.Path(f'/proc/{sixteen.daemon("head")["pid"]}/clear_refs').write_text('5')  # the peak begins here
    before = memory_mb(sixteen, 'VmRSS')
    jobs = [sixteen.start('scrun', *words, program, BYTES, 1, 0) for _ in range(JOBS)]
    small = sixteen.start('scrun', '-N', 2, '-n', 2, '--mpi', 'pmi1', '--overcommit', program, 2000, 50, 0)
    busy = commands_ms(sixteen, lambda: all(job.poll() is not None for job in jobs))
    for job in [*jobs, small]:
        out, err = job.communicate(timeout=LIMIT)
        assert (job.returncode, out) == (0, 'all rounds done\n'), (err, sixteen.logs())
    grown = memory_mb(sixteen, 'VmHWM') - before
    figure('rule-13', f'the head grows by {grown:.0f} MB; p99 of commands {p99(quiet):.0f} ms quiet, {p99(busy):.0f} ms busy')
    assert grown < MOST_MB
    assert lost_links(sixteen) == 0
    assert sixteen.nodes_up() == NODES


def test_fences_go_on_while_node_daemons_are_killed(fresh, program):
    """Each of 20 fences is of several windows; whatever a killed daemon had on its way is sent again."""
    cluster = fresh(4, '--cores', 8)
    job = cluster.start('scrun', '-N', 4, '-n', 32, '--mpi', 'pmi1', program, 12_000, 20, 300)
    wait_until(lambda: any(found['state'] == 'running' for found in cluster.json('scq', '--active')['jobs']))
    for _ in range(KILLS):
        time.sleep(1)
        cluster.kill('node01')
        cluster.restart('node01')
        cluster.wait_up()
    out, err = job.communicate(timeout=LIMIT)
    assert (job.returncode, out) == (0, 'all rounds done\n'), (err, cluster.logs())
