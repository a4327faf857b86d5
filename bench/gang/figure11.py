"""scbench gang --figure11 and --sweep: repeats the papers' experiment, with table, JSON, CSV and plot."""
import argparse
import csv
import itertools
import json
import math
import os
import pathlib
import re

import bare
import kernels
import plot
import bench_report as report

METHOD = ('slowdown = work of a window without switches / work of a window with them - 1; work is counted by the ranks: '
          'message parts received and pieces of computing, many per iteration; windows alternate, each is '
          'compared with the mean of its two neighbours; median of {pairs} pairs, [95 % interval of the median; lowest, highest with fewer than 6 pairs]. One job: stopped and '
          'continued at every boundary, against boundaries 10 s apart. Two jobs: both together, against the first while '
          'the other is suspended. The tasks of a node keep to one core; more nodes than cores take them in turns. '
          'Mode bare: datagrams in place of PM, and processes that only sleep and write cgroup.freeze in place of daemons.')
BOUNDS = {(64, 100, 1): 2.0, (64, 100, 2): 3.3, (2, 10, 1): 2.0}  # (nodes, slice in ms, jobs): percent
STEPS = (1, 2, 5)
SCHEMA = 'scored.bench.kernels/2'
CASE = ('nodes', 'slice_ms', 'jobs', 'kernel', 'class', 'mode', 'channels')  # identifies a result


KERNELS = ('ep', 'cg', 'ft', 'is', 'mg', 'lu', 'sp', 'bt')
SQUARE = ('sp', 'bt')  # run on a square number of nodes
SOLVERS = ('lu', 'sp', 'bt')
MOST_RANKS = {'S': 16, 'W': 64, 'A': 64}  # maximum ranks among which the solvers' points can be divided


def names(text):
    chosen = text.split(',')
    if not chosen or any(name not in KERNELS for name in chosen):
        raise argparse.ArgumentTypeError(f"'{text}': use some of {','.join(KERNELS)}")
    return chosen


def refusal(options):
    """Returns why the kernels cannot run on so many nodes; None if they can."""
    for kernel, nodes in itertools.product(options.kernels, options.nodes):
        if kernel in SQUARE and math.isqrt(nodes) ** 2 != nodes:
            return f'{kernel} needs a square number of nodes, not {nodes}: use some of --nodes 1,4,9,16,25,36,49,64'
        if kernel not in SQUARE and kernel != 'lu' and nodes & (nodes - 1):
            return f'{kernel} needs a power of two as number of nodes, not {nodes}'
        if kernel in SOLVERS and nodes > MOST_RANKS[options.size]:
            return f'{kernel} of class {options.size} fits on {MOST_RANKS[options.size]} nodes, not on {nodes}: use --class W'
    return None


def modes(text):
    if any(word not in ('clock', 'barrier', 'bare') for word in text.split(',')):
        raise argparse.ArgumentTypeError(f"'{text}': use some of clock,barrier,bare")
    return text.split(',')


def node_counts(text):
    if not re.fullmatch(r'[1-9]\d*(,[1-9]\d*)*', text):
        raise argparse.ArgumentTypeError(f"'{text}': use numbers from 1, with commas")
    return [int(word) for word in text.split(',')]


def add_options(parser, nanoseconds):
    def quanta(text):
        low, separator, high = text.partition('..')
        if not separator or nanoseconds(low) > nanoseconds(high):
            raise argparse.ArgumentTypeError(f"'{text}': use two times such as 1ms..1s")
        found = [step * 10**power for power in range(6, 10) for step in STEPS]
        return [ns for ns in found if nanoseconds(low) <= ns <= nanoseconds(high)]
    parser.add_argument('--figure11', action='store_true', help='slowdown of kernels on PM over nodes')
    parser.add_argument('--sweep', type=quanta, metavar='D..D', help='slowdown of kernels on PM over the slice')
    parser.add_argument('--kernels', type=names, default=['ep', 'cg', 'ft', 'is'], metavar='LIST',
                        help=f'some of {",".join(KERNELS)} (ep,cg,ft,is)')
    parser.add_argument('--class', dest='size', choices=['S', 'W', 'A'], default='S', help='size of the kernels (S)')
    parser.add_argument('--mode', type=modes, default=['clock'], metavar='M[,M...]',
                        help='clock,barrier: compare both; bare: two jobs without daemons and PM, to measure the part of the machine')
    parser.add_argument('--channels', type=node_counts, default=[16], metavar='N[,N...]',
                        help='channels per node (16): two jobs on 1 channel are saved and restored')
    parser.add_argument('--plot', metavar='FILE', help='draw the results: .svg, .png or .pdf')


def show(result):
    low, high = result['interval']
    bound = BOUNDS.get((result['nodes'], result['slice_ms'], result['jobs']))
    verdict = ''
    if bound is not None:
        verdict = f'  <= {bound:g}: {report.verdict(result["slowdown_percent"], "<=", bound, result["interval"])}'
    kernels.note(f'{result["kernel"]} {result["class"]}, {result["nodes"]:>2} nodes, {result["slice_ms"]:g} ms, '
                 f'{result["jobs"]} jobs, {result["mode"]}, {result["channels"]} channels: {result["slowdown_percent"]:6.2f} %  [{low:.2f}, {high:.2f}]  '
                 f'{result["pairs"]} pairs, load {result["load"]}{verdict}')
    if result.get('switch_mean_us'):
        kernels.note(f'    a switch {result["switch_mean_us"]:.0f} us, mean')
    if result.get('switches'):
        kernels.note(f'    {result["switches"]} switches: {result["total_p50_us"]:.0f} us p50, {result["total_p99_us"]:.0f} us p99')
    return result


def cases(options):
    """Yields (nodes, jobs, names in the results, options of score virtual)."""
    for nodes, mode, channels in itertools.product(options.nodes, options.mode, options.channels):
        called = {'nodes': nodes, 'mode': mode, 'channels': channels}
        if mode == 'bare':
            yield nodes, bare.JOBS, called, []
            continue
        for jobs in (1,) if options.sweep else (1, 2):
            yield nodes, jobs, called, ['--switch-mode', mode, '--channels', channels,
                                        *(['--switch-always'] if jobs == 1 else [])]


class Results:
    """Holds the results, in a file if one is named, so that an interrupted run can continue."""

    def __init__(self, path):
        self.path = pathlib.Path(path) if path else None
        self.found = {}
        if self.path and self.path.exists():
            try:
                self.found = {self.key(result): result for result in json.loads(self.path.read_text())['results']}
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(f'scbench: {path}: not what --resume wrote: {error!r}') from error

    @staticmethod
    def key(result):
        return tuple(result[column] for column in CASE)

    def add(self, result):
        self.found[self.key(result)] = result
        if self.path:
            new = self.path.with_name(self.path.name + '.new')
            new.write_text(json.dumps({'schema': SCHEMA, 'results': list(self.found.values())}, indent=1))
            new.replace(self.path)


def measure(options, make_case, results):
    """Returns the results of all requested cases, in their order."""
    asked = []
    for nodes, count, names_of_case, words in cases(options):
        wanted = [{'kernel': kernel, 'class': options.size, **names_of_case, 'jobs': count, 'slice_ms': slice_ns / 1e6}
                  for kernel in options.kernels for slice_ns in options.sweep or [options.slice]]
        asked += map(results.key, wanted)
        missing = [case for case in wanted if results.key(case) not in results.found]
        if missing:
            is_bare = names_of_case['mode'] == 'bare'  # only the cgroup of the cluster is used
            with make_case(1 if is_bare else nodes, options.slice, *words) as (cluster, directory):
                kernels.bind_nodes(cluster)
                for kernel, group in itertools.groupby(missing, lambda case: case['kernel']):
                    (measure_bare if is_bare else measure_kernel)(options, cluster, directory, list(group), results)
    return [results.found[key] for key in asked]


def measure_kernel(options, cluster, directory, missing, results):
    kernel, nodes, count = (missing[0][column] for column in ('kernel', 'nodes', 'jobs'))
    jobs = kernels.KernelJobs(cluster, kernel, options.size, nodes, count, directory)
    try:
        for case in missing:
            slice_ns = round(case['slice_ms'] * 1e6)
            found = (kernels.alone(cluster, jobs, slice_ns, options.seconds, options.pairs) if count == 1 else
                     kernels.shared(jobs, slice_ns, options.seconds, options.pairs))
            results.add(show({**case, **found}))
    finally:
        jobs.end()
        clear(directory)


def measure_bare(options, cluster, directory, missing, results):
    for case in missing:
        slice_ns = round(case['slice_ms'] * 1e6)
        jobs = bare.BareJobs(cluster, case['kernel'], case['class'], case['nodes'], slice_ns, directory)
        try:
            found = kernels.shared_windows(jobs, slice_ns, options.seconds, options.pairs)
        finally:
            mean = jobs.end()
            clear(directory)
        results.add(show({**case, **found, **mean}))


def clear(directory):
    for path in sorted(directory.rglob('*'), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def judged(results):
    """Yields the cases of report.finish() that have bounds."""
    for result in results:
        bound = BOUNDS.get((result['nodes'], result['slice_ms'], result['jobs']))
        if bound is not None:
            name = ', '.join(str(result[column]) for column in CASE)
            figures = {'slowdown_percent': result['slowdown_percent'], 'slowdown_percent_interval': result['interval']}
            yield name, figures, {'slowdown_percent': ('<=', bound)}


def run(options, make_case):
    method = METHOD.format(pairs=options.pairs)
    results = measure(options, make_case, Results(options.resume))
    if options.csv:
        with open(options.csv, 'w', newline='') as file:
            writer = csv.writer(file)
            columns = ['kernel', 'class', 'nodes', 'jobs', 'mode', 'channels', 'slice_ms', 'slowdown_percent', 'load', 'pairs']
            writer.writerow([*columns, 'lowest', 'highest', 'low', 'high'])
            writer.writerows([*(result[column] for column in columns), *result['spread'], *result['interval']] for result in results)
    if options.plot:
        (plot.over_slice if options.sweep else plot.over_nodes)(results, options.plot)
    options.csv = None  # written above, a line per result
    return report.finish(options, SCHEMA, {'method': method, 'results': results}, list(judged(results)),
                         lambda: print(f'{os.cpu_count()} cores. {method}'))
