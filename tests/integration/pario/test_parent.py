"""Servers and mounts of a program that starts them: at its socket, and with a descriptor that says when it is mounted."""
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import pytest
from mounts import REQUIRED
from volumes import BIN, Client, make_temporary


class Parent:
    """One server at a socket that stays open here."""

    def __init__(self, root):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.file, self.directory, self.log = f'{root}/volume', f'{root}/server', f'{root}/log'
        os.mkdir(self.directory)
        made = subprocess.run([BIN / 'scio', 'create', 'test', '--server', f'127.0.0.1:{self.port}'], capture_output=True, check=True)
        with open(os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o600), 'wb') as file:
            file.write(made.stdout)
        self.process = None

    def words(self, listener):
        return [BIN / 'scored-pario', '--volume', self.file, '--index', '0', '--directory', self.directory, '--capacity', '64M',
                '--listener', str(listener)]

    def start(self):
        fd = self.listener.fileno()
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(self.words(fd), pass_fds=[fd], stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def parent():
    with make_temporary() as root:
        made = Parent(root)
        made.start()
        Client(made.file).close()
        yield made
        made.kill()
        made.listener.close()


def test_the_next_server_has_the_socket_of_a_killed_one(parent):
    client = Client(parent.file, 'tcp')
    with client.open('file') as file:
        file.pwrite(b'before', 0)
        parent.kill()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError):
                other.bind(('127.0.0.1', parent.port))
        got = []
        reader = threading.Thread(target=lambda: got.append(file.pread(6, 0)))
        reader.start()  # it connects, and waits
        parent.start()
        reader.join(60)
        assert got == [b'before'], open(parent.log).read()
    client.close()


def test_a_server_that_is_ended_while_it_starts_ends(parent):
    """Its socket takes clients before the server works, so a parent may change its mind at any time."""
    parent.kill()
    for turn in range(60):
        parent.start()
        time.sleep(turn * 0.0005)
        parent.process.terminate()
        assert parent.process.wait(60) in (0, -signal.SIGTERM), turn


def test_a_non_listening_socket_is_refused_in_one_line(parent):
    parent.kill()
    with socket.socket() as idle:
        for listener in ('x', '-1', '999', '', str(idle.fileno())):
            run = subprocess.run(parent.words(listener), pass_fds=[idle.fileno()], capture_output=True, text=True, timeout=60)
            assert run.returncode == 125 and '--listener' in run.stderr and run.stderr.count('\n') == 1, run


@pytest.mark.parametrize('options', [(), ('--foreground',)])
@pytest.mark.skipif(any(one.args[0] for one in REQUIRED), reason='no FUSE, or scored-pario-mount is not built')
def test_a_mount_says_when_it_is_there(parent, tmp_path, options):
    directory = tmp_path / 'mount'
    directory.mkdir()
    ready, end = os.pipe()
    words = [BIN / 'scored-pario-mount', '--volume', parent.file, *options, '--ready', str(end), directory]
    mount = subprocess.Popen(words, pass_fds=[end])
    os.close(end)
    try:
        assert os.read(ready, 2) == b'1', 'or it has ended'
        assert os.path.ismount(directory)
        (directory / 'file').write_text('seen')
        assert Client(parent.file).contents('/file') == b'seen'
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            subprocess.run(['fusermount3', '-uz', directory], check=True)
        mount.wait(60)
        os.close(ready)


@pytest.mark.skipif(any(one.args[0] for one in REQUIRED), reason='no FUSE, or scored-pario-mount is not built')
def test_a_mount_refuses_an_invalid_descriptor_in_one_line(parent, tmp_path):
    for ready in ('x', '-1', '999', ''):
        run = subprocess.run([BIN / 'scored-pario-mount', '--volume', parent.file, '--ready', ready, tmp_path],
                             capture_output=True, text=True, timeout=60)
        assert run.returncode == 125 and '--ready' in run.stderr and run.stderr.count('\n') == 1, run
