"""Fixtures of tests with a volume that is mounted twice, and system calls that Python does not have."""
import contextlib
import ctypes
import os
import subprocess

import pytest
from mounts import Mount
from volumes import Servers, make_temporary

LIMIT = 300
LIBC = ctypes.CDLL(None, use_errno=True)
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
NOREPLACE, EXCHANGE = 1, 2


def has_kernel(major, minor):
    return tuple(int(part) for part in os.uname().release.split('.')[:2]) >= (major, minor)


SHARED_MAPPINGS = pytest.mark.skipif(not has_kernel(6, 6), reason='Linux before 6.6 has no shared mappings without a page cache')


@pytest.fixture(scope='module', params=[(1, 1), (3, 1), (3, 2)], ids=['1 server', '3 servers', '2 copies'])
def volume(request, tmp_path_factory):
    """The servers, and two mounts of their volume."""
    count, replicas = request.param
    with make_temporary() as root:
        servers = Servers(root, count, replicas=replicas)
        try:
            with contextlib.ExitStack() as stack:
                made = [Mount(servers.file, tmp_path_factory.mktemp('mounts') / f'mount{i}') for i in range(2)]
                for one in made:
                    stack.callback(one.stop)
                yield servers, [one.directory for one in made]
        finally:
            codes = servers.stop()
        assert codes == [0] * count, servers.log(0)


@pytest.fixture(scope='module')
def mounts(volume):
    return volume[1]


@pytest.fixture
def folder(mounts, request):
    """A fresh directory on the first mount."""
    made = mounts[0] / f'{abs(hash(request.node.name)):x}'
    made.mkdir()
    return made


@pytest.fixture
def other(mounts, folder):
    """The same directory on the second mount."""
    return mounts[1] / folder.name


def run(*words, cwd=None, **settings):
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=LIMIT, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def call(function, *arguments):
    """A system call of libc that Python does not have."""
    ctypes.set_errno(0)
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def rename2(old, new, flags):
    call(LIBC.renameat2, -100, os.fsencode(old), -100, os.fsencode(new), flags)


def allocate(fd, mode, offset, length):
    call(LIBC.fallocate, fd, mode, ctypes.c_long(offset), ctypes.c_long(length))
