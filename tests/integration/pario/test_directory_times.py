"""The status of a directory, whose entries are on all servers: few requests, and no change is missed."""
import contextlib
import os
import random
import struct
import threading
import time

import pytest
from mounts import Mount, needs_mount
from test_hostile_clients import counts
from volumes import Client, Servers, make_temporary

OPERATIONS = 150


@contextlib.contextmanager
def volume(count, replicas=1, clients=1, **settings):
    with make_temporary() as root:
        servers = Servers(root, count, replicas=replicas, **settings)
        try:
            opened = [Client(servers.file) for _ in range(clients)]
            yield servers, *opened
            for client in opened:
                client.close()
        finally:
            servers.stop()


def requests_of(servers):
    return sum(counts(servers, index)['requests'] for index in range(len(servers.ports)))


def requests_per_kind(count):
    """Of all servers, also those that they send to each other."""
    def measured(work):
        before = requests_of(servers)
        for i in range(OPERATIONS):
            work(i)
        return requests_of(servers) - before - count  # the second question itself

    with volume(count) as (servers, client):
        def touch(i):
            client.open(f'/d/f{i}').__exit__()

        client.mkdir('/d')
        return {'create': measured(touch), 'stat': measured(lambda i: client.stat(f'/d/f{i}')),
                'stat of the directory': measured(lambda _: client.stat('/d')),
                'unlink': measured(lambda i: client.unlink(f'/d/f{i}')),
                'stat of the empty directory': measured(lambda _: client.stat('/d'))}


def test_requests_per_operation_do_not_grow_with_servers():
    alone = requests_per_kind(1)
    for count in (2, 4, 8):
        found = requests_per_kind(count)
        print(count, 'servers:', {kind: round(value / OPERATIONS, 2) for kind, value in found.items()})
        for kind, value in found.items():
            assert value <= alone[kind] + 4 * count, (count, kind, value, alone[kind])


def modified_ns(client, path):
    seconds, rest = struct.unpack_from('<qq', bytes(client.stat(path)), 88)
    return seconds * 1_000_000_000 + rest


def clock_ns():
    """The clock that servers use for times of files."""
    return time.clock_gettime_ns(5)  # CLOCK_REALTIME_COARSE


CHANGES = (lambda client, i: client.open(f'/d/f{i}').__exit__(), lambda client, i: client.unlink(f'/d/f{i - 1}'),
           lambda client, i: client.mkdir(f'/d/s{i}'), lambda client, i: client.rename(f'/d/s{i - 1}', f'/d/t{i}'))


@pytest.mark.parametrize('replicas', [1, 2])
def test_every_change_is_seen_by_the_next_status(replicas):
    chance = random.Random(replicas)
    with volume(3, replicas, clients=3) as (servers, *clients):
        clients[0].mkdir('/d')
        for i in range(240):
            if i % 60 == 59:
                index = chance.randrange(3)
                servers.kill(index)
                if replicas > 1:
                    time.sleep(1.5)  # its copy leads
                servers.start(index)
            if i % 4 in (0, 2) or chance.random() < 0.7:
                if i % 4 == 3:
                    CHANGES[2](chance.choice(clients), i - 1) if f's{i - 1}' not in clients[0].names('/d') else None
                before = clock_ns()
                with contextlib.suppress(FileNotFoundError):
                    CHANGES[i % 4](chance.choice(clients), i)
                    assert modified_ns(chance.choice(clients), '/d') >= before


def test_changes_of_many_clients_are_seen():
    """Each client asks after its own change, while the others change entries and ask."""
    failures = []

    def work(client, number):
        for i in range(60):
            before = clock_ns()
            client.open(f'/d/{number}.{i}').__exit__()
            if modified_ns(client, '/d') < before:
                failures.append((number, i))

    with volume(3, clients=4) as (_, *clients):
        clients[0].mkdir('/d')
        threads = [threading.Thread(target=work, args=(client, number)) for number, client in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


@needs_mount
def test_time_that_a_program_sets_stays(tmp_path):
    with make_temporary() as root:
        servers = Servers(root, 3)
        try:
            mount = Mount(servers.file, tmp_path / 'mount')
            try:
                folder = mount.directory / 'd'
                folder.mkdir()
                for i in range(10):
                    (folder / f'f{i}').touch()
                os.stat(folder)
                os.utime(folder, ns=(5, 1_000_000_000))
                assert os.stat(folder).st_mtime_ns == 1_000_000_000
                before = clock_ns()
                (folder / 'new').touch()
                assert os.stat(folder).st_mtime_ns >= before
            finally:
                mount.stop()
        finally:
            servers.stop()
