"""scbench gang --fill: measures the benefit of the processor time that a gang in turn leaves to the others.

Two nodes with a processor each, two jobs on both, `fill` on and off in turns: a pair is one of each, in an order that alternates.
`alone`, `irregular`, `read`, `messages`, `serial`, `mpich` and `openmpi` run the same pieces of work to the end and compare the
times in which both jobs have ended. `beside` and `gang` compare the work of jobs that keep running, in windows.
`many` compares daemons and skew of 64 nodes.
A ratio below 1 (above 1 for `beside`) is a gain by filling.
"""
import os
import pathlib
import statistics
import tempfile
import time

import kernels
import measure
import mpi_jobs
import bench_report as report
import svg_chart
from cluster import PROGRAMS, wait_until
from kernels import note
from progress import start_progress

PARTS = ('alone', 'irregular', 'read', 'messages', 'serial', 'mpich', 'openmpi', 'beside', 'gang', 'many')
DEFAULT_PARTS = tuple(part for part in PARTS if part != 'irregular')
# Part: the key of its figure and its bound.
KEYS = {'alone': 'fill_time_ratio', 'irregular': 'fill_irregular_time_ratio', 'read': 'fill_read_time_ratio',
        'messages': 'fill_message_time_ratio', 'serial': 'fill_serial_time_ratio', 'mpich': 'fill_mpich_time_ratio', 'openmpi': 'fill_openmpi_time_ratio',
        'beside': 'fill_beside_gain', 'gang': 'fill_gang_loss_percent'}
BOUNDS = {'fill_time_ratio': 0.55, 'fill_read_time_ratio': 0.55, 'fill_message_time_ratio': 0.75, 'fill_serial_time_ratio': 0.75,
          'fill_mpi_time_ratio': 0.85, 'fill_beside_gain': 1.45, 'fill_gang_loss_percent': 1.0, 'fill_daemon_cpu_percent': 1.1}
AT_LEAST = {'fill_beside_gain'}
NODES = 2
MANY = 64
PHASE_NS = 2_000_000  # length of work, and of being blocked
FILE_BYTES = 64 << 20  # larger than the part that a job reads in a window, past the page cache
START_SECONDS = 1.0  # from scrun until the common start of all ranks of both jobs


def window(options):
    """Seconds."""
    return max(1, options.seconds / (2 * options.pairs))


def set_fill(cluster, on):
    cluster.run('scadm', 'set', 'fill', 'on' if on else 'off')
    time.sleep(measure.SETTLE)


class Phases:
    """Runs two jobs of the same pieces of work; `words` are scrun's options and the program."""

    def __init__(self, cluster, words, kind, pieces, file=None):
        self.cluster, self.words, self.kind, self.pieces = cluster, list(words), kind, pieces
        self.file = [] if file is None else [file]

    def seconds(self):
        """Returns the seconds from the common start to the end of the last rank."""
        at = time.monotonic_ns() + int(START_SECONDS * 1e9)
        arguments = [self.kind, at, PHASE_NS, PHASE_NS, self.pieces]
        fronts = [self.cluster.start('scrun', '-q', '-N', NODES, '-J', f'phases{number}', *self.words, *arguments, number,
                                     *self.file) for number in range(2)]
        ends = []
        for front in fronts:
            out, err = front.communicate(timeout=600)
            assert front.returncode == 0, err
            ends += map(int, out.split())
        assert len(ends) == 2 * NODES, ends
        return (max(ends) - at) / 1e9


def paired(cluster, pairs, measured):
    """Returns [(with fill, without)]: the results of `measured`, in turns."""
    found = []
    for number in range(pairs):
        values = {}
        for on in (True, False) if number % 2 == 0 else (False, True):
            set_fill(cluster, on)
            values[on] = measured()
        found.append((values[True], values[False]))
    return found


def figure(key, pairs, value):
    """Returns the median of `value` over the pairs, its 95 % interval, and the pairs."""
    values = [value(on, off) for on, off in pairs]
    return {key: statistics.median(values), f'{key}_spread': list(measure.interval(values)), f'{key}_pairs': [list(pair) for pair in pairs]}


def ratio(on, off):
    return on / off


# ---- parts

def timed(options, cluster, part, words, kind, file=None):
    jobs = Phases(cluster, words, kind, round(window(options) * 1e9 / (4 * PHASE_NS)), file)
    set_fill(cluster, False)
    jobs.seconds()  # warm-up
    return figure(KEYS[part], paired(cluster, options.pairs, jobs.seconds), ratio)


def with_pm(options, cluster, directory, part):
    file = None
    if part == 'read':
        file = directory / 'data'
        file.write_bytes(os.urandom(FILE_BYTES))
    return timed(options, cluster, part, [PROGRAMS / 'scbench-phases'], 'alone' if part == 'read' else part, file)


def with_mpi(options, cluster, directory, part):
    words = mpi_jobs.words_of(part, 'phases_mpi', directory)
    return timed(options, cluster, part, words, 'serial') if words else {}


class Endless:
    """Starts a job of phases that runs until it is ended."""

    def __init__(self, cluster):
        words = [PROGRAMS / 'scbench-phases', 'alone', 0, PHASE_NS, PHASE_NS, 1 << 40, 0]
        self.cluster, self.job = cluster, cluster.submit('-N', NODES, *words)
        cluster.wait_job(self.job, 'running')

    def end(self):
        self.cluster.cancel(self.job)


def rate(counters, seconds):
    """Returns the steps per second of these jobs together."""
    begin, before = time.monotonic_ns(), sum(c.total() for c in counters)
    time.sleep(seconds)
    end, after = time.monotonic_ns(), sum(c.total() for c in counters)
    return (after - before) / (end - begin) * 1e9


def beside(options, cluster, directory, part):
    """Measures a computing job together with one that is blocked half of the time."""
    _, counters = start_progress(cluster, directory, 'beside', NODES, gap_us=20)
    other = Endless(cluster)
    try:
        pairs = paired(cluster, options.pairs, lambda: rate([counters], window(options)))
    finally:
        other.end()
        cluster.cancel_all()
    return figure(KEYS[part], pairs, ratio)


def gang(options, cluster, directory, part):
    """Measures two jobs that always need the processor, which fill must not cost any. The figure is small, so there are twice the pairs."""
    counters = [start_progress(cluster, directory, f'gang{number}', NODES, gap_us=20)[1] for number in range(2)]
    try:
        pairs = paired(cluster, 2 * options.pairs, lambda: rate(counters, window(options)))
    finally:
        cluster.cancel_all()
    return figure(KEYS[part], pairs, lambda on, off: 100 * (1 - on / off))


def many(options, case):
    """Measures daemons and skew of many nodes with two computing jobs."""
    note(f'many: {MANY} nodes')
    with case(MANY, options.slice) as (cluster, directory):
        for number in range(2):
            start_progress(cluster, directory, f'many{number}', MANY, gap_us=20)

        def daemons_and_skew():
            cpu = measure.DaemonCpu(cluster)
            time.sleep(measure.DAEMONS)
            percent = cpu.percent()
            trace = cluster.json('scadm', 'trace', '--seconds', measure.DAEMONS)
            return percent, measure.switch_figures(trace, options.slice)
        pairs = paired(cluster, max(3, options.pairs // 3), daemons_and_skew)
        cluster.cancel_all()
    figures = {}
    for place, end in ((0, ''), (1, '_off')):
        cpu = [pair[place][0] for pair in pairs]
        figures |= {f'fill_daemon_cpu_percent{end}': statistics.median(cpu), f'fill_daemon_cpu_percent{end}_spread': list(measure.interval(cpu)),
                    f'fill_daemon_cpu_percent{end}_samples': cpu}
        for key in ('skew_p50_us', 'skew_p99_us', 'total_p50_us'):
            values = [pair[place][1][key] for pair in pairs if key in pair[place][1]]
            if values:
                figures |= {f'fill_{key}{end}': statistics.median(values), f'fill_{key}{end}_spread': list(measure.interval(values)),
                            f'fill_{key}{end}_samples': values}
    return figures


MEASURES = {'alone': with_pm, 'irregular': with_pm, 'read': with_pm, 'messages': with_pm, 'serial': with_pm, 'mpich': with_mpi, 'openmpi': with_mpi,
            'beside': beside, 'gang': gang}


def with_worst_mpi(figures):
    """Makes one figure for the row of both MPIs: that of the slower one."""
    keys = [KEYS[part] for part in ('mpich', 'openmpi') if KEYS[part] in figures]
    if not keys:
        return figures
    worst = max(keys, key=figures.get)
    return figures | {'fill_mpi_time_ratio': figures[worst], 'fill_mpi_time_ratio_spread': figures[f'{worst}_spread']}


# ---- output

def show(figures):
    print(f'{NODES} nodes, slice {figures["slice_ms"]:g} ms, {figures["pairs"]} pairs, load {os.getloadavg()[0]:.1f}')
    for key in figures:
        if f'{key}_spread' in figures:
            print(report.line(key, figures, report.at_most(BOUNDS, AT_LEAST), 30))


def draw(figures, path):
    """Draws a panel for each part: the times of both settings, pair by pair."""
    panels = []
    for part, key in KEYS.items():
        pairs = figures.get(f'{key}_pairs')
        if not pairs:
            continue
        is_rate = part in ('beside', 'gang')
        most = max(max(pair) for pair in pairs) if is_rate else 1  # rates in percent of the highest one
        scale = 100 / most if is_rate else 1
        lines = [(name, [(index, pair[place] * scale) for index, pair in enumerate(pairs)])
                 for place, name in ((1, 'fill off'), (0, 'fill on'))]
        panels.append({'title': part, 'x': 'pair', 'y': 'work, % of the most' if is_rate else 'seconds until both have ended',
                       'lines': lines, 'places': [str(number + 1) for number in range(len(pairs))]})
    svg_chart.draw(panels, path, report.caption([], figures['pairs']))


def run(options, case):
    figures = {'nodes': NODES, 'slice_ms': options.slice / 1e6, 'pairs': options.pairs}
    parts = [part for part in PARTS if part in options.fill]
    kept, small = report.Kept(options), [part for part in parts if part != 'many']
    if small and not kept.has(*small):
        with case(NODES, options.slice, '--cores', '1') as (cluster, memory), tempfile.TemporaryDirectory(dir='/var/tmp') as disk:
            kernels.bind_nodes(cluster)
            for part in small:
                note(part)
                kept.part(part, MEASURES[part], options, cluster, pathlib.Path(disk) if part == 'read' else memory, part)
                wait_until(lambda: not cluster.json('scq', '--active')['jobs'])
    for part in parts:
        figures |= kept.part(part, many, options, case)
    figures = with_worst_mpi(figures)
    bounds = report.at_most(BOUNDS, AT_LEAST)
    missed = [key for key, verdict in report.verdicts(figures, bounds).items() if verdict == report.MISSED]
    if options.plot:
        draw(figures, options.plot)
    return report.finish(options, 'scored.bench.fill/2', {'load': os.getloadavg()[0], **figures, 'bounds': BOUNDS, 'missed': missed},
                         [('fill', figures, bounds)], lambda: show(figures))
