"""Measures the figures of NAS kernels on MPI: over ranks, over links, on many ranks, and over nodes on Ethernet."""
import contextlib
import re
import time

from hosts import RUN_SECONDS, Nodes, namespaces, open_mpi
from kernels import note
from mpi_cases import Missing
from rows import in_turns, row
from stream_figures import QUICK_SIZES, doubled, of_device, scbench_pm, sizes_of

KERNEL_SECONDS = '0.2'  # a run repeats the kernel that long, and at least once
KERNELS = ('ep', 'cg', 'ft', 'is', 'mg', 'lu', 'sp', 'bt')
SOLVERS = KERNELS[-3:]  # their class S fits on 16 ranks
TRANSPORTS = ('PM udp', 'TCP', 'UCX', 'shared memory')
LINK_RATE = '1gbit'  # chosen: four links carry the most that this machine's processors can move, one does not
MOST_LINKS = 4
TABLE_RANKS = 16  # chosen: with 64 polling ranks on two processors table 1 takes too long
# Chosen for TABLE_RANKS; more ranks get more time.
TABLE_SECONDS = 180  # shared by the kernels; a kernel begins no further round after its share
TABLE_RUN_SECONDS = 30  # a longer run is ended and reported


def seconds_of(mpi, nodes, ranks, transport, kernel, links=1, limit=RUN_SECONDS):
    """Returns the seconds of a verified run."""
    name, size = kernel.split()
    text = mpi.run(nodes, ranks, transport, [mpi.npb(), name, size, '--seconds', KERNEL_SECONDS], links, limit)
    found = re.search(r': verified; .* ([0-9.]+) s each', text)
    if not found:
        raise Missing(f'{kernel} on {ranks} ranks over {transport} did not verify: {text.strip()[-200:]}')
    return float(found[1])


def speedup_rows(panel, x_name, alone, samples):
    """Makes rows of speed-ups from the samples in seconds by (curve, place); `alone`: seconds of one rank, in the same rounds."""
    return [row(panel, curve, (x_name, place), [one / many for one, many in zip(alone, found)], 'speed-up')
            for (curve, place), found in samples.items()]


def with_alone(cases, rounds, alone):
    """Measures the cases and one rank by itself in turns: (the rank's samples, the other samples)."""
    samples = in_turns({'alone': alone, **cases}, rounds)
    if 'alone' not in samples:
        raise Missing('one rank by itself failed')
    return samples.pop('alone'), samples


def scaling(plan):
    """Measures ranks on one machine, whose processors limit them all: the curves differ by the cost of the network."""
    near, rows = Nodes(), []
    counts = [2] if plan.quick else [2, 4, 8, 16, 32, 64]
    transports = TRANSPORTS[:2] if plan.quick else TRANSPORTS
    with open_mpi() as mpi:
        for name in ['is'] if plan.quick else ['cg', 'ft', 'is']:
            kernel = f'{name} {plan.kernel_class or "S"}'
            cases = {(transport, ranks): lambda t=transport, n=ranks, k=kernel: seconds_of(mpi, near, n, t, k)
                     for transport in transports for ranks in counts}
            alone, samples = with_alone(cases, plan.rounds, lambda k=kernel: seconds_of(mpi, near, 1, 'self', k))
            rows += speedup_rows(kernel, 'ranks', alone, samples)
    return rows


def table(plan):
    """Measures the seconds of each kernel on many ranks. A kernel that no transport finished in time is reported and left out."""
    ranks = plan.ranks or (4 if plan.quick else TABLE_RANKS)
    transports = TRANSPORTS[:2] if plan.quick else TRANSPORTS
    kernels = [table_kernel(name, plan, ranks) for name in (('is', 'mg', 'lu', 'sp', 'bt') if plan.quick else KERNELS)]
    scale = max(1, ranks / TABLE_RANKS)
    seconds, limit = TABLE_SECONDS * scale, TABLE_RUN_SECONDS * scale
    begin, rows = time.monotonic(), []
    with open_mpi() as mpi:
        for number, kernel in enumerate(kernels, 1):
            if time.monotonic() > begin + 2 * seconds:
                note(f'{kernel}: not measured: {2 * seconds:.0f} s are over; name fewer --ranks')
                continue
            end = begin + seconds * number / len(kernels)
            cases = {transport: lambda t=transport, k=kernel: seconds_of(mpi, Nodes(), ranks, t, k, limit=limit)
                     for transport in transports}
            with contextlib.suppress(Missing):  # each case has been reported
                for transport, found in in_turns(cases, plan.rounds, end).items():
                    rows.append(row(f'{ranks} ranks', transport, ('kernel', kernel), found, 's'))
    if not rows:
        raise Missing('no kernel ran')
    return rows


def table_kernel(name, plan, ranks):
    """Returns the kernel with its class: that of --class, else the smallest that can be divided among so many ranks."""
    return f'{name} {plan.kernel_class or ("W" if name in SOLVERS and ranks > TABLE_RANKS else "S")}'


def bisection(plan):
    """Measures two halves of two ranks each, joined by links of LINK_RATE, some of which are left out of the configuration."""
    links = [2, 1] if plan.quick else list(range(MOST_LINKS, 0, -1))
    kernels = ['is S'] if plan.quick else ['ep S', 'cg W', 'ft S', 'is W']
    rows = []
    with open_mpi() as mpi, namespaces(2, links[0], LINK_RATE) as halves:
        cases = {(transport, kernel, count): lambda t=transport, k=kernel, n=count: seconds_of(mpi, halves, 4, t, k, n)
                 for kernel in kernels for transport in ('PM udp', 'TCP') for count in links}
        samples = in_turns(cases, plan.rounds)
    for (transport, kernel, count), found in samples.items():
        whole = samples.get((transport, kernel, links[0]))
        if whole:
            percent = [100 * most / seconds for most, seconds in zip(whole, found)]
            rows.append(row(transport, kernel, ('links', count), percent, '% of the speed with all links'))
            rows.append(row(f'{transport}, seconds', kernel, ('links', count), found, 's'))
    return sorted(rows, key=lambda each: each['panel'])


def gigae(plan):
    """Measures round trip and bandwidth of two nodes over the size, and the speed-up of two kernels on one to four nodes."""
    sizes = plan.sizes or (QUICK_SIZES if plan.quick else sizes_of(plan)[:6])
    words = ['--device', 'ethernet', '--size', ','.join(map(str, sizes)), '--rounds', plan.rounds]
    found = scbench_pm(*words, *(['--count', 50] if plan.quick else []))
    rows = [row('round trip', curve, ('bytes', line['size']), doubled(line, key), 'us')
            for curve, key in [('PM', 'one_way_us'), ('TCP', 'tcp_one_way_us'), ('bare frames', 'raw_one_way_us')] for line in found]
    rows += of_device('bandwidth', {'PM': 'bandwidth_mb_s', 'TCP': 'tcp_mb_s', 'bare frames': 'raw_mb_s'}, found)
    return rows + speedups_on_ethernet(plan)


def speedups_on_ethernet(plan):
    counts = [2] if plan.quick else [2, 4]  # the kernels take a power of two
    transports = ('PM ethernet', 'TCP') if plan.quick else ('PM ethernet', 'TCP', 'UCX')
    rows = []
    with open_mpi() as mpi, namespaces(max(counts)) as nodes:
        for kernel in ['is S'] if plan.quick else ['cg S', 'is S']:
            cases = {(transport, count): lambda t=transport, n=count, k=kernel:
                     seconds_of(mpi, Nodes(nodes.names[:n]), n, t, k) for transport in transports for count in counts}
            alone, samples = with_alone(cases, plan.rounds, lambda k=kernel: seconds_of(mpi, Nodes(), 1, 'self', k))
            rows += [row(kernel, transport, ('nodes', 1), [1.0], 'speed-up') for transport in transports]
            rows += speedup_rows(kernel, 'nodes', alone, samples)
    return rows
