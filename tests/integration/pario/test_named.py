"""Named volumes: made, used and removed by scio alone; size and expiry are kept by the servers."""
import os
import pathlib
import random
import socket
import subprocess
import time

import pytest
from volumes import BIN, Client, errno_of, free_ports, make_temporary

LIMIT = 60


class Home:
    """A user's volumes, in a directory of the test."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        (self.root / 'data').mkdir()
        self.environment = {key: value for key, value in os.environ.items() if key != 'PARIO_VOLUME'} | {
            'SCORE_VOLUMES': str(self.root / 'volumes'), 'PATH': f'{BIN}:{os.environ["PATH"]}'}
        self.made = []

    def scio(self, *words, code=0):
        done = subprocess.run([BIN / 'scio', *map(str, words)], capture_output=True, text=True, env=self.environment, timeout=LIMIT)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def create(self, name, servers, *options):
        while True:
            port = random.randrange(20_000, 32_000)
            if all(is_free(port + i) for i in range(servers)):
                break
        self.made.append(name)
        return self.scio('create', name, '--hosts', 'localhost', '--servers', servers, '--port', port, '--directory', self.root / 'data', *options)

    def file(self, name):
        return self.root / 'volumes' / name

    def stop(self):
        for name in self.made:
            if self.file(name).exists():
                subprocess.run([BIN / 'scio', 'destroy', '--force', name], env=self.environment, capture_output=True, timeout=LIMIT)


def is_free(port):
    with socket.socket() as one:
        try:
            one.bind(('127.0.0.1', port))
        except OSError:
            return False
    return True


@pytest.fixture
def home():
    with make_temporary() as root:
        made = Home(root)
        yield made
        made.stop()


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(what)


@pytest.mark.parametrize('replicas', [1, 2])
def test_a_volume_is_made_used_and_destroyed(home, tmp_path, replicas):
    home.create('demo', 3, '--size', '90M', '--stripe', '64K', '--replicas', replicas, '--expires', '2h')
    assert oct(home.file('demo').stat().st_mode)[-3:] == '600'
    lines = home.scio('ls').stdout.splitlines()
    assert len(lines) == 2 and lines[1].split()[:4] == ['demo', '3', str(replicas), str(90 << 20)]
    (tmp_path / 'in').write_bytes(random.Random(1).randbytes(3_000_000))
    home.scio('cp', tmp_path / 'in', 'demo:/big')
    home.scio('cp', 'demo:/big', tmp_path / 'out')
    assert (tmp_path / 'in').read_bytes() == (tmp_path / 'out').read_bytes()
    assert ' 3000000 ' in home.scio('ls', 'demo:/').stdout
    assert f'replicas {replicas}\n' in home.scio('stat', 'demo:').stdout
    assert sum(int(line.split()[1]) for line in home.scio('df', 'demo:').stdout.splitlines()[1:]) == 90 << 20
    home.scio('start', 'demo')  # they run already
    assert 'scio destroy' in home.scio('rm', 'demo:', code=125).stderr
    home.scio('rm', 'demo:/big')
    home.scio('destroy', 'demo')
    wait_for(lambda: not list((home.root / 'data').iterdir()), 'the servers have not removed their directories')
    assert len(home.scio('ls').stdout.splitlines()) == 1


def test_the_size_is_the_quota(home):
    home.create('small', 2, '--size', '8M', '--stripe', '64K')
    client = Client(home.file('small'))
    with client.open('f') as file:
        assert errno_of(file.pwrite, b'x' * (12 << 20), 0) == 'ENOSPC'
    assert client.space().capacity == 8 << 20
    assert client.space().used <= 8 << 20
    client.close()


def test_more_than_the_disk_has_is_refused(home):
    done = home.scio('create', 'large', '--hosts', 'localhost', '--port', free_ports(1)[0], '--directory', home.root / 'data', '--size', '4096T', code=125)
    assert 'the volume needs 4P here, and ' in done.stderr, done.stderr
    assert not home.file('large').exists() and os.listdir(home.root / 'data') == []


def test_empty_files_need_room(home):
    home.create('small', 1, '--size', '64K', '--stripe', '64K')
    client = Client(home.file('small'))
    for i in range(127):  # 512 bytes each, and the root
        client.open(f'f{i}').__exit__()
    assert errno_of(client.open, 'more') == 'ENOSPC'
    client.unlink('f0')
    client.open('more').__exit__()
    client.close()


def test_an_expired_volume_is_removed(home):
    home.create('short', 2, '--size', '8M', '--expires', '4s')
    wait_for(lambda: not list((home.root / 'data').iterdir()), 'the servers have not removed their directories')
    assert '(expired)' in home.scio('ls').stdout
    assert home.scio('ls', 'short:/', code=125).stderr.count('\n') == 1
    home.scio('destroy', '--force', 'short')


def test_a_server_that_was_killed_is_started_again(home, tmp_path):
    home.create('demo', 2, '--size', '8M')
    (tmp_path / 'in').write_bytes(b'kept')
    home.scio('cp', tmp_path / 'in', 'demo:/f')
    log = (home.root / 'data/demo-0/log')
    assert 'Started to serve the volume' in log.read_text()
    killed = 0
    for process in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            words = (process / 'cmdline').read_bytes().split(b'\0')
        except OSError:
            continue
        if str(home.root / 'data/demo-0').encode() in words:
            os.kill(int(process.name), 9)
            killed += 1
    assert killed == 1
    home.scio('start', 'demo')  # the other one runs
    home.scio('cp', 'demo:/f', tmp_path / 'out')
    assert (tmp_path / 'out').read_bytes() == b'kept'


def test_a_create_that_fails_leaves_nothing(home):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1] - 1
        done = home.scio('create', 'half', '--hosts', 'localhost', '--servers', 2, '--port', port, '--directory', home.root / 'data',
                         '--size', '8M', code=125)
        assert f'localhost:{port + 1}' in done.stderr.splitlines()[-1] and 'cannot create the volume' in done.stderr.splitlines()[-1], done.stderr
    assert len(home.scio('ls').stdout.splitlines()) == 1
    assert not home.file('half').exists()
    wait_for(lambda: not list((home.root / 'data').iterdir()), 'a server that was started has not removed its directory')
    # A launcher that does not exist, on a host that is not this one.
    home.scio('create', 'far', '--hosts', 'elsewhere.invalid', '--launcher', '/nonexistent', '--directory', '/nonexistent', '--size', '8M', code=125)
    assert len(home.scio('ls').stdout.splitlines()) == 1


@pytest.mark.parametrize('words, text', [
    (['create', 'x'], 'needs either --hosts'), (['create', 'x', '--hosts', 'localhost', '--size', '1G'], '--directory'),
    (['create', 'x', '--hosts', 'localhost', '--directory', '/tmp'], 'needs --size'),
    (['create', 'a/b', '--server', 'h:1'], '1 to 64 letters'), (['create', 'x', '--server', 'h:1', '--size', '5X'], '--size 5X'),
    (['create', 'x', '--server', 'h:1', '--size', '99999999999P'], '--size'), (['create', 'x', '--server', 'h:1', '--replicas', '3'], '1 or 2'),
    (['create', 'x', '--server', 'h:1', '--replicas', '2'], 'needs two servers'), (['create', 'x', '--server', 'h:1', '--expires', 'soon'], '--expires'),
    (['create', 'x', '--hosts', 'localhost', '--servers', '0'], '--servers 0'), (['stat', 'none:'], 'No such file'),
    (['destroy', 'none'], 'No such file'), (['start', 'none'], 'No such file'), (['ls', 'none:/'], 'No such file')])
def test_invalid_arguments_are_refused_in_one_line(home, words, text):
    done = home.scio(*words, code=125)
    assert text in done.stderr and done.stderr.count('\n') == 1 and done.stdout == ''
    assert not home.file('x').exists()


def test_a_volume_is_not_made_twice(home):
    home.create('demo', 1, '--size', '8M')
    again = home.scio('create', 'demo', '--hosts', 'localhost', '--port', free_ports(1)[0], '--directory', home.root / 'data', '--size', '8M', code=125)
    assert 'File exists' in again.stderr
