"""Servers of a volume on this host, and libpario by ctypes."""
import ctypes
import errno
import os
import pathlib
import platform
import random
import signal
import socket
import subprocess
import tempfile
import time

BIN = pathlib.Path(os.environ.get('SCORE_BIN', 'build/release/bin')).resolve()


# A client of this host has another address, and takes the server for one of another node.
FAR = '127.0.0.2'


def free_ports(count):
    """Below the ports that the kernel gives to clients: a server that was killed must get its port again."""
    ports = []
    while len(ports) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as one:
            try:
                one.bind(('127.0.0.1', port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Servers:
    """`count` servers of a volume; directories below `root`."""

    def __init__(self, root, count=1, capacity='1G', stripe=65536, name='test', replicas=1, options=(), before=(), wait=60, hosts=None):
        self.root = pathlib.Path(root)
        self.capacity = capacity
        self.before = list(before)  # words before the server's command
        self.ports = free_ports(count)
        self.processes = [None] * count
        self.host = FAR if 'pm' in options else '127.0.0.1'
        self.hosts = hosts or [self.host] * count
        servers = [word for host, port in zip(self.hosts, self.ports) for word in ('--server', f'{host}:{port}')]
        made = subprocess.run([BIN / 'scio', 'create', name, '--stripe', str(stripe), '--replicas', str(replicas), '--wait', str(wait), *servers, *options], capture_output=True, text=True, check=True)
        self.file = self.root / 'volume'
        self.file.write_text(made.stdout)
        self.file.chmod(0o600)
        self.key = bytes.fromhex(next(line.split()[1] for line in made.stdout.splitlines() if line.startswith('key')))
        for index in range(count):
            self.directory(index).mkdir()
            self.start(index)

    def directory(self, index):
        return self.root / f'server{index}'

    def start(self, index):
        log = open(self.root / f'log{index}', 'ab')
        self.processes[index] = subprocess.Popen(
            [*self.before, BIN / 'scored-pario', '--volume', self.file, '--index', str(index), '--directory', self.directory(index),
             '--capacity', self.capacity], stderr=log, stdout=log)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                socket.create_connection((self.hosts[index], self.ports[index]), 1).close()
                return
            except OSError:
                assert self.processes[index].poll() is None, self.log(index)
                time.sleep(0.02)
        raise AssertionError('the server does not listen')

    def log(self, index):
        return (self.root / f'log{index}').read_text()

    def kill(self, index):
        self.processes[index].send_signal(signal.SIGKILL)
        self.processes[index].wait()

    def stop(self):
        for process in self.processes:
            process.terminate()
        return [process.wait(20) for process in self.processes]


class Extent(ctypes.Structure):
    _fields_ = [('offset', ctypes.c_uint64), ('length', ctypes.c_uint64)]


class View(ctypes.Structure):
    _fields_ = [('start', ctypes.c_uint64), ('block', ctypes.c_uint64), ('stride', ctypes.c_uint64)]


class Stat(ctypes.Structure):  # of x86-64, else of asm-generic/stat.h
    _fields_ = [('dev', ctypes.c_uint64), ('ino', ctypes.c_uint64),
                *([('nlink', ctypes.c_uint64), ('mode', ctypes.c_uint32), ('uid', ctypes.c_uint32), ('gid', ctypes.c_uint32),
                   ('pad', ctypes.c_uint32), ('rdev', ctypes.c_uint64)] if platform.machine() == 'x86_64' else
                  [('mode', ctypes.c_uint32), ('nlink', ctypes.c_uint32), ('uid', ctypes.c_uint32), ('gid', ctypes.c_uint32),
                   ('rdev', ctypes.c_uint64), ('pad', ctypes.c_uint64)]),
                ('size', ctypes.c_int64), ('rest', ctypes.c_char * 88)]


class Space(ctypes.Structure):
    _fields_ = [('capacity', ctypes.c_uint64), ('used', ctypes.c_uint64), ('files', ctypes.c_uint64)]


def library():
    path = BIN.parent / 'lib/libpario.so'
    loaded = ctypes.CDLL(str(path))
    for name in ('pread', 'pwrite', 'read_extents', 'write_extents', 'wait', 'read_view', 'write_view', 'read_all', 'write_all',
                 'read_view_all', 'write_view_all', 'transaction_read', 'transaction_write'):
        getattr(loaded, f'pario_{name}').restype = ctypes.c_ssize_t
    return loaded


ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def check(result, path=''):
    if result < 0:
        raise OSError(-result, os.strerror(-result), str(path))
    return result


class Client:
    """A volume opened by the library."""

    def __init__(self, file, transport=''):
        self.lib = library()
        self.volume = ctypes.c_void_p()
        message = ctypes.create_string_buffer(512)
        os.environ['PARIO_TRANSPORT'] = transport  # read when a volume is opened
        result = self.lib.pario_open_volume(str(file).encode(), ctypes.byref(self.volume), message, 512)
        if result:
            raise OSError(-result, message.value.decode())

    def close(self):
        self.lib.pario_close_volume(self.volume)

    def open(self, path, flags=os.O_RDWR | os.O_CREAT, mode=0o644):
        file = ctypes.c_void_p()
        check(self.lib.pario_open(self.volume, path.encode(), flags, mode, ctypes.byref(file)), path)
        return File(self.lib, file)

    def stat(self, path):
        status = Stat()
        check(self.lib.pario_stat(self.volume, path.encode(), ctypes.byref(status)), path)
        return status

    def names(self, path='/'):
        names = []

        def each(_, name, __):
            names.append(name.decode())
            return 0
        check(self.lib.pario_read_directory(self.volume, path.encode(), ENTRY(each), None), path)
        return sorted(names)

    def space(self):
        space = Space()
        check(self.lib.pario_get_space(self.volume, ctypes.byref(space)))
        return space

    def unlink(self, path):
        check(self.lib.pario_unlink(self.volume, path.encode()), path)

    def mkdir(self, path):
        check(self.lib.pario_mkdir(self.volume, path.encode(), 0o755), path)

    def rmdir(self, path):
        check(self.lib.pario_rmdir(self.volume, path.encode()), path)

    def rename(self, old, new):
        check(self.lib.pario_rename(self.volume, old.encode(), new.encode()), old)

    def truncate(self, path, size):
        check(self.lib.pario_truncate(self.volume, path.encode(), ctypes.c_uint64(size)), path)

    def begin(self, stable=True):
        made = ctypes.c_void_p()
        check(self.lib.pario_begin(self.volume, int(stable), ctypes.byref(made)))
        return Transaction(self.lib, made)

    def contents(self, path):
        size = self.stat(path).size
        with self.open(path, os.O_RDONLY) as file:
            return file.pread(size + 100, 0)


class File:
    def __init__(self, lib, file):
        self.lib, self.file = lib, file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.pario_close(self.file)

    def pread(self, length, offset):
        buffer = ctypes.create_string_buffer(max(length, 1))
        count = check(self.lib.pario_pread(self.file, buffer, ctypes.c_size_t(length), ctypes.c_uint64(offset)))
        return buffer.raw[:count]

    def pwrite(self, data, offset):
        return check(self.lib.pario_pwrite(self.file, data, ctypes.c_size_t(len(data)), ctypes.c_uint64(offset)))

    def write_extents(self, extents, data):
        array = (Extent * len(extents))(*[Extent(*one) for one in extents])
        return check(self.lib.pario_write_extents(self.file, array, ctypes.c_size_t(len(extents)), data))

    def read_extents(self, extents):
        array = (Extent * len(extents))(*[Extent(*one) for one in extents])
        buffer = ctypes.create_string_buffer(sum(length for _, length in extents))
        count = check(self.lib.pario_read_extents(self.file, array, ctypes.c_size_t(len(extents)), buffer))
        return buffer.raw, count

    def write_view(self, view, data, offset):
        return check(self.lib.pario_write_view(self.file, ctypes.byref(view), data, ctypes.c_size_t(len(data)),
                                               ctypes.c_uint64(offset)))

    def read_view(self, view, length, offset):
        buffer = ctypes.create_string_buffer(max(length, 1))
        count = check(self.lib.pario_read_view(self.file, ctypes.byref(view), buffer, ctypes.c_size_t(length), ctypes.c_uint64(offset)))
        return buffer.raw[:count]

    def fsync(self):
        check(self.lib.pario_fsync(self.file))


class Transaction:
    def __init__(self, lib, made):
        self.lib, self.made = lib, made

    def read(self, file, length, offset):
        buffer = ctypes.create_string_buffer(length)
        check(self.lib.pario_transaction_read(self.made, file.file, buffer, ctypes.c_size_t(length), ctypes.c_uint64(offset)))
        return buffer.raw

    def write(self, file, data, offset):
        return check(self.lib.pario_transaction_write(self.made, file.file, data, ctypes.c_size_t(len(data)), ctypes.c_uint64(offset)))

    def commit(self):
        """False: in conflict."""
        result = self.lib.pario_commit(self.made)
        return result != -errno.EAGAIN and check(result) == 0

    def abort(self):
        self.lib.pario_abort(self.made)


class Group:
    """Coordinated access of one rank."""

    def __init__(self, client, name, rank, size):
        self.lib, self.group = client.lib, ctypes.c_void_p()
        check(self.lib.pario_join_group(client.volume, name.encode(), rank, size, ctypes.byref(self.group)), name)

    def leave(self):
        self.lib.pario_leave_group(self.group)

    def write(self, file, extents, data):
        array = (Extent * len(extents))(*[Extent(*one) for one in extents])
        return check(self.lib.pario_write_all(self.group, file.file, array, ctypes.c_size_t(len(extents)), data))

    def read(self, file, extents):
        array = (Extent * len(extents))(*[Extent(*one) for one in extents])
        buffer = ctypes.create_string_buffer(sum(length for _, length in extents) + 1)
        count = check(self.lib.pario_read_all(self.group, file.file, array, ctypes.c_size_t(len(extents)), buffer))
        return buffer.raw[:count]

    def write_view(self, file, view, data, offset):
        return check(self.lib.pario_write_view_all(self.group, file.file, ctypes.byref(view), data, ctypes.c_size_t(len(data)),
                                                   ctypes.c_uint64(offset)))

    def read_view(self, file, view, length, offset):
        buffer = ctypes.create_string_buffer(max(length, 1))
        count = check(self.lib.pario_read_view_all(self.group, file.file, ctypes.byref(view), buffer, ctypes.c_size_t(length),
                                                   ctypes.c_uint64(offset)))
        return buffer.raw[:count]


def make_temporary():
    # Memory where there is some: the tests are about order and faults, not about a disk.
    base = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix='pario-', dir=base)


def errno_of(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return None
