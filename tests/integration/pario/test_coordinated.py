"""Coordinated access: all ranks of a group in one call each; none waits for ever."""
import os
import random
import subprocess
import sys
import threading
import time

import pytest
from volumes import Client, Group, Servers, View, errno_of, make_temporary

HERE = os.path.dirname(__file__)
RECORD = 4096


@pytest.fixture(scope='module')
def servers():
    with make_temporary() as root:
        made = Servers(root, 3, stripe=65536)
        yield made
        assert made.stop() == [0] * 3, made.log(0)


def run_ranks(size, work):
    """Each rank in a thread; what they return, or raise."""
    results = [None] * size

    def run(rank):
        try:
            results[rank] = work(rank)
        except OSError as error:
            results[rank] = error.errno
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), 'a rank hangs'
    return results


def record(rank, turn):
    return bytes([rank, turn]) * (RECORD // 2)


@pytest.mark.parametrize('transport', ['', 'tcp', 'pm', 'udp'])
def test_64_ranks_write_and_read_strided_records(servers, transport):
    """The ranks share one connection per server; each sees the records of all others right after its own call."""
    size, turns = 64, 8
    client = Client(servers.file, transport)
    path = f'strided{transport}'

    def work(rank):
        group = Group(client, path, rank, size)
        extents = [((turn * size + rank) * RECORD, RECORD) for turn in range(turns)]
        with client.open(path) as file:
            assert group.write(file, extents, b''.join(record(rank, turn) for turn in range(turns))) == turns * RECORD
            other = (rank + 17) % size
            assert file.pread(RECORD, (3 * size + other) * RECORD) == record(other, 3)
            back = [((turn * size + other) * RECORD, RECORD) for turn in range(turns)]
            assert group.read(file, back) == b''.join(record(other, turn) for turn in range(turns))
        group.leave()
        return 'done'
    assert run_ranks(size, work) == ['done'] * size
    assert client.contents(path) == b''.join(record(rank, turn) for turn in range(turns) for rank in range(size))
    client.close()


def test_ranks_with_their_own_connections_and_views(servers):
    size = 8

    def work(rank):
        client = Client(servers.file, ['', 'tcp', 'pm', 'udp'][rank % 4])
        group = Group(client, 'views', rank, size)
        with client.open('views') as file:
            view = View(rank * 1000, 1000, size * 1000)
            assert group.write_view(file, view, bytes([rank]) * 50_000, 0) == 50_000
            assert group.read_view(file, View((rank + 1) % size * 1000, 1000, size * 1000), 50_000, 0) == bytes([(rank + 1) % size]) * 50_000
        group.leave()
        client.close()
        return 'done'
    assert run_ranks(size, work) == ['done'] * size


def test_ranks_without_bytes_take_part(servers):
    client = Client(servers.file)

    def work(rank):
        group = Group(client, 'few', rank, 4)
        with client.open('few') as file:
            written = group.write(file, [(0, 5)] if rank == 2 else [], b'hello' if rank == 2 else b'')
            return written, group.read(file, [(0, 5)])
    assert run_ranks(4, work) == [(0, b'hello'), (0, b'hello'), (5, b'hello'), (0, b'hello')]
    client.close()


def test_an_error_of_one_rank_is_the_error_of_all(servers):
    client = Client(servers.file)

    def work(rank):
        group = Group(client, 'fault', rank, 3)
        with client.open('fault', os.O_RDONLY if rank == 1 else os.O_RDWR) as file:
            return group.write(file, [(rank, 1)], b'x')
    client.open('fault').__exit__()
    assert run_ranks(3, work) == [9, 9, 9]  # EBADF
    client.close()


RANK = '''
import os, sys
sys.path.insert(0, sys.argv[1])
from volumes import Client, Group
client = Client(sys.argv[2], sys.argv[3])
group = Group(client, sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
with client.open('shared') as file:
    print('ready', flush=True)
    sys.stdin.readline()
    try:
        print(group.write(file, [(int(sys.argv[5]), 1)], b'x'), flush=True)
    except OSError as error:
        print('error', error.errno, flush=True)
'''


def start_rank(servers, name, rank, size):
    child = subprocess.Popen([sys.executable, '-c', RANK, HERE, servers.file, '', name, str(rank), str(size)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == 'ready\n'
    return child


def test_a_rank_that_is_killed_fails_the_others(servers):
    """One that waits with them is noticed at once."""
    ranks = [start_rank(servers, 'killed', rank, 4) for rank in range(4)]
    for child in ranks[:3]:
        child.stdin.write('\n')
        child.stdin.flush()
    time.sleep(1)  # they wait; if they do not yet, the test shows less
    ranks[0].kill()
    ranks[0].wait()
    assert [child.stdout.readline() for child in ranks[1:3]] == ['error 125\n'] * 2  # ECANCELED
    ranks[3].stdin.write('\n')
    ranks[3].stdin.flush()
    assert ranks[3].stdout.readline() == 'error 125\n'
    for child in ranks:
        child.stdin.close()
        child.wait(60)


def test_a_rank_that_never_comes_fails_the_others_in_bounded_time(servers):
    ranks = [start_rank(servers, 'missing', rank, 3) for rank in range(2)]
    begin = time.monotonic()
    for child in ranks:
        child.stdin.write('\n')
        child.stdin.flush()
    assert [child.stdout.readline() for child in ranks] == ['error 110\n'] * 2  # ETIMEDOUT
    assert time.monotonic() - begin >= 59
    for child in ranks:
        child.stdin.close()
        child.wait(60)


def test_wrong_ranks_and_sizes_are_refused(servers):
    client = Client(servers.file)
    for rank, size in ((0, 0), (3, 3), (0, 2**31), (2**32 - 1, 5)):
        assert errno_of(Group, client, 'wrong', rank, size) == 'EINVAL'
    assert errno_of(Group, client, '', 0, 1) == 'EINVAL'
    client.close()


def test_many_calls_stay_in_step(servers):
    """A group's calls are told apart, also when ranks are far from each other in time."""
    size = 5
    client = Client(servers.file)

    def work(rank):
        chance = random.Random(rank)
        group = Group(client, 'step', rank, size)
        with client.open('step') as file:
            for turn in range(60):
                if chance.random() < 0.1:
                    time.sleep(0.01)
                group.write(file, [(rank, 1)], bytes([turn]))
                seen = file.pread(size, 0)
                assert all(value in (turn, turn + 1) for value in seen), (turn, seen)
        return 'done'
    assert run_ranks(size, work) == ['done'] * size
    client.close()
