"""Transactions over several files and servers: whole or not at all, in one order, and kept once they are acknowledged."""
import errno
import multiprocessing
import os
import random
import struct
import time

import pytest
from volumes import Client, Servers, errno_of, make_temporary

ACCOUNTS, FILES, START = 24, 4, 1000
SPACING = 5000  # bytes between the accounts of a file: on several servers
LIMIT = 120


@pytest.fixture
def servers():
    with make_temporary() as root:
        made = Servers(root, 3)
        yield made
        assert made.stop() == [0, 0, 0], made.log(0)


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


def work(servers, own, stable, acknowledged, stop, seed):
    bank, chance, turn = Bank(servers), random.Random(seed), 1
    while not stop.is_set():
        before = acknowledged[own]
        result = bank.move(chance, stable, own, turn)
        if result or result is None:
            acknowledged[own] = turn if result else before
            turn += 1


def audit(servers, stop, sums):
    bank = Bank(servers)
    while not stop.is_set():
        sums.put(bank.sum())


@pytest.mark.parametrize('stable', [True, False], ids=['stable', 'volatile'])
def test_the_sum_of_a_bank_stays(servers, stable):
    """Servers and clients are killed at random instants; auditors see one state; what was acknowledged is there."""
    context = multiprocessing.get_context('fork')
    Bank(servers).create()
    workers, chance = 4, random.Random(3)
    acknowledged, stop, sums = context.Array('q', workers, lock=False), context.Event(), context.Queue()

    def start(own, seed):
        process = context.Process(target=work, args=(servers, own, stable, acknowledged, stop, seed))
        process.start()
        return process
    processes = [start(own, own) for own in range(workers)]
    auditor = context.Process(target=audit, args=(servers, stop, sums))
    auditor.start()
    killed = 0
    for turn in range(40):
        time.sleep(chance.uniform(0.05, 0.4))
        if turn % 4 != 3:
            index = chance.randrange(3)
            servers.kill(index)
            servers.start(index)
        elif killed < workers - 2:  # this one's last transaction may be in doubt for a while
            processes[killed].kill()
            killed += 1
    stop.set()
    for process in processes + [auditor]:
        process.join(LIMIT)
        assert process.exitcode in (0, -9), process.exitcode
    seen = []
    while not sums.empty():
        seen.append(sums.get())
    assert set(seen) <= {ACCOUNTS * START}
    bank = Bank(servers)
    assert bank.sum() == ACCOUNTS * START
    transaction = bank.client.begin()
    counters = [number(transaction.read(bank.counters, 8, own * 70_000)) for own in range(workers)]
    transaction.abort()
    assert sum(acknowledged) > 20
    for own in range(workers):
        assert counters[own] >= acknowledged[own], f'worker {own}: an acknowledged transaction is lost'


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


def test_a_transaction_sees_its_own_writes_and_nobody_else_does(servers):
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
