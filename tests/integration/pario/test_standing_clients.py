"""A client that is stopped in the middle of a direct write: no transaction overlooks it, and the others go on."""
import os
import signal
import subprocess
import sys
import time

import pytest
from volumes import Client, Servers, make_temporary

LIMIT = 60
WRITER = '''
import sys
sys.path.insert(0, sys.argv[1])
from volumes import Client
client = Client(sys.argv[2])
file = client.open('file')
data = b'w' * (1 << 20)
print('ready', flush=True)
while True:
    file.pwrite(data, 0)
'''


@pytest.fixture
def servers():
    with make_temporary() as root:
        made = Servers(root, 1)
        yield made
        assert made.stop() == [0], made.log(0)


def holds_lock(pid, inode):
    with open('/proc/locks') as locks:
        return any(words[1] == 'FLOCK' and words[3] == 'READ' and int(words[4]) == pid and words[5].endswith(f':{inode}')
                   for words in map(str.split, locks) if words[1] != '->')


def data_file(servers, number):
    return next(path for path in (servers.directory(0) / 'data').rglob('*') if path.is_file() and int(path.name, 16) == number)


def stop_in_a_write(process, inode):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        process.send_signal(signal.SIGSTOP)
        while open(f'/proc/{process.pid}/stat').read().rsplit(')', 1)[1].split()[0] != 'T':
            time.sleep(0.001)
        if holds_lock(process.pid, inode):
            return
        process.send_signal(signal.SIGCONT)
        time.sleep(0.003)
    raise AssertionError('never found in a write')


def commits(client, name):
    """A transaction that reads and writes the file. None: the file cannot be read now."""
    with client.open(name) as file:
        made = client.begin(stable=False)
        try:
            made.read(file, 8, 0)
        except BlockingIOError:
            made.abort()
            return None
        made.write(file, b't' * 8, 0)
        return made.commit()


@pytest.mark.parametrize('ends', ['goes on', 'is killed'])
def test_a_client_that_stands_still_in_a_write(servers, ends):
    here = os.path.dirname(__file__)
    client = Client(servers.file, 'tcp')
    for name in ('file', 'other'):
        with client.open(name) as file:
            file.pwrite(b'o' * (1 << 20), 0)
    number = client.stat('file').ino
    writer = subprocess.Popen([sys.executable, '-c', WRITER, here, servers.file], stdout=subprocess.PIPE)
    try:
        assert writer.stdout.readline() == b'ready\n'
        stop_in_a_write(writer, data_file(servers, number).stat().st_ino)
        time.sleep(3.5)  # longer than the lease
        assert commits(client, 'file') is None  # its write is still to come
        assert commits(client, 'other') is True
        with client.open('file') as file:  # plain access goes on
            file.pwrite(b'p' * 100, 2 << 20)
            assert file.pread(100, 2 << 20) == b'p' * 100
        writer.send_signal(signal.SIGKILL if ends == 'is killed' else signal.SIGCONT)
        end = time.monotonic() + LIMIT
        while not commits(client, 'file'):
            assert time.monotonic() < end, 'the file stays locked'
        if ends == 'goes on':
            assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()
    client.close()
