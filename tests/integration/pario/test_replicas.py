"""Replicas: the loss of one server, its directory included, loses nothing; the rest goes on; repair runs beside."""
import os
import random
import re
import shutil
import threading
import time

import pytest
from test_hostile_clients import counts
from test_volume import Oracle
from volumes import Client, Servers, errno_of, make_temporary

LIMIT = 90
TRANSPORTS = ('pm', 'udp', 'tcp')


@pytest.fixture
def servers():
    with make_temporary() as root:
        made = Servers(root, 3, replicas=2)
        yield made
        assert made.stop() == [0, 0, 0], made.log(0) + made.log(1) + made.log(2)


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(what() if callable(what) else what)


LEADING, FOLLOWING = 3, 2
CHANGED = re.compile(r'Replica changed state part=(\d+) view=(\d+) mode=(\d+)')


def last_view(servers, part, index):
    """What a server has said last of its replica, and whether it has since it was started last."""
    found, is_new = (0, 0), False
    for line in servers.log(index).splitlines():
        match = CHANGED.search(line)
        if 'Started to serve the volume' in line:
            is_new = False
        elif match and int(match[1]) == part:
            found, is_new = (int(match[2]), int(match[3])), True
    return found, is_new


def leader_of(servers, part):
    return next(index for index in (part, (part + 1) % 3) if last_view(servers, part, index)[0][1] == LEADING)


def is_in_sync(servers):
    """One replica of each part leads, since its start, and the other one follows in the same view."""
    for part in range(3):
        (view, mode), is_new = last_view(servers, part, part)
        (other_view, other_mode), other_is_new = last_view(servers, part, (part + 1) % 3)
        if view != other_view or {mode, other_mode} != {LEADING, FOLLOWING} or not (is_new if mode == LEADING else other_is_new):
            return False
    return True


def wait_in_sync(servers):
    wait_for(lambda: is_in_sync(servers), lambda: 'not repaired: ' + ''.join(f'server {index}:\n{servers.log(index)}' for index in range(3)))


def contents(client):
    return {name: client.contents(name) for name in client.names()}


def fill(client, chance, expected, count=30):
    for _ in range(count):
        name, data, offset = f'f{chance.randrange(20)}', chance.randbytes(chance.randrange(1, 200_000)), chance.randrange(100_000)
        with client.open(name) as file:
            file.pwrite(data, offset)
        old = expected.get(name, b'').ljust(offset, b'\0')
        expected[name] = old[:offset] + data + old[offset + len(data):]
        if chance.random() < 0.1:
            gone = chance.choice(sorted(expected))
            client.unlink(gone)
            del expected[gone]


@pytest.mark.parametrize('lost', range(3))
def test_a_lost_directory_loses_nothing(servers, lost):
    chance, expected = random.Random(lost), {}
    client = Client(servers.file)
    wait_in_sync(servers)
    fill(client, chance, expected)
    servers.kill(lost)
    shutil.rmtree(servers.directory(lost))
    assert contents(client) == expected
    fill(client, chance, expected)  # without the server
    assert contents(client) == expected
    servers.directory(lost).mkdir()
    servers.start(lost)
    fill(client, chance, expected)  # while it is repaired
    wait_in_sync(servers)
    assert contents(client) == expected
    # Now each of the others can go.
    other = (lost + 1) % 3
    servers.kill(other)
    shutil.rmtree(servers.directory(other))
    assert contents(client) == expected
    servers.directory(other).mkdir()
    servers.start(other)
    wait_in_sync(servers)
    assert contents(client) == expected
    client.close()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_a_killed_server_is_stale_and_repaired(servers, transport):
    """One at a time is killed and comes back with what it had, amid writes; no write fails, none is lost."""
    chance, expected = random.Random(5), {}
    client = Client(servers.file, transport)
    wait_in_sync(servers)
    stop, failed = threading.Event(), []

    def kill_servers():
        try:
            for turn in range(6):
                servers.kill(turn % 3)
                time.sleep(0.5)
                servers.start(turn % 3)
                wait_in_sync(servers)
        except AssertionError as error:
            failed.append(error)
        stop.set()
    killer = threading.Thread(target=kill_servers)
    killer.start()
    while not stop.is_set():
        fill(client, chance, expected, 5)
    killer.join()
    assert not failed, failed
    assert contents(client) == expected
    client.close()


@pytest.mark.parametrize('seed', range(2))
def test_random_operations_are_as_on_a_local_directory(servers, tmp_path, seed):
    """Also while a server is killed, comes back empty, and is repaired."""
    os.umask(0o022)
    clients = [Client(servers.file) for _ in range(2)]
    oracle = Oracle(clients, tmp_path, seed)
    wait_in_sync(servers)
    for turn in range(3):
        for _ in range(150):
            oracle.step()
        servers.kill(turn)
        shutil.rmtree(servers.directory(turn))
        for _ in range(150):
            oracle.step()
        servers.directory(turn).mkdir()
        servers.start(turn)
        for _ in range(150):
            oracle.step()
        wait_in_sync(servers)
    for client in clients:
        client.close()


def data_of(path):
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob('*') if one.is_file() and one.stat().st_size}


def test_a_short_outage_copies_what_was_missed(servers):
    """Files that were written, made and removed meanwhile; both replicas are the same in the end."""
    chance, expected = random.Random(6), {}
    client = Client(servers.file)
    wait_in_sync(servers)
    fill(client, chance, expected, 100)

    def followed_by(index):
        return [part for part in range(3) if last_view(servers, part, index)[0][1] == FOLLOWING]
    for turn in range(4):
        # One that leads both of its parts is filled as a whole, so take one that follows: there always is one.
        index = next(index for index in ((turn + step) % 3 for step in range(3)) if followed_by(index))
        leaders = followed_by(index)
        servers.kill(index)
        fill(client, chance, expected, 20)
        for part in leaders:  # the others' leader goes on alone
            leader = part if part != index else (part + 1) % 3
            wait_for(lambda: last_view(servers, part, leader)[0][1] == 4 or (fill(client, chance, expected, 3) or False), 'still waits for the follower')
        fill(client, chance, expected, 20)
        servers.start(index)
        wait_in_sync(servers)
        assert contents(client) == expected
    for index in range(3):
        assert data_of(servers.directory(index) / 'data') == data_of(servers.directory((index + 1) % 3) / 'copy/data')
    text = ''.join(servers.log(index) for index in range(3))
    assert re.search(r'Started to repair the other replica part=\d+ server=\d+ files=\d', text), 'every repair has copied everything'
    client.close()


def pm_bytes(servers):
    """Of all servers that lead a part."""
    asked = {leader_of(servers, part): part + 1 for part in range(3)}
    return sum(counts(servers, index, part)['pm_bytes'] for index, part in asked.items())


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_data_comes_by_the_transport_that_was_chosen(servers, transport):
    wait_in_sync(servers)
    client, data = Client(servers.file, transport), random.Random(9).randbytes(3_000_000)
    with client.open('data') as file:
        file.pwrite(data, 0)
        assert file.pread(len(data), 0) == data
    # A connection that breaks is made again and its requests in flight are sent again, so their data may count twice.
    moved = pm_bytes(servers)
    assert moved == 0 if transport == 'tcp' else 2 * len(data) <= moved < 3 * len(data), moved
    client.close()


def test_both_replicas_have_overlapping_writes_in_one_order(servers):
    """Many writers of the same bytes, by all ways: after all of it both replicas have the same."""
    wait_in_sync(servers)
    clients = [Client(servers.file, TRANSPORTS[number % len(TRANSPORTS)]) for number in range(1, 7)]

    def write(number):
        client, chance = clients[number - 1], random.Random(number)
        with client.open('same') as file:
            for _ in range(40):
                file.pwrite(bytes([number]) * 60_000, chance.randrange(5) * 10_000)
        client.close()
    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    compared = 0
    for index in range(3):
        own, copy = servers.directory(index) / 'data', servers.directory((index + 1) % 3) / 'copy/data'
        for path in own.rglob('*'):
            if path.is_file():
                assert path.read_bytes() == (copy / path.relative_to(own)).read_bytes()
                compared += 1
    assert compared >= 2


def test_a_full_volume_stays_in_sync():
    """What the leader has room for the follower takes."""
    with make_temporary() as root:
        made = Servers(root, 3, capacity='4M', replicas=2)
        wait_in_sync(made)
        client, chance, full = Client(made.file), random.Random(1), 0
        for i in range(200):
            with client.open(f'f{i % 40}') as file:
                full += errno_of(file.pwrite, b'x' * chance.randrange(1, 300_000), chance.randrange(200_000)) == 'ENOSPC'
        assert full > 20
        assert is_in_sync(made)
        client.close()
        assert made.stop() == [0, 0, 0]


def test_unreplicated_servers_continue_after_a_loss():
    with make_temporary() as root:
        made = Servers(root, 3, wait=5)
        client = Client(made.file)
        names = [f'f{i}' for i in range(30)]
        for name in names:
            with client.open(name) as file:
                file.pwrite(b'x' * 100, 0)
        made.kill(1)
        results = []
        begin = time.monotonic()

        def read(name):
            own = Client.__new__(Client)
            own.lib, own.volume = client.lib, client.volume
            results.append(errno_of(own.contents, name))
        threads = [threading.Thread(target=read, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - begin < 60
        assert set(results) == {None, 'EIO'} and len(results) == 30
        made.start(1)
        time.sleep(1.1)  # so long the library remembers that it was dead
        assert all(client.contents(name) == b'x' * 100 for name in names)
        client.close()
        assert made.stop() == [0, 0, 0]
