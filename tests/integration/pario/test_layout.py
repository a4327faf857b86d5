"""The layout `local`: whole files on the server of the node that makes them."""
import contextlib
import os
import subprocess

import pytest
from mounts import Mount, needs_mount
from test_mount import outcome, read_at, write_at
from test_volume import TRANSPORTS, Oracle
from volumes import BIN, FAR, Client, Servers, errno_of, make_temporary

OWN = 2  # the only server of three that a client of this host takes for one of its node
HOSTS = [FAR, FAR, '127.0.0.1']
SIZE = 500_000


@contextlib.contextmanager
def made(count=3, **settings):
    with make_temporary() as root:
        servers = Servers(root, count, **settings)
        try:
            yield servers
        finally:
            codes = servers.stop()
        assert codes == [0] * count, servers.log(0)


@pytest.fixture
def servers():
    with made(hosts=HOSTS) as servers:
        yield servers


@contextlib.contextmanager
def opened(servers, transport=''):
    client = Client(servers.file, transport)
    try:
        yield client
    finally:
        client.close()


def scio(servers, *words):
    return subprocess.run([BIN / 'scio', '--volume', servers.file, *words], capture_output=True, text=True, timeout=100)


def bytes_on(servers, index):
    return sum(one.stat().st_size for one in (servers.directory(index) / 'data').rglob('*') if one.is_file())


def layout_of(servers, path):
    done = scio(servers, 'stat', path)
    assert done.returncode == 0, done.stderr
    facts = dict(line.split(' ', 1) for line in done.stdout.splitlines())
    return facts['layout'], facts.get('server')


def test_whole_file_is_on_the_own_server(servers):
    assert scio(servers, 'mkdir', '--layout', 'local', '/out').returncode == 0
    with opened(servers) as client, opened(servers, 'tcp') as far:
        client.mkdir('/out/deeper')
        data = os.urandom(SIZE)
        for i in range(6):
            with client.open(f'/out/deeper/f{i}') as file:
                file.pwrite(data, i)
            assert layout_of(servers, f'/out/deeper/f{i}') == ('local', str(OWN))
            assert far.contents(f'/out/deeper/f{i}') == bytes(i) + data
        assert [bytes_on(servers, index) > 6 * SIZE for index in range(3)] == [False, False, True]
        assert bytes_on(servers, 0) + bytes_on(servers, 1) == 0
        assert layout_of(servers, '/out/deeper') == ('local', None)
        with client.open('/striped') as file:
            file.pwrite(data, 0)
        assert layout_of(servers, '/striped') == ('striped', None)
        assert bytes_on(servers, 0) > 0 and bytes_on(servers, 1) > 0
        far.rename('/out/deeper/f0', '/moved')
        assert layout_of(servers, '/moved') == ('local', str(OWN)), 'a file keeps its layout'
        assert errno_of(client.open, '/out/deeper/f1', os.O_RDWR | os.O_CREAT | os.O_EXCL) == 'EEXIST'
        with client.open('/out/deeper/f1', os.O_RDWR | os.O_CREAT) as file:
            assert file.pread(SIZE, 1) == data, 'the existing file'
        before = client.space()
        for path in ('/moved', *(f'/out/deeper/f{i}' for i in range(1, 6))):
            far.unlink(path)
        assert client.space().files == before.files - 6


def test_unknown_layout_is_refused(servers, tmp_path):
    done = scio(servers, 'mkdir', '--layout', 'round', '/out')
    assert done.returncode == 125 and 'expects local' in done.stderr
    assert scio(servers, 'mkdir', ':/colon').returncode == 0
    assert layout_of(servers, '/colon') == layout_of(servers, ':/colon') == ('striped', None)
    done = scio(servers, 'create', 'x', '--server', 'h:1', '--layout', 'round')
    assert done.returncode == 125 and 'local or striped' in done.stderr
    assert errno_of(Client(servers.file).stat, '/out') == 'ENOENT'


@pytest.mark.parametrize('count', [1, 3])
def test_random_operations_are_as_on_a_local_directory(count, tmp_path):
    """The volume's layout, the operations of the library."""
    with made(count, options=('--layout', 'local'), hosts=HOSTS[-count:]) as servers:
        clients = [Client(servers.file, transport) for transport in TRANSPORTS]
        os.umask(0o022)
        oracle = Oracle(clients, tmp_path, count)
        for _ in range(500):
            oracle.step()
        assert layout_of(servers, '/') == ('local', None)
        for client in clients:
            client.close()


@needs_mount
def test_mount_makes_appends_and_allocates_local_files(servers, tmp_path):
    assert scio(servers, 'mkdir', '--layout', 'local', '/out').returncode == 0
    mount = Mount(servers.file, tmp_path / 'mount')
    try:
        folder, plain = mount.directory / 'out', tmp_path / 'plain'
        plain.mkdir()
        for place in (folder, plain):
            for i in range(12):
                with open(place / f'f{i}', 'ab') as file:
                    file.write(b'x' * 100_000)
                    file.write(b'y' * (100_000 + i))
            with open(place / 'sparse', 'w+b') as file:
                os.pwrite(file.fileno(), b'z', 3_000_000)
                os.posix_fallocate(file.fileno(), 0, 1_000_000)
                assert os.lseek(file.fileno(), 2_000_000, os.SEEK_DATA) <= 3_000_000
                assert os.fstat(file.fileno()).st_size == 3_000_001
                os.ftruncate(file.fileno(), 150_000)
            os.rename(place / 'f0', place / 'f1')
            os.link(place / 'f1', place / 'link')
        for name in sorted(os.listdir(plain)):
            assert (folder / name).read_bytes() == (plain / name).read_bytes()
            assert layout_of(servers, f'/out/{name}') == ('local', str(OWN))
        assert sorted(os.listdir(folder)) == sorted(os.listdir(plain))
        for i in range(200):
            for data, offset, flags in ((b'a' * 7, i * 997, os.O_CREAT), (b'b', i, os.O_CREAT | os.O_EXCL)):
                ours, theirs = (outcome(write_at, place / f'r{i % 5}', data, offset, flags) for place in (folder, plain))
                assert ours == theirs
            assert read_at(folder / f'r{i % 5}', 300_000, 0) == read_at(plain / f'r{i % 5}', 300_000, 0)
        assert bytes_on(servers, 0) + bytes_on(servers, 1) == 0
    finally:
        mount.stop()


def test_several_servers_of_a_node_share_the_files():
    with made(hosts=['127.0.0.1', FAR, '127.0.0.1'], options=('--layout', 'local')) as servers, opened(servers) as client:
        for i in range(40):
            with client.open(f'/f{i}') as file:
                file.pwrite(b'x', 0)
        assert bytes_on(servers, 0) > 4 and bytes_on(servers, 1) == 0 and bytes_on(servers, 2) > 4


def test_copies_keep_layout_and_data():
    with made(replicas=2, options=('--layout', 'local'), hosts=HOSTS) as servers, opened(servers) as client:
        data = os.urandom(SIZE)
        for i in range(8):
            with client.open(f'/f{i}') as file:
                file.pwrite(data, 0)
        assert {layout_of(servers, f'/f{i}') for i in range(8)} == {('local', str(OWN))}
        servers.kill(OWN)
        for i in range(8):
            assert client.contents(f'/f{i}') == data
        with client.open('/made-by-the-copy') as file:
            file.pwrite(data, 0)
        servers.start(OWN)
        assert client.contents('/made-by-the-copy') == data
        assert layout_of(servers, '/f7') == ('local', str(OWN))


def test_transaction_on_local_files():
    with made(options=('--layout', 'local')) as servers, opened(servers) as client:
        with client.open('/a') as one, client.open('/b') as two:
            one.pwrite(bytes(300_000), 0)
            transaction = client.begin()
            assert transaction.read(one, 100, 250_000) == bytes(100)
            transaction.write(one, b'x' * 200_000, 100_000)
            transaction.write(two, b'y' * 200_000, 100_000)
            assert transaction.commit()
            assert one.pread(300_000, 0) == bytes(100_000) + b'x' * 200_000
            assert two.pread(300_000, 0) == bytes(100_000) + b'y' * 200_000
