"""The measurements of scbench gang, one function per figure. All times are in nanoseconds unless their name has a unit."""
import math
import json
import os
import pathlib
import signal
import statistics
import subprocess
import threading
import time

from cluster import EXAMPLES, PROGRAMS, wait_until
from progress import Counters, start_progress

DAEMONS = 7  # seconds over which the daemons' CPU time is measured: whole periods of their heartbeats, which come all at once
SETTLE = 0.3  # seconds after a job comes or goes, before its effect is measured


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0


def interval(values):
    """Returns (low, high): the median lies between these with at least 95 %, whatever the distribution (the sign test's order
    statistics). Returns (lowest, highest) if there are fewer than the six values that this needs."""
    ordered, below, outside = sorted(values), 0, 0
    while below < len(ordered) // 2 and outside + math.comb(len(ordered), below) <= 0.025 * 2**len(ordered):
        outside += math.comb(len(ordered), below)
        below += 1
    first = max(0, below - 1)
    return ordered[first], ordered[len(ordered) - 1 - first]


def summary(values):
    """Returns the figure, the spread of the values, and the precision of the figure."""
    low, high = interval(values)
    return {'median': statistics.median(values), 'lowest': min(values), 'highest': max(values), 'low': low, 'high': high}


def in_threads(work, count):
    """Runs work() in so many threads at once, and returns the seconds until the last one has ended."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - begun


# ---- daemons

def daemon_pids(cluster):
    description = cluster.describe()
    return [d['pid'] for d in [description['head'], *description['nodes'], *description['launchers']]]


def cpu_ns(pids):
    """Returns the CPU time of all threads of these processes."""
    total = 0
    for pid in pids:
        for path in pathlib.Path(f'/proc/{pid}/task').glob('*/schedstat'):
            total += int(path.read_text().split()[0])
    return total


class DaemonCpu:
    """Measures the percentage of the machine that the daemons used between start and percent()."""

    def __init__(self, cluster):
        self.pids = daemon_pids(cluster)
        self.used, self.at = cpu_ns(self.pids), time.monotonic_ns()

    def percent(self):
        spent = cpu_ns(self.pids) - self.used
        return 100 * spent / (time.monotonic_ns() - self.at) / os.cpu_count()


class Processors:
    """Measures the use of all processors between construction and the call, from /proc/stat."""

    def __init__(self):
        self.ticks = self.read()

    @staticmethod
    def read():
        with open('/proc/stat') as file:
            return [int(word) for word in file.readline().split()[1:9]]  # user ... steal

    def parts(self):
        """Returns (busy, stolen) in percent of the machine."""
        spent = [now - then for now, then in zip(self.read(), self.ticks)]
        whole = max(1, sum(spent))
        return 100 * (whole - spent[3] - spent[4]) / whole, 100 * spent[7] / whole


def busy_percent(seconds=0.5):
    """Returns how busy the machine is now; the load average would include the minutes before."""
    processors = Processors()
    time.sleep(seconds)
    return processors.parts()[0]


def idle_daemons(cluster, seconds=3):
    """Returns the percentage of one core that all daemons use while there is no job, and the largest memory of one."""
    cpu = DaemonCpu(cluster)
    time.sleep(seconds)
    nodes = cluster.json('scnodes')['nodes']
    return cpu.percent() * os.cpu_count(), max(node['rss_bytes'] for node in nodes)


# ---- work lost

class SharedJobs:
    """Runs counting jobs on all nodes; all but the first can be taken off the timetable and put back."""

    def __init__(self, cluster, nodes, jobs, directory, gap_us):
        self.first, counters = start_progress(cluster, directory, 'job0', nodes, gap_us=gap_us)
        self.counters = [counters]
        self.fronts = []
        self.cluster = cluster
        for number in range(1, jobs):
            path = directory / f'job{number}'
            self.fronts.append(cluster.start('scrun', '-q', '-N', nodes, '-J', f'job{number}', EXAMPLES / 'progress',
                                             '--counters', path, '--seconds', 0, '--gap-us', gap_us,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.counters.append(Counters(path, nodes))
            wait_until(self.counters[-1].all_started)

    def share(self, shared):
        """Sends ^Z, or fg, to the front ends of the other jobs."""
        for front in self.fronts:
            front.send_signal(signal.SIGCONT if shared else signal.SIGTSTP)
        states = {'running'} if shared else {'suspended', 'running'}
        others = len(self.fronts)

        def settled():
            active = [j for j in self.cluster.json('scq', '--active')['jobs'] if j['job'] != self.first]
            wanted = 'running' if shared else 'suspended'
            return sum(j['state'] == wanted for j in active) == others and {j['state'] for j in active} <= states
        wait_until(settled)
        time.sleep(SETTLE)

    def rate(self, seconds):
        """Returns the steps per second of all jobs together."""
        begin, before = time.monotonic_ns(), sum(c.total() for c in self.counters)
        time.sleep(seconds)
        end, after = time.monotonic_ns(), sum(c.total() for c in self.counters)
        return (after - before) / (end - begin) * 1e9

    def lost(self, nodes, seconds, jobs):
        """Returns the percentage of the time in which on a node none of these jobs' tasks ran, from the gaps that the tasks
        measured. It is meaningful only if each task could have a core to itself."""
        begin, before = time.monotonic_ns(), [[gap_time(c, r) for r in range(nodes)] for c in jobs]
        time.sleep(seconds)
        end, after = time.monotonic_ns(), [[gap_time(c, r) for r in range(nodes)] for c in jobs]
        whole = end - begin
        ran = sum(whole - (after[j][r] - before[j][r]) for j in range(len(jobs)) for r in range(nodes))
        return 100 * (1 - ran / (whole * nodes))

    def end(self):
        for front in self.fronts:
            front.send_signal(signal.SIGCONT)
            front.terminate()
        self.cluster.cancel_all()
        for front in self.fronts:
            front.wait(60)


def gap_time(counters, rank):
    """Returns the sum of a rank's gaps, including the present one."""
    now = time.monotonic_ns()
    _, closed, _ = counters.gaps(rank)
    open_gap = now - counters.last_ns(rank)
    return closed + (open_gap if open_gap > 1_000_000 else 0)


def paired_losses(jobs, window, pairs):
    """Returns the work lost by sharing, in percent: each shared window is compared with the mean of the windows alone
    around it. The second list has the rates of these three windows: before, shared, after."""
    jobs.share(False)
    alone, losses, rates = jobs.rate(window), [], []
    for _ in range(pairs):
        jobs.share(True)
        shared = jobs.rate(window)
        jobs.share(False)
        again = jobs.rate(window)
        losses.append(100 * (1 - shared / ((alone + again) / 2)))
        rates.append([alone, shared, again])
        alone = again
    return losses, rates


# ---- switches

def switch_figures(trace, quantum_ns):
    """Returns figures from the nodes' records. All nodes have one clock here, so their stamps can be compared."""
    records = [record for node in trace['nodes'] for record in node['switches'] if record['left'] and record['entered']]
    if not records:
        return {'switches': 0}
    phases = {'wake': [], 'stop': [], 'network': [], 'go': [], 'total': []}
    for record in records:
        for name, length in {**parts_of(record), 'total': record['done_ns']}.items():
            phases[name].append(length / 1e3)
    phases['skew'] = boundary_skews(records, quantum_ns)
    figures = {f'{name}_{end}_us': percentile(lengths, part) for name, lengths in phases.items()
               for end, part in (('p50', 0.5), ('p99', 0.99))}
    return {'switches': len(records), **figures, **overhead_figures(trace), 'samples': {f'{name}_us': lengths for name, lengths in phases.items()}}


def parts_of(record):
    """Returns the parts of the overhead of a switch, in ns: docs/reference/glossary.md."""
    restored = max(record['stopped_ns'], record['restored_ns'])
    return {'wake': record['woke_ns'], 'stop': record['stopped_ns'] - record['woke_ns'], 'network': restored - record['stopped_ns'],
            'go': record['done_ns'] - restored}


def overhead_figures(trace):
    """Returns the overhead of switching and its parts in percent, as `scadm trace` prints them."""
    parts, busy = dict.fromkeys(('wake', 'stop', 'network', 'go'), 0), 0
    for node in trace['nodes']:
        for before, record in zip(node['switches'], node['switches'][1:]):
            if record['entered']:
                parts = {name: parts[name] + length for name, length in parts_of(record).items()}
            if before['busy']:
                busy += record['due_ns'] + record['stopped_ns'] - before['due_ns'] - before['stopped_ns']
    if not busy:
        return {}
    return {'overhead_percent': 100 * sum(parts.values()) / busy,
            **{f'overhead_{name}_percent': 100 * length / busy for name, length in parts.items()}}


def boundary_skews(records, quantum_ns):
    """Returns the last node's stop minus the first's, for every boundary. Records whose boundaries are nearer
    than half a quantum belong to the same boundary."""
    stops = sorted((r['due_ns'], r['due_ns'] + r['stopped_ns']) for r in records)
    skews, group, start = [], [], None
    for due, stopped in stops:
        if start is not None and due - start > quantum_ns / 2:
            if len(group) > 1:
                skews.append((max(group) - min(group)) / 1e3)
            group, start = [], None
        start = due if start is None else start
        group.append(stopped)
    return skews


def measure_control(cluster, quantum_ns, seconds):
    """Returns its figures while the jobs share the machine. Waits for the control to end."""
    control = Control(cluster, quantum_ns, seconds)
    try:
        return control.figures()
    finally:
        control.end()


class Control:
    """Runs one bare thread per processor that only sleeps until absolute times, once per slice and half a slice
    away from the switches. It shows how late the machine itself wakes threads while the jobs share it."""

    def __init__(self, cluster, quantum_ns, seconds):
        records = [r for node in cluster.json('scadm', 'trace', '--seconds', 1)['nodes'] for r in node['switches']]
        boundary = max((r['due_ns'] for r in records), default=0)
        words = [quantum_ns, (boundary + quantum_ns // 2) % quantum_ns, max(1, round(seconds))]
        self.processors = Processors()
        self.process = subprocess.Popen([PROGRAMS / 'scbench-sleeper', *map(str, words)], stdout=subprocess.PIPE, text=True)

    def figures(self):
        text, _ = self.process.communicate(timeout=60)
        printed = json.loads(text)
        return {f'control_{key}': printed[key] for key in ('wake_p50_us', 'wake_p99_us', 'skew_p50_us', 'skew_p99_us')} | {
            'control_real_time': printed['real_time'], 'steal_percent': self.processors.parts()[1]}

    def end(self):
        self.process.kill()
        self.process.wait()


def measure_bare(cluster, nodes, quantum_ns, seconds):
    """Measures what processes that only sleep and write cgroup.freeze use of the machine for as many switches, right after the
    daemons, which are idle meanwhile. Returns nothing if there are no cgroups."""
    if not cluster.description['cgroup']:
        return {}
    words = [f"{cluster.description['cgroup']}/bare", nodes, quantum_ns, max(1, round(seconds))]
    printed = json.loads(subprocess.run([PROGRAMS / 'scbench-bare', *map(str, words)], capture_output=True, text=True, check=True).stdout)
    return {'bare_switch_us': printed['switch_us'], 'bare_cpu_percent': printed['cpu_percent']}


def measure_gang(cluster, nodes, quantum_ns, job_count, seconds, pairs, directory):
    """Returns the figures of one case; `seconds` is about the time of all windows together."""
    window = max(0.4, seconds / (2 * pairs + 1))
    jobs = SharedJobs(cluster, nodes, job_count, directory, gap_us=20)
    try:
        losses, rates = paired_losses(jobs, window, pairs)
        lost_alone = jobs.lost(nodes, window, jobs.counters[:1])
        jobs.share(True)
        cpu = DaemonCpu(cluster)
        lost_shared = jobs.lost(nodes, DAEMONS, jobs.counters)
        daemon_percent = cpu.percent()
        control = measure_control(cluster, quantum_ns, max(2, window))
        trace = cluster.json('scadm', 'trace', '--seconds', max(2, window))
    finally:
        jobs.end()
    figures = switch_figures(trace, quantum_ns) | control
    lost = summary(losses)
    figures |= {'work_lost_percent': lost['median'], 'work_lost_percent_spread': [lost['lowest'], lost['highest']],
                'work_lost_percent_interval': [lost['low'], lost['high']], 'pairs': pairs, 'window_s': window,
                'load': round(os.getloadavg()[0], 2),
                'daemon_cpu_percent': daemon_percent} | measure_bare(cluster, nodes, quantum_ns, max(2, window))
    figures.setdefault('samples', {}).update({'work_lost_percent': losses, 'steps_per_second': rates})
    if nodes <= os.cpu_count():  # a core for each task
        figures |= {'lost_alone_percent': lost_alone, 'lost_shared_percent': lost_shared}
    return figures


# ---- starting

def run_ms(cluster, *words):
    begin = time.monotonic_ns()
    cluster.run(*words)
    return (time.monotonic_ns() - begin) / 1e6


def measure_start(cluster, nodes, times):
    """Returns the times of `scrun -N nodes true`, in ms, after two runs for warm-up."""
    for _ in range(2):
        run_ms(cluster, 'scrun', '-N', nodes, 'true')
    return [run_ms(cluster, 'scrun', '-N', nodes, 'true') for _ in range(times)]


def measure_first_progress(cluster, nodes, directory, times):
    """Returns the times from the start of scrun to the first step of a job while a second one runs, in ms: lists of the
    first rank's and of the last one's."""
    start_progress(cluster, directory, 'running', nodes)
    first, last = [], []
    for number in range(times):
        path = directory / f'second{number}'
        begin = time.monotonic_ns()
        front = cluster.start('scrun', '-q', '-N', nodes, EXAMPLES / 'progress', '--counters', path, '--seconds', 0.3,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        counters = Counters(path, nodes)
        wait_until(counters.all_started)
        front.wait(60)
        starts = [counters.first_ns(rank) - begin for rank in range(nodes)]
        first.append(min(starts) / 1e6)
        last.append(max(starts) / 1e6)
    cluster.cancel_all()
    return first, last


def measure_mpi(cluster, ranks, times):
    """Measures an MPICH program from start to finish, one lap of `ring`: (ours, Hydra's) in ms, lists measured in
    turns. The second is empty if Hydra is not installed."""
    program = str(EXAMPLES / 'ring')
    ours, hydra = [], []
    has_hydra = subprocess.run(['sh', '-c', 'command -v mpiexec.mpich'], capture_output=True).returncode == 0
    for _ in range(times):
        ours.append(run_ms(cluster, 'scrun', '-N', ranks, program, '--iterations', 1))
        if has_hydra:
            hydra.append(run_ms(cluster, 'mpiexec.mpich', '-n', ranks, program, '--iterations', '1'))
    return ours, hydra
