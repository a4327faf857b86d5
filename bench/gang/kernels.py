"""Runs NAS kernels on PM as jobs of a virtual cluster, and measures how much switching slows them down.

With one job, the cluster switches it to itself at every boundary (--switch-always), as SCore-D does;
windows with the slice in question alternate with windows between boundaries 10 s apart, in which
nothing is switched. With several jobs, windows in which they share all nodes alternate with windows in
which all but the first are suspended; their work together is compared with the work of the first.
"""
import math
import os
import subprocess
import sys
import time

from cluster import EXAMPLES, wait_until
from measure import SETTLE, SharedJobs, summary, switch_figures
from progress import Counters

UNSWITCHED = '10s'  # the longest possible quantum


def time_text(ns):
    return f'{ns // 1000}us'


def bind_nodes(cluster):
    """Binds the tasks of each node to one core, as a node of a real cluster has its own. Each node has a core of its own
    if there are enough; otherwise nodes share them in turn. Without this the kernel wakes ranks of several nodes on
    one core after a switch and needs a large part of a slice to spread them again."""
    cores = sorted(os.sched_getaffinity(0))
    for number, launcher in enumerate(cluster.describe()['launchers']):
        for thread in os.listdir(f'/proc/{launcher["pid"]}/task'):
            os.sched_setaffinity(int(thread), {cores[number % len(cores)]})


class KernelJobs(SharedJobs):
    """Runs jobs that repeat one kernel on all nodes; all but the first can be suspended."""

    def __init__(self, cluster, kernel, size, nodes, jobs, directory):
        self.cluster, self.nodes = cluster, nodes
        self.fronts, self.counters = [], []
        for number in range(jobs):
            path = directory / f'{kernel}{number}'
            words = ['-N', nodes, '-J', f'{kernel}{number}', EXAMPLES / 'npb-pm', kernel, size, '--seconds', 1e6,
                     '--counters', path]
            if number == 0:
                self.first = cluster.submit(*words)
            else:
                self.fronts.append(cluster.start('scrun', '-q', *words, stdout=subprocess.DEVNULL,
                                                 stderr=subprocess.DEVNULL))
            self.counters.append(Counters(path, nodes))
            wait_until(lambda: all(self.counters[-1].counter(rank) for rank in range(nodes)), what=self.what)

    def what(self):
        return self.cluster.job(self.first)

    def check(self):
        state = self.cluster.job(self.first)
        assert state['state'] == 'running' and all(front.poll() is None for front in self.fronts), state

    def tick_rate(self, seconds):
        """Returns the ticks per second of the first job, from the times of the ticks themselves. This is exact even if few fit
        into the window, but only for a job that always runs."""
        counters = self.counters[0]

        def now():
            return [tick(counters, rank) for rank in range(self.nodes)]
        before = now()
        time.sleep(seconds)
        self.check()
        return sum((c1 - c0) / (t1 - t0) * 1e9 if t1 > t0 else 0 for (c0, t0), (c1, t1) in zip(before, now()))


def tick(counters, rank):
    """Returns (count, time) of a rank's last tick."""
    while True:
        time_before = counters.last_ns(rank)
        count = counters.counter(rank)
        if counters.last_ns(rank) == time_before:
            return count, time_before


def slowdowns(base, switched, pairs):
    """Calls both in turns and compares each switched window with the mean of its neighbours. Returns
    measure.summary in percent, with all samples."""
    before, losses, rates = base(), [], []
    for _ in range(pairs):
        during = switched()
        after = base()
        losses.append(100 * ((before + after) / 2 / during - 1) if during else math.inf)
        rates.append([before, during, after])
        before = after
    return summary(losses) | {'samples': {'slowdown_percent': losses, 'ticks_per_second': rates}}


def figures(losses, running):
    return {'jobs': len(running.counters), 'slowdown_percent': losses['median'],
            'spread': [losses['lowest'], losses['highest']], 'interval': [losses['low'], losses['high']],
            'pairs': len(losses['samples']['slowdown_percent']), 'samples': losses['samples'], 'load': round(os.getloadavg()[0], 1)}


def alone(cluster, jobs, slice_ns, seconds, pairs):
    """Measures one job that the cluster switches to itself."""
    def window(quantum):
        cluster.run('scadm', 'set', 'quantum', quantum)
        time.sleep(SETTLE)
        return jobs.tick_rate(seconds / (2 * pairs + 1))
    losses = slowdowns(lambda: window(UNSWITCHED), lambda: window(time_text(slice_ns)), pairs)
    cluster.run('scadm', 'set', 'quantum', time_text(slice_ns))
    return figures(losses, jobs) | switch_times(cluster, slice_ns)


def shared(jobs, slice_ns, seconds, pairs):
    """Measures several jobs that take turns."""
    found = shared_windows(jobs, slice_ns, seconds, pairs)
    jobs.share(True)
    return found | switch_times(jobs.cluster, slice_ns)


def shared_windows(jobs, slice_ns, seconds, pairs):
    """Returns the slowdown of the nodes' work: that of each job, beyond the factor that sharing costs anyway."""
    count = len(jobs.counters)
    cycle = count * slice_ns / 1e9
    length = max(1, round(seconds / (2 * pairs + 1) / cycle)) * cycle

    def window(is_shared):
        jobs.share(is_shared)
        jobs.check()
        return jobs.rate(length)
    return figures(slowdowns(lambda: window(False), lambda: window(True), pairs), jobs)


def switch_times(cluster, slice_ns):
    """Returns switch times from the nodes' own records of such windows."""
    seconds = max(1, 20 * slice_ns / 1e9)
    time.sleep(seconds + SETTLE)
    found = switch_figures(cluster.json('scadm', 'trace', '--seconds', seconds), slice_ns)
    return {key: found[key] for key in ('switches', 'total_p50_us', 'total_p99_us', 'overhead_percent') if key in found}


def note(text):
    print(f'scbench: {text}', file=sys.stderr, flush=True)
