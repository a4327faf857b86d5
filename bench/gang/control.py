"""scbench control: measures the benefit of the daemons' network. Each figure is measured over PM and, in clusters of the same run, over
TLS alone (`_tls`): clusters alternate, a figure is the median of its clusters.

barrier_N_us: median time of a barrier-mode switch on N nodes, from the wake-up of a node's switcher until the entering job
runs, with two jobs that keep their channels. daemon_cpu_percent: processor time of all daemons while two jobs take turns, relative to the
whole machine; head_cpu_percent: that of the head alone, relative to one processor; viewer_head_cpu_percent: the same while a viewer
reads at 10 Hz.
"""
import pathlib
import statistics
import sys
import threading
import time

import arguments
import measure
import bench_report as report
from figure11 import node_counts
from kernels import note

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from web import Web  # noqa: E402

SLICE_NS = 100_000_000
BOUNDS = {'barrier_2_us': 100.0, 'barrier_8_us': 200.0}
PARTS = ('barrier', 'daemons')
WAYS = (('', 'pm'), ('_tls', 'tls'))


def add_options(parser):
    parser.add_argument('--parts', type=arguments.some_of(PARTS), default=list(PARTS), metavar='PART[,PART...]',
                        help=f'what to measure: {",".join(PARTS)} (all)')
    parser.add_argument('--barrier-nodes', type=node_counts, default=[2, 8], metavar='N[,N...]',
                        help='nodes of barrier switches (2,8)')
    parser.add_argument('--nodes', type=arguments.whole(1, 4096), default=64, metavar='N', help='nodes of the other figures (64)')
    parser.add_argument('--seconds', type=arguments.real(0.1, 86_400), default=8, help='length of each window (8)')
    parser.add_argument('--times', type=arguments.whole(), default=3, metavar='N', help='clusters per kind (3)')
    report.add_options(parser)


def barrier(make_case, nodes, way, seconds):
    """Microseconds."""
    with make_case(nodes, SLICE_NS, '--switch-mode', 'barrier', '--control', way) as (cluster, directory):
        jobs = measure.SharedJobs(cluster, nodes, 2, directory, gap_us=50)
        try:
            jobs.share(True)
            time.sleep(seconds)
            trace = cluster.json('scadm', 'trace', '--seconds', seconds)
            lengths = [(record['done_ns'] - record['woke_ns']) / 1e3 for node in trace['nodes'] for record in node['switches']
                       if record['left'] and record['entered']]
            return statistics.median(lengths) if lengths else float('nan')
        finally:
            jobs.end()


class HeadCpu:
    """Returns the percentage of one processor since the object was made."""

    def __init__(self, cluster):
        self.pids = [cluster.describe()['head']['pid']]
        self.used, self.at = measure.cpu_ns(self.pids), time.monotonic_ns()

    def percent(self):
        return 100 * (measure.cpu_ns(self.pids) - self.used) / (time.monotonic_ns() - self.at)


def watch(cluster, ends):
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    for _ in web.stream('?rate=10'):
        if ends.is_set():
            return


def daemons(make_case, nodes, way, seconds):
    with make_case(nodes, SLICE_NS, '--control', way) as (cluster, directory):
        jobs = measure.SharedJobs(cluster, nodes, 2, directory, gap_us=50)
        try:
            jobs.share(True)
            all_daemons, head = measure.DaemonCpu(cluster), HeadCpu(cluster)
            time.sleep(seconds)
            found = {'daemon_cpu_percent': all_daemons.percent(), 'head_cpu_percent': head.percent()}
            ends = threading.Event()
            viewer = threading.Thread(target=watch, args=(cluster, ends))
            viewer.start()
            time.sleep(1)
            head = HeadCpu(cluster)
            time.sleep(seconds)
            found['viewer_head_cpu_percent'] = head.percent()
            ends.set()
            viewer.join()
            return found
        finally:
            jobs.end()


def one_round(options, make_case):
    found = {}
    for suffix, way in WAYS:
        for nodes in options.barrier_nodes if 'barrier' in options.parts else ():
            found[f'barrier_{nodes}_us{suffix}'] = barrier(make_case, nodes, way, options.seconds)
        if 'daemons' in options.parts:
            found |= {key + suffix: value for key, value in daemons(make_case, options.nodes, way, options.seconds).items()}
    return found


def run(options, make_case):
    kept, rounds = report.Kept(options), []
    for number in range(options.times):
        note(f'control: round {number + 1} of {options.times}')
        rounds.append(kept.part(f'round {number + 1}, {",".join(options.parts)}', one_round, options, make_case))
    samples = {key: [found[key] for found in rounds] for key in rounds[0]}
    figures = {key: statistics.median(values) for key, values in samples.items()}
    figures |= {f'{key}_interval': list(measure.interval(values)) for key, values in samples.items()}
    figures['samples'] = samples
    bounds = report.at_most(BOUNDS)

    def show():
        for key in sorted(samples):
            print(report.line(key, figures, bounds))
    return report.finish(options, 'scored.bench.control/2', {**figures, 'bounds': BOUNDS}, [('control', figures, bounds)], show)
