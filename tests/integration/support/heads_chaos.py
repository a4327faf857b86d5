"""Two heads under faults of processes, links, clocks and disks, and clients that notice each wrong answer."""
import collections
import contextlib
import os
import pathlib
import select
import shutil
import signal
import struct
import subprocess
import threading
import time

from cluster import LIMIT, wait_until
from wire_client import WireClient

HEADS = ('head', 'head2')
ADDRESS, PORTS = '10.77.0.1', (9901, 9902)
PATIENCE = 120  # seconds
DRAINED = b'node04'  # its drain reason counts the changes of the settings


class Ledger:
    """What was acknowledged, and what should not have been answered. Threads only append or raise numbers."""

    def __init__(self):
        self.submitted = {}  # name: job
        self.attempted = set()
        self.drains = 0  # the last change of the setting that was acknowledged
        self.wrong = []  # answers that contradict an earlier one
        self.late = []  # frames of a replaced head
        self.reads = 0
        self.errors = []


class Servers:
    """The sockets of a cluster, in turn: of the nodes, and of the heads' hosts."""

    def __init__(self, cluster, chance):
        self.cluster, self.chance = cluster, chance
        places = [f'node{number:02}/commands.sock' for number in range(cluster.nodes)] + [f'{head}/head.sock' for head in HEADS]
        self.paths = [cluster.directory / place for place in places]

    def any(self):
        return self.chance.choice(self.paths)


class Worker(threading.Thread):
    """Repeats step() until stop() is called; an error of the test itself ends it and fails the test."""

    def __init__(self, ledger, servers):
        super().__init__(daemon=True)
        self.ledger, self.servers = ledger, servers
        self.is_over = threading.Event()
        self.number = 0

    def run(self):
        try:
            while not self.is_over.is_set():
                self.step()
        except Exception as error:  # noqa: BLE001
            self.ledger.errors.append(f'{type(self).__name__}: {error!r}')

    def until_answered(self, message, wanted, /, **values):
        """Repeats a request, each time at another socket, until a head has carried it out."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                client = WireClient(self.servers.any())
                with contextlib.closing(client):
                    answer, found = client.ask(message, **values)
                if answer == wanted:
                    return found
            time.sleep(0.1)
        raise AssertionError(f'{message} was not carried out within {LIMIT} s')


class Submitter(Worker):
    """Each submission keeps its request id until it is acknowledged, so it is one job."""

    def __init__(self, ledger, servers, label, ran):
        super().__init__(ledger, servers)
        self.label, self.ran = label, ran

    def step(self):
        self.number += 1
        name = f'{self.label}-{self.number}'
        self.ledger.attempted.add(name)
        program = {'argv': [word.encode() for word in ('/bin/sh', '-c', 'echo $0 >> $1', name, str(self.ran))]}
        spec = {'programs': [program], 'env': [b'PATH=/usr/bin:/bin'], 'directory': b'/', 'stdin_rank': -2, 'mpi': 1,
                'job_name': name.encode()}
        answer = self.until_answered('Submit', 'Submitted', request_id=os.urandom(16), detached=1, allow_root=1, spec=spec,
                                     resources={'tasks': 1, 'cpus_per_task': 1})
        self.ledger.submitted[name] = answer['job']
        self.is_over.wait(0.1)


class Drainer(Worker):
    """Changes a setting to 1, 2, 3 ...; the next one only when the last one was acknowledged."""

    def step(self):
        self.number += 1
        self.until_answered('DrainNodes', 'Done', nodes=[DRAINED], reason=b'%d' % self.number)
        self.ledger.drains = self.number
        self.is_over.wait(0.2)


def drain_of(answer):
    """The number in a list of nodes, 0 before the first one; None: the list shows something else of that node."""
    node = next(node for node in answer['nodes'] if node['name'] == DRAINED)
    if not node.get('drained'):
        return 0
    return int(node['reason']) if node.get('reason', b'').isdigit() else None


class Reader(Worker):
    """Asks one head after each acknowledged change, without waiting for its answers. So the first request that a stopped head
    finds is newer than the other head's lease. An answer shows at least what was acknowledged before its request."""

    def __init__(self, ledger, servers, path):
        super().__init__(ledger, servers)
        self.path, self.client, self.asked, self.last = path, None, {}, 0

    def step(self):
        try:
            if self.client is None:
                self.client, self.asked = WireClient(self.path), {}
            floor = self.ledger.drains
            if floor != self.last and len(self.asked) < 300:
                self.last = floor
                self.asked[self.client.say('ListNodes')] = floor
            while select.select([self.client.peer], [], [], 0.1)[0]:
                name, answer = self.client.hear()
                self.check(name, answer)
        except OSError:
            if self.client is not None:
                self.client.close()
            self.client = None
            self.is_over.wait(0.2)

    def check(self, name, answer):
        floor = self.asked.pop(answer.get('tag', 0), 0)
        if name != 'NodeList':
            return
        self.ledger.reads += 1
        shown = drain_of(answer)
        if shown is not None and shown < floor:
            self.ledger.wrong.append(f'{self.path.parent.name} showed {shown} after {floor} was acknowledged')


class Links:
    """Cuts in one direction between the heads, and between heads and nodes, in their network namespaces (nftables). What is
    sent vanishes silently."""

    def __init__(self, cluster):
        names = [f'node{number:02}' for number in range(cluster.nodes)]
        self.spaces = {name: os.open(f'/proc/{cluster.daemon(name)["pid"]}/ns/net', os.O_RDONLY) for name in ['head', *names]}
        self.are_cut = set()

    def all(self):
        """Each link in each direction: (namespace, hook, rule)."""
        both = f'ip saddr {ADDRESS} ip daddr {ADDRESS} tcp'
        found = [('head', 'output', [f'{both} dport {PORTS[0]}', f'{both} sport {PORTS[1]}']),
                 ('head', 'output', [f'{both} dport {PORTS[1]}', f'{both} sport {PORTS[0]}'])]
        for name in self.spaces:
            for port in PORTS if name != 'head' else ():
                found += [(name, 'output', [f'ip daddr {ADDRESS} tcp dport {port}']),
                          (name, 'input', [f'ip saddr {ADDRESS} tcp sport {port}'])]
        return found

    def nft(self, name, script):
        words = ['nsenter', f'--net=/proc/{os.getpid()}/fd/{self.spaces[name]}', 'nft', '-f', '-']
        return subprocess.run(words, input=script, text=True, capture_output=True, check=False)

    def cut(self, links):
        by_space = collections.defaultdict(list)
        for name, hook, rules in links:
            by_space[name] += [f'add rule inet chaos {hook} {rule} drop\n' for rule in rules]
        for name, rules in by_space.items():
            chains = ''.join(f'add chain inet chaos {hook} {{ type filter hook {hook} priority 0; }}\n' for hook in ('input', 'output'))
            done = self.nft(name, 'add table inet chaos\n' + chains + ''.join(rules))
            assert done.returncode == 0, done.stderr
            self.are_cut.add(name)

    def heal(self):
        for name in self.are_cut:
            self.nft(name, 'delete table inet chaos\n')
        self.are_cut = set()

    def can_cut(self):
        return shutil.which('nft') is not None and self.nft('head', 'add table inet chaos\ndelete table inet chaos\n').returncode == 0

    def close(self):
        for space in self.spaces.values():
            os.close(space)


class Faults:
    """The faults, each with its end. `clock` is the file of the wall clock of all daemons (wall_clock.c), or None."""

    def __init__(self, cluster, chance, ledger, links, clock):
        self.cluster, self.chance, self.ledger, self.links, self.clock = cluster, chance, ledger, links, clock
        self.counts = collections.Counter()
        self.take_overs = []
        self.job = None  # it runs as long as the chaos

    # ---- what the cluster shows

    def info(self):
        """What the head in charge says of itself and the other one; None: no head answers."""
        for number in self.chance.sample(range(self.cluster.nodes), self.cluster.nodes):
            with contextlib.suppress(OSError):
                client = WireClient(self.cluster.directory / f'node{number:02}/commands.sock', 2)
                with contextlib.closing(client):
                    name, found = client.ask('GetInfo')
                if name == 'Info':
                    return found
        return None

    def leader(self):
        found = self.info()
        leads = [index for index, head in enumerate(found['heads']) if head.get('in_charge')] if found else []
        return HEADS[leads[0]] if leads else None

    def is_ready(self):
        """A head leads, the other one follows, and all nodes are connected."""
        found = self.info()
        return bool(found) and found.get('nodes_up') == self.cluster.nodes and any(head.get('state') == 3 for head in found['heads'])

    def wait_ready(self):
        """Kills the head in charge, as an administrator would, if the heads and nodes do not agree by themselves."""
        end = time.monotonic() + PATIENCE
        while not self.is_ready():
            if time.monotonic() > end:
                self.counts['needed help'] += 1
                leader = self.leader()
                for name in HEADS if leader is None else (leader,):
                    self.cluster.kill(name)
                    self.cluster.restart(name)
                end = time.monotonic() + PATIENCE
            time.sleep(0.05)

    # ---- faults of processes

    def pause(self, *choices):
        time.sleep(self.chance.uniform(*self.chance.choice(choices)))

    def stop(self, name, is_on=True):
        os.kill(self.cluster.daemon(name)['pid'], signal.SIGSTOP if is_on else signal.SIGCONT)

    def kill_leader(self, first, second):
        began = time.monotonic()
        self.cluster.kill(first)
        wait_until(lambda: self.leader() == second, what=self.cluster.logs)
        self.take_overs.append(time.monotonic() - began)
        self.pause((0, 0.1), (0, 3))
        self.cluster.restart(first)

    def kill_follower(self, _, second):
        self.cluster.kill(second)
        self.pause((0, 0.5), (3, 5))
        self.cluster.restart(second)

    def kill_both(self, first, second):
        for name in self.chance.sample((first, second), 2):
            self.cluster.kill(name)
            self.pause((0, 0.01), (0, 0.5))
        for name in self.chance.sample((first, second), 2):
            self.cluster.restart(name)
            self.pause((0, 0.01), (0, 3))

    def kill_node(self, *_):
        name = f'node{self.chance.randrange(self.cluster.nodes):02}'
        self.cluster.kill(name)
        self.pause((0, 0.5), (1, 3))
        self.cluster.restart(name)

    def stop_follower(self, _, second):
        self.stop(second)
        self.pause((0, 0.5), (2, 3), (4, 7))
        self.stop(second, False)

    def stop_nodes(self, *_):
        names = [f'node{number:02}' for number in self.chance.sample(range(self.cluster.nodes), 2)]
        for name in names:
            self.stop(name)
        self.pause((0, 0.5), (3, 5))
        for name in names:
            self.stop(name, False)

    def stop_leader(self, first, second):
        """If the other head takes over meanwhile, requests wait at the stopped one that it must not answer."""
        clients = []
        with contextlib.suppress(OSError):
            clients = [WireClient(self.cluster.directory / first / 'head.sock', LIMIT) for _ in range(3)]
        self.stop(first)
        try:
            end = time.monotonic() + self.chance.uniform(*self.chance.choice(((0, 1), (2, 3), (4, 8))))
            while time.monotonic() < end and self.leader() != second:
                time.sleep(0.05)
            is_replaced = self.leader() == second
            if is_replaced and len(clients) == 3:
                clients[0].say('SignalJob', job=self.job, signal=signal.SIGCONT)
                clients[1].say('DrainNodes', nodes=[DRAINED], reason=b'replaced')
                clients[2].say('ListJobs')
        finally:
            self.stop(first, False)
        for client in clients:
            if is_replaced:
                self.ledger.late += client.rest()
            client.close()
        self.counts['replaced'] += is_replaced

    # ---- faults of links, clocks and disks

    def cut_links(self, *_):
        share = self.chance.choice((0.1, 0.3, 0.6))
        self.links.cut([link for link in self.links.all() if self.chance.random() < share])
        self.pause((0, 1), (2, 4), (5, 8))
        self.links.heal()

    def step_clock(self, *_):
        with open(self.clock, 'r+b') as file:
            file.write(struct.pack('@l', self.chance.choice((3600, -3600, 300, -1, 0))))
        self.pause((0, 1))

    def restore_disk(self, first, second):
        """A head loses what it has stored since a copy. It is killed first: otherwise it might acknowledge changes that the other
        head does not have, and no disk would have them any more. The heads would wait for --recover then."""
        name = self.chance.choice((first, second))
        place = self.cluster.directory / name
        copy = pathlib.Path(f'{place}.copy')
        self.cluster.kill(name)
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for path in place.glob('jobs.db*'):
            shutil.copy2(path, copy)
        self.cluster.restart(name)
        self.wait_ready()
        self.pause((0, 2))
        for head in (name, HEADS[1 - HEADS.index(name)]):
            self.cluster.kill(head)
            self.pause((0, 0.01), (0, 3))
        for path in place.glob('jobs.db*'):
            path.unlink()
        for path in copy.iterdir():
            shutil.copy2(path, place)
        for head in (name, HEADS[1 - HEADS.index(name)]):
            self.cluster.restart(head)
            self.pause((0, 0.1), (3, 6))

    # ---- their order

    def kinds(self, restores):
        kinds = [self.kill_leader, self.kill_leader, self.kill_follower, self.kill_both, self.kill_node, self.stop_follower,
                 self.stop_leader, self.stop_leader, self.stop_nodes]
        if self.links.can_cut():
            kinds += [self.cut_links] * 4
        if self.clock is not None:
            kinds.append(self.step_clock)
        return kinds + [self.restore_disk] * (2 if restores else 0)

    def run(self, seconds, restores=False):
        kinds = self.kinds(restores)
        began = time.monotonic()
        while time.monotonic() < began + seconds and not self.ledger.errors:
            self.wait_ready()
            first = self.leader()
            if first is None:
                continue
            fault = self.chance.choice(kinds)
            self.counts[fault.__name__] += 1
            print(f'{time.monotonic() - began:6.1f} {fault.__name__} while {first} leads', flush=True)
            fault(first, HEADS[1 - HEADS.index(first)])
