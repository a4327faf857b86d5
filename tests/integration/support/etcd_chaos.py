"""Faults of the etcd that has the lease of two heads, beside those of heads_chaos.py."""
import contextlib
import json
import os
import pathlib
import struct
import subprocess
import time

from cluster import wait_until
from etcd_members import EtcdMembers, use_etcd
from heads_chaos import Faults, Links

PLACES = ('node01', 'node02', 'node03')  # each member runs in the network namespace of a node
LONG_AGO = -24 * 3600


class EtcdLinks(Links):
    """Also cuts between each head and each member, and between members, in one direction."""

    def __init__(self, cluster, members):
        super().__init__(cluster)
        self.members = members

    def all(self):
        found = super().all()
        for place, member in zip(PLACES, self.members.members):
            for port in member.ports:
                found += [(place, 'input', [f'tcp dport {port}']), (place, 'output', [f'tcp sport {port}'])]
            found += [(place, 'output', [f'tcp dport {other.ports[2]}']) for other in self.members.members if other is not member]
        return found


class EtcdFaults(Faults):
    def __init__(self, *parts, members):
        super().__init__(*parts)
        self.members = members

    def wait_ready(self):
        """Also waits until etcd has the mark that the other head has every change. A head in charge that is lost before leaves
        nobody who knows that."""
        while True:
            super().wait_ready()
            self.members.wait_healthy()
            time.sleep(1)  # several renewals
            if self.is_ready():
                return

    def any_members(self):
        return self.chance.sample(self.members.members, self.chance.choice((1, 1, 1, 2, 3)))

    def kill_members(self, *_):
        chosen = self.any_members()
        for member in chosen:
            self.members.kill(member)
        self.pause((0, 1), (2, 6))
        for member in chosen:
            self.members.start(member)

    def stop_members(self, *_):
        chosen = self.any_members()
        for member in chosen:
            self.members.stop(member)
        self.pause((0, 1), (2, 6))
        for member in chosen:
            self.members.stop(member, False)

    def kill_member_and_leader(self, first, second):
        member = self.chance.choice(self.members.members)
        self.members.kill(member)
        self.kill_leader(first, second)
        self.members.start(member)

    def kinds(self, restores):
        return super().kinds(restores) + [self.kill_members, self.stop_members, self.kill_member_and_leader] * 2


def address_of(space):
    """The first address of an interface in a network namespace."""
    words = ['nsenter', f'--net=/proc/{os.getpid()}/fd/{space}', 'ip', '-4', '-j', 'address', 'show', 'scope', 'global']
    return json.loads(subprocess.check_output(words))[0]['addr_info'][0]['local']


@contextlib.contextmanager
def etcd_for(cluster, directory, clock):
    """An etcd for the lease of the cluster's heads. Its certificates are older than any step of a clock."""
    environment = None
    if clock is not None:
        old = pathlib.Path(f'{directory}.ahead')
        old.write_bytes(struct.pack('@ll', LONG_AGO, 0))
        environment = dict(os.environ, LD_PRELOAD=str(clock.parent / 'wall_clock.so'), WALL_CLOCK_AHEAD=str(old))
    spaces = [os.open(f'/proc/{cluster.daemon(place)["pid"]}/ns/net', os.O_RDONLY) for place in PLACES]
    try:
        enter = [('nsenter', f'--net=/proc/{os.getpid()}/fd/{space}') for space in spaces]
        with EtcdMembers(directory, [address_of(space) for space in spaces], enter, environment) as members:
            members.wait_healthy()
            use_etcd(cluster, members)
            wait_until(lambda: is_in_etcd(cluster), what=cluster.logs)
            yield members
    finally:
        for space in spaces:
            os.close(space)


def is_in_etcd(cluster):
    server = {'SCORED_SERVER': str(cluster.directory / 'node00/commands.sock')}
    return 'in charge, lease in etcd' in cluster.run('score', 'info', code=None, extra_env=server).stdout
