"""Tasks that sleep often keep neither other jobs nor the rest of the machine from the processors."""
import os
import pathlib
import subprocess
import sys

import pytest
from cluster import Cluster, LIMIT, wait_until

TASKS = 32
SECONDS = 12
# Other load makes a thread wait for some time slices, starvation made it wait until the job ended.
STARVED_S = 4

# Prints for how long the thread waited for its processor at most, in seconds.
WATCHER = r'''
import os, pathlib, sys, time
seconds = float(sys.argv[1])
if len(sys.argv) > 2: os.sched_setaffinity(0, {int(sys.argv[2])})
def waited():
    return int(pathlib.Path('/proc/self/schedstat').read_text().split()[1]) / 1e9
end, last, most = time.monotonic() + seconds, waited(), 0.0
while time.monotonic() < end:
    time.sleep(0.01)
    now = waited()
    most, last = max(most, now - last), now
print(most)
'''


@pytest.fixture(scope='module')
def program(tmp_path_factory):
    built = tmp_path_factory.mktemp('starvation') / 'sleeps_often'
    source = pathlib.Path(__file__).with_name('sleeps_often.c')
    subprocess.run(['cc', '-O2', '-o', built, source], check=True)
    return built


def watch_all_processors():
    """One watcher per processor, in sessions of their own, where no job's priority reaches them."""
    return [subprocess.Popen([sys.executable, '-c', WATCHER, str(SECONDS), str(processor)], start_new_session=True,
                             stdout=subprocess.PIPE, text=True) for processor in os.sched_getaffinity(0)]


def test_tasks_that_sleep_often_starve_no_one(program, tmp_path):
    """Two jobs that are not gangs of one another: each node of the host runs its own. A third job starts beside them and is not
    late either."""
    if os.geteuid() != 0 or not pathlib.Path('/sys/fs/cgroup/cpu/cpu.shares').parent.exists():
        pytest.skip('needs root and the cpu controller of cgroup version 1')
    cluster = Cluster(3, '--cores', 2)
    try:
        script = f'until test -e {tmp_path}/go; do sleep 0.2; done; exec {program} {SECONDS + 60}'
        jobs = [cluster.submit('-q', '-w', node, '-n', TASKS, '--mpi', 'none', 'sh', '-c', script) for node in ('node00', 'node01')]
        for job in jobs:
            cluster.wait_job(job, 'running')
        (tmp_path / 'go').touch()
        wait_until(lambda: all(cluster.job(job)['scheduled_s'] > 0 for job in jobs))
        third = cluster.start('scrun', '-q', '-w', 'node02', '-n', 2, '--mpi', 'none', sys.executable, '-c', WATCHER, SECONDS)
        waits = [float(watcher.communicate()[0]) for watcher in watch_all_processors()]
        waits_of_third = [float(wait) for wait in third.communicate(timeout=LIMIT)[0].split()]
        cluster.cancel(*jobs)
        assert max(waits) < STARVED_S, waits
        assert len(waits_of_third) == 2 and max(waits_of_third) < STARVED_S, waits_of_third
    finally:
        cluster.stop()
