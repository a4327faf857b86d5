#!/usr/bin/env python3
"""Measures the cost of N WebSocket viewers of a virtual cluster: documents per second, CPU of the head
and of the nodes.

usage: score virtual --nodes 64 -- bench/monitor/viewers.py [--viewers 100] [--seconds 10] [--rate 10]

Prints one JSON object. Two jobs have one task per node each, so each node has two processes.
"""
import argparse
import json
import os
import pathlib
import selectors
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
sys.dont_write_bytecode = True
from web import Web, WebSocket  # noqa: E402  (needs the path)


def command(*words):
    return json.loads(subprocess.run([*words, '--json'], check=True, capture_output=True, text=True).stdout)


def metric(text, name):
    return next((float(line.rsplit(' ', 1)[1]) for line in text.splitlines() if line.startswith(name + ' ')), 0)


def reading(web):
    text = web.ask('/metrics').body.decode()
    nodes = command('scnodes')['nodes']
    return {
        'at': time.monotonic(), 'encoded': metric(text, 'scored_documents_encoded_total'),
        'delivered': metric(text, 'scored_documents_delivered_total'),
        'skipped': metric(text, 'scored_documents_skipped_total'),
        'head_cpu_s': metric(text, 'process_cpu_seconds_total'), 'nodes_cpu_s': sum(n['cpu_s'] for n in nodes),
        'rss': max(n['rss_bytes'] for n in nodes)}


def difference(before, after):
    seconds = after['at'] - before['at']
    result = {name: (after[name] - before[name]) / seconds for name in before if name not in ('at', 'rss')}
    return {'encoded_per_s': result['encoded'], 'delivered_per_s': result['delivered'],
            'skipped_per_s': result['skipped'], 'head_cores': result['head_cpu_s'],
            'node_daemons_cores': result['nodes_cpu_s'], 'largest_node_rss_bytes': after['rss']}


def drain(viewers, seconds):
    """Reads and discards, as a viewer that keeps up."""
    selector, received = selectors.DefaultSelector(), 0
    for viewer in viewers:
        viewer.link.setblocking(False)
        selector.register(viewer.link, selectors.EVENT_READ, viewer)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for key, _ in selector.select(0.1):
            received += len(key.fileobj.recv(1 << 20))
    return received


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--viewers', type=int, default=100)
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--rate', type=float, default=10)
    parser.add_argument('--parts', default='')
    options = parser.parse_args()
    web = Web(command('score', 'info')['dashboard_url'])
    count = len(command('scnodes')['nodes'])
    busy = ['sh', '-c', 'while :; do sleep 0.05; done']
    jobs = [subprocess.run(['scrun', '--detach', '--allow-root', '-N', str(count), '-n', str(count), *busy], check=True,
                           capture_output=True, text=True).stdout.strip() for _ in range(2)]
    time.sleep(2)
    query = f'?rate={options.rate}' + (f'&parts={options.parts}' if options.parts else '')
    result = {'schema': 'scored.bench.viewers/1', 'nodes': count, 'viewers': options.viewers, 'rate': options.rate,
              'load_average': os.getloadavg()[0]}
    before = reading(web)
    time.sleep(options.seconds)
    result['unwatched'] = difference(before, reading(web))
    for name, viewers in (('one', 1), ('many', options.viewers)):
        watching = [WebSocket(web, '/api/v1/ws' + query) for _ in range(viewers)]
        drain(watching, 2)
        before = reading(web)
        received = drain(watching, options.seconds)
        result[name] = dict(difference(before, reading(web)), received_bytes_per_s=received / options.seconds)
        for viewer in watching:
            viewer.link.close()
    subprocess.run(['sccancel', '--grace', '0', *jobs], check=True)
    print(json.dumps(result, indent=1))


if __name__ == '__main__':
    main()
