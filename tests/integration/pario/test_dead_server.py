"""A volume without copies of which one server is dead: what lies on the others goes on."""
import contextlib
import fcntl
import os
import subprocess
import time

import pytest
from mounts import END_LIMIT, REQUIRED, Mount, processes_of
from volumes import BIN, Client, Servers, errno_of, make_temporary

pytestmark = REQUIRED
COUNT = 60
SIZE = 10_000  # one server has the whole file


@pytest.fixture(params=[0, 1], ids=['first', 'second'])
def volume(request, tmp_path):
    """With files in one directory; the server `dead` is killed."""
    with make_temporary() as root:
        servers = Servers(root, 3, wait=1)
        try:
            with contextlib.ExitStack() as stack:
                mount = Mount(servers.file, tmp_path / 'mount')
                stack.callback(mount.stop)
                for i in range(COUNT):
                    (mount.directory / f'f{i}').write_bytes(b'%d' % i + bytes(SIZE))
                servers.kill(request.param)
                yield servers, mount.directory, request.param
                if servers.processes[request.param].poll() is not None:
                    servers.start(request.param)
        finally:
            servers.stop()


def read_all(directory):
    """The numbers of the files that can be read, and how long the others took."""
    served, seconds = set(), []
    for i in range(COUNT):
        began = time.monotonic()
        try:
            assert (directory / f'f{i}').read_bytes() == b'%d' % i + bytes(SIZE)
            served.add(i)
        except OSError:
            seconds.append(time.monotonic() - began)
    return served, seconds


def test_files_on_other_servers_are_served(volume):
    servers, directory, dead = volume
    served, seconds = read_all(directory)
    with library(servers) as client:
        assert served == {i for i in range(COUNT) if errno_of(client.stat, f'/f{i}') is None}
    assert COUNT / 3 < len(served) < COUNT
    assert len(seconds) > 1
    print('seconds of failing calls:', max(seconds), sorted(seconds)[len(seconds) // 2])
    assert sorted(seconds)[len(seconds) // 2] < 0.5  # the bound is 0.1 s on a free machine
    names = set(os.listdir(directory))
    assert {f'f{i}' for i in served} <= names
    made = 0
    for i in range(COUNT):
        with contextlib.suppress(OSError):
            (directory / f'new{i}').write_text('new')
            assert (directory / f'new{i}').read_text() == 'new'
            os.rename(directory / f'new{i}', directory / f'newer{i}')
            made += 1
    assert made > COUNT / 6
    assert directory.stat().st_mode and os.statvfs(directory).f_blocks > 0
    servers.start(dead)
    time.sleep(2.5)
    served, seconds = read_all(directory)
    assert len(served) == COUNT and not seconds


def sync_directory(directory):
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def test_names_that_may_be_lost_are_not_called_durable(volume):
    """The server has not stored them: a crash of its host could lose them."""
    servers, directory, dead = volume
    assert errno_of(sync_directory, directory) == 'EIO'
    servers.start(dead)
    wait_until_done(lambda: errno_of(sync_directory, directory) is None)
    servers.kill(dead)
    assert errno_of(sync_directory, directory) is None, 'no name has changed since'


def wait_until_done(is_done):
    while not is_done():
        time.sleep(0.1)


@contextlib.contextmanager
def library(servers):
    client = Client(servers.file)
    try:
        yield client
    finally:
        client.close()


def test_dead_server_is_shown(volume):
    servers, directory, dead = volume

    def scio(*words):
        return subprocess.run([BIN / 'scio', '--volume', servers.file, *words], capture_output=True, text=True, timeout=100)

    lines = [line.split() for line in scio('df').stdout.splitlines()[1:]]
    assert [line[1] == 'dead' for line in lines] == [index == dead for index in range(3)]
    done = scio('ls', '/')
    assert f'server {dead} ' in done.stderr and 'does not answer' in done.stderr
    served, _ = read_all(directory)
    assert {f'f{i}' for i in served} <= {line.split()[-1] for line in done.stdout.splitlines()}
    failing = next(i for i in range(COUNT) if i not in served)
    done = scio('stat', f'/f{failing}')
    assert done.returncode == 125 and f'server {dead} ' in done.stderr


def test_volume_is_mounted_while_server_is_dead(volume, tmp_path):
    servers, directory, _ = volume
    mount = Mount(servers.file, tmp_path / 'second')
    try:
        assert read_all(mount.directory)[0] == read_all(directory)[0]
    finally:
        mount.stop()


@pytest.mark.parametrize('lock', [fcntl.lockf, fcntl.flock])
def test_locks_of_a_file_that_is_closed_meanwhile_are_released(tmp_path, lock):
    """Another open file shows the server that the client is alive, so it would keep its locks."""
    with make_temporary() as root:
        servers = Servers(root, 1, wait=1)
        try:
            with contextlib.ExitStack() as stack:
                made = [Mount(servers.file, tmp_path / f'mount{i}') for i in range(2)]
                for one in made:
                    stack.callback(one.stop)
                near, far = (one.directory for one in made)
                (near / 'f').write_bytes(b'x')
                with open(near / 'kept', 'wb'):
                    with open(near / 'f', 'r+b') as file:
                        lock(file, fcntl.LOCK_EX)
                        servers.kill(0)
                    servers.start(0)
                    with open(far / 'f', 'r+b') as file:
                        lock(file, fcntl.LOCK_EX)
                    with open(near / 'f', 'r+b') as file:
                        lock(file, fcntl.LOCK_EX)
                        time.sleep(1.5)  # a late release would end this lock
                        with open(far / 'f', 'r+b') as other:
                            assert errno_of(lock, other, fcntl.LOCK_EX | fcntl.LOCK_NB) == 'EAGAIN'
        finally:
            servers.stop()


def test_unmounted_mount_ends_although_its_server_is_dead(tmp_path):
    """The mount still has to remove a file, and its description tells clients to wait for a minute."""
    with make_temporary() as root:
        servers = Servers(root, 1)
        try:
            mount = Mount(servers.file, tmp_path / 'mount')
            assert len(processes_of(mount.directory)) == 1
            with open(mount.directory / 'f', 'w', encoding='ascii'):
                (mount.directory / 'f').unlink()
                servers.kill(0)
            mount.stop(END_LIMIT)
        finally:
            servers.start(0)
            servers.stop()
