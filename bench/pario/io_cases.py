"""scbench io: compares one server of a volume on this host with system calls, and measures the rate of names and growth over servers."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import arguments
import fill
import kernels
import limited_disks
import measure as gang_measure
import mount_cases
import plot
import bench_report as report
from kernels import note
from progress import start_progress

BIN = pathlib.Path(os.environ.get('SCORE_BIN', pathlib.Path(sys.argv[0]).resolve().parent))
# Figure -> lower bound.
BOUNDS = {'read_vs_syscall': 0.95, 'write_vs_syscall': 0.95, 'fuse_read_vs_syscall': 0.8, 'fuse_write_vs_syscall': 0.8,
          'creates_per_second': 20_000, 'stats_per_second': 20_000, 'unlinks_per_second': 20_000, 'growth_per_doubling': 1.9,
          'pm_vs_tcp': 1.3, 'coordinated_speedup': 5}
# Figure -> upper bound.
MOST = {'gang_loss_percent': 1.0}
PARTS = ('data', 'transports', 'mounts', 'ranks', 'growth', 'gang')
RANKS = 64
RECORDS = 64  # of 4 KB, per rank
SLICE_NS = 100_000_000
GANG_SECONDS = 4
SERVERS = (1, 2, 4, 8)
DISK_SPEED = 8 * limited_disks.MIB  # bytes per second


def add_options(parser):
    parser.add_argument('--directory', metavar='DIR', default='.', help='directory for the data: this selects the disk to measure (.)')
    parser.add_argument('--megabytes', type=arguments.whole(), default=256, metavar='N', help='size of the file (256)')
    parser.add_argument('--rounds', type=arguments.whole(), default=5, metavar='N', help='interleaved rounds; the median counts (5)')
    parser.add_argument('--threads', type=arguments.whole(), default=8, metavar='N', help='clients that create names, in one process (8)')
    parser.add_argument('--parts', type=arguments.some_of(PARTS), default=list(PARTS), metavar='PART[,PART...]',
                        help=f'what to measure: {",".join(PARTS)} (all)')
    parser.add_argument('--growth-megabytes', type=arguments.whole(), default=16, metavar='N', help='per server with a limited disk (16)')
    parser.add_argument('--figures', action='store_true', help='repeat the experiment of PIOUS: access times over sizes and servers')
    parser.add_argument('--plot', metavar='FILE', help='draw the results')
    report.add_options(parser)


def program(name):
    """Returns the path in this build, or in an installation; None if there is none."""
    for folder in (os.environ.get('SCBENCH_PROGRAMS', BIN), BIN, BIN / '../sbin'):
        path = pathlib.Path(folder) / name
        if path.exists():
            return path.resolve()
    return None


class Servers:
    """Runs a volume of several servers on this host, one per directory. `groups`: their cgroups."""

    def __init__(self, root, directories, groups=(), host='127.0.0.1'):
        self.root = pathlib.Path(root)
        self.directories = directories
        with contextlib.ExitStack() as held:
            places = [held.enter_context(socket.socket()) for _ in directories]
            for place in places:
                place.bind((host, 0))
            names = [f'{host}:{place.getsockname()[1]}' for place in places]
        self.file = self.root / 'volume'
        made = subprocess.run([program('scio'), 'create', 'bench', *[word for name in names for word in ('--server', name)]],
                              capture_output=True, check=True)
        self.file.write_bytes(made.stdout)
        self.file.chmod(0o600)
        self.processes = [self.start(i, directory) for i, directory in enumerate(directories)]
        for process, group in zip(self.processes, groups):
            group.write_text(str(process.pid))
        end = time.monotonic() + 20
        while not self.are_up():
            if time.monotonic() > end or any(process.poll() is not None for process in self.processes):
                sys.exit('scbench io: cannot start a server')
            time.sleep(0.05)

    def are_up(self):
        df = subprocess.run([program('scio'), '--volume', self.file, 'df'], capture_output=True, text=True)
        return df.returncode == 0 and 'dead' not in df.stdout

    def start(self, index, directory):
        directory.mkdir(exist_ok=True)
        return subprocess.Popen([program('scored-pario'), '--volume', self.file, '--index', str(index), '--directory', directory,
                                 '--capacity', '1T'], stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


@contextlib.contextmanager
def mounted(servers):
    """Returns the mount point; None if there is no FUSE."""
    mounter = program('scored-pario-mount')
    place = servers.root / 'mount'
    place.mkdir()
    unmounter = shutil.which('fusermount3')
    if not mounter or not unmounter or subprocess.run([mounter, '--volume', servers.file, place]).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run([unmounter, '-u', place], check=False)


@contextlib.contextmanager
def a_root(options):
    if not all(map(program, ('scbench-io', 'scio', 'scored-pario'))):
        sys.exit('scbench io: its programs are missing: build with liburing-dev, liblmdb-dev and libfuse3-dev')
    with tempfile.TemporaryDirectory(prefix='scbench-io-', dir=options.directory) as root:
        yield pathlib.Path(root)


def measure(options):
    with a_root(options) as root, Servers(root, [root / 'server']) as servers:
        (root / 'plain').mkdir()
        with mounted(servers) as mount:
            data = run('data', servers.file, root / 'plain', root / 'server', mount or '-', options.megabytes, options.rounds)
            names = [run('names', servers.file, options.threads, 20_000 // options.threads)[0] for _ in range(options.rounds)]
    return figures_of(data, names)


def measure_transports(options):
    """Compares cached data by PM and by TCP, from the same server; the servers belong to this node."""
    with a_root(options) as root, Servers(root, [root / 'server']) as servers:
        rows = run('transports', servers.file, options.megabytes, options.rounds)
    values = {}
    for row in rows:
        what = '' if row['what'] == 'read' else 'write_'
        for way in ('pm', 'udp'):
            values.setdefault(f'{way}_{what}vs_tcp', []).append(row[way] / row['tcp'])
        values.setdefault(f'tcp_{row["what"]}_mb_s', []).append(row['tcp'])
    return medians(values)


def measure_mounts(options):
    """Compares the mount over PM by UDP and over TCP. The server has a different address, so it counts as a remote node."""
    mounter = program('scored-pario-mount')
    if not mounter or not shutil.which('fusermount3') or not os.access('/dev/fuse', os.W_OK):
        note('no mounts: scored-pario-mount, fusermount3 or /dev/fuse is missing')
        return {}
    with a_root(options) as root, Servers(root, [root / 'server'], host='127.0.0.2') as servers:
        return medians(mount_cases.measure(mounter, servers, options))


@contextlib.contextmanager
def over_tcp():
    """Makes clients use the servers as those of other nodes: a client here would open their data files itself."""
    os.environ['PARIO_TRANSPORT'] = 'tcp'
    try:
        yield
    finally:
        del os.environ['PARIO_TRANSPORT']


def measure_ranks(options):
    """Measures strided records of one file, one by one and coordinated."""
    with over_tcp(), a_root(options) as root, Servers(root, [root / f'server{i}' for i in range(2)]) as servers:
        rows = run('ranks', servers.file, RANKS, RECORDS, options.rounds)
    values = {}
    for row in rows:
        values.setdefault(f'coordinated_{row["what"]}_speedup', []).append(row['coordinated'] / row['independent'])
        for way in ('independent', 'coordinated'):
            values.setdefault(f'{way}_{row["what"]}_mb_s', []).append(row[way])
    figures = medians(values)
    least = min(('read', 'write'), key=lambda what: figures[f'coordinated_{what}_speedup'])
    for end in ('', '_spread', '_interval'):
        figures[f'coordinated_speedup{end}'] = figures[f'coordinated_{least}_speedup{end}']
    return figures


def measure_growth(options):
    """Measures the megabytes per second of one client over servers with disks of DISK_SPEED, and the factor per doubling."""
    why = limited_disks.why_not()
    if why:
        note(f'no growth over servers: {why}')
        return {}
    rates = {}
    with over_tcp(), a_root(options) as root, contextlib.ExitStack() as disks:
        each = options.growth_megabytes
        made = [disks.enter_context(limited_disks.limited_disk(root / f'disk{i}', DISK_SPEED, 4 * each + 64)) for i in range(max(SERVERS))]
        for round_ in range(options.rounds):
            for count in SERVERS:
                used = [(directory / f'{count}-{round_}', group) for directory, group in made[:count]]
                with Servers(root, [directory for directory, _ in used], [group for _, group in used]) as servers:
                    got = run('stream', servers.file, each * count, 2 * count, *[directory for directory, _ in used])[0]
                for directory, _ in used:
                    shutil.rmtree(directory)
                for what, rate in got.items():
                    rates.setdefault((what, count), []).append(rate)
    figures = {f'{what}_{count}_mb_s': statistics.median(values) for (what, count), values in rates.items()}
    figures |= {f'{what}_{count}_mb_s_spread': [min(values), max(values)] for (what, count), values in rates.items()}
    factors = [figures[f'{what}_{2 * count}_mb_s'] / figures[f'{what}_{count}_mb_s'] for what in ('write', 'read') for count in SERVERS[:-1]]
    return figures | {'growth_per_doubling': min(factors), 'growth_per_doubling_spread': [min(factors), max(factors)],
                      'samples': {f'{what}_{count}_mb_s': values for (what, count), values in rates.items()}}


def measure_gang(options, case):
    """Measures the percentage of its work that a busy gang loses to an I/O job that fills: fill is on and off in turns."""
    with a_root(options) as root, Servers(root, [root / 'server']) as servers, \
            case(fill.NODES, SLICE_NS, '--cores', '1') as (cluster, memory):
        kernels.bind_nodes(cluster)
        _, counters = start_progress(cluster, memory, 'gang', fill.NODES, gap_us=20)
        job = cluster.submit('-N', fill.NODES, program('scbench-io'), 'endless', servers.file, 256)
        cluster.wait_job(job, 'running')
        try:
            pairs = fill.paired(cluster, 2 * options.rounds, lambda: fill.rate([counters], GANG_SECONDS))
        finally:
            cluster.cancel_all()
    values = [100 * (1 - on / off) for on, off in pairs]
    return {'gang_loss_percent': statistics.median(values), 'gang_loss_percent_spread': list(gang_measure.interval(values)),
            'samples': {'gang_loss_percent': values, 'gang_steps_per_second': [list(pair) for pair in pairs]}}


def measure_sizes(options):
    """Repeats PIOUS's experiment: microseconds of one access of each size, with 1, 2 and 4 servers, and by system calls."""
    rows = {}
    for count in (1, 2, 4):
        with a_root(options) as root, Servers(root, [root / f'server{i}' for i in range(count)]) as servers:
            for row in run('sizes', servers.file, root, options.rounds):
                of_size = rows.setdefault(row['size'], {})
                for what in ('write', 'read'):
                    of_size.setdefault(f'{what}_{count}', []).append(row[f'{what}_us'])
                    of_size.setdefault(f'{what}_system', []).append(row[f'system_{what}_us'])
    return [{'bytes': size, **{key: statistics.median(values) for key, values in row.items()}, 'samples': row} for size, row in rows.items()]


def run(*words):
    done = subprocess.run([program('scbench-io'), *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'scbench io: {done.stderr.strip()}')
    return [json.loads(line) for line in done.stdout.splitlines()]


def figures_of(data, names):
    """Returns the medians, and the lowest and highest of the rounds."""
    values = {}
    for round_ in data:
        what = round_['what']
        for way, prefix in (('library', ''), ('mount', 'fuse_')):
            if way in round_:
                values.setdefault(f'{prefix}{what}_vs_syscall', []).append(round_[way] / round_['system'])
        values.setdefault(f'{what}_syscall_mb_s', []).append(round_['system'])
        values.setdefault(f'{what}_mb_s', []).append(round_['library'])
    for round_ in names:
        for what, rate in round_.items():
            values.setdefault(f'{what}_per_second', []).append(rate)
    return medians(values)


def medians(values):
    figures = {'samples': values}
    for key, rates in values.items():
        figures[key] = statistics.median(rates)
        figures[f'{key}_spread'] = [min(rates), max(rates)]
        figures[f'{key}_interval'] = list(gang_measure.interval(rates))
    return figures


def print_sizes(sizes):
    columns = [f'{what}_{who}' for what in ('write', 'read') for who in ('system', 1, 2, 4)]
    print(f'{"bytes":>9}' + ''.join(f'{column:>15}' for column in columns) + '   microseconds; write_2: two servers')
    for row in sizes:
        print(f'{row["bytes"]:>9}' + ''.join(f'{row[column]:>15.1f}' for column in columns))


def draw_sizes(path, sizes, rounds):
    pyplot = plot.pyplot()
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for panel, what in zip(axes, ('write', 'read')):
        for who, label in ((1, '1 server'), (2, '2 servers'), (4, '4 servers'), ('system', 'system calls')):
            panel.loglog([row['bytes'] for row in sizes], [row[f'{what}_{who}'] for row in sizes], marker='.', label=label)
        panel.set(title=what, xlabel='bytes per access')
        panel.grid(alpha=0.3)
    axes[0].set_ylabel('microseconds')
    axes[1].legend()
    plot.sign(figure, report.caption([], rounds))
    figure.savefig(path)


def run_io(options, case):
    kept = report.Kept(options)
    if options.figures:
        return show_sizes(options, kept.part('sizes', measure_sizes, options))
    figures, samples = {}, {}
    for part in options.parts:
        note(part)
        found = kept.part(part, lambda part=part: measure_gang(options, case) if part == 'gang' else MEASURES[part](options))
        samples |= found.pop('samples', {})
        figures |= found
    figures |= {'samples': samples, 'load': os.getloadavg()[0], 'rounds': options.rounds}
    if options.plot:
        draw_ratios(options.plot, figures)
    bounds = report.at_most(BOUNDS, BOUNDS) | report.at_most(MOST)

    def show():
        for key in [key for key in figures if f'{key}_spread' in figures]:
            print(report.line(key, figures, bounds))
        print(f'{os.cpu_count()} cores: client and server share them; load {figures["load"]:.1f}')
    return report.finish(options, 'scored.bench.io/2', {**figures, 'bounds': BOUNDS | MOST}, [('io', figures, bounds)], show)


def show_sizes(options, sizes):
    if options.plot:
        draw_sizes(options.plot, sizes, options.rounds)
    cases = [(f'{row["bytes"]} bytes', row, {}) for row in sizes]
    return report.finish(options, 'scored.bench.io.sizes/2', {'microseconds': sizes}, cases, lambda: print_sizes(sizes))


def draw_ratios(path, figures):
    """Draws each figure that has a bound, relative to it."""
    pyplot = plot.pyplot()
    keys = [key for key in BOUNDS if key in figures]
    picture, axes = pyplot.subplots(figsize=(7, 0.5 + 0.4 * len(keys)))
    for place, key in enumerate(keys):
        value, (low, high) = figures[key], figures[f'{key}_spread']
        axes.barh(place, value / BOUNDS[key], color='tab:blue' if value >= BOUNDS[key] else 'tab:red')
        axes.plot([low / BOUNDS[key], high / BOUNDS[key]], [place, place], color='black')
    axes.axvline(1, color='grey')
    axes.set(yticks=range(len(keys)), yticklabels=keys, xlabel='figure / bound')
    plot.sign(picture, report.caption([figures], figures['rounds']))
    picture.savefig(path)


MEASURES = {'data': measure, 'transports': measure_transports, 'mounts': measure_mounts, 'ranks': measure_ranks, 'growth': measure_growth}
