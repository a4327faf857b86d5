"""scbench load: measures the capacity of one head on one machine, with real daemons on loopback and real commits to disk.

The clients use the wire protocol themselves (docs/reference/wire.md) with the few messages that they need, so
that the start of commands is not measured."""
import contextlib
import functools
import os
import resource
import socket
import sqlite3
import struct
import time

import arguments
import bench_report as report
from cluster import Cluster, wait_until
from kernels import note
from measure import in_threads, percentile
from protobuf import fields

HEADER = struct.Struct('<IHHII')
MAGIC = 0x44524353
CLIENT_HELLO, SERVER_HELLO, FAILED, DONE = 1, 2, 3, 4
SUBMIT, SUBMITTED, CANCEL, LIST, JOBS, GET_INFO, INFO = 10, 11, 31, 40, 41, 44, 45
BOUNDS = {'submissions_per_second': 1000, 'starts_per_second': 100, 'submit_p99_ms': 50, 'list_p99_ms': 50,
          'cancel_p99_ms': 50, 'restart_seconds': 2, 'array_submit_p99_ms': 50, 'array_list_p99_ms': 50,
          'array_cancel_p99_ms': 50, 'array_restart_seconds': 2, 'array_head_mib': 200}
AT_LEAST = {'submissions_per_second', 'starts_per_second'}
JOBS_ACTIVE = 11  # field of Info


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """Encodes a protobuf field: bytes, text, or a number."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(int(value))


def numbers(payload):
    """Returns the last value of each numeric field of a message."""
    return {number: value for number, value in fields(payload) if isinstance(value, int)}


class Refused(Exception):
    pass


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        self.tag = 0
        self.send(CLIENT_HELLO, field(1, 1) + field(2, 1) + field(3, 'scbench'))
        self.receive(SERVER_HELLO)

    def send(self, kind, payload):
        self.socket.sendall(HEADER.pack(MAGIC, 1, kind, len(payload), 0) + payload)

    def exactly(self, count):
        parts = []
        while count:
            part = self.socket.recv(min(count, 1 << 20))
            if not part:
                raise ConnectionError('the head closed the connection')
            parts.append(part)
            count -= len(part)
        return b''.join(parts)

    def receive(self, wanted):
        _, _, kind, length, _ = HEADER.unpack(self.exactly(HEADER.size))
        payload = self.exactly(length)
        if kind == FAILED:
            raise Refused(payload.decode(errors='replace'))
        assert kind == wanted, f'frame {kind} instead of {wanted}'
        return payload

    def ask(self, kind, payload, answer):
        self.tag += 1
        self.send(kind, field(1, self.tag) + payload)
        return self.receive(answer)

    def submit(self, *argv, held=False, array=''):
        resources = field(2, 1) + field(4, 1) + (field(11, 1) if held else b'')
        program = b''.join(field(2, word) for word in argv)
        spec = field(26, program) + field(3, 'PATH=/usr/bin:/bin') + field(4, '/')
        spec += field(9, -2) + field(14, 1)
        payload = field(2, os.urandom(16)) + field(3, resources) + field(4, spec) + field(5, 1) + field(7, 1)
        payload += field(9, array) if array else b''
        return numbers(self.ask(SUBMIT, payload, SUBMITTED))[2]

    def cancel(self, job):
        self.ask(CANCEL, field(2, job) + field(3, 0), DONE)

    def list(self, finished=True):
        return len(self.ask(LIST, field(3, 1) if finished else b'', JOBS))

    def active(self):
        return numbers(self.ask(GET_INFO, b'', INFO)).get(JOBS_ACTIVE, 0)


def milliseconds(call, *words, **named):
    begun = time.monotonic()
    call(*words, **named)
    return (time.monotonic() - begun) * 1000


def in_turn(path, seconds, clients):
    """Makes every client submit as soon as it has its answer. The jobs are held, so that nothing starts."""
    times, refused = [], [0]
    end = time.monotonic() + seconds

    def work():
        client = Client(path)
        while time.monotonic() < end:
            try:
                times.append(milliseconds(client.submit, 'true', held=True))
            except Refused:
                refused[0] += 1
                time.sleep(0.01)
    return times, refused[0], in_threads(work, clients)


def measure_submissions(path, seconds, clients=16):
    note(f'{clients} clients submit for {seconds:g} s')
    times, refused, took = in_turn(path, seconds, clients)
    return {'submissions_per_second': len(times) / took, 'submissions_p50_ms': percentile(times, 0.5),
            'submissions_p99_ms': percentile(times, 0.99), 'submissions_refused': refused, 'samples': {'submissions_ms': times}}


def measure_starts(path, jobs):
    note(f'{jobs} jobs of one task, from submission to record')
    client = Client(path)
    before = client.active()
    begun = time.monotonic()
    for _ in range(jobs):
        client.submit('true')
    wait_until(lambda: client.active() <= before, 300)
    return {'starts_per_second': jobs / (time.monotonic() - begun)}


def finish(cluster, jobs):
    """Adds so many ended jobs to the database, as copies of one, while the head is stopped."""
    database = next(cluster.directory.rglob('*.db'))
    cluster.kill('head')
    time.sleep(0.2)
    with sqlite3.connect(database) as store:
        for table, key in (('jobs', 'id'), ('accounting', 'job')):
            names = [row[1] for row in store.execute(f'PRAGMA table_info({table})')]
            where = 'WHERE state >= 5 ORDER BY rowid LIMIT 1'
            row = dict(zip(names, store.execute(f'SELECT {",".join(names)} FROM {table} {where}').fetchone()))
            if 'request' in row:
                row['request'] = None
            marks = ','.join('?' * len(names))
            store.executemany(f'INSERT INTO {table} VALUES ({marks})',
                              ([{**row, key: 10_000_000 + i}[name] for name in names] for i in range(jobs)))
    cluster.restart('head')
    cluster.wait_up()


def measure_requests(client, rounds, prefix='', array=''):
    """Submits a held job, or an array of them, lists all, and cancels it."""
    submits, lists, cancels = [], [], []
    for _ in range(rounds):
        job = None

        def submit():
            nonlocal job
            job = client.submit('true', held=True, array=array)
        submits.append(milliseconds(submit))
        lists.append(milliseconds(client.list))
        cancels.append(milliseconds(client.cancel, job))
    figures = {'samples': {f'{prefix}{name}_ms': times for name, times in (('submit', submits), ('list', lists), ('cancel', cancels))}}
    for name, times in (('submit', submits), ('list', lists), ('cancel', cancels)):
        figures |= {f'{prefix}{name}_p50_ms': percentile(times, 0.5), f'{prefix}{name}_p99_ms': percentile(times, 0.99)}
    return figures


def measure_array(tasks, rounds):
    """Measures with one waiting array of so many tasks: in a cluster of its own, because the head's memory is a figure."""
    note(f'an array of {tasks} tasks')
    cluster = Cluster(8)
    try:
        path = cluster.description['socket']
        array = f'0-{tasks - 1}'
        client = Client(path)
        client.submit('true', held=True, array=array)
        figures = measure_requests(client, rounds, 'array_', array)
        figures['array_head_mib'] = resident_bytes(cluster.daemon('head')['pid']) / 2**20
        figures['array_restart_seconds'] = measure_restart(cluster, path)['restart_seconds']
        return figures
    finally:
        cluster.stop()


def measure_queue(cluster, path, queued, finished, rounds):
    note(f'{queued} jobs queued, {finished} ended')
    finish(cluster, finished)
    client = Client(path)
    while client.active() < queued:
        client.submit('true', held=True)
    figures = measure_requests(client, rounds)
    return figures | {'queued': client.active(), 'finished': finished, 'list_bytes': client.list()}


def measure_restart(cluster, path):
    """Measures, with all these jobs, the time from the restart of a killed head to its first answer."""
    note('restart of the head after it was killed')
    jobs = Client(path).active()
    pid = cluster.daemon('head')['pid']
    cluster.kill('head')
    wait_until(lambda: not os.path.exists(f'/proc/{pid}'))
    begun = time.monotonic()
    cluster.restart('head')

    def answers():
        try:
            return Client(path).active() == jobs
        except OSError:
            return False
    wait_until(answers)
    return {'restart_seconds': time.monotonic() - begun}


def resident_bytes(pid):
    with open(f'/proc/{pid}/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def measure_connections(cluster, path, count):
    """Measures the response time of one more client, with so many connections after their hello and so many before it."""
    note(f'{count} connections open, {count} half-open')
    head = cluster.daemon('head')['pid']
    asker = Client(path)
    before = resident_bytes(head)
    alone = [milliseconds(asker.active) for _ in range(200)]
    opened = [Client(path) for _ in range(count)]
    half = []
    for _ in range(count):
        half.append(socket.socket(socket.AF_UNIX))
        half[-1].settimeout(20)
        half[-1].connect(str(path))
    beside = [milliseconds(asker.active) for _ in range(200)]
    grown = resident_bytes(head) - before
    answered = 0
    for client in opened:
        answered += client.active() >= 0
    for one in [*half, *[client.socket for client in opened]]:
        one.close()
    return {'open': answered, 'half_open': len(half), 'ask_alone_p99_ms': percentile(alone, 0.99),
            'ask_beside_p99_ms': percentile(beside, 0.99), 'head_grew_bytes': grown,
            'samples': {'ask_alone_ms': alone, 'ask_beside_ms': beside}}


def add_options(parser):
    parser.add_argument('--seconds', type=arguments.real(0.1, 86_400), default=5, help='length of the submissions (5)')
    parser.add_argument('--starts', type=arguments.whole(), default=300, metavar='N', help='jobs to start (300)')
    parser.add_argument('--queued', type=arguments.whole(), default=10_000, metavar='N', help='jobs that wait (10000)')
    parser.add_argument('--finished', type=arguments.whole(), default=100_000, metavar='N', help='jobs that have ended (100000)')
    parser.add_argument('--rounds', type=arguments.whole(), default=300, metavar='N', help='rounds of submit, list and cancel (300)')
    parser.add_argument('--array', type=arguments.whole(), default=100_000, metavar='N', help='tasks of an array (100000)')
    parser.add_argument('--connections', type=arguments.whole(), default=1000, metavar='N', help='open, and half-open, connections (1000)')
    report.add_options(parser)


def run(options):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kept, figures, samples = report.Kept(options), {}, {}
    for found in (*measure_shared(options, kept), kept.part('array', measure_array, options.array, options.rounds)):
        samples |= found.pop('samples', {})
        figures |= found
    figures['samples'] = samples
    bounds = report.at_most(BOUNDS, AT_LEAST)
    missed = [name for name, verdict in report.verdicts(figures, bounds).items() if verdict == report.MISSED]

    def show():
        for name, value in figures.items():
            if isinstance(value, (int, float)):
                print(report.line(name, figures, bounds))
    return report.finish(options, 'scored.bench.load/2', {**figures, 'bounds': BOUNDS, 'missed': missed}, [('load', figures, bounds)], show)


def measure_shared(options, kept):
    """Returns the figures of the parts that share a cluster, in this order. A restart is measured with the queue before it."""
    with contextlib.ExitStack() as held:
        @functools.cache
        def cluster():
            made = Cluster(8)
            held.callback(made.stop)
            return made

        def path():
            return cluster().description['socket']

        def queue():
            return measure_queue(cluster(), path(), options.queued, options.finished, options.rounds) | measure_restart(cluster(), path())
        return [kept.part('starts', lambda: measure_starts(path(), options.starts)),
                kept.part('connections', lambda: measure_connections(cluster(), path(), options.connections)),
                kept.part('queue', queue),
                kept.part('submissions', lambda: measure_submissions(path(), options.seconds))]
