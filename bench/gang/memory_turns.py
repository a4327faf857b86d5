"""scbench gang --memory: measures jobs that do not fit in memory together, and the memory of jobs that are held.

Every node has room for four thirds of --bytes, and each job holds --bytes on every node. The swap is a file of this program, or zram.
Where there is a memory controller of version 1, the jobs share a group that is limited to the memory of all nodes: otherwise memory in
swap could stay in the host's memory too. `work`: two jobs with share = "always", at the turns that the system chooses; and, with the
controller, the same jobs with demand paging, at slices of that length. `urgent`: an urgent job beside a job that has the memory.
`suspend`: suspend and resume. `loss`: a counting job on the same nodes while memory of another one is written and read, and the major
faults of the node daemons' switcher threads meanwhile.
"""
import contextlib
import os
import pathlib
import statistics
import struct
import subprocess
import tempfile
import time

import measure
import bench_report as report
import svg_chart
from cluster import PROGRAMS, wait_until
from kernels import note
from progress import start_progress

PARTS = ('work', 'urgent', 'suspend', 'loss')
NODES = 4
MIB = 1 << 20
BOUNDS = {'memory_work_ratio': 0.9, 'memory_vs_demand': 20, 'other_gang_loss_percent': 2.0, 'switcher_major_faults': 0}
AT_LEAST = {'memory_work_ratio', 'memory_vs_demand'}
LENGTHS = (2, 5, 10)  # seconds, of turns in the plot
LONGEST_SLICE = 10.0  # of the cluster
ROOM = 64 * MIB  # swap that jobs never get
CONTROLLER = pathlib.Path('/sys/fs/cgroup/memory')


# ---- swap

def zram(size):
    """Makes a compressed swap in memory; returns its path and a function that removes it."""
    number = pathlib.Path('/sys/class/zram-control/hot_add').read_text().strip()
    pathlib.Path(f'/sys/block/zram{number}/disksize').write_text(str(size))
    return pathlib.Path(f'/dev/zram{number}'), lambda: pathlib.Path('/sys/class/zram-control/hot_remove').write_text(number)


def swap_file(size):
    descriptor, name = tempfile.mkstemp(prefix='scbench-swap-', dir='/var/tmp')
    os.posix_fallocate(descriptor, 0, size)
    os.close(descriptor)
    return pathlib.Path(name), pathlib.Path(name).unlink


@contextlib.contextmanager
def swap(kind, size):
    """The host has this swap meanwhile."""
    path, remove = (zram if kind == 'zram' else swap_file)(size)
    try:
        for command in (['mkswap', path], ['swapon', path]):
            subprocess.run(command, check=True, capture_output=True)
        try:
            yield
        finally:
            subprocess.run(['swapoff', path], check=True)
    finally:
        remove()


def disk_rate(size):
    """Bytes per second that a file beside the swap takes, written past the page cache."""
    with tempfile.NamedTemporaryFile(dir='/var/tmp') as file:
        begin = time.monotonic()
        subprocess.run(['dd', 'if=/dev/zero', f'of={file.name}', 'bs=4M', f'count={max(8, size // (4 * MIB))}', 'oflag=direct', 'conv=fsync'],
                       check=True, capture_output=True)
        return max(8, size // (4 * MIB)) * 4 * MIB / (time.monotonic() - begin)


@contextlib.contextmanager
def limited(size):
    """Yields the words that start a program in a group with this much memory; none without a memory controller of version 1."""
    group = CONTROLLER / f'scbench-{os.getpid()}'
    if not (CONTROLLER / 'memory.limit_in_bytes').exists():
        yield []
        return
    group.mkdir()
    try:
        (group / 'memory.limit_in_bytes').write_text(str(size))
        yield ['sh', '-c', f'echo $$ > {group}/cgroup.procs && exec "$@"', 'sh']
    finally:
        wait_until(lambda: not (group / 'cgroup.procs').read_text())
        group.rmdir()


def switcher_faults(cluster):
    """Major faults of the threads that switch jobs, on all nodes."""
    total = 0
    for node in range(cluster.nodes):
        pid = cluster.daemon(f'node{node:02}')['pid']
        for thread in pathlib.Path(f'/proc/{pid}/task').iterdir():
            if (thread / 'comm').read_text() == 'switcher\n':
                total += int((thread / 'stat').read_text().rsplit(')', 1)[1].split()[9])
    return total


# ---- jobs

class Holder:
    """A job that changes all of its memory again and again. It counts mebibytes."""

    def __init__(self, cluster, directory, name, held, *options, before=()):
        self.cluster, self.paths = cluster, [directory / f'{name}.{rank}' for rank in range(NODES)]
        self.job = cluster.submit('-N', NODES, *options, *before, PROGRAMS / 'scbench-holder', directory / name, held // MIB)

    def counts(self):
        return [struct.unpack('<Q', path.read_bytes()[:8])[0] if path.exists() and path.stat().st_size == 8 else 0 for path in self.paths]

    def total(self):
        return sum(self.counts())

    def wait_begun(self):
        wait_until(lambda: all(self.counts()), what=lambda: self.cluster.job(self.job))

    def residence(self):
        return self.cluster.job(self.job)['residence']

    def wait(self, residence):
        wait_until(lambda: self.residence() == residence, what=lambda: self.cluster.job(self.job))


def rate(jobs, seconds):
    """Mebibytes per second of all jobs together."""
    begin, before = time.monotonic(), sum(job.total() for job in jobs)
    time.sleep(seconds)
    return (sum(job.total() for job in jobs) - before) / (time.monotonic() - begin)


class Bench:
    def __init__(self, options, case, directory):
        self.options, self.case, self.directory = options, case, directory
        self.held = options.bytes * 9 // 10 // MIB * MIB
        self.memory = options.bytes * 4 // 3
        self.whole = NODES * self.held

    def cluster(self, *lines, memory=None, slice_ns=None):
        config = self.directory / 'memory.toml'
        config.write_text('\n'.join(['[memory]', 'least_rate = "1K"', 'swap = "90%"', *lines, '']))
        return self.case(NODES, slice_ns or self.options.slice, '--memory', f'{(memory or self.memory) // 1024}K', '--hooks', config)

    def mem(self):
        return '--mem', f'{self.options.bytes // 1024}K'

    # ---- two jobs together

    def together(self, cluster, directory, cycles, inside):
        """Returns the part of the work of one job alone that two do together, cycle by cycle, the part of the time in which one of
        them had slices, which other load of the machine hardly changes, and the lengths of turns. A cycle lasts from one return of
        the first job to the next."""
        first = Holder(cluster, directory, 'first', self.held, *self.mem(), before=inside)
        first.wait_begun()
        alone = [rate([first], self.options.seconds / 3)]
        second = Holder(cluster, directory, 'second', self.held, *self.mem(), before=inside)
        second.wait_begun()
        ratios, scheduled, lengths = [], [], []

        def returned():
            first.wait('parked')
            first.wait('in-memory')
            both = sum(cluster.job(job.job)['scheduled_s'] for job in (first, second))
            return time.monotonic(), first.total() + second.total(), both
        before = returned()
        for _ in range(cycles):
            now = returned()
            lengths.append((now[0] - before[0]) / 2)
            ratios.append((now[1] - before[1]) / (now[0] - before[0]))
            scheduled.append((now[2] - before[2]) / (now[0] - before[0]))
            before = now
        cluster.cancel(second.job)
        first.wait('in-memory')
        time.sleep(1)
        alone.append(rate([first], self.options.seconds / 3))
        document = cluster.job(first.job)
        cluster.cancel_all()
        return [ratio / statistics.mean(alone) for ratio in ratios], scheduled, lengths, document

    def demand(self, seconds, windows):
        """Returns the same part with demand paging at slices of this length, window by window; none without a memory controller."""
        slice_ns = int(min(LONGEST_SLICE, seconds) * 1e9)
        with limited(NODES * self.memory) as inside:
            if not inside:
                note('work: no memory controller of version 1, so demand paging is not measured')
                return []
            with self.cluster('share = "never"', memory=4 * self.memory, slice_ns=slice_ns) as (cluster, directory):
                first = Holder(cluster, directory, 'first', self.held, *self.mem(), before=inside)
                first.wait_begun()
                alone = rate([first], self.options.seconds / 3)
                second = Holder(cluster, directory, 'second', self.held, *self.mem(), before=inside)
                second.wait_begun()
                ratios = [rate([first, second], 2 * slice_ns / 1e9) / alone for _ in range(windows)]
                cluster.cancel_all()
        return ratios

    def work(self):
        with limited(NODES * self.memory) as inside, self.cluster('share = "always"') as (cluster, directory):
            ratios, scheduled, lengths, document = self.together(cluster, directory, self.options.times, inside)
        turn = statistics.median(lengths)
        figures = spread('memory_work_ratio', ratios) | spread('memory_scheduled_ratio', scheduled) | {'memory_turn_s': turn, 'memory_turn_samples': lengths,
                                                         'memory_paged_bytes': document['paged_out_bytes'] + document['paged_in_bytes'],
                                                         'memory_paging_s': document['paging_s']}
        demand = self.demand(turn, max(2, self.options.times // 2))
        if demand:
            most = statistics.median(ratios)
            figures |= spread('memory_demand_ratio', demand) | spread('memory_vs_demand', [most / max(part, 1e-4) for part in demand])
        return figures

    # ---- jobs that are held

    def urgent(self):
        """The urgent job asks for nine tenths of the memory: what other jobs cannot write to swap stays theirs."""
        starts, expected = [], []
        with limited(NODES * self.memory) as inside, self.cluster('share = "urgent"') as (cluster, directory):
            for number in range(self.options.times):
                holder = Holder(cluster, directory, f'holder{number}', self.held, *self.mem(), before=inside)
                holder.wait_begun()
                expected.append(self.whole / disk_rate(self.whole) + 1)
                begin = time.monotonic()
                front = cluster.start('scrun', '-q', '-N', NODES, '-n', NODES, '--queue', 'urgent', '--mem', f'{self.memory * 9 // 10240}K', 'sh', '-c',
                                      'echo started; exec sleep 1')
                assert front.stdout.readline() == 'started\n', front.stderr.read()
                starts.append(time.monotonic() - begin)
                front.communicate()
                cluster.cancel(holder.job)
        return spread('urgent_start_s', starts) | spread('urgent_expected_s', expected)

    def suspend(self):
        free, back, expected = [], [], []
        with limited(NODES * self.memory) as inside, self.cluster('share = "urgent"') as (cluster, directory):
            holder = Holder(cluster, directory, 'holder', self.held, *self.mem(), before=inside)
            holder.wait_begun()
            for _ in range(self.options.times):
                expected.append(self.whole / disk_rate(self.whole) + 1)
                begin = time.monotonic()
                cluster.run('score', 'suspend', holder.job)
                holder.wait('parked')
                free.append(time.monotonic() - begin)
                before = holder.counts()
                begin = time.monotonic()
                cluster.run('score', 'resume', holder.job)
                wait_until(lambda: all(now > then for now, then in zip(holder.counts(), before)))
                back.append(time.monotonic() - begin)
            cluster.cancel_all()
        return spread('suspend_free_s', free) | spread('suspend_expected_s', expected) | spread('resume_s', back)

    def loss(self):
        losses = []
        with limited(NODES * self.memory) as inside, self.cluster('share = "urgent"') as (cluster, directory):
            holder = Holder(cluster, directory, 'holder', self.held, *self.mem(), before=inside)
            holder.wait_begun()
            _, counters = start_progress(cluster, directory, 'other', NODES, '--mem', '4M', gap_us=20)

            def pace(until):
                begin, before = time.monotonic(), counters.total()
                until()
                return (counters.total() - before) / (time.monotonic() - begin)
            cluster.run('score', 'suspend', holder.job)
            holder.wait('parked')
            before = switcher_faults(cluster)
            for _ in range(self.options.times):
                cluster.run('score', 'resume', holder.job)
                reading = pace(lambda: holder.wait('in-memory'))
                cluster.run('score', 'suspend', holder.job)
                writing = pace(lambda: holder.wait('parked'))
                quiet = pace(lambda: time.sleep(self.options.seconds / 5))
                losses.append(100 * (1 - (reading + writing) / 2 / quiet))
            faults = switcher_faults(cluster) - before
            cluster.cancel_all()
        return spread('other_gang_loss_percent', losses) | {'switcher_major_faults': faults}

    # ---- the plot

    def over_lengths(self):
        """Returns {name: [(length of turns in s, work)]}."""
        lines = {'demand paging': [], 'parking': [], 'in memory': []}
        for length in LENGTHS:
            note(f'turns of {length} s')
            with limited(NODES * self.memory) as inside, self.cluster('share = "always"', 'cost = "1%"',
                                                                      f'turn_max = "{length}s"') as (cluster, directory):
                ratios, *_ = self.together(cluster, directory, 2, inside)
            lines['parking'].append((length, statistics.mean(ratios)))
            demand = self.demand(length, 2)
            if demand:
                lines['demand paging'].append((length, statistics.mean(demand)))
            with self.cluster('share = "never"', memory=3 * self.memory, slice_ns=int(length * 1e9)) as (cluster, directory):
                first = Holder(cluster, directory, 'first', self.held, *self.mem())
                first.wait_begun()
                alone = rate([first], self.options.seconds / 3)
                second = Holder(cluster, directory, 'second', self.held, *self.mem())
                second.wait_begun()
                lines['in memory'].append((length, rate([first, second], 2 * length) / alone))
                cluster.cancel_all()
        return lines


def spread(key, values):
    return {key: statistics.median(values), f'{key}_spread': list(measure.interval(values)), f'{key}_samples': values}


def draw(lines, path, pairs):
    panel = {'title': 'two jobs of 1.5 times the memory', 'x': 'length of turns, s', 'y': 'work, of one after the other',
             'lines': [(name, points) for name, points in lines.items() if points]}
    svg_chart.draw([panel], path, report.caption([], pairs))


def show(figures):
    print(f'{NODES} nodes, {figures["bytes"] / MIB:.0f} MiB per job and node, swap: {figures["swap"]}, {figures["times"]} times, '
          f'load {os.getloadavg()[0]:.1f}')
    for key in figures:
        if f'{key}_spread' in figures:
            print(report.line(key, figures, report.at_most(BOUNDS, AT_LEAST), 26))


def refusal(options):
    if os.geteuid() != 0:
        return '--memory makes a swap, which needs root: run it with sudo'
    if options.swap == 'zram' and not pathlib.Path('/sys/class/zram-control').exists():
        return '--swap zram: the kernel module zram is not loaded; use --swap file'
    return None


def run(options, case):
    figures = {'nodes': NODES, 'bytes': options.bytes, 'swap': options.swap, 'times': options.times}
    kept = report.Kept(options)
    with swap(options.swap, 3 * NODES * options.bytes + ROOM), tempfile.TemporaryDirectory() as directory:
        bench = Bench(options, case, pathlib.Path(directory))
        for part in (part for part in PARTS if part in options.memory):
            note(part)
            figures |= kept.part(part, getattr(bench, part))
        if options.plot:
            lines = kept.part('plot', bench.over_lengths)
            figures['plot'] = lines
            draw({name: [tuple(point) for point in points] for name, points in lines.items()}, options.plot, options.times)
    bounds = report.at_most(BOUNDS, AT_LEAST)
    for key, start in (('urgent_expected_s', 'urgent_start_s'), ('suspend_expected_s', 'suspend_free_s')):
        if key in figures:
            bounds |= report.at_most({start: figures[key]})
    body = {'load': os.getloadavg()[0], **figures, 'bounds': {key: bound for key, (_, bound) in bounds.items()}}
    return report.finish(options, 'scored.bench.memory/1', body, [('memory', figures, bounds)], lambda: show(figures))
