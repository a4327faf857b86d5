"""scbench api: measures the HTTP API of one head, with real daemons on loopback and real commits to disk.

Clients keep their connections and read only what they need of a response, so that they cost little on the same processors. Submitted
jobs are held. head_cpu_followers_percent is the processor time of the head, relative to one processor, while clients follow the output of
a job that writes a line each second, less what it needs without these clients."""
import contextlib
import json
import resource
import socket
import time

import arguments
import bench_report as report
import measure
from cluster import Cluster, wait_until
from kernels import note
from measure import in_threads, percentile

BOUNDS = {'submissions_per_second': 500, 'list_p99_ms': 50, 'head_cpu_followers_percent': 5, 'head_grew_mib': 3}
AT_LEAST = {'submissions_per_second'}
PARTS = ('submit', 'list', 'follow')


class Client:
    """A connection to the API's Unix socket that is kept. The web server permits 500 requests per second from one address."""

    def __init__(self, cluster):
        self.link = socket.socket(socket.AF_UNIX)
        self.link.settimeout(600)
        self.link.connect(str(cluster.directory / 'head/api.sock'))
        self.rest = b''

    @staticmethod
    def request(method, path, body=b''):
        kind = f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\n' if body else ''
        return f'{method} /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n'.encode() + body

    def ask(self, request):
        """Returns the status of the response, whose body is read and left out."""
        self.link.sendall(request)
        while b'\r\n\r\n' not in self.rest:
            self.rest += self.more()
        head, self.rest = self.rest.split(b'\r\n\r\n', 1)
        fields = dict(line.lower().split(b': ', 1) for line in head.split(b'\r\n')[1:])
        if b'content-length' in fields:
            self.skip(int(fields[b'content-length']))
        else:
            self.skip_chunks()
        return int(head.split(b' ', 2)[1])

    def more(self):
        piece = self.link.recv(1 << 20)
        if not piece:
            raise ConnectionError('the head closed the connection')
        return piece

    def skip(self, count):
        while len(self.rest) < count:
            self.rest += self.more()
        self.rest = self.rest[count:]

    def skip_chunks(self):
        size = 1
        while size:
            while b'\r\n' not in self.rest:
                self.rest += self.more()
            line, self.rest = self.rest.split(b'\r\n', 1)
            size = int(line, 16)
            self.skip(size + 2)


def submission(held=True):
    return json.dumps({'command': ['true'], 'directory': '/tmp', 'allow_root': True, 'hold': held}).encode()


def submit(cluster, seconds, clients):
    note(f'{clients} clients submit for {seconds:g} s')
    times, refused = [], []
    end = time.monotonic() + seconds

    def work():
        client = Client(cluster)
        request = client.request('POST', 'jobs', submission())
        while time.monotonic() < end:
            begun = time.monotonic()
            status = client.ask(request)
            (times if status == 201 else refused).append((time.monotonic() - begun) * 1000)
            if status == 429:
                time.sleep(0.01)
    took = in_threads(work, clients)
    return {'submissions_per_second': len(times) / took, 'submissions_p50_ms': percentile(times, 0.5),
            'submissions_p99_ms': percentile(times, 0.99), 'submissions_refused': len(refused), 'samples': {'submissions_ms': times}}


def list_jobs(cluster, queued, rounds):
    """Reads the first page of a hundred among so many jobs that wait."""
    note(f'a list of 100 among {queued} jobs, {rounds} times')
    client = Client(cluster)
    request = client.request('POST', 'jobs', submission())
    while cluster.json('score', 'info')['jobs_active'] < queued:
        for _ in range(500):
            status = client.ask(request)
            if status == 429:
                time.sleep(0.01)
            elif status != 201:
                raise SystemExit(f'scbench: the head refuses a submission with {status}')
    request = client.request('GET', 'jobs?user=all&limit=100')
    times = []
    for _ in range(rounds):
        begun = time.monotonic()
        assert client.ask(request) == 200
        times.append((time.monotonic() - begun) * 1000)
    return {'queued': queued, 'list_p50_ms': percentile(times, 0.5), 'list_p99_ms': percentile(times, 0.99), 'samples': {'list_ms': times}}


def resident_mib(pid):
    with open(f'/proc/{pid}/statm') as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def follow(cluster, followers, seconds, pairs):
    note(f'{followers} clients follow the output of a job, {pairs} times {seconds:g} s')
    job = cluster.submit('-n', 1, 'sh', '-c', 'while echo line; do sleep 1; done')
    cluster.wait_job(job, 'running')
    head = cluster.daemon('head')['pid']

    def head_percent():
        used, begun = measure.cpu_ns([head]), time.monotonic_ns()
        time.sleep(seconds)
        return 100 * (measure.cpu_ns([head]) - used) / (time.monotonic_ns() - begun)
    alone, beside, grown = [], [], []
    for _ in range(pairs):
        alone.append(head_percent())
        before = resident_mib(head)
        with contextlib.ExitStack() as held:
            clients = [Client(cluster) for _ in range(followers)]
            for client in clients:
                held.callback(client.link.close)
                client.link.sendall(client.request('GET', f'jobs/{job}/output?follow=1&offset=0'))
            for client in clients:
                assert b' 200 ' in client.more()
            beside.append(head_percent())
            grown.append(resident_mib(head) - before)
    cluster.cancel(job)
    more = [with_them - without for with_them, without in zip(beside, alone)]
    return {'followers': followers, 'head_cpu_followers_percent': percentile(more, 0.5), 'head_grew_mib': max(grown),
            'head_cpu_followers_percent_interval': [min(more), max(more)],
            'samples': {'head_cpu_alone_percent': alone, 'head_cpu_beside_percent': beside, 'head_grew_mib': grown}}


def add_options(parser):
    parser.add_argument('--parts', type=arguments.some_of(PARTS), default=list(PARTS), metavar='PART[,PART...]',
                        help=f'what to measure: {",".join(PARTS)} (all)')
    parser.add_argument('--seconds', type=arguments.real(0.1, 86_400), default=5, help='length of the submissions and of each window (5)')
    parser.add_argument('--clients', type=arguments.whole(1, 256), default=16, metavar='N', help='clients that submit (16)')
    parser.add_argument('--followers', type=arguments.whole(1, 1000), default=100, metavar='N', help='clients that follow an output (100)')
    parser.add_argument('--queued', type=arguments.whole(), default=10_000, metavar='N', help='jobs that wait while a page is read (10000)')
    parser.add_argument('--rounds', type=arguments.whole(), default=300, metavar='N', help='pages to read (300)')
    parser.add_argument('--pairs', type=arguments.whole(), default=5, metavar='N', help='windows without and with followers (5)')
    report.add_options(parser)


def in_cluster(part, *words):
    cluster = Cluster(2)
    try:
        wait_until(lambda: (cluster.directory / 'head/api.sock').exists())
        return part(cluster, *words)
    finally:
        cluster.stop()


def run(options):
    kept, figures, samples = report.Kept(options), {}, {}
    measures = {'follow': (follow, options.followers, options.seconds, options.pairs), 'submit': (submit, options.seconds, options.clients),
                'list': (list_jobs, options.queued, options.rounds)}
    for name, words in measures.items():
        if name not in options.parts:
            continue
        found = kept.part(name, in_cluster, *words)
        samples |= found.pop('samples')
        figures |= found
    figures['samples'] = samples
    bounds = report.at_most(BOUNDS, AT_LEAST)

    def show():
        for name, value in figures.items():
            if isinstance(value, (int, float)):
                print(report.line(name, figures, bounds))
    return report.finish(options, 'scored.bench.api/1', {**figures, 'bounds': BOUNDS}, [('api', figures, bounds)], show)
