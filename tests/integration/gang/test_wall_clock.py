"""Wall clocks that jump by an hour: only monotonic clocks decide, so nothing happens."""
import os
import pathlib
import struct
import subprocess
import time

import pytest

from cluster import LIMIT, wait_until
from progress import start_progress

HOUR = 3600


class JumpingClocks:
    """Restarted daemons, as processes of this test, with a wall clock that jump() sets."""

    def __init__(self, cluster, directory):
        self.cluster, self.processes = cluster, []
        self.shim, self.ahead = directory / 'wall_clock.so', directory / 'ahead'
        source = pathlib.Path(__file__).with_name('wall_clock.c')
        subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-o', self.shim, source], check=True)
        self.ahead.write_bytes(struct.pack('@ll', 0, 0))

    def take_over(self, name):
        pid = self.cluster.daemon(name)['pid']
        proc = pathlib.Path(f'/proc/{pid}')
        program = os.readlink(proc / 'exe')
        words = (proc / 'cmdline').read_text().split('\0')[:-1]
        environment = dict(word.split('=', 1) for word in (proc / 'environ').read_text().split('\0') if word)
        self.cluster.kill(name)
        wait_until(lambda: not proc.exists())
        environment |= {'LD_PRELOAD': str(self.shim), 'WALL_CLOCK_AHEAD': str(self.ahead)}
        log = open(self.cluster.directory / 'log' / f'{name}-jumps.log', 'w')
        self.processes.append(subprocess.Popen(words, executable=program, env=environment, cwd='/', stdin=subprocess.DEVNULL,
                                               stdout=log, stderr=log))

    def jump(self, seconds):
        with open(self.ahead, 'r+b') as file:
            file.write(struct.pack('@l', seconds))

    def asked(self):
        return struct.unpack('@ll', self.ahead.read_bytes())[1]

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait(LIMIT)


@pytest.mark.parametrize('name', ['head', 'node01'])
def test_a_wall_clock_that_jumps_hurts_nothing(fresh, tmp_path, name):
    cluster = fresh(2, '--cores', 1, '--slice', '50ms')
    clocks = JumpingClocks(cluster, tmp_path)
    clocks.take_over(name)
    try:
        cluster.wait_up()
        jobs = [start_progress(cluster, tmp_path, job, 2, '--time', '30m', '--wall-time', '50m') for job in ('one', 'other')]
        short = cluster.start('scrun', '-N', 2, 'sh', '-c', 'sleep 4; exit 3')
        for seconds in (HOUR, -HOUR, 0):
            asked = clocks.asked()
            clocks.jump(seconds)
            before = [counters.total() for _, counters in jobs]
            time.sleep(1.5)  # a heartbeat or two
            wait_until(lambda: all(counters.total() > count for (_, counters), count in zip(jobs, before)))
            cluster.wait_up()  # a busy machine may make a node suspect for a moment
            assert cluster.run('scrun', '-q', '-N', 2, 'echo', 'x').stdout == 'x\n' * 2
            assert clocks.asked() > asked or name != 'head', 'the head did not see the jump'  # nodes need it for their log alone
        assert short.wait(LIMIT) == 3, cluster.logs()
        for job, _ in jobs:
            status = cluster.job(job)
            assert (status['state'], status['restarts']) == ('running', 0), status
            assert 0 < status['elapsed_s'] < 1800, status
        cluster.cancel_all()
    finally:
        clocks.stop()
