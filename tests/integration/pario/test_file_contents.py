"""Times, space, mappings and attributes of files on the mount, as programs use them: SQLite's WAL, numpy.memmap."""
import contextlib
import ctypes
import errno
import fcntl
import filecmp
import mmap
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import threading
import time

import pytest
from mounts import REQUIRED, Mount
from two_mounts import KEEP_SIZE, LIBC, PUNCH_HOLE, SHARED_MAPPINGS, allocate, folder, has_kernel, mounts, other, run, volume  # noqa: F401
from volumes import Servers, make_temporary

pytestmark = REQUIRED


def test_times(folder, other):
    path = folder / 'f'
    path.write_text('x')
    future = 4_000_000_000_000_000_001
    os.utime(path, ns=(7, future))
    status = (other / 'f').stat()
    assert (status.st_atime_ns, status.st_mtime_ns) == (7, future)
    assert abs(status.st_ctime - time.time()) < 60
    os.utime(path, (-5, -5))
    assert path.stat().st_mtime_ns == -5_000_000_000
    (folder / 'd').mkdir()
    os.utime(folder / 'd', ns=(future, future))
    assert (folder / 'd').stat().st_mtime_ns == future
    assert abs((folder / 'd').stat().st_ctime - time.time()) < 60
    before = path.stat().st_ctime_ns
    time.sleep(0.02)
    path.chmod(0o600)
    assert path.stat().st_ctime_ns > before


@SHARED_MAPPINGS
def test_shared_mapping_is_written_and_read(folder, other):
    path = folder / 'map'
    size = 3_000_000
    path.write_bytes(b'm' * size)
    with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:3] = b'abc'
        mapped[size - 3:] = b'xyz'
        with open(path, 'rb') as again:  # read(2) on this mount sees the mapping
            assert again.read(4) == b'abcm'
        mapped.flush()
        assert (other / 'map').read_bytes() == b'abc' + b'm' * (size - 6) + b'xyz'
        os.pwrite(file.fileno(), b'Q' * 10, 1_000_000)  # the mapping sees write(2) on this mount
        assert mapped[999_999:1_000_011] == b'm' + b'Q' * 10 + b'm'
    with open(other / 'map', 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED) as mapped:
        assert mapped[1_000_000:1_000_010] == b'Q' * 10


def fill_map(path, rank, ranks, block):
    with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as mapped:
        for at in range(rank * block, len(mapped), ranks * block):
            mapped[at:at + block] = bytes([65 + rank]) * block


@SHARED_MAPPINGS
def test_processes_share_mapping(folder, other):
    """Each writes its pages of one file, as numpy.memmap does in a pool."""
    ranks, block, rows = 4, mmap.PAGESIZE, 100
    with open(folder / 'map', 'wb') as file:
        file.truncate(ranks * block * rows)
    with multiprocessing.get_context('fork').Pool(ranks) as pool:
        pool.starmap(fill_map, [(folder / 'map', rank, ranks, block) for rank in range(ranks)])
    assert (other / 'map').read_bytes() == b''.join(bytes([65 + rank]) * block for rank in range(ranks)) * rows


@SHARED_MAPPINGS
def test_memmap_of_numpy(folder, other):
    numpy = pytest.importorskip('numpy')
    array = numpy.memmap(folder / 'array', dtype='float64', mode='w+', shape=(1000, 500))
    array[:] = numpy.arange(500_000).reshape(1000, 500)
    array.flush()
    again = numpy.memmap(other / 'array', dtype='float64', mode='r', shape=(1000, 500))
    assert again[999, 499] == 499_999 and again.sum() == 500_000 * 499_999 / 2


def write_rows(path, number):
    with contextlib.closing(sqlite3.connect(path, timeout=120, isolation_level=None)) as base:
        for i in range(50):
            base.execute('insert into t values (?, ?)', (number, 'x' * (i * 20)))


@SHARED_MAPPINGS
def test_sqlite_with_write_ahead_log(folder, other):
    with contextlib.closing(sqlite3.connect(folder / 'base')) as base:
        assert base.execute('pragma journal_mode=wal').fetchone() == ('wal',)
        base.execute('create table t (writer integer, text text)')
        base.commit()
        with multiprocessing.get_context('fork').Pool(4) as pool:
            pool.starmap(write_rows, [(folder / 'base', number) for number in range(4)])
        assert base.execute('select count(*), sum(length(text)) from t').fetchone() == (200, 4 * sum(i * 20 for i in range(50)))
        assert base.execute('pragma integrity_check').fetchone() == ('ok',)
    with contextlib.closing(sqlite3.connect(other / 'base')) as base:
        assert base.execute('select count(*) from t').fetchone() == (200,)


def test_space_is_allocated_punched_and_found(folder):
    fd = os.open(folder / 'f', os.O_RDWR | os.O_CREAT, 0o644)
    os.posix_fallocate(fd, 0, 2_000_000)
    assert os.fstat(fd).st_size == 2_000_000 and os.fstat(fd).st_blocks * 512 >= 2_000_000
    allocate(fd, KEEP_SIZE, 2_000_000, 1_000_000)
    assert os.fstat(fd).st_size == 2_000_000
    os.pwrite(fd, b'k' * 2_000_000, 0)
    allocate(fd, PUNCH_HOLE | KEEP_SIZE, 4_096 * 10, 4_096 * 200)
    want = b'k' * 40_960 + bytes(819_200) + b'k' * (2_000_000 - 860_160)
    assert os.pread(fd, 2_000_100, 0) == want
    assert os.lseek(fd, 0, os.SEEK_HOLE) == 40_960
    assert os.lseek(fd, 40_960, os.SEEK_DATA) == 860_160
    assert os.lseek(fd, 0, os.SEEK_DATA) == 0
    os.close(fd)
    fd = os.open(folder / 'sparse', os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(fd, b'end', 50_000_000)
    assert os.fstat(fd).st_blocks * 512 < 1_000_000
    assert 50_000_000 - 65_536 < os.lseek(fd, 0, os.SEEK_DATA) <= 50_000_000
    assert os.lseek(fd, 50_000_001, os.SEEK_HOLE) == 50_000_003
    with pytest.raises(OSError) as raised:
        os.lseek(fd, 50_000_003, os.SEEK_DATA)
    assert raised.value.errno == errno.ENXIO
    os.close(fd)
    run('cp', '--sparse=always', folder / 'sparse', folder / 'copy')
    assert filecmp.cmp(folder / 'sparse', folder / 'copy', shallow=False)


def test_append_flag_can_be_cleared(folder):
    fd = os.open(folder / 'f', os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, b'12345')
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    os.pwrite(fd, b'X', 1)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    os.write(fd, b'6')
    assert os.pread(fd, 100, 0) == b'1X3456'
    os.close(fd)


def test_directory_is_read_again_after_rewind(folder, other):
    LIBC.opendir.restype = LIBC.readdir.restype = ctypes.c_void_p
    directory = ctypes.c_void_p(LIBC.opendir(os.fsencode(folder)))

    def count():
        found = 0
        while LIBC.readdir(directory):
            found += 1
        return found

    assert count() == 2  # . and ..
    (other / 'new').touch()
    LIBC.rewinddir(directory)
    assert count() == 3
    LIBC.closedir(directory)


def test_counts_of_files_and_space(folder):
    status = os.statvfs(folder)
    assert status.f_files > status.f_ffree > 0
    assert run('df', '-i', folder)
    assert folder.stat().st_nlink in (1, 2)
    assert run('find', folder, '-name', 'none') == ''


def test_attributes_are_cached_only_while_closed(folder, other):
    """A file that a program has open here always has its true size; one that is closed has it a second later."""
    (folder / 'f').write_bytes(b'x')
    with open(other / 'f', 'rb') as opened:
        for size in range(2, 40):
            with open(folder / 'f', 'ab') as file:
                file.write(b'x')
            assert os.fstat(opened.fileno()).st_size == size
    assert (other / 'f').stat().st_size == 39
    with open(folder / 'f', 'ab') as file:
        file.write(b'x')
    time.sleep(1.1)
    assert (other / 'f').stat().st_size == 40
    with open(folder / 'f', 'ab') as file:
        file.write(b'x')
    with open(other / 'f', 'rb') as opened:  # opening asks anew
        assert os.fstat(opened.fileno()).st_size == 41


def test_full_volume_takes_what_fits(tmp_path):
    with make_temporary() as root:
        servers = Servers(root, 1, capacity='8M')
        try:
            mount = Mount(servers.file, tmp_path / 'mount')
            try:
                fd = os.open(mount.directory / 'f', os.O_WRONLY | os.O_CREAT, 0o644)
                done = os.write(fd, bytes(20_000_000))
                assert 6_000_000 < done < 9_000_000
                with pytest.raises(OSError) as raised:
                    for _ in range(1_000):
                        os.write(fd, bytes(1_000_000))
                assert raised.value.errno == errno.ENOSPC
                os.close(fd)
            finally:
                mount.stop()
        finally:
            servers.stop()


def test_page_cache_has_shared_mappings(tmp_path):
    """The way of kernels before 6.6: data in the page cache, seen by other mounts when a file is opened."""
    with make_temporary() as root:
        servers = Servers(root, 2)
        try:
            with contextlib.ExitStack() as stack:
                made = [Mount(servers.file, tmp_path / f'mount{i}', options=['--page-cache']) for i in range(2)]
                for one in made:
                    stack.callback(one.stop)
                path, other = (one.directory / 'f' for one in made)
                path.write_bytes(b'm' * 1_000_000)
                with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as mapped:
                    mapped[500_000:500_003] = b'abc'
                    mapped.flush()
                assert other.read_bytes() == b'm' * 500_000 + b'abc' + b'm' * 499_997
                with open(other, 'ab') as file:
                    file.write(b'end')
                assert path.read_bytes()[-4:] == b'mend'
        finally:
            servers.stop()


def device_of(directory):
    """The name of the mount's connection below /sys/fs/fuse/connections."""
    return str(os.minor(os.stat(directory).st_dev))


@pytest.mark.skipif(os.geteuid() != 0 or not has_kernel(6, 2), reason='only root sees the requests of a mount; Linux before 6.2 has no parallel writes')
def test_writers_of_a_file_do_not_wait_for_each_other(tmp_path):
    """All their requests are at the server at once."""
    writers, block = 4, 65_536
    with make_temporary() as root, contextlib.ExitStack() as stack:
        servers = Servers(root, 1)
        stack.callback(servers.stop)
        mount = Mount(servers.file, tmp_path / 'mount', transport='tcp')
        stack.callback(mount.stop)
        connections = tmp_path / 'connections'
        connections.mkdir()
        subprocess.run(['mount', '-t', 'fusectl', 'none', connections], check=True)
        stack.callback(lambda: subprocess.run(['umount', connections], check=True))
        path = mount.directory / 'f'
        path.write_bytes(bytes(writers * block))
        fd = os.open(path, os.O_RDWR)
        stack.callback(lambda: os.close(fd))
        waiting = connections / device_of(mount.directory) / 'waiting'
        os.kill(servers.processes[0].pid, signal.SIGSTOP)
        threads = [threading.Thread(target=os.pwrite, args=(fd, bytes([65 + i]) * block, i * block)) for i in range(writers)]
        for thread in threads:
            thread.start()
        try:
            end = time.monotonic() + 60
            while int(waiting.read_text()) < writers:
                assert time.monotonic() < end, waiting.read_text()
                time.sleep(0.02)
        finally:
            os.kill(servers.processes[0].pid, signal.SIGCONT)
            for thread in threads:
                thread.join()
        assert path.read_bytes() == b''.join(bytes([65 + i]) * block for i in range(writers))
