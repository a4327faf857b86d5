"""Runs the kernels over bare datagrams (examples/npb-udp), switched by bare processes (scbench-bare): the slowdown without daemons
and without PM, which is the machine's part."""
import json
import os
import subprocess
import time

from cluster import EXAMPLES, PROGRAMS, wait_until
from local_job import FIRST_SOCKET, bound_sockets
from measure import SETTLE
from progress import Counters

JOBS = 2
LONGEST = 3600  # seconds; the end of its input ends it sooner
STARVED_NS = 60_000_000_000  # a busy machine may leave the ranks no time for this long


class BareJobs:
    """Two jobs of one kernel, with one rank per node; the second can be stopped. kernels.shared() uses it like KernelJobs."""

    def __init__(self, cluster, kernel, size, nodes, slice_ns, directory):
        if not cluster.description['cgroup']:
            raise SystemExit('scbench: --mode bare needs cgroups')
        path = directory / 'bare'
        command = (f'NPB_RANK=$BARE_NODE NPB_RANKS={nodes} NPB_FIRST_SOCKET=$(({FIRST_SOCKET} + {nodes} * BARE_JOB)) '
                   f'exec {EXAMPLES}/npb-udp {kernel} {size} --seconds 1e6 --counters {path}$BARE_JOB')
        sockets = bound_sockets(JOBS * nodes)
        words = [PROGRAMS / 'scbench-bare', f"{cluster.description['cgroup']}/bare", nodes, slice_ns, LONGEST, 'sh', '-c', command]
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        pass_fds=sockets)
        for descriptor in sockets:
            os.close(descriptor)
        try:
            self.say('shared')
            self.counters = [Counters(f'{path}{job}', nodes, self.what) for job in range(JOBS)]
            wait_until(lambda: all(counters.counter(rank) for counters in self.counters for rank in range(nodes)),
                       what=self.what)
        except BaseException:
            self.end()
            raise

    def what(self):
        return f'scbench-bare {"runs" if self.process.poll() is None else "ended"}'

    def say(self, word):
        self.process.stdin.write(word + '\n')
        self.process.stdin.flush()

    def share(self, shared):
        self.say('shared' if shared else 'alone')
        time.sleep(SETTLE)

    def check(self):
        assert self.process.poll() is None, self.what()

    def rate(self, seconds):
        """Returns the ticks per second of both jobs together. If there are none, a rank found its result wrong, and ended."""
        begin, before = time.monotonic_ns(), sum(c.total() for c in self.counters)
        after = before
        while after == before and time.monotonic_ns() < begin + STARVED_NS:
            time.sleep(seconds)
            end, after = time.monotonic_ns(), sum(c.total() for c in self.counters)
        assert after > before, 'the ranks of npb-udp make no progress'
        return (after - before) / (end - begin) * 1e9

    def end(self):
        """Stops the processes and returns the mean of a switch in us. May be called twice."""
        if self.process.stdin.closed:
            return {}
        self.process.stdin.close()
        printed = self.process.stdout.read()
        return {'switch_mean_us': json.loads(printed)['switch_us']} if self.process.wait() == 0 else {}
