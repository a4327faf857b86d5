"""scbench gang --figure11 and --sweep: the papers' experiment, as table, JSON, CSV and plot."""
import argparse
import csv
import json
import os
import re

import kernels
import plot

METHOD = ('slowdown = work of a window without switches / work of a window with them - 1; windows alternate, each is '
          'compared with the mean of its two neighbours; median of {pairs} pairs, [lowest, highest]. One job: stopped and '
          'continued at every boundary, against boundaries 10 s apart. Two jobs: both together, against the first while '
          'the other is suspended.')
BOUNDS = {(64, 100, 1): 2.0, (64, 100, 2): 3.3, (2, 10, 1): 2.0}  # (nodes, slice in ms, jobs): percent
STEPS = (1, 2, 5)


def names(text):
    chosen = text.split(',')
    if not chosen or any(name not in ('ep', 'cg', 'ft', 'is') for name in chosen):
        raise argparse.ArgumentTypeError(f"'{text}': use some of ep,cg,ft,is")
    return chosen


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
    parser.add_argument('--kernels', type=names, default=['ep', 'cg', 'ft', 'is'], metavar='LIST', help='ep,cg,ft,is')
    parser.add_argument('--class', dest='size', choices=['S', 'W', 'A'], default='S', help='size of the kernels (S)')
    parser.add_argument('--plot', metavar='FILE', help='draw it: .svg, .png or .pdf')
    parser.add_argument('--csv', metavar='FILE', help='write a line a result')


def row(kernel, options, nodes, slice_ns, found):
    return {'kernel': kernel, 'class': options.size, 'nodes': nodes, 'slice_ms': slice_ns / 1e6, **found}


def show(result):
    low, high = result['spread']
    bound = BOUNDS.get((result['nodes'], result['slice_ms'], result['jobs']))
    verdict = ''
    if bound is not None:
        verdict = f'  <= {bound:g}: ' + ('ok' if result['slowdown_percent'] <= bound else 'MISSED')
        if high - low > 4 * bound:
            verdict += ', but the machine was too busy to tell'
    kernels.note(f'{result["kernel"]} {result["class"]}, {result["nodes"]:>2} nodes, {result["slice_ms"]:g} ms, '
                 f'{result["jobs"]} jobs: {result["slowdown_percent"]:6.2f} %  [{low:.2f}, {high:.2f}]  '
                 f'load {result["load"]}{verdict}')
    return result


def figure(options, make_case, job_counts=(1, 2)):
    """A result for each kernel, number of nodes and number of jobs."""
    results = []
    for nodes in options.nodes:
        for count in job_counts:
            with make_case(nodes, options.slice, count == 1) as (cluster, directory):
                for kernel in options.kernels:
                    jobs = kernels.KernelJobs(cluster, kernel, options.size, nodes, count, directory)
                    try:
                        found = (kernels.alone(cluster, jobs, options.slice, options.seconds) if count == 1 else
                                 kernels.shared(jobs, options.slice, options.seconds))
                    finally:
                        jobs.end()
                        clear(directory)
                    results.append(show(row(kernel, options, nodes, options.slice, found)))
    return results


def sweep(options, make_case):
    """A result for each kernel and length of slice, one job alone."""
    results = []
    nodes = options.nodes[0]
    with make_case(nodes, options.slice, True) as (cluster, directory):
        for kernel in options.kernels:
            jobs = kernels.KernelJobs(cluster, kernel, options.size, nodes, 1, directory)
            try:
                for slice_ns in options.sweep:
                    found = kernels.alone(cluster, jobs, slice_ns, options.seconds)
                    results.append(show(row(kernel, options, nodes, slice_ns, found)))
            finally:
                jobs.end()
                clear(directory)
    return results


def clear(directory):
    for path in sorted(directory.rglob('*'), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def run(options, make_case):
    method = METHOD.format(pairs=kernels.PAIRS)
    results = sweep(options, make_case) if options.sweep else figure(options, make_case)
    if options.csv:
        with open(options.csv, 'w', newline='') as file:
            writer = csv.writer(file)
            columns = ['kernel', 'class', 'nodes', 'jobs', 'slice_ms', 'slowdown_percent', 'network', 'load']
            writer.writerow([*columns, 'lowest', 'highest'])
            writer.writerows([*(result[column] for column in columns), *result['spread']] for result in results)
    if options.plot:
        (plot.over_slice if options.sweep else plot.over_nodes)(results, options.plot)
    if options.json:
        print(json.dumps({'schema': 'scored.bench.kernels/1', 'cores': os.cpu_count(), 'method': method,
                          'results': results}, indent=1))
    else:
        print(f'{os.cpu_count()} cores. {method}')
    return 0
