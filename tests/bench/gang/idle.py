"""scbench gang --idle: what idle jobs cost a busy one beside them, and how soon they leave and return."""
import json
import os
import statistics
import subprocess
import sys
import time

import measure
from cluster import EXAMPLES, wait_until

BOUNDS = {'slowed_percent': 1.0}
# Answers each line with the time it came, works as long as the line says, and says when it is done.
READER = '''
import sys, time
for line in sys.stdin:
    print(time.monotonic_ns(), flush=True)
    end = time.monotonic() + float(line)
    while time.monotonic() < end: pass
    print(time.monotonic_ns(), flush=True)
'''


class IdleJobs(measure.SharedJobs):
    """A counting job, beside it one that reads its input and one that waits for a PM message."""

    def __init__(self, cluster, nodes, directory):
        super().__init__(cluster, nodes, 1, directory, gap_us=20)
        self.start('cat', nodes, 'cat')
        if (EXAMPLES / 'pm_patient').exists():
            self.start('patient', nodes, EXAMPLES / 'pm_patient', 1_000_000)
        self.wait_background()

    def start(self, name, nodes, *words):
        self.fronts.append(self.cluster.start('scrun', '-q', '-N', nodes, '-J', name, *words, stdin=subprocess.PIPE,
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def others(self):
        return [j for j in self.cluster.json('scq', '--active')['jobs'] if j['job'] != self.first]

    def wait_background(self):
        wait_until(lambda: [j['background'] for j in self.others()] == [True] * len(self.fronts))

    def share(self, shared):
        super().share(shared)
        if shared:
            self.wait_background()


def first_reader(cluster, first):
    jobs = [j for j in cluster.json('scq', '--active')['jobs'] if j['job'] != first]
    return jobs[0]['job']


def latencies(cluster, nodes, directory, times):
    """Medians in ms: from a line of input to the program's answer and to its place in the timetable,
    and from its last work to leaving the timetable."""
    first, _ = measure.start_progress(cluster, directory, 'beside', nodes)
    front = cluster.start('scrun', '-q', '-N', 1, sys.executable, '-c', READER, stdin=subprocess.PIPE)
    wait_until(lambda: len(cluster.json('scq', '--active')['jobs']) == 2)
    job = first_reader(cluster, first)

    def is_background():
        return cluster.job(job)['background']
    wait_until(is_background)
    answered, returned, left = [], [], []
    for _ in range(times):
        time.sleep(0.5)
        sent = time.monotonic_ns()
        front.stdin.write('0.5\n')
        front.stdin.flush()
        answered.append(int(front.stdout.readline()) - sent)
        wait_until(lambda: not is_background())
        returned.append(time.monotonic_ns() - sent)
        done = int(front.stdout.readline())
        wait_until(is_background)
        left.append(time.monotonic_ns() - done)
    cluster.cancel_all()
    front.wait(60)
    return [statistics.median(values) / 1e6 for values in (answered, returned, left)]


def run(options, case):
    nodes = options.nodes[0] if options.nodes else 2
    with case(nodes, options.slice) as (cluster, directory):
        pairs = 5
        window = max(0.4, options.seconds / (2 * pairs + 1))
        jobs = IdleJobs(cluster, nodes, directory)
        try:
            slowed = measure.measure_overhead(jobs, window, pairs)
        finally:
            jobs.end()
        answered, returned, left = latencies(cluster, nodes, directory, 5)
    slice_ms = options.slice / 1e6
    figures = {'nodes': nodes, 'slice_ms': slice_ms, 'idle_jobs': len(jobs.fronts), 'slowed_percent': slowed[0],
               'slowed_lowest': slowed[1], 'slowed_highest': slowed[2], 'answer_ms': answered,
               'return_slices': returned / slice_ms, 'leave_slices': left / slice_ms}
    if options.json:
        print(json.dumps({'schema': 'scored.bench.idle/1', 'cores': os.cpu_count(), 'load': os.getloadavg()[0],
                          'results': [figures], 'bounds': BOUNDS}, indent=1))
    else:
        print(f'{nodes} nodes, slice {slice_ms:g} ms, {len(jobs.fronts)} idle jobs beside a busy one, '
              f'{pairs} pairs of windows of {window:.1f} s, load {os.getloadavg()[0]:.1f}')
        for name, value in figures.items():
            if isinstance(value, float):
                print(f'  {name:<16} {value:>9.2f}')
    return 1 if slowed[0] > BOUNDS['slowed_percent'] else 0
