"""Transactions over several files and servers: whole or not at all, in one order, and kept once they are acknowledged."""
import errno
import multiprocessing
import os
import random
import shutil
import struct
import time

import pytest
from test_replicas import data_of, wait_in_sync
from volumes import Client, Servers, errno_of, make_temporary

ACCOUNTS, FILES, START = 24, 4, 1000
SPACING = 5000  # bytes between the accounts of a file: on several servers
LIMIT = 120


@pytest.fixture(params=[1, 2], ids=['one copy', 'two copies'])
def servers(request):
    with make_temporary() as root:
        made = Servers(root, 3, replicas=request.param)
        if request.param == 2:
            wait_in_sync(made)
        yield made
        if request.param == 2:
            compare_copies(made)
        assert made.stop() == [0, 0, 0], made.log(0)


def compare_copies(servers):
    """Waits until repair has ended, while no client changes anything: both replicas of each part have the same data."""
    wait_in_sync(servers)
    for index in range(3):
        assert data_of(servers.directory(index) / 'data') == data_of(servers.directory((index + 1) % 3) / 'copy/data')


def number(data):
    return struct.unpack('<q', data)[0]


class Bank:
    def __init__(self, servers):
        self.client = Client(servers.file)
        self.files = [self.client.open(f'bank{i}') for i in range(FILES)]
        self.counters = self.client.open('counters')

    def place(self, account):
        return self.files[account % FILES], account // FILES * SPACING * 13

    def create(self):
        transaction = self.client.begin()
        for account in range(ACCOUNTS):
            file, offset = self.place(account)
            transaction.write(file, struct.pack('<q', START), offset)
        assert transaction.commit()

    def balance(self, transaction, account):
        file, offset = self.place(account)
        return number(transaction.read(file, 8, offset))

    def read(self, file, offset):
        transaction = self.client.begin()
        data = transaction.read(file, 8, offset)
        transaction.abort()
        return data

    def put(self, transaction, account, amount):
        file, offset = self.place(account)
        transaction.write(file, struct.pack('<q', amount), offset)

    def move(self, chance, stable, own, turn):
        """True: committed; False: in conflict; None: not known."""
        first, second = chance.sample(range(ACCOUNTS), 2)
        amount = chance.randrange(100)
        try:
            transaction = self.client.begin(stable)
            a, b = self.balance(transaction, first), self.balance(transaction, second)
            self.put(transaction, first, a - amount)
            self.put(transaction, second, b + amount)
            transaction.write(self.counters, struct.pack('<q', turn), own * 70_000)
            return transaction.commit()
        except OSError as error:
            if error.errno in (errno.ECONNABORTED, errno.EAGAIN):
                return False
            assert error.errno == errno.EIO, error
            return None

    def sum(self):
        """Of a transaction that commits: what it read is one state of the bank."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            try:
                transaction = self.client.begin(False)
                total = sum(self.balance(transaction, account) for account in range(ACCOUNTS))
                if transaction.commit():
                    return total
            except OSError as error:
                assert error.errno in (errno.EIO, errno.EAGAIN, errno.ECONNABORTED), error
            time.sleep(0.01)
        raise AssertionError('no sum was committed')


def work(servers, own, stable, acknowledged, ready, stop):
    bank, chance, turn = Bank(servers), random.Random(own), 1
    ready.release()
    while not stop.is_set():
        before = acknowledged[own]
        result = bank.move(chance, stable, own, turn)
        if result or result is None:
            acknowledged[own] = turn if result else before
            turn += 1


def audit(servers, ready, stop, sums):
    bank = Bank(servers)
    ready.release()
    while not stop.is_set():
        sums.put(bank.sum())


class Workers:
    """Processes that move money, and one that adds it up again and again."""

    def __init__(self, servers, stable, count=4):
        self.servers, self.stable, self.count = servers, stable, count
        Bank(servers).create()
        context = multiprocessing.get_context('fork')
        self.acknowledged, self.stopped, self.sums = context.Array('q', count, lock=False), context.Event(), context.Queue()
        ready = context.Semaphore(0)  # a volume is opened while its servers run
        self.processes = [context.Process(target=work, args=(servers, own, stable, self.acknowledged, ready, self.stopped)) for own in range(count)]
        self.auditor = context.Process(target=audit, args=(servers, ready, self.stopped, self.sums))
        for process in self.processes + [self.auditor]:
            process.start()
        assert all(ready.acquire(timeout=LIMIT) for _ in range(count + 1))

    def check(self):
        """They saw one state at any time, and what was acknowledged to them is there."""
        self.stopped.set()
        for process in self.processes + [self.auditor]:
            process.join(LIMIT)
            assert process.exitcode in (0, -9), process.exitcode
        seen = set()
        while not self.sums.empty():
            seen.add(self.sums.get())
        assert seen <= {ACCOUNTS * START}
        bank = Bank(self.servers)
        assert bank.sum() == ACCOUNTS * START
        counters = [number(bank.read(bank.counters, own * 70_000)) for own in range(self.count)]
        assert sum(self.acknowledged) > 20
        for own in range(self.count):
            assert counters[own] >= self.acknowledged[own], f'worker {own}: an acknowledged transaction is lost'


@pytest.mark.parametrize('stable', [True, False], ids=['stable', 'volatile'])
def test_the_sum_of_a_bank_stays(servers, stable):
    """Servers and clients are killed at random instants; auditors see one state; what was acknowledged is there."""
    workers, chance, killed = Workers(servers, stable), random.Random(3), 0
    for turn in range(40):
        time.sleep(chance.uniform(0.05, 0.4))
        if turn % 4 != 3:
            index = chance.randrange(3)
            servers.kill(index)
            servers.start(index)
        elif killed < workers.count - 2:  # this one's last transaction may be in doubt for a while
            workers.processes[killed].kill()
            killed += 1
    workers.check()


@pytest.mark.parametrize('seed', range(2))
def test_lost_nodes_lose_no_transaction(seed):
    """One server at a time is killed amid commits, is away for a while, comes back with its directory or without, and is repaired."""
    with make_temporary() as root:
        servers = Servers(root, 3, replicas=2)
        wait_in_sync(servers)
        workers, chance = Workers(servers, stable=seed % 2 == 0), random.Random(seed)
        for turn in range(6):
            index = (turn + seed) % 3
            time.sleep(chance.uniform(0.1, 0.5))
            servers.kill(index)
            if turn % 2 == 0:
                shutil.rmtree(servers.directory(index))
            time.sleep(chance.uniform(0, 4))
            if turn % 2 == 0:
                servers.directory(index).mkdir()
            servers.start(index)
            if chance.random() < 0.5:  # also while it is filled
                time.sleep(chance.uniform(0, 0.3))
                servers.kill(index)
                servers.start(index)
            wait_in_sync(servers)
        workers.check()
        compare_copies(servers)
        assert servers.stop() == [0, 0, 0], servers.log(0)


def test_plain_writes_are_in_the_order(servers):
    """A write outside of transactions, or a truncation, between a read and the commit is a conflict."""
    client = Client(servers.file)
    file = client.open('counter')
    conflicts = 0
    for turn in range(100):
        transaction = client.begin(False)
        before = number(transaction.read(file, 8, 0).ljust(8, b'\0'))
        is_disturbed = turn % 3 == 0
        if is_disturbed:
            file.pwrite(struct.pack('<q', before + 1000), 0)
        transaction.write(file, struct.pack('<q', before + 1), 0)
        committed = transaction.commit()
        assert committed != is_disturbed, f'turn {turn}: a write between read and commit was not noticed'
        conflicts += not committed
        assert number(file.pread(8, 0)) == before + (1000 if is_disturbed else 1)
    assert conflicts == 34
    disturbed = client.begin(False)
    disturbed.read(file, 8, 0)
    client.truncate('counter', 4)
    disturbed.write(file, b'x', 0)
    assert not disturbed.commit(), 'truncated meanwhile'
    client.close()


PAIRS = 4


def write_pairs(servers, stop):
    """Writes (2n, 2n + 1) again and again: until the next write both numbers are there, in some order."""
    client, chance = Client(servers.file), random.Random(1)
    file, n = client.open('pairs'), 0
    while not stop.is_set():
        n += 1
        place = chance.randrange(PAIRS) * 100
        file.pwrite(struct.pack('<qq', 2 * n, 2 * n + 1), place)
        for _ in range(3):
            found = struct.unpack('<qq', file.pread(16, place))
            assert {one // 2 for one in found} == {n}, f'a transaction has restored what was there before: {found}, not {2 * n}'


def swap_pairs(servers, own, stop, count):
    client, chance = Client(servers.file), random.Random(own)
    file = client.open('pairs')
    while not stop.is_set():
        place = chance.randrange(PAIRS) * 100
        transaction = client.begin(False)
        try:
            pair = transaction.read(file, 16, place)
            transaction.write(file, pair[8:] + pair[:8], place)
            committed = transaction.commit()
            with count.get_lock():
                count.value += committed
        except OSError as error:
            assert error.errno == errno.EAGAIN, error


def test_a_transaction_never_restores_what_a_plain_write_has_replaced(servers):
    """Plain writes of one process amid transactions of others that read and write the same bytes."""
    context = multiprocessing.get_context('fork')
    stop, count = context.Event(), context.Value('q', 0)
    processes = [context.Process(target=write_pairs, args=(servers, stop))]
    processes += [context.Process(target=swap_pairs, args=(servers, own, stop, count)) for own in range(2)]
    for process in processes:
        process.start()
    end = time.monotonic() + LIMIT
    while count.value < 300 and time.monotonic() < end and processes[0].is_alive():
        time.sleep(0.1)
    stop.set()
    for process in processes:
        process.join(LIMIT)
        assert process.exitcode == 0
    assert count.value >= 300, 'transactions make no progress beside plain writes'


def test_a_dead_client_holds_nothing_for_long(servers):
    """A client that stops between any two of its messages is aborted by the servers."""
    bank = Bank(servers)
    bank.create()

    def die(delay):
        own, chance = Bank(servers), random.Random(os.getpid())
        end = time.monotonic() + delay
        while time.monotonic() < end:
            own.move(chance, True, 0, 1)
        os.kill(os.getpid(), 9)
    context = multiprocessing.get_context('fork')
    processes = [context.Process(target=die, args=(LIMIT,)) for _ in range(4)]
    for process in processes:
        process.start()
    time.sleep(1)
    for process in processes:
        process.kill()
        process.join()
    begin = time.monotonic()
    assert bank.sum() == ACCOUNTS * START
    done = [bank.move(random.Random(i), True, 1, i) for i in range(20)]
    assert all(done)
    assert time.monotonic() - begin < 60


def test_write_skew_is_refused(servers):
    """Two transactions that each read what the other one writes: only one of them commits."""
    bank = Bank(servers)
    bank.create()
    for _ in range(20):
        one, other = bank.client.begin(False), bank.client.begin(False)
        for transaction in (one, other):
            assert bank.balance(transaction, 0) + bank.balance(transaction, 5) >= 0
        bank.put(one, 0, 0)
        bank.put(other, 5, 0)
        assert [one.commit(), other.commit()] == [True, False]
        again = bank.client.begin(False)
        bank.put(again, 0, START)
        assert again.commit()


def test_only_a_transaction_sees_its_own_writes(servers):
    bank = Bank(servers)
    bank.create()
    client = bank.client
    with client.open('large') as file:
        transaction = client.begin()
        data = random.Random(1).randbytes(3 << 20)
        transaction.write(file, data, 100)
        assert transaction.read(file, len(data), 100) == data
        assert transaction.read(file, 300, 0) == bytes(100) + data[:200]
        assert client.stat('large').size == 0
        assert transaction.commit()
        assert client.contents('large') == bytes(100) + data
        dropped = client.begin()
        dropped.write(file, b'x' * 100, 0)
        dropped.abort()
        assert file.pread(100, 0) == bytes(100)


def test_later_writes_of_a_transaction_replace_earlier_ones(servers):
    client, chance = Client(servers.file), random.Random(4)
    with client.open('a') as a, client.open('b') as b:
        for turn in range(10):
            expected = {a: bytearray(300_000), b: bytearray(300_000)}
            transaction = client.begin(turn % 2 == 0)
            for file in (a, b):
                transaction.write(file, bytes(300_000), 0)
            for _ in range(20):
                file, data, offset = chance.choice((a, b)), chance.randbytes(chance.randrange(1, 90_000)), chance.randrange(200_000)
                transaction.write(file, data, offset)
                expected[file][offset:offset + len(data)] = data
            assert transaction.commit()
            assert all(file.pread(300_000, 0) == data for file, data in expected.items())
    client.close()


def test_bad_transactions_are_errors(servers):
    client = Client(servers.file)
    with client.open('f') as file, client.open('f', os.O_RDONLY) as readable:
        transaction = client.begin()
        assert errno_of(transaction.write, readable, b'x', 0) == 'EBADF'
        assert errno_of(transaction.write, file, b'xx', 2**63 - 1) == 'EFBIG'
        assert errno_of(transaction.read, file, 10, 2**64 - 1) == 'EINVAL'
        for offset in range(16):
            transaction.write(file, b'x' * (1 << 20), offset << 20)
        assert errno_of(transaction.write, file, b'x', 0) == 'E2BIG'
        assert transaction.commit()
        assert errno_of(client.begin, 7) == 'EINVAL'
        gone = client.begin()
        client.unlink('f')
        gone.write(file, b'x', 0)
        assert errno_of(gone.commit) in ('ENOENT', 'ESTALE')
    client.close()


def test_a_full_volume_is_enospc_before_anything_is_changed():
    with make_temporary() as root:
        made = Servers(root, 2, capacity='4M')
        client = Client(made.file)
        with client.open('a') as a, client.open('b') as b:
            transaction = client.begin()
            transaction.write(a, b'a' * 100, 0)
            transaction.write(b, b'b' * (12 << 20), 0)
            assert errno_of(transaction.commit) == 'ENOSPC'
            assert client.stat('a').size == 0
            again = client.begin()
            again.write(b, b'b' * (3 << 20), 0)
            assert again.commit(), 'the space of the failed one was given back'
        client.close()
        assert made.stop() == [0, 0]


def opened(file):
    """Until the kernel has ended the io_uring of a killed server, its socket takes connections and drops them."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return Client(file, 'tcp')
        except (ConnectionError, PermissionError):
            assert time.monotonic() < end
            time.sleep(0.05)


OTHER_BOOT = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which('unshare'), reason='needs root and unshare')
@pytest.mark.parametrize('is_synced', [True, False], ids=['synced', 'unsynced'])
def test_recovery_keeps_synced_data(is_synced):
    """A server that finds another boot carries its log out again, as after a loss of power."""
    with make_temporary() as root:
        servers = Servers(root, 1)
        client = Client(servers.file, 'tcp')
        with client.open('file') as file:
            file.pwrite(b'o' * 8192, 0)
            for _ in range(2):
                made = client.begin(stable=True)
                made.write(file, b't' * 8, 0)
                made.write(file, b't' * 8, 4096)
                assert made.commit()
            file.pwrite(b'p' * 8, 0)
            if is_synced:
                file.fsync()
            made = client.begin(stable=True)
            made.write(file, b'u' * 8, 6000)
            assert made.commit()
        client.close()
        servers.kill(0)
        boot = servers.root / 'boot'
        boot.write_text('5c1dc3b2-0000-4000-8000-000000000001\n')
        servers.before = ['unshare', '-m', 'sh', '-c', OTHER_BOOT, boot]
        servers.start(0)
        client = opened(servers.file)
        data = client.contents('file')
        # Without an fsync the older transaction is there again: so it was carried out once more.
        assert data[:8] == (b'p' if is_synced else b't') * 8
        assert data[4096:4104] == b't' * 8 and data[6000:6008] == b'u' * 8 and data[8:16] == b'o' * 8
        client.close()
        assert servers.stop() == [0], servers.log(0)
