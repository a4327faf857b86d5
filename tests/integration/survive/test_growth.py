"""Memory and descriptors of each daemon over many short jobs. By hand: SCORE_GROWTH_JOBS=20000."""
import os
import pathlib
import time

from cluster import LIMIT
from figures import figure

JOBS = int(os.environ.get('SCORE_GROWTH_JOBS', 600))
WARM = 300
MOST_BYTES = 4 << 20  # a few pages per thousand ended jobs are kept for accounting; a leak is more
SUBMIT = 'i=0; while [ $i -lt $0 ]; do scrun -q -N 2 true || exit 1; i=$((i+1)); done'
AT_ONCE = 8


def measure(cluster):
    """{daemon: (private bytes, descriptors)}"""
    description = cluster.describe()
    found = {}
    for daemon in [description['head'], *description['nodes'], *description['launchers']]:
        proc = pathlib.Path('/proc', str(daemon['pid']))
        rollup = (proc / 'smaps_rollup').read_text()
        private = sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith('Private_'))
        found[daemon['name']] = (private, len(os.listdir(proc / 'fd')))
    return found


def run_jobs(cluster, count):
    shells = [cluster.start('sh', '-c', SUBMIT, count // AT_ONCE) for _ in range(AT_ONCE)]
    for shell in shells:
        out, err = shell.communicate(timeout=LIMIT + count)
        assert shell.returncode == 0, (out, err)


def settled(cluster):
    """What the head shows of ended jobs for ten seconds is gone, and each link is idle."""
    time.sleep(12)
    return measure(cluster)


def test_short_jobs_leave_no_memory_and_no_descriptors(fresh):
    cluster = fresh(4, '--slice', '20ms', '--cores', 4, '--node-metrics')
    run_jobs(cluster, WARM)
    before = settled(cluster)
    for _ in range(2):  # what a busy moment took is kept, once; a leak grows again
        run_jobs(cluster, JOBS)
        after = settled(cluster)
        growth = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in before}
        assert all(fds <= 2 for _, fds in growth.values()), growth
        if all(size <= MOST_BYTES + JOBS * 64 for size, _ in growth.values()):
            break
        before = after
    else:
        raise AssertionError(growth)
    worst = {kind: max((size for name, (size, _) in growth.items() if name.startswith(kind)), default=0)
             for kind in ('head', 'node', 'launcher')}
    figure('growth', f'{JOBS} jobs: ' + ', '.join(f'{kind} {size / 1024:+.0f} KiB' for kind, size in worst.items()) +
           f', descriptors {max(fds for _, fds in growth.values()):+d}')
