"""The mount: unmodified programs on a volume."""
import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import time

import pytest
from mounts import REQUIRED, Mount
from volumes import Servers, make_temporary

pytestmark = REQUIRED


@pytest.fixture
def mounts(tmp_path):
    with make_temporary() as root:
        servers = Servers(root, 2)
        try:
            with contextlib.ExitStack() as stack:
                made = [Mount(servers.file, tmp_path / f'mount{i}') for i in range(2)]
                for one in made:
                    stack.callback(one.stop)
                yield [one.directory for one in made]
        finally:
            codes = servers.stop()
        assert codes == [0, 0], servers.log(0)


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        return error.errno


def write_at(path, data, offset, flags):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        return os.pwrite(fd, data, offset)
    finally:
        os.close(fd)


def read_at(path, length, offset):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)


@pytest.mark.parametrize('seed', range(2))
def test_random_operations_are_as_on_a_local_directory(mounts, tmp_path, seed):
    chance = random.Random(seed)
    local = tmp_path / 'local'
    local.mkdir()
    for _ in range(1500):
        path = '/'.join(chance.choice('abc') for _ in range(chance.choice((1, 1, 2))))
        other = '/'.join(chance.choice('abc') for _ in range(chance.choice((1, 1, 2))))
        data = chance.randbytes(chance.choice((1, 4096, chance.randrange(1, 150_000))))
        offset = chance.choice((0, 65536, chance.randrange(300_000)))
        call = chance.choice((
            lambda root: write_at(root / path, data, offset, os.O_CREAT), lambda root: read_at(root / path, 200_000, offset),
            lambda root: write_at(root / path, data, offset, 0), lambda root: os.truncate(root / path, offset),
            lambda root: os.unlink(root / path), lambda root: os.mkdir(root / path), lambda root: os.rmdir(root / path),
            lambda root: os.rename(root / path, root / other), lambda root: sorted(os.listdir(root / path)),
            lambda root: os.stat(root / path).st_size if (root / path).is_file() else (root / path).exists()))
        ours, theirs = outcome(call, mounts[0]), outcome(call, local)
        assert ours == theirs, (path, other)


def test_a_write_is_seen_on_the_other_mount(mounts):
    """At once in a file that is open on both; a new size within the second that attributes are kept."""
    first = os.open(mounts[0] / 'shared', os.O_RDWR | os.O_CREAT, 0o600)
    second = os.open(mounts[1] / 'shared', os.O_RDWR)
    for i in range(100):
        text = f'{i:08}'.encode() * 10_000
        os.pwrite(first, text, 0)
        assert os.pread(second, len(text), 0) == text
    os.close(first)
    os.close(second)
    (mounts[0] / 'grown').write_bytes(b'x')
    assert (mounts[1] / 'grown').stat().st_size == 1
    (mounts[0] / 'grown').write_bytes(b'x' * 100)
    end = time.monotonic() + 10
    while (mounts[1] / 'grown').stat().st_size != 100 and time.monotonic() < end:
        time.sleep(0.1)
    assert (mounts[1] / 'grown').stat().st_size == 100


def test_ordinary_programs_work(mounts, tmp_path):
    source = tmp_path / 'source'
    source.mkdir()
    for i in range(50):
        (source / f'file{i}').write_bytes(os.urandom(i * 3000))
    shutil.copytree(source, mounts[0] / 'tree')
    subprocess.run(['diff', '-r', source, mounts[1] / 'tree'], check=True)
    subprocess.run(['tar', 'cf', mounts[0] / 'tree.tar', '-C', mounts[0], 'tree'], check=True)
    subprocess.run(['tar', 'df', mounts[1] / 'tree.tar', '-C', mounts[1]], check=True)
    shutil.rmtree(mounts[0] / 'tree')
    assert os.statvfs(mounts[0]).f_blocks * 4096 == 2 << 30


def test_a_removed_file_stays_while_it_is_open(mounts):
    """Removed, or replaced by rename; its space is given back with the last close."""
    def used():
        status = os.statvfs(mounts[0])
        return status.f_blocks - status.f_bfree
    before, data = used(), os.urandom(3 << 20)
    for gone in (lambda path: path.unlink(), lambda path: os.replace(mounts[0] / 'other', path)):
        (mounts[0] / 'other').write_bytes(b'other')
        path = mounts[0] / 'file'
        first = os.open(path, os.O_RDWR | os.O_CREAT)
        second = os.open(path, os.O_RDONLY)
        assert os.write(first, data) == len(data)
        gone(path)
        assert os.pread(second, len(data), 0) == data
        os.pwrite(first, b'new', 0)
        assert os.fstat(second).st_size == len(data)
        os.close(first)
        assert os.pread(second, 3, 0) == b'new'
        os.close(second)
        for name in os.listdir(mounts[0]):
            (mounts[0] / name).unlink()
        end = time.monotonic() + 60
        while used() > before and time.monotonic() < end:  # the kernel reports a close a little later
            time.sleep(0.05)
        assert used() <= before


def test_a_directory_has_the_time_of_its_last_change(mounts):
    folder = mounts[0] / 'folder'
    folder.mkdir()
    (mounts[0] / 'elsewhere').mkdir()
    changes = [lambda: (folder / 'file').write_bytes(b'x'), lambda: (folder / 'sub').mkdir(), lambda: (folder / 'file').rename(folder / 'new'),
               lambda: (folder / 'new').rename(mounts[0] / 'elsewhere/new'), lambda: (folder / 'sub').rmdir()]
    changes += [lambda i=i: (folder / f'f{i}').touch() for i in range(5)] + [lambda i=i: (folder / f'f{i}').unlink() for i in range(5)]
    for change in changes:
        before = folder.stat().st_mtime_ns
        time.sleep(0.01)
        change()
        assert folder.stat().st_mtime_ns > before
    os.utime(folder, ns=(5, 123456789012345678))
    assert folder.stat().st_mtime_ns == 123456789012345678
    (folder / 'again').touch()
    assert folder.stat().st_mtime_ns > 1_600_000_000_000_000_000
    inner = (folder / 'again').stat().st_mtime_ns
    (folder / 'again').write_bytes(b'more')
    assert (folder / 'again').stat().st_mtime_ns >= inner


def test_sqlite_keeps_its_rows(mounts):
    with contextlib.closing(sqlite3.connect(mounts[0] / 'base')) as base:
        base.execute('create table t (i integer primary key, s text)')
        for i in range(200):
            base.execute('insert into t values (?, ?)', (i, 'x' * (i * 10)))
            if i % 20 == 0:
                base.commit()
        base.commit()
    with contextlib.closing(sqlite3.connect(mounts[1] / 'base')) as again:
        assert again.execute('pragma integrity_check').fetchone() == ('ok',)
        assert again.execute('select count(*), sum(length(s)) from t').fetchone() == (200, sum(i * 10 for i in range(200)))
