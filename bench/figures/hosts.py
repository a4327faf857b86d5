"""Runs Open MPI's ranks in network namespaces, the nodes of a figure, over PM, TCP, UCX or shared memory."""
import contextlib
import itertools
import os
import pathlib
import shutil
import tempfile

from cluster import EXAMPLES
from local_job import free_ports
from mpi_cases import Missing, provider_directory, run, wait_until_up

PORT = 4200
OPENMPI_ENVIRONMENT = {'PMIX_MCA_ptl_tcp_if_include': 'pm0', 'PMIX_MCA_ptl_base_if_include': 'pm0',
                       'PMIX_MCA_ptl_tcp_remote_connections': '1', 'PMIX_MCA_ptl_base_remote_connections': '1'}
RUN_SECONDS = 300
keys = itertools.count(1)


class Nodes:
    """`names`: the namespaces; if empty, the host itself is the only node. `links`: number of interfaces pm0, pm1 ... per node."""

    def __init__(self, names=(), links=1):
        self.names, self.links = list(names), links

    def count(self):
        return max(1, len(self.names))

    def inside(self, node):
        return ['ip', 'netns', 'exec', self.names[node]] if self.names else []

    def address(self, node, link=0):
        return f'10.197.{link}.{node + 1}' if self.names else '127.0.0.1'

    def interfaces(self):
        return ','.join(f'pm{link}' for link in range(self.links)) if self.names else 'lo'


def mac(node):
    return f'02:00:00:00:00:{node + 1:02x}'


@contextlib.contextmanager
def namespaces(count, links=1, rate=None):
    """Yields nodes joined by a switch per link. `rate`: bandwidth of each link in each direction, in the format of tc(8)."""
    if os.geteuid() != 0:
        raise Missing('network namespaces need root')
    names = [f'scf{os.getpid()}n{node}' for node in range(count)]
    switch = f'scf{os.getpid()}s'
    made = []
    try:
        for name in [*names, switch]:
            run(['ip', 'netns', 'add', name])
            made.append(name)
        for link in range(links):
            run(['ip', '-n', switch, 'link', 'add', f'br{link}', 'type', 'bridge'])
            run(['ip', '-n', switch, 'link', 'set', f'br{link}', 'up'])
            for node, name in enumerate(names):
                plug_in(name, node, switch, link, rate)
        for name in names:
            run(['ip', '-n', name, 'link', 'set', 'lo', 'up'])
        wait_until_up(names)
        yield Nodes(names, links)
    except FileNotFoundError as error:
        raise Missing(f'iproute2 is needed: {error}') from error
    finally:
        for name in made:
            with contextlib.suppress(Missing):
                run(['ip', 'netns', 'del', name])


def plug_in(name, node, switch, link, rate):
    port, interface = f'l{link}n{node}', f'pm{link}'
    run(['ip', 'link', 'add', interface, 'netns', name, 'type', 'veth', 'peer', 'name', port, 'netns', switch])
    run(['ip', '-n', switch, 'link', 'set', port, 'master', f'br{link}', 'up'])
    run(['ip', '-n', name, 'addr', 'add', f'10.197.{link}.{node + 1}/24', 'dev', interface])
    run(['ip', '-n', name, 'link', 'set', interface, *(['address', mac(node)] if link == 0 else []), 'up'])
    if rate:
        run(['tc', '-n', name, 'qdisc', 'add', 'dev', interface, 'root', 'tbf', 'rate', rate, 'burst', '128k', 'latency', '50ms'])


def address_file(directory, nodes, ranks, device, links=1):
    """Writes a PM network of `ranks` ranks, the same number on each node. Device udp uses the first `links` links."""
    per_node = ranks // nodes.count()
    lines = [f'key {int.from_bytes(os.urandom(8), "big") | 1:x}', f'device {"none" if device == "shmem" else device}']
    lines += ['interface pm0'] if device == 'ethernet' else []
    lines += [f'shmem {directory}/pm{next(keys)}'] if device == 'shmem' else []
    lines += ['link udp'] * (links - 1)
    ports = free_ports(ranks) if not nodes.names else [PORT + rank for rank in range(ranks)]
    for rank in range(ranks):
        node = rank // per_node
        places = {'ethernet': [mac(node)], 'shmem': ['-'],
                  'udp': [f'{nodes.address(node, link)}:{ports[rank]}' for link in range(links)]}[device]
        lines.append(f'rank {rank} node{node if device != "shmem" else ""} {" ".join(places)}')
    path = pathlib.Path(directory) / f'network{next(keys)}'
    path.write_text('\n'.join(lines) + '\n')
    return str(path)


def transport_words(transport, nodes, links):
    """Returns the options of mpirun and the variables that choose a transport."""
    interfaces = ','.join(nodes.interfaces().split(',')[:links])
    if transport.startswith('PM'):
        return ['--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'mtl_ofi_provider_include', 'pm'], \
            {'FI_PROVIDER_PATH': provider_directory()}
    if transport == 'TCP':
        return ['--mca', 'pml', 'ob1', '--mca', 'btl', 'tcp,self', '--mca', 'btl_tcp_if_include', interfaces], {}
    if transport.startswith('UCX'):
        ucx = {'UCX_TLS': 'sm,self'} if transport == 'UCX shared memory' else {'UCX_TLS': 'tcp,self', 'UCX_NET_DEVICES': interfaces}
        return ['--mca', 'pml', 'ucx', '--mca', 'pml_ucx_tls', 'any', '--mca', 'pml_ucx_devices', 'any', '--mca', 'osc', '^ucx'], ucx
    return ['--mca', 'pml', 'ob1', '--mca', 'btl', 'vader,self' if transport == 'shared memory' else 'self'], {}


class OpenMpi:
    """Runs programs with Debian's Open MPI. Its launcher is in the first node."""

    def __init__(self, directory):
        self.directory = directory
        if not shutil.which('mpirun.openmpi'):
            raise Missing('Open MPI is not installed (openmpi-bin)')

    def npb(self):
        program = EXAMPLES / 'npb-openmpi'
        if not program.exists():
            raise Missing('npb-openmpi was not built: install libopenmpi-dev and build again')
        return str(program)

    def build(self, source, name):
        """Compiles a program; needs libopenmpi-dev."""
        if not shutil.which('mpicc.openmpi'):
            raise Missing('mpicc.openmpi is not installed (libopenmpi-dev)')
        program = f'{self.directory}/{name}'
        run(['mpicc.openmpi', '-O2', '-pthread', '-o', program, str(source)])
        return program

    def run(self, nodes, ranks, transport, command, links=1, limit=RUN_SECONDS):
        """Returns the output of `ranks` ranks, the same number on each node; each of two ranks keeps its processor. `transport`: PM udp,
        PM ethernet, PM shmem, TCP, UCX, UCX shared memory, shared memory, or self for one rank. `limit`: seconds."""
        words, variables = transport_words(transport, nodes, links)
        if transport.startswith('PM'):
            variables['PM_ADDRESS_FILE'] = address_file(self.directory, nodes, ranks, transport.split()[1], links)
        launcher = [*nodes.inside(0), 'mpirun.openmpi', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', *words]
        pinned = ranks == 2 and (os.cpu_count() or 1) > 1
        starts = [(rank, 1) for rank in range(ranks)] if pinned else \
            [(node, ranks // nodes.count()) for node in range(nodes.count())]
        for number, (place, count) in enumerate(starts):
            node = place * nodes.count() // ranks if pinned else place
            launcher += [':'] if number else []
            launcher += ['-n', str(count), *nodes.inside(node), *(['taskset', '-c', str(place)] if pinned else []), *command]
        environment = {**variables, **(OPENMPI_ENVIRONMENT if nodes.names else {})}
        return run(launcher, environment, seconds=limit)


@contextlib.contextmanager
def open_mpi():
    with tempfile.TemporaryDirectory(prefix='scbench-figures-', dir='/dev/shm') as directory:
        yield OpenMpi(directory)
