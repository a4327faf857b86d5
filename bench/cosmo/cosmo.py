"""scbench cosmo: measures Linpack and CG, MPI only and hybrid, over nodes and cores per node, as speed-up over one
rank with one thread. Runs of the versions take turns, so that other load affects all of them alike."""
import argparse
import csv
import os
import re
import statistics

import arguments
import kernels
import plot
import bench_report as report
from cluster import EXAMPLES, Cluster
from figure11 import node_counts

PROGRAMS = ('linpack:1000', 'linpack:2000', 'cg:S', 'cg:W', 'cg:A', 'cg:B')
METHOD = ('speed-up = time of one rank with one thread / time, medians of {repeats} runs in turns; every run is '
          'verified. Virtual nodes share this machine: more than its {cores} cores cannot be faster.')


def programs(text):
    if any(word not in PROGRAMS for word in text.split(',')):
        raise argparse.ArgumentTypeError(f"'{text}': use some of {','.join(PROGRAMS)}")
    return text.split(',')


def add_options(parser):
    parser.add_argument('--nodes', type=node_counts, default=[1, 2], metavar='N[,N...]', help='virtual nodes (1,2)')
    parser.add_argument('--cores', type=node_counts, default=[1, 2], metavar='N[,N...]', help='cores per node (1,2)')
    parser.add_argument('--programs', type=programs, default=['linpack:1000', 'cg:W'], metavar='LIST',
                        help=','.join(PROGRAMS) + ' (linpack:1000,cg:W)')
    parser.add_argument('--mpi', choices=['mpich', 'openmpi'], default='mpich', help='which MPI (mpich)')
    parser.add_argument('--repeats', type=arguments.whole(), default=3, help='runs per version (3)')
    parser.add_argument('--plot', metavar='FILE', help='draw the results: .svg, .png or .pdf')
    report.add_options(parser)


def can_run(program, ranks):
    return program.startswith('linpack') or ranks & (ranks - 1) == 0


def versions(nodes, cores, has_distribution):
    """(name, words of scrun, words of the program)"""
    if cores == 1:
        return [('mpi', ['-N', nodes, '-n', nodes], [])]
    spread = ['-N', nodes, '-n', nodes * cores]
    found = [('mpi', spread, []), ('mpi, two levels', spread, ['--two-levels'])]
    if has_distribution and nodes > 1:
        found.append(('mpi, cyclic', [*spread, '--distribution=cyclic'], []))
    return [*found, ('hybrid', ['-N', nodes, '-n', nodes, '-c', cores], ['--threads', cores])]


def seconds_of(cluster, mpi, program, version):
    name, size = program.split(':')
    _, words, more = version
    out = cluster.run('scrun', '-q', *words, EXAMPLES / f'cosmo-{mpi}', name, size, *more, limit=300).stdout
    return float(re.search(r': verified, ([\d.]+) s', out)[1])


def measure(options, nodes, cores):
    results = []
    with_cluster = Cluster(nodes, '--cores', cores)
    try:
        has_distribution = '--distribution' in with_cluster.run('scrun', '--help').stdout
        for program in options.programs:
            chosen = [v for v in versions(nodes, cores, has_distribution)
                      if can_run(program, nodes if v[0] == 'hybrid' else nodes * cores)]
            times = {version[0]: [] for version in chosen}
            for _ in range(options.repeats):
                for version in chosen:
                    times[version[0]].append(seconds_of(with_cluster, options.mpi, program, version))
            results += [{'program': program, 'version': name, 'nodes': nodes, 'cores': cores,
                         'seconds': statistics.median(taken), 'spread': [min(taken), max(taken)], 'samples': {'seconds': taken},
                         'load': round(os.getloadavg()[0], 1)} for name, taken in times.items()]
    finally:
        with_cluster.stop()
    return results


def run(options):
    kept, results = report.Kept(options), []
    for nodes, cores in sorted({(1, 1), *((n, c) for n in options.nodes for c in options.cores)}):
        results += kept.part(f'{nodes} x {cores}', measure, options, nodes, cores)
    single = {r['program']: r['seconds'] for r in results if (r['nodes'], r['cores']) == (1, 1)}
    for result in results:
        result['speedup'] = single[result['program']] / result['seconds']
        low, high = result['spread']
        kernels.note(f'{result["program"]:<12} {result["nodes"]} x {result["cores"]} {result["version"]:<16} '
                     f'{result["seconds"]:8.3f} s [{low:.3f}, {high:.3f}]  speed-up {result["speedup"]:.2f}  '
                     f'load {result["load"]}')
    return write(options, results)


def write(options, results):
    method = METHOD.format(repeats=options.repeats, cores=os.cpu_count())
    if options.csv:
        with open(options.csv, 'w', newline='') as file:
            columns = ['program', 'version', 'nodes', 'cores', 'seconds', 'speedup', 'load']
            writer = csv.writer(file)
            writer.writerow([*columns, 'lowest', 'highest'])
            writer.writerows([*(result[column] for column in columns), *result['spread']] for result in results)
    if options.plot:
        plot.speedups(results, options.plot, options.repeats)
    options.csv = None  # written above, a line per result
    return report.finish(options, 'scored.bench.cosmo/2', {'mpi': options.mpi, 'method': method, 'results': results}, [],
                         lambda: print(method))
