"""Measures the figures of bandwidth: PM's writes and messages, MPI's messages, and copies inside and between nodes."""
import pathlib

import pm_cases
from hosts import Nodes, namespaces, open_mpi
from mpi_cases import Missing
from rows import in_turns, row

HERE = pathlib.Path(__file__).resolve().parent
SIZES = [4, 64, 512, 4096, 8192, 65536, 262144, 1048576]
QUICK_SIZES = [8, 8192]
WRITES = {'message': 'message_mb_s', 'message, copied twice': 'message_with_copies_mb_s', 'write, 100 % hits': 'write_hit_100_mb_s',
          'write, 50 % hits': 'write_hit_50_mb_s', 'write, 0 % hits': 'write_hit_0_mb_s', 'TCP': 'tcp_mb_s'}
RAW = {'shmem': 'process_vm_writev', 'udp': 'bare datagrams', 'ethernet': 'bare frames'}
WRITE_BYTES = 64 << 20  # per size
BYTES = '8388608'  # per size, for MPI's streams
PM_BOTH = ['PM udp', 'TCP', 'UCX']
NEAR = ['PM shmem', 'shared memory', 'UCX shared memory']


def sizes_of(plan):
    return plan.sizes or (QUICK_SIZES if plan.quick else SIZES)


def scbench_pm(*words):
    try:
        return pm_cases.measured(list(map(str, words)))
    except pm_cases.NotMeasured as error:
        raise Missing(str(error)) from error


def of_device(panel, keys, found):
    """Makes rows from the lines of scbench-pm. `keys`: curve -> key."""
    return [row(panel, curve, ('bytes', line['size']), line['samples'][key], 'MB/s')
            for curve, key in keys.items() for line in found]


def doubled(line, key):
    """Returns samples of a round trip, from a one-way time."""
    return [2 * value for value in line['samples'][key]]


def transfers(plan, size):
    """Returns how many transfers of a size are timed."""
    return 200 if plan.quick else min(10_000, max(50, WRITE_BYTES // size))


def writes(plan):
    rows = []
    for device in ['shmem'] if plan.quick else ['shmem', 'udp']:
        words = ['--device', device, '--hits', '--rounds', plan.rounds]
        try:
            found = [line for size in sizes_of(plan) for line in scbench_pm(*words, '--size', size, '--count', transfers(plan, size))]
            rows += of_device(device, {**WRITES, RAW[device]: 'raw_mb_s'}, found)
        except Missing as error:
            pm_cases.report_missing(device, error)
    if not rows:
        raise Missing('no device can be measured')
    return rows


def stream_rows(panel, samples):
    """Makes rows from samples {size: MB/s} by curve."""
    return [row(panel, curve, ('bytes', bytes_), [sample[bytes_] for sample in found], 'MB/s')
            for curve, found in samples.items() for bytes_ in found[0]]


def stream(mpi, program, nodes, transport, hit, sizes):
    ranks = 1 if transport == 'self' else 2
    text = mpi.run(nodes, ranks, transport, [program, hit, BYTES, *map(str, sizes)])
    found = {int(line.split()[0]): float(line.split()[1]) for line in text.splitlines() if line[:1].isdigit()}
    if set(found) != set(sizes):
        raise Missing(f'{transport}: the stream did not print every size')
    return found


def mpi(plan):
    """Measures two ranks on two nodes, and in one node."""
    sizes, rows = sizes_of(plan), []
    with open_mpi() as launcher, namespaces(2) as nodes:
        program = launcher.build(HERE / 'stream.c', 'stream')
        for panel, place, transports in [('two nodes', nodes, PM_BOTH), ('one node', Nodes(), NEAR)]:
            chosen = transports[:2] if plan.quick else transports
            cases = {f'{transport}, {hit} % hits': lambda p=place, t=transport, h=hit: stream(launcher, program, p, t, h, sizes)
                     for transport in chosen for hit in ('100', '0')}
            rows += stream_rows(panel, in_turns(cases, plan.rounds))
    return rows


def cosmo(plan):
    """Measures the same bytes by two threads, by MPI in a node, and by MPI between two nodes."""
    sizes = plan.sizes or ([8192] if plan.quick else [1024, 16384, 65536, 1048576])
    with open_mpi() as launcher, namespaces(2) as nodes:
        program = launcher.build(HERE / 'stream.c', 'stream')
        near = Nodes()
        where = {'two threads': (near, 'self'), 'in a node, PM': (near, 'PM shmem'), 'in a node, shared memory': (near, 'shared memory'),
                 'in a node, TCP': (near, 'TCP'), 'between nodes, PM': (nodes, 'PM udp'), 'between nodes, TCP': (nodes, 'TCP')}
        cases = {name: lambda p=place, t=transport: stream(launcher, program, p, t, '100', sizes)
                 for name, (place, transport) in where.items()}
        return stream_rows('bandwidth', in_turns(cases, plan.rounds))
