"""libpario against real servers: what is read is what was written, whatever happens to a server."""
import multiprocessing
import os
import random
import subprocess
import threading
import time

import pytest
from volumes import BIN, Client, Servers, View, errno_of, make_temporary


@pytest.fixture
def volume():
    """Makes servers in a directory that goes at the end; all must end orderly."""
    made = []

    def make(*arguments, **options):
        root = make_temporary()
        made.append((root, Servers(root.name, *arguments, **options)))
        return made[-1][1]

    yield make
    for root, servers in made:
        assert servers.stop() == [0] * len(servers.processes), servers.log(0)
        root.cleanup()


# Of clients that see the same files; udp: PM as between nodes.
TRANSPORTS = ('', 'tcp', 'pm', 'udp')


class Oracle:
    """The same operation on the volume and on a local directory: the same outcome."""

    def __init__(self, clients, local, seed):
        self.clients, self.local, self.random = clients, local, random.Random(seed)

    def path(self):
        parts = [self.random.choice('abcd') for _ in range(self.random.choice((1, 1, 2, 3)))]
        return '/'.join(parts)

    def client(self):
        return self.random.choice(self.clients)

    def step(self):
        kind = self.random.choice(('write', 'write', 'write', 'read', 'read', 'extents', 'truncate', 'unlink', 'mkdir', 'rmdir',
                                   'rename', 'names', 'append', 'stat'))
        ours, theirs = getattr(self, kind)()
        assert ours == theirs, kind

    def both(self, ours, theirs):
        results = []
        for function in (ours, theirs):
            try:
                results.append(function())
            except OSError as error:
                results.append(error.errno)
        return results

    def local_open(self, path, flags):
        return os.open(os.path.join(self.local, path), flags, 0o644)

    def with_files(self, path, flags, ours, theirs):
        def on_volume():
            with self.client().open(path, flags) as file:
                return ours(file)

        def on_local():
            fd = self.local_open(path, flags)
            try:
                return theirs(fd)
            finally:
                os.close(fd)
        return self.both(on_volume, on_local)

    def data(self, most=200_000):
        return self.random.randbytes(self.random.choice((1, 100, 4096, 65536, self.random.randrange(1, most))))

    def offset(self):
        return self.random.choice((0, 1, 65535, 65536, self.random.randrange(400_000)))

    def write(self):
        data, offset = self.data(), self.offset()
        return self.with_files(self.path(), os.O_RDWR | os.O_CREAT, lambda f: f.pwrite(data, offset),
                               lambda fd: os.pwrite(fd, data, offset))

    def append(self):
        data = self.data(1000)
        return self.with_files(self.path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, lambda f: f.pwrite(data, 0),
                               lambda fd: os.write(fd, data))

    def read(self):
        length, offset = self.random.randrange(1, 300_000), self.offset()
        return self.with_files(self.path(), os.O_RDONLY, lambda f: f.pread(length, offset), lambda fd: os.pread(fd, length, offset))

    def extents(self):
        parts = [(self.offset(), self.random.randrange(1, 5000)) for _ in range(self.random.randrange(1, 40))]

        def expected(fd):
            pieces = [os.pread(fd, length, offset) for offset, length in parts]
            padded = b''.join(piece.ljust(length, b'\0') for piece, (_, length) in zip(pieces, parts))
            return padded, sum(map(len, pieces))
        return self.with_files(self.path(), os.O_RDONLY, lambda f: f.read_extents(parts), expected)

    def truncate(self):
        path, size = self.path(), self.offset()
        return self.both(lambda: self.client().truncate(path, size), lambda: os.truncate(os.path.join(self.local, path), size))

    def unlink(self):
        path = self.path()
        return self.both(lambda: self.client().unlink(path), lambda: os.unlink(os.path.join(self.local, path)))

    def mkdir(self):
        path = self.path()
        return self.both(lambda: self.client().mkdir(path), lambda: os.mkdir(os.path.join(self.local, path)))

    def rmdir(self):
        path = self.path()
        return self.both(lambda: self.client().rmdir(path), lambda: os.rmdir(os.path.join(self.local, path)))

    def rename(self):
        old, new = self.path(), self.path()
        # Of two faults at once either may be reported; a directory into itself is one more.
        ours, theirs = self.both(lambda: self.client().rename(old, new),
                                 lambda: os.rename(os.path.join(self.local, old), os.path.join(self.local, new)))
        return ours is None, theirs is None

    def names(self):
        path = self.random.choice(('', self.path()))
        return self.both(lambda: self.client().names(path), lambda: sorted(os.listdir(os.path.join(self.local, path))))

    def stat(self):
        path = self.path()

        def local():
            status = os.stat(os.path.join(self.local, path))
            return status.st_mode & 0o170000, status.st_size if status.st_mode & 0o100000 else 0
        return self.both(lambda: (lambda s: (s.mode & 0o170000, s.size if s.mode & 0o100000 else 0))(self.client().stat(path)), local)


@pytest.mark.parametrize('count', [1, 2, 3])
@pytest.mark.parametrize('seed', range(3))
def test_random_operations_are_as_on_a_local_directory(volume, count, seed, tmp_path):
    servers = volume(count)
    clients = [Client(servers.file, transport) for transport in TRANSPORTS]
    os.umask(0o022)
    oracle = Oracle(clients, tmp_path, seed)
    for _ in range(800):
        oracle.step()
    for client in clients:
        client.close()


def test_one_byte_at_any_offset_sets_the_size(volume):
    """Also where all of the file's data is on its home server, but not in the first stripe."""
    servers = volume(3)
    client = Client(servers.file)
    for stripe in range(12):
        offset = stripe * 65536 + 5
        with client.open(f'f{stripe}') as file:
            file.pwrite(b'x', offset)
        assert client.stat(f'f{stripe}').size == offset + 1
        assert client.contents(f'f{stripe}') == bytes(offset) + b'x'
    client.close()


@pytest.mark.parametrize('transport', TRANSPORTS)
def test_kill_9_loses_nothing(volume, transport):
    """Names and data that were acknowledged are there after the server was killed between any two operations; calls in
    flight go on with the new server."""
    servers = volume(2)
    client = Client(servers.file, transport)
    stop = threading.Event()

    def kill_servers():
        turn = 0
        while not stop.wait(0.15):
            servers.kill(turn % 2)
            servers.start(turn % 2)
            turn += 1
        return turn
    killer = threading.Thread(target=kill_servers)
    killer.start()
    chance = random.Random(5)
    expected = {}
    try:
        for i in range(1500):
            path = f'f{i % 40}'
            data = chance.randbytes(chance.randrange(1, 200_000))
            with client.open(path) as file:
                file.pwrite(data, 0)
                if i % 10 == 0:
                    file.fsync()
            old = expected.get(path, b'')
            expected[path] = data + old[len(data):]
    finally:
        stop.set()
        killer.join()
    for path, data in expected.items():
        assert client.contents(path) == data, path
    assert client.names() == sorted(expected)
    client.close()


def test_a_killed_server_starts_again_at_once(volume):
    """The kernel may hold its port for a moment after the end of the process."""
    servers = volume(1)
    client = Client(servers.file)
    for i in range(30):
        with client.open('f') as file:
            file.pwrite(bytes([i]) * 10, 0)
        servers.kill(0)
        servers.start(0)
        assert client.contents('f') == bytes([i]) * 10
    client.close()


def test_a_dead_server_is_an_error_in_bounded_time(volume):
    servers = volume(2)
    client = Client(servers.file, 'tcp')
    with client.open('wide') as file:
        file.pwrite(b'x' * 300_000, 0)
        servers.kill(1)
        assert errno_of(file.pread, 300_000, 0) == 'EIO'
        servers.start(1)
        while errno_of(file.pread, 300_000, 0) == 'EIO':  # a dead server is asked again after a second
            time.sleep(0.1)
        assert file.pread(300_000, 0) == b'x' * 300_000
    client.close()


def test_quota_is_enospc_and_harms_no_other_file(volume):
    servers = volume(1, capacity='8M')
    client = Client(servers.file)
    with client.open('small') as small, client.open('large') as large:
        small.pwrite(b's' * 100_000, 0)
        assert errno_of(large.pwrite, b'l' * (9 << 20), 0) == 'ENOSPC'
        assert small.pread(100_000, 0) == b's' * 100_000
        small.pwrite(b't' * 100_000, 0)  # what is there may be overwritten
    assert client.space().used <= 8 << 20
    client.unlink('large')
    with client.open('again') as again:
        assert again.pwrite(b'a' * (5 << 20), 0) == 5 << 20
    client.close()


def rename_for_ever(file, own):
    client = Client(file)
    chance = random.Random(own)
    for i in range(10):
        with client.open(f'file{own}.{i}.0'):
            pass
    for turn in range(1, 1_000_000):
        i = chance.randrange(10)
        old = next(name for name in client.names() if name.startswith(f'file{own}.{i}.'))
        client.rename(old, f'file{own}.{i}.{turn}')


def test_a_rename_is_finished_although_its_client_is_killed(volume):
    """And servers too: each file has one name in the end."""
    servers = volume(3)
    context = multiprocessing.get_context('fork')
    for turn in range(8):
        processes = [context.Process(target=rename_for_ever, args=(servers.file, f'{turn}-{own}')) for own in range(3)]
        for process in processes:
            process.start()
        client = Client(servers.file)
        end = time.monotonic() + 60
        while not any(int(name.rsplit('.', 1)[1]) >= 5 for name in client.names() if name.startswith(f'file{turn}-')):
            assert time.monotonic() < end, client.names()
            time.sleep(0.02)
        time.sleep(random.Random(turn).random() / 2)
        for process in processes:
            process.kill()
        if turn % 2:
            servers.kill(turn % 3)
            servers.start(turn % 3)
        for process in processes:
            process.join()

        def files():
            return [name.rsplit('.', 1)[0] for name in client.names()]
        while len(files()) != len(set(files())) and time.monotonic() < end:
            time.sleep(0.05)
        assert len(files()) == len(set(files())), client.names()
        client.close()


def test_64_clients_append_without_overlap(volume):
    servers = volume(3)
    records = 20

    def append(number):
        client = Client(servers.file)
        with client.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
            for _ in range(records):
                file.pwrite(bytes([number]) * 1000, 0)
        client.close()
    threads = [threading.Thread(target=append, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client = Client(servers.file)
    text = client.contents('log')
    assert len(text) == 64 * records * 1000
    found = [text[at] for at in range(0, len(text), 1000)]
    assert all(text[at:at + 1000] == bytes([text[at]]) * 1000 for at in range(0, len(text), 1000))
    assert sorted(found) == sorted(list(range(64)) * records)
    client.close()


def test_views_share_a_file(volume):
    servers = volume(2, stripe=4096)
    client = Client(servers.file)
    with client.open('strided') as file:
        for rank in range(4):
            file.write_view(View(rank * 100, 100, 400), bytes([65 + rank]) * 1000, 0)
    assert client.contents('strided') == b''.join(bytes([65 + rank]) * 100 for rank in range(4)) * 10
    client.close()


def test_offsets_at_the_edge_are_refused(volume):
    servers = volume(2)
    client = Client(servers.file)
    with client.open('f') as file:
        for offset in (2**63 - 1, 2**63, 2**64 - 1):
            assert errno_of(file.pwrite, b'xx', offset) in ('EFBIG', 'EINVAL')
        assert file.pread(10, 2**62) == b''
        assert errno_of(client.truncate, 'f', 2**63) == 'EFBIG'
        assert errno_of(client.open, 'x' * 10_000) == 'ENAMETOOLONG'
        assert errno_of(client.open, 'x' * 256) == 'ENAMETOOLONG'
        assert errno_of(client.open, '../etc/passwd') == 'EINVAL'
    assert client.names() == ['f']
    client.close()


def test_scio_copies_trees(volume, tmp_path):
    servers = volume(2)
    tree = tmp_path / 'tree'
    (tree / 'a/b').mkdir(parents=True)
    (tree / 'a/f').write_bytes(b'x' * 300_000)
    (tree / 'a/f').chmod(0o750)
    os.utime(tree / 'a/f', (5, 5))
    (tree / 'empty').touch()
    (tree / 'a/b/up').symlink_to('../f')
    os.mkfifo(tree / 'fifo')

    def scio(*words, code=0):
        done = subprocess.run([BIN / 'scio', '--volume', servers.file, *words], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done
    to = scio('cp', '-r', tree, ':/tree')
    assert to.stdout == '3 files, 300000 bytes\n' and 'fifo: neither' in to.stderr and to.stderr.count('\n') == 1
    assert scio('cp', '-r', tree / 'a', ':/tree/').stdout == '2 files, 300000 bytes\n'  # into the directory
    assert 'l0777' in scio('ls', '/tree/a/b').stdout
    scio('cp', '--recursive', ':/tree', tmp_path / 'out')
    out = tmp_path / 'out'
    assert (out / 'a/b/up').read_bytes() == b'x' * 300_000 and os.readlink(out / 'a/b/up') == '../f'
    assert (out / 'a/f').stat().st_mode & 0o777 == 0o750 and (out / 'a/f').stat().st_mtime == 5
    assert sorted(os.listdir(out)) == ['a', 'empty']
    assert scio('cp', '-r', ':/none', out, code=125).stderr.count('\n') == 1
    assert scio('cp', '-r', tmp_path / 'none', ':/x', code=125).stderr.count('\n') == 1


def test_scio_copies_with_a_checksum(volume, tmp_path):
    servers = volume(2)
    data = random.Random(7).randbytes(20_000_001)
    (tmp_path / 'in').write_bytes(data)

    def scio(*words):
        return subprocess.run([BIN / 'scio', '--volume', servers.file, *words], capture_output=True, text=True)
    to = scio('cp', tmp_path / 'in', ':/big')
    back = scio('cp', ':/big', tmp_path / 'out')
    assert to.returncode == back.returncode == 0, to.stderr + back.stderr
    assert to.stdout == back.stdout and '20000001 bytes' in to.stdout
    assert (tmp_path / 'out').read_bytes() == data
    assert ' 20000001 ' in scio('ls').stdout
    assert 'size 20000001' in scio('stat', '/big').stdout
    assert len(scio('df').stdout.splitlines()) == 3
    assert scio('rm', '/big').returncode == 0
    missing = scio('stat', '/big')
    assert (missing.returncode, missing.stderr) == (125, 'scio: /big: No such file or directory\n')
    assert scio('frob').stderr == "scio: 'frob' is not a command; see scio --help\n"
