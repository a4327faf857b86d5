#!/usr/bin/env python3
"""scbench: measures gang scheduling on virtual clusters that it boots itself, and PM.

`scbench gang --nodes N --slice D` measures one case; without --nodes it measures all cases of the table with
their bounds. The machine drifts, so work is compared between windows that alternate: job A alone,
A and B sharing, A alone, ... `scbench pm` is pm_cases.py over the program scbench-pm; `scbench pm --figures` is paper_figures.py.
"""
import argparse
import os
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / folder) for folder in ('api', 'checkpoint', 'gang', 'pm', 'cosmo', 'figures', 'mpi', 'pario', 'replay', 'support')]

import api_cases  # noqa: E402
import arguments  # noqa: E402
import checkpoint_cases  # noqa: E402
import control  # noqa: E402
import cosmo  # noqa: E402
import figure11  # noqa: E402
import fill  # noqa: E402
import idle  # noqa: E402
import io_cases  # noqa: E402
import load  # noqa: E402
import measure  # noqa: E402
import memory_turns  # noqa: E402
import mpi_cases  # noqa: E402
import paper_figures  # noqa: E402
import plot  # noqa: E402
import pm_cases  # noqa: E402
import replay  # noqa: E402
import bench_report as report  # noqa: E402
from cluster import EXAMPLES, Cluster  # noqa: E402
from kernels import note  # noqa: E402

MOST_BUSY_PERCENT = 10  # use by other programs before the start

UNITS = {'us': 1_000, 'ms': 1_000_000, 's': 1_000_000_000}


SLICES = (1_000_000, 10_000_000_000)  # base/limits.hpp: kMinQuantum, kMaxQuantum
MOST_NODES = 4096  # of score virtual
MOST_SECONDS = 86_400


def nanoseconds(text):
    match = re.fullmatch(r'(\d{1,9})(us|ms|s)', text)
    value = int(match[1]) * UNITS[match[2]] if match else 0
    if not SLICES[0] <= value <= SLICES[1]:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time from 1ms to 10s, such as 100ms")
    return value


def duration(ns):
    return f'{ns // 1_000_000}ms' if ns % 1_000_000 == 0 else f'{ns // 1000}us'


positive = arguments.whole()


def parse():
    parser = arguments.Parser(prog='scbench', description='Measures gang scheduling on virtual clusters, and PM')
    parser.add_argument('--version', action='version', version=f"scored {os.environ.get('SCBENCH_VERSION', '')}")
    kinds = parser.add_subparsers(dest='kind', required=True)
    gang = kinds.add_parser('gang', help='work lost by gang switches, their overhead and precision, time to start')
    gang.add_argument('--nodes', type=figure11.node_counts, metavar='N[,N...]',
                      help='one case with this many nodes; default: all cases, with bounds')
    gang.add_argument('--slice', type=nanoseconds, default=100_000_000, metavar='D', help='time slice (100ms)')
    gang.add_argument('--jobs', type=positive, default=2, help='jobs that share all nodes (2)')
    gang.add_argument('--seconds', type=arguments.real(0.1, MOST_SECONDS), default=15, help='about the total length of the windows of a case (15)')
    gang.add_argument('--pairs', type=positive, metavar='N',
                      help='pairs of windows of one case (6, the fewest with a 95%% interval of the median)')
    gang.add_argument('--starting', action='store_true', help='measure only times to start, memory, and CPU without jobs')
    gang.add_argument('--idle', type=arguments.some_of(idle.PARTS), nargs='?', const=idle.PARTS, metavar='PART[,PART...]',
                      help='measure the cost of idle jobs for a busy one, and how soon they leave and return; parts: '
                      f'{",".join(idle.PARTS)} (all)')
    gang.add_argument('--fill', type=arguments.some_of(fill.PARTS), nargs='?', const=fill.DEFAULT_PARTS, metavar='PART[,PART...]',
                      help='measure the gain of jobs that use the processor time left by the gang in turn; parts: '
                      f'{",".join(fill.PARTS)} (all but irregular)')
    gang.add_argument('--memory', type=arguments.some_of(memory_turns.PARTS), nargs='?', const=memory_turns.PARTS, metavar='PART[,PART...]',
                      help='measure jobs that do not fit in memory together, and the memory of jobs that are held; parts: '
                      f'{",".join(memory_turns.PARTS)} (all); needs root, for its swap')
    gang.add_argument('--bytes', type=arguments.size(16 << 20, 1 << 40), default=64 << 20, metavar='SIZE',
                      help='memory of a job on each node with --memory (64M)')
    gang.add_argument('--swap', choices=('file', 'zram'), default='file', help='swap that --memory makes (file)')
    gang.add_argument('--times', type=positive, metavar='N', help='wake-ups of a job with --idle (20); rounds with --memory (4)')
    report.add_options(gang)
    figure11.add_options(gang, nanoseconds)
    pm = kinds.add_parser('pm', help='latency and bandwidth of PM compared with bare devices and TCP, faults, memory')
    pm_cases.add_options(pm)
    paper_figures.add_options(pm)
    cosmo.add_options(kinds.add_parser('cosmo', help='Linpack and CG on MPI: speed-up over nodes and cores'))
    mpi_cases.add_options(kinds.add_parser('mpi', help='MPICH over PM compared with MPICH over TCP'))
    load.add_options(kinds.add_parser('load', help='capacity of one head: submissions, starts, a long queue, connections'))
    api_cases.add_options(kinds.add_parser('api', help='the HTTP API of one head: submissions, a page of a long list, clients that follow outputs'))
    checkpoint_cases.add_options(kinds.add_parser('checkpoint', help='a job that is saved and restarted: how long it stands still, what others lose'))
    control.add_options(kinds.add_parser('control', help='the network of the daemons: barrier switches and processor time, over PM and over TLS'))
    io_cases.add_options(kinds.add_parser('io', help='a striped volume of one server compared with system calls on the same disk'))
    replayed = kinds.add_parser('replay', help='a workload log as real jobs, in compressed time, compared with the prediction of scsim')
    replay.add_options(replayed, positive, nanoseconds)
    options = parser.parse_args()
    if options.kind == 'replay':
        replay.settle(replayed, options)
    if options.kind == 'gang':
        check(gang, options)
    if options.kind == 'gang' and options.plot and not options.fill and not options.memory:
        plot.check()
    if options.kind == 'cosmo' and options.plot and not plot.is_own(options.plot):
        plot.check()
    return options


def check(parser, options):
    if options.nodes and max(options.nodes) > MOST_NODES:
        parser.error(f'--nodes: a virtual cluster has at most {MOST_NODES} nodes')
    with_kernels = options.figure11 or options.sweep
    if options.figure11 and options.sweep:
        parser.error('either --figure11 or --sweep')
    if options.nodes and len(options.nodes) > 1 and not options.figure11:
        parser.error('more than one number of nodes needs --figure11')
    if options.times is None:
        options.times = 4 if options.memory else 20
    if options.memory and (refusal := memory_turns.refusal(options)):
        parser.error(refusal)
    if options.plot and not options.fill and not options.memory and not with_kernels:
        parser.error('--plot needs --figure11, --sweep, --fill or --memory')
    if (options.fill or options.memory) and options.plot and not plot.is_own(options.plot):
        parser.error('--plot with --fill or --memory writes SVG: use a name that ends in .svg')
    if options.pairs is None:
        options.pairs = 6
    if with_kernels and options.nodes is None:
        options.nodes = [2] if options.sweep else [1, 2, 4, 8, 16, 32, 64]
    if with_kernels and (refusal := figure11.refusal(options)):
        parser.error(refusal)


class Case:
    """One virtual cluster with its directory for counter files."""

    def __init__(self, nodes, quantum_ns, *words):
        self.cluster = Cluster(nodes, '--slice', duration(quantum_ns), *words)
        # The counters are written all the time, so they must be in memory, not on a disk.
        self.directory = tempfile.TemporaryDirectory(prefix='scbench-', dir='/dev/shm')

    def __enter__(self):
        return self.cluster, pathlib.Path(self.directory.name)

    def __exit__(self, *_):
        self.cluster.stop()
        self.directory.cleanup()


def gang_case(nodes, quantum_ns, jobs, seconds, pairs):
    note(f'{nodes} nodes, {duration(quantum_ns)}, {jobs} jobs')
    with Case(nodes, quantum_ns) as (cluster, directory):
        result = {'nodes': nodes, 'slice_ms': quantum_ns / 1e6, 'jobs': jobs}
        result |= methods(cluster)
        return result | measure.measure_gang(cluster, nodes, quantum_ns, jobs, seconds, pairs, directory)


def methods(cluster):
    node = cluster.json('scnodes')['nodes'][0]
    return {'method': node['switch_method'], 'priority': node['priority_method']}


def starting_figures():
    note('starting: 64 nodes, no other job')
    begin, samples = time.monotonic(), {}
    with Case(64, 100_000_000) as (cluster, _):
        up = time.monotonic() - begin
        idle_percent, rss = measure.idle_daemons(cluster)
        samples |= {'scrun_8_ms': measure.measure_start(cluster, 8, 15), 'scrun_64_ms': measure.measure_start(cluster, 64, 9)}
        figures = {'up_64_s': up, 'idle_core_percent': idle_percent, 'daemon_rss_mib': rss / 2**20}
        if (EXAMPLES / 'ring').exists():
            samples['mpi_64_ms'], samples['mpi_64_hydra_ms'] = measure.measure_mpi(cluster, 64, 5)
    note('starting: with a running job, 8 nodes, 100ms')
    with Case(8, 100_000_000) as (cluster, directory):
        samples['first_progress_ms'], samples['first_progress_all_ms'] = measure.measure_first_progress(cluster, 8, directory, 7)
    for key, values in samples.items():
        if values:
            figures |= {key: statistics.median(values), f'{key}_interval': list(measure.interval(values))}
    return figures | {'samples': samples}


# (nodes, slice in ns, bounds: figure -> upper bound)
CASES = [
    (64, 100_000_000, {'work_lost_percent': 1.0, 'daemon_cpu_percent': 1.0, 'skew_p99_us': 5000}),
    (64, 10_000_000, {'work_lost_percent': 5.0}),
    (2, 10_000_000, {'work_lost_percent': 1.0, 'skew_p99_us': 300}),
    (2, 1_000_000, {'work_lost_percent': 5.0, 'skew_p99_us': 300}),
]
STARTING_BOUNDS = {'up_64_s': 3, 'scrun_8_ms': 50, 'scrun_64_ms': 250, 'first_progress_ms': 200, 'idle_core_percent': 5,
                   'daemon_rss_mib': 8}
CONTROLS = {'skew_p99_us': ('control_skew_p99_us', 'bare threads in the same seconds'),
            'daemon_cpu_percent': ('bare_cpu_percent', 'bare processes that switch as often')}
SCHEMA = 'scored.bench.gang/2'


def print_case(title, figures, bounds):
    print(title)
    for key, value in figures.items():
        if not isinstance(value, float) and key not in bounds:
            continue
        control, what = CONTROLS.get(key, (None, None)) if key in bounds else (None, None)
        print(report.line(key, figures, bounds) + (f' ({what}: {figures[control]:.2f})' if control in figures else ''))
    print(flush=True)


def starting_bounds(figures):
    bounds = dict(STARTING_BOUNDS)
    if figures.get('mpi_64_hydra_ms'):
        bounds['mpi_64_ms'] = figures['mpi_64_hydra_ms']
    return report.at_most(bounds)


def run_starting(options):
    figures = report.Kept(options).part('starting', starting_figures)
    bounds = starting_bounds(figures)
    return report.finish(options, SCHEMA, {'starting': {**figures, 'bounds': bounds}}, [('starting', figures, bounds)],
                         lambda: print_case('starting', figures, bounds))


def title_of(figures):
    return (f'{figures["nodes"]} nodes, {figures["slice_ms"]:g} ms, {figures["jobs"]} jobs, {figures["pairs"]} pairs, load {figures["load"]:g} '
            f'({figures["method"]}, {figures["priority"]})')


def run_all(options):
    kept, cases = report.Kept(options), []
    for nodes, quantum_ns, bounds in CASES:
        name = f'{nodes} nodes, {duration(quantum_ns)}'
        figures = kept.part(name, gang_case, nodes, quantum_ns, options.jobs, options.seconds, options.pairs)
        cases.append((name, figures, report.at_most(bounds)))
        if not options.json:
            print_case(title_of(figures), figures, report.at_most(bounds))
    starting = kept.part('starting', starting_figures)
    bounds = starting_bounds(starting)

    def show():
        print_case('starting', starting, bounds)
        print(f'{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}: switch times are real, application speed is not')
    body = {'cases': [{**figures, 'bounds': of_case} for _, figures, of_case in cases], 'starting': {**starting, 'bounds': bounds}}
    return report.finish(options, SCHEMA, body, [*cases, ('starting', starting, bounds)], show)


def run_one(options):
    figures = report.Kept(options).part('gang', gang_case, options.nodes[0], options.slice, options.jobs, options.seconds, options.pairs)
    bounds = next((bounds for nodes, slice_ns, bounds in CASES if (nodes, slice_ns, 2) == (options.nodes[0], options.slice, options.jobs)), {})
    bounds = report.at_most(bounds)
    return report.finish(options, SCHEMA, {**figures, 'bounds': bounds}, [('gang', figures, bounds)],
                         lambda: print_case(title_of(figures), figures, bounds))


def main():
    # SIGTERM must remove the cluster and its files as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    report.begin(['scbench', *sys.argv[1:]])
    options = parse()
    report.check_files(options)
    if options.kind == 'pm':
        return pm_cases.run(options) if options.figures is None else paper_figures.run(options)
    if options.kind == 'cosmo':
        return cosmo.run(options)
    if options.kind == 'mpi':
        return mpi_cases.run_mpi(options)
    if options.kind == 'load':
        return load.run(options)
    if options.kind == 'api':
        return api_cases.run(options)
    if options.kind == 'checkpoint':
        return checkpoint_cases.run(options)
    if options.kind == 'io':
        return io_cases.run_io(options, Case)
    if options.kind == 'replay':
        return replay.run(options)
    busy = measure.busy_percent()
    if busy > MOST_BUSY_PERCENT:
        note(f'the processors are {busy:.0f} % busy before the start, so figures of lost work are unreliable')
    if options.kind == 'control':
        return control.run(options, Case)
    if options.starting:
        return run_starting(options)
    if options.idle:
        return idle.run(options, Case)
    if options.fill:
        return fill.run(options, Case)
    if options.memory:
        return memory_turns.run(options, Case)
    if options.figure11 or options.sweep:
        return figure11.run(options, Case)
    return run_all(options) if options.nodes is None else run_one(options)


if __name__ == '__main__':
    sys.exit(arguments.run('scbench', main))
