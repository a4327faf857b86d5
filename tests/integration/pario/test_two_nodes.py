"""Two mounts of a volume, as two nodes have them: names that the other node replaces, files that it removes, locks of both."""
import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from mounts import REQUIRED, Mount, processes_of
from test_replicas import wait_in_sync
from two_mounts import LIMIT, folder, mounts, other, volume  # noqa: F401
from volumes import Servers, errno_of, make_temporary

pytestmark = REQUIRED
FORK = multiprocessing.get_context('fork')
REPLACEMENTS = int(os.environ.get('PARIO_REPLACEMENTS', '600'))
OFD_SETLK, OFD_SETLKW = 37, 38


class Lock(ctypes.Structure):  # struct flock of 64-bit Linux
    _fields_ = [('type', ctypes.c_short), ('whence', ctypes.c_short), ('start', ctypes.c_int64), ('len', ctypes.c_int64),
                ('pid', ctypes.c_int)]


def wait_until(condition, seconds=LIMIT):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def read_until_end(path, end, failures):
    """Opens a name again and again until the file `end` exists."""
    count = 0
    while not end.exists():
        try:
            text = path.read_text()
            if not text.startswith('version ') or not text.endswith(' end'):
                failures.put(f'read {text!r}')
        except OSError as error:
            failures.put(str(error))
        count += 1
    failures.put(count)


def test_name_is_always_there_while_it_is_replaced(folder, other, tmp_path):
    """The way of programs that write a new version beside a file and rename it over the name."""
    path = folder / 'name'
    path.write_text('version 0 end')
    end = tmp_path / 'end'
    results = [FORK.SimpleQueue() for _ in range(2)]
    readers = [FORK.Process(target=read_until_end, args=(one / 'name', end, result)) for one, result in zip((folder, other), results)]
    for reader in readers:
        reader.start()
    for i in range(1, REPLACEMENTS + 1):
        new = folder / f'new{i % 3}'
        new.write_text(f'version {i} ' + 'x' * (i % 50) + ' end')
        os.rename(new, path)
    end.touch()
    for reader, result in zip(readers, results):
        messages = []
        while not messages or not isinstance(messages[-1], int):
            messages.append(result.get())
        reader.join(LIMIT)
        assert messages[:-1] == [] and messages[-1] > 0, messages[:20]
    assert (other / 'name').read_text().startswith(f'version {REPLACEMENTS} ')


def test_name_that_was_replaced_elsewhere_is_looked_up_again(folder, other):
    for i in range(20):
        path, there = folder / f'f{i % 4}', other / f'f{i % 4}'
        there.write_text(f'old {i}')
        assert path.read_text() == f'old {i}'
        there.unlink()
        there.write_text(f'new {i}')
        assert path.read_text() == f'new {i}'


def test_open_makes_file_that_was_removed_elsewhere(folder, other):
    """Each step of `ior -i 3`: one rank removes the file, all open it with O_CREAT."""
    for i in range(20):
        fds = [os.open(one / 'data', os.O_RDWR | os.O_CREAT, 0o644) for one in (folder, other)]
        assert os.fstat(fds[0]).st_ino == os.fstat(fds[1]).st_ino
        os.pwrite(fds[1], b'%d' % i, 0)
        assert os.pread(fds[0], 10, 0) == b'%d' % i
        for fd in fds:
            os.close(fd)
        os.unlink((folder, other)[i % 2] / 'data')


def test_directory_that_was_removed_elsewhere(folder, other):
    for i in range(10):
        (folder / 'd').mkdir()
        (other / 'd/f').write_text('x')
        assert os.listdir(folder / 'd') == ['f']
        (other / 'd/f').unlink()
        (other / 'd').rmdir()
        if i % 2:
            assert errno_of(open, folder / 'd/g', 'w') == 'ENOENT'
            assert errno_of(os.mkdir, folder / 'd/g') == 'ENOENT'
            assert errno_of(os.listdir, folder / 'd') == 'ENOENT'
        (other / 'd').mkdir()
        (folder / 'd/g').write_text('new')
        assert (other / 'd/g').read_text() == 'new'
        (folder / 'd/sub').mkdir()
        for name in ('d/sub', 'd'):
            with contextlib.suppress(FileNotFoundError):
                (other / 'd/g').unlink()
            os.rmdir(other / name)


def test_removed_file_stays_while_other_node_has_it_open(folder, other):
    (folder / 'f').write_bytes(b'x' * 300_000)
    with open(other / 'f', 'r+b') as opened:
        assert opened.read(1) == b'x'
        (folder / 'f').unlink()
        for _ in range(3):
            time.sleep(3)  # longer than a server keeps a removed file that no client has open
            assert os.pread(opened.fileno(), 300_001, 0) == b'x' * 300_000
        os.pwrite(opened.fileno(), b'y' * 100_000, 250_000)
        assert os.pread(opened.fileno(), 400_000, 0) == b'x' * 250_000 + b'y' * 100_000
        assert os.fstat(opened.fileno()).st_nlink == 0
        os.ftruncate(opened.fileno(), 5)
        assert os.fstat(opened.fileno()).st_size == 5
    assert errno_of(open, other / 'f') == 'ENOENT'


def test_removed_files_give_their_space_back(tmp_path):
    """Also if a mount that has them open is killed."""
    with make_temporary() as root:
        servers = Servers(root, 3, capacity='100M')
        try:
            with contextlib.ExitStack() as stack:
                made = [Mount(servers.file, tmp_path / f'mount{i}') for i in range(2)]
                for one in made:
                    stack.callback(one.stop)
                first, second = (one.directory for one in made)

                def used():
                    status = os.statvfs(first)
                    return (status.f_blocks - status.f_bfree) * status.f_frsize

                for i in range(4):
                    (first / f'f{i}').write_bytes(bytes(5_000_000))
                    (second / f'f{i}').read_bytes()
                with open(second / 'f0', 'rb') as opened:
                    for i in range(4):
                        (first / f'f{i}').unlink()
                    wait_until(lambda: used() < 8_000_000)
                    assert len(opened.read()) == 5_000_000
                wait_until(lambda: used() < 1_000_000)
                servers.kill(1)
                servers.start(1)
                (first / 'g').write_bytes(bytes(5_000_000))
                holder = subprocess.Popen([sys.executable, '-c', f'f = open("{second}/g"); input()'], stdin=subprocess.PIPE)
                time.sleep(3)
                (first / 'g').unlink()
                for index in range(3):
                    servers.kill(index)
                    servers.start(index)
                assert used() > 4_000_000
                holder.communicate(b'\n', timeout=LIMIT)
                wait_until(lambda: used() < 1_000_000)
        finally:
            codes = servers.stop()
        assert codes == [0, 0, 0], servers.log(0)


def test_space_of_file_that_only_its_remover_used_is_free_at_once(tmp_path):
    with make_temporary() as root:
        servers = Servers(root, 1, capacity='20M')
        try:
            mount = Mount(servers.file, tmp_path / 'mount')
            try:
                for _ in range(5):
                    path = mount.directory / 'checkpoint'
                    path.write_bytes(bytes(15_000_000))
                    assert path.stat().st_size == len(path.read_bytes())
                    path.unlink()
            finally:
                mount.stop()
        finally:
            servers.stop()


def count_up(path, lock, turns):
    fd = os.open(path, os.O_RDWR)
    for _ in range(turns):
        lock(fd, fcntl.LOCK_EX)
        value = int(os.pread(fd, 20, 0))
        os.pwrite(fd, b'%d' % (value + 1), 0)
        lock(fd, fcntl.LOCK_UN)
    os.close(fd)


def ofd_lock(fd, operation):
    kind = fcntl.F_WRLCK if operation == fcntl.LOCK_EX else fcntl.F_UNLCK
    fcntl.fcntl(fd, OFD_SETLKW, bytes(Lock(kind, os.SEEK_SET, 0, 0, 0)))


@pytest.mark.parametrize('lock', [fcntl.lockf, fcntl.flock, ofd_lock])
def test_locks_exclude_both_nodes(folder, other, lock):
    """Blocking locks of two processes per mount; a lost or double step would show."""
    (folder / 'count').write_text('0')
    workers = [FORK.Process(target=count_up, args=(one / 'count', lock, 25)) for one in (folder, other, folder, other)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LIMIT)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert (other / 'count').read_text() == '100'


def try_lock(path, kind, start, length):
    """In a process of its own, because the locks of a process do not exclude each other."""
    def work(results):
        with open(path, 'r+b') as file:
            results.put(errno_of(fcntl.lockf, file, kind | fcntl.LOCK_NB, length, start))
    results = FORK.SimpleQueue()
    worker = FORK.Process(target=work, args=(results,))
    worker.start()
    result = results.get()
    worker.join()
    return result


def test_ranges_and_kinds_of_locks(folder, other):
    path, there = folder / 'f', other / 'f'
    path.write_bytes(bytes(100))
    with open(path, 'r+b') as file, open(path, 'r+b') as again:
        fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)
        fcntl.lockf(file, fcntl.LOCK_SH, 10, 20)
        assert try_lock(there, fcntl.LOCK_EX, 5, 10) == 'EAGAIN'
        assert try_lock(there, fcntl.LOCK_EX, 10, 10) is None
        assert try_lock(there, fcntl.LOCK_SH, 20, 10) is None
        assert try_lock(there, fcntl.LOCK_EX, 29, 0) == 'EAGAIN'
        found = Lock.from_buffer_copy(fcntl.fcntl(file, fcntl.F_GETLK, bytes(Lock(fcntl.F_WRLCK, 0, 0, 0, 0))))
        assert found.type == fcntl.F_UNLCK, 'its own locks are not in the way'
        with open(there, 'rb') as far:
            found = Lock.from_buffer_copy(fcntl.fcntl(far, OFD_SETLK - 1, bytes(Lock(fcntl.F_WRLCK, 0, 15, 0, 0))))
            assert (found.type, found.start, found.len) == (fcntl.F_RDLCK, 20, 10)
            fcntl.flock(far, fcntl.LOCK_SH | fcntl.LOCK_NB)  # the other kind
            assert errno_of(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB) == 'EAGAIN'
        fcntl.flock(file, fcntl.LOCK_EX)  # the other one ends with its last close
        again.close()  # the locks of fcntl end with any close of the process
        assert try_lock(there, fcntl.LOCK_EX, 0, 0) is None
    with open(there, 'rb') as far:
        fcntl.flock(far, fcntl.LOCK_EX)


def hold_lock(path, ready):
    with open(path, 'r+b') as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        ready.put(True)
        signal.pause()


def test_lock_ends_with_its_process_and_waiting_ends_by_signal(folder, other):
    path = folder / 'f'
    path.write_bytes(b'x')
    ready = FORK.SimpleQueue()
    holder = FORK.Process(target=hold_lock, args=(other / 'f', ready))
    holder.start()
    ready.get()
    waiter = FORK.Process(target=hold_lock, args=(path, ready))
    waiter.start()
    time.sleep(1)
    waiter.kill()
    waiter.join(LIMIT)
    assert waiter.exitcode == -signal.SIGKILL
    holder.kill()
    with open(path, 'r+b') as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
    holder.join()


@pytest.mark.parametrize('replicas', [1, 2])
def test_locks_of_lost_client_are_released(tmp_path, replicas):
    """A mount is killed, while the servers are killed and started too."""
    with make_temporary() as root:
        servers = Servers(root, 3, replicas=replicas)
        try:
            with contextlib.ExitStack() as stack:
                made = [Mount(servers.file, tmp_path / f'mount{i}') for i in range(2)]
                stack.callback(made[0].stop)
                stack.callback(lambda: subprocess.run(['fusermount3', '-uz', made[1].directory], check=False))
                path = made[0].directory / 'f'
                path.write_bytes(b'x')
                ready = FORK.SimpleQueue()
                holder = FORK.Process(target=hold_lock, args=(made[1].directory / 'f', ready))
                holder.start()
                ready.get()
                stack.callback(holder.kill)
                for index in range(3):
                    servers.kill(index)
                    if replicas > 1:
                        time.sleep(1.5)  # the others take over
                    servers.start(index)
                    if replicas > 1:
                        wait_in_sync(servers)
                time.sleep(12)  # longer than a server waits for clients after its start
                with open(path, 'r+b') as file:
                    assert errno_of(fcntl.lockf, file, fcntl.LOCK_EX | fcntl.LOCK_NB) == 'EAGAIN'
                    for number in processes_of(made[1].directory):
                        os.kill(number, signal.SIGKILL)
                    began = time.monotonic()
                    fcntl.lockf(file, fcntl.LOCK_EX)
                    assert time.monotonic() - began > 2, 'the client had no time to come back'
                holder.kill()
                holder.join()
        finally:
            codes = servers.stop()
        assert codes == [0, 0, 0], ''.join(map(servers.log, range(3)))


def insert_rows(path, number):
    with contextlib.closing(sqlite3.connect(path, timeout=LIMIT, isolation_level=None)) as base:
        for i in range(25):
            base.execute('begin immediate')
            value = base.execute('select value from total').fetchone()[0]
            base.execute('update total set value = ?', (value + 1,))
            base.execute('insert into log values (?, ?)', (number, i))
            base.execute('commit')


def test_sqlite_on_both_nodes(folder, other):
    with contextlib.closing(sqlite3.connect(folder / 'base')) as base:
        base.execute('create table total (value integer)')
        base.execute('insert into total values (0)')
        base.execute('create table log (writer integer, i integer)')
        base.commit()
    paths = [one / 'base' for one in (folder, other, folder, other)]
    with FORK.Pool(4) as pool:
        pool.starmap(insert_rows, [(path, number) for number, path in enumerate(paths)])
    with contextlib.closing(sqlite3.connect(other / 'base')) as base:
        assert base.execute('pragma integrity_check').fetchall() == [('ok',)]
        assert base.execute('select value from total').fetchone() == (100,)
        assert base.execute('select count(*) from log').fetchone() == (100,)


def test_many_waiting_locks_do_not_block_the_mount(folder, other):
    """More processes wait than the mount has threads."""
    (folder / 'f').write_bytes(b'x')
    ready = FORK.SimpleQueue()
    holder = FORK.Process(target=hold_lock, args=(other / 'f', ready))
    holder.start()
    ready.get()
    waiters = [FORK.Process(target=count_up_once, args=(folder / 'f',)) for _ in range(40)]
    for waiter in waiters:
        waiter.start()
    time.sleep(1)
    (folder / 'beside').write_text('not blocked')
    assert (other / 'beside').read_text() == 'not blocked'
    holder.kill()
    holder.join()
    for waiter in waiters:
        waiter.join(LIMIT)
    assert [waiter.exitcode for waiter in waiters] == [0] * 40


def count_up_once(path):
    with open(path, 'r+b') as file:
        fcntl.lockf(file, fcntl.LOCK_EX)


def test_unlock_of_descriptor_without_locks(folder):
    with open(folder / 'f', 'w+b') as file:
        fcntl.lockf(file, fcntl.LOCK_UN)
        fcntl.flock(file, fcntl.LOCK_UN)
