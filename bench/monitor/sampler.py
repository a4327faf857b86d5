#!/usr/bin/env python3
"""Measures the cost of a viewer: CPU of all daemons with a viewer at 10 Hz, minus CPU without one.

usage: SCORE_BIN=build/release/bin bench/monitor/sampler.py [--nodes 64] [--pairs 6] [--seconds 2]
           [--work busy] [--map]

Boots a virtual cluster with two jobs of one task per node, so each node has two processes. Windows with and
without a viewer take turns; a figure is the median of the pairs, in percent of one core. Prints JSON.
With --map both windows have a viewer, and one of them also has the traffic map open:
its additional cost (--work talk has PM traffic for it).
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / 'support'), str(HERE.parent / 'gang')]
sys.dont_write_bytecode = True
from cluster import EXAMPLES, Cluster, wait_until  # noqa: E402  (needs the path)
from measure import cpu_ns  # noqa: E402
from viewers import drain  # noqa: E402
from web import Web, WebSocket  # noqa: E402

# The work of a task: it never waits, or it mostly waits, as a task whose messages come over a network.
WORK = {'busy': [sys.executable, '-c', 'while True: pass'],
        'waiting': [sys.executable, '-c', 'import time\nwhile True: time.sleep(0.01)'],
        'talk': [EXAMPLES / 'pm_talk', 600]}
SETTLE = 2.5  # seconds: nodes sample for two more seconds after the last viewer has left


def groups(cluster):
    found = cluster.describe()
    return {'head': [found['head']['pid']], 'nodes': [d['pid'] for d in found['nodes']],
            'launchers': [d['pid'] for d in found['launchers']]}


def spent(pids, seconds, wait):
    """Returns the percentage of one core that each group of daemons used in this time."""
    before = {name: cpu_ns(group) for name, group in pids.items()}
    begin = time.monotonic_ns()
    wait(seconds)
    passed = time.monotonic_ns() - begin
    return {name: 100 * (cpu_ns(group) - before[name]) / passed for name, group in pids.items()}


def pair_of_map(web, pids, options):
    """Measures with the map and without; a viewer is connected all the time."""
    viewers = [WebSocket(web, f'/api/v1/ws?rate={options.rate}')]
    viewers.append(WebSocket(web, '/api/v1/ws?rate=1&parts=peers'))
    drain(viewers, 1.5)
    open_ = spent(pids, options.seconds, lambda seconds: drain(viewers, seconds))
    viewers.pop().link.close()
    drain(viewers, 1.5)
    closed = spent(pids, options.seconds, lambda seconds: drain(viewers, seconds))
    viewers[0].link.close()
    return {name: open_[name] - closed[name] for name in pids}


def pair(web, pids, options):
    viewers = [WebSocket(web, f'/api/v1/ws?rate={options.rate}')]
    drain(viewers, 0.7)
    watched = spent(pids, options.seconds, lambda seconds: drain(viewers, seconds))
    viewers[0].link.close()
    time.sleep(SETTLE)
    unwatched = spent(pids, options.seconds, time.sleep)
    return {name: watched[name] - unwatched[name] for name in pids}


def measure(cluster, options):
    words = ['-N', options.nodes, '-n', options.nodes, *WORK[options.work]]
    for _ in range(2):
        cluster.wait_job(cluster.submit(*words), 'running')
    time.sleep(1)
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    pids = groups(cluster)
    of = pair_of_map if options.map else pair
    pairs = [of(web, pids, options) for _ in range(options.pairs)]
    sums = sorted(sum(one.values()) for one in pairs)
    parts = {name: statistics.median(one[name] for one in pairs) for name in pids}
    rss = max(node['rss_bytes'] for node in cluster.json('scnodes')['nodes'])
    return {'schema': 'scored.bench.sampler/1', 'nodes': options.nodes, 'work': options.work, 'map': options.map,
            'rate': options.rate,
            'percent_of_a_core': statistics.median(sums), 'least': sums[0], 'most': sums[-1], 'parts': parts,
            'largest_node_rss_bytes': rss, 'load_average': os.getloadavg()[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--nodes', type=int, default=64)
    parser.add_argument('--pairs', type=int, default=6)
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('--rate', type=float, default=10)
    parser.add_argument('--work', choices=sorted(WORK), default='busy')
    parser.add_argument('--map', action='store_true')
    options = parser.parse_args()
    cluster = Cluster(options.nodes)
    try:
        wait_until(lambda: cluster.nodes_up() == options.nodes)
        result = measure(cluster, options)
        cluster.cancel_all()
    finally:
        cluster.stop()
    print(json.dumps(result, indent=1))


if __name__ == '__main__':
    main()
