"""The mount over PM: data takes that way, what was synced survives killed servers and mounts, and without PM there is TCP."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from mounts import REQUIRED, Mount
from test_hostile_clients import counts
from volumes import BIN, Servers, make_temporary

pytestmark = REQUIRED
PM = ('--transport', 'pm')
RECORD = 65536  # smaller ones go by TCP
LIMIT = 120


@pytest.fixture
def servers():
    with make_temporary() as root:
        made = Servers(root, 1, options=PM)
        yield made
        assert made.stop() == [0], made.log(0)


def write_and_read(directory, name, size, seed):
    data = random.Random(seed).randbytes(size)
    fd = os.open(directory / name, os.O_RDWR | os.O_CREAT)
    try:
        for at in range(0, size, 1 << 20):
            assert os.pwrite(fd, data[at:at + (1 << 20)], at) == len(data[at:at + (1 << 20)])
        os.fsync(fd)
        assert b''.join(os.pread(fd, 1 << 20, at) for at in range(0, size, 1 << 20)) == data
    finally:
        os.close(fd)


def test_data_of_another_node_goes_over_pm(servers, tmp_path):
    mount = Mount(servers.file, tmp_path / 'mount')
    before = counts(servers)
    size = 5_000_003
    write_and_read(mount.directory, 'data', size, 1)
    after = counts(servers)
    # The kernel cuts what is not aligned to pages; small pieces go by TCP.
    assert after['pm_bytes'] - before['pm_bytes'] > 1.9 * size
    assert after['pm_clients'] == 1 and after['fallbacks'] == 0
    space = subprocess.run([BIN / 'scio', '--volume', servers.file, 'df'], capture_output=True, text=True, check=True).stdout.split()
    row = dict(zip(space, space[space.index('FALLBACKS') + 1:]))
    assert int(row['PM-BYTES']) == after['pm_bytes'] and row['FALLBACKS'] == '0'
    mount.stop()


def test_tcp_on_demand(servers, tmp_path):
    mount = Mount(servers.file, tmp_path / 'mount', 'tcp')
    write_and_read(mount.directory, 'data', 1_000_000, 2)
    found = counts(servers)
    assert found['pm_bytes'] == found['pm_clients'] == found['fallbacks'] == 0
    mount.stop()


class Writer(threading.Thread):
    """Writes records and syncs them; survives the end of its mount. `synced`: place -> version."""

    def __init__(self, directory, number):
        super().__init__(daemon=True)
        self.path = directory / 'in' / f'writer{number}'  # not there while nothing is mounted
        self.synced, self.tried, self.is_over, self.version, self.chance = {}, {}, False, 0, random.Random(number)

    def run(self):
        while not self.is_over:
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_CREAT)
            except OSError:
                time.sleep(0.02)
                continue
            try:
                while not self.is_over:
                    self.write(fd)
            except OSError:
                pass
            finally:
                try:
                    os.close(fd)
                except OSError:
                    pass

    def write(self, fd):
        written = {}
        for place in self.chance.sample(range(40), 4):
            self.version += 1
            self.tried.setdefault(place, set()).add(self.version)
            assert os.pwrite(fd, self.version.to_bytes(8, 'little') * (RECORD // 8), place * RECORD) == RECORD
            written[place] = self.version
        os.fsync(fd)
        for place, version in written.items():
            self.synced[place] = version

    def check(self):
        with open(self.path, 'rb') as file:
            for place, synced in self.synced.items():
                file.seek(place * RECORD)
                data = file.read(RECORD)
                found = {int.from_bytes(data[at:at + 8], 'little') for at in range(0, RECORD, 8)}
                assert min(found) >= synced and found <= self.tried[place], (place, synced, found)
        return len(self.synced)


def mounter(servers, directory):
    """The mount in the foreground: its process is known."""
    process = subprocess.Popen([BIN / 'scored-pario-mount', '--volume', servers.file, '--foreground', directory])
    end = time.monotonic() + LIMIT
    while not os.path.ismount(directory):
        assert process.poll() is None and time.monotonic() < end, 'the mount does not start'
        time.sleep(0.02)
    return process


def unmount(directory):
    subprocess.run(['fusermount3', '-uz', directory], stderr=subprocess.DEVNULL)


def test_what_was_synced_survives_killed_servers_and_mounts(servers, tmp_path):
    directory = tmp_path / 'mount'
    directory.mkdir()
    mount = mounter(servers, directory)
    (directory / 'in').mkdir()
    writers = [Writer(directory, number) for number in range(3)]
    for writer in writers:
        writer.start()
    chance = random.Random(5)
    try:
        for turn in range(12):
            before = sum(writer.version for writer in writers)
            end = time.monotonic() + LIMIT
            while sum(writer.version for writer in writers) < before + 40:
                assert time.monotonic() < end, 'the writers stand still'
                time.sleep(0.01)
            time.sleep(chance.random() * 0.05)
            if turn % 3 == 2:
                mount.send_signal(signal.SIGKILL)
                mount.wait()
                unmount(directory)
                mount = mounter(servers, directory)
            else:
                servers.kill(0)
                servers.start(0)
        for writer in writers:
            writer.is_over = True
        for writer in writers:
            writer.join(LIMIT)
        assert not any(writer.is_alive() for writer in writers)
        assert sum(writer.check() for writer in writers) > 30
        found = counts(servers)
        # A server that a busy machine keeps from answering for 3 s is not asked for PM again.
        said = [line for line in servers.log(0).splitlines() if 'Started to serve the volume' not in line]
        assert found['pm_clients'] == 1 or any('Connection timed out' in line for line in said), (found, said)
    finally:
        mount.kill()
        mount.wait()
        unmount(directory)


def run_without_udp():
    """In a network of its own, in which datagrams are dropped. Prints what the test looks for."""
    subprocess.run('ip link set lo up && nft add table inet t && nft add chain inet t c "{ type filter hook input priority 0; }" && '
                   'nft add rule inet t c meta l4proto udp drop', shell=True, check=True)
    root = pathlib.Path(sys.argv[2])
    servers = Servers(root, 2, options=PM)
    mount = Mount(servers.file, root / 'mount')
    try:
        write_and_read(mount.directory, 'data', 3_000_000, 3)
        found = counts(servers)
    finally:
        mount.stop()
    assert servers.stop() == [0, 0]
    assert found['pm_bytes'] == found['pm_clients'] == 0 and found['fallbacks'] > 0, found
    assert mount.messages.count('PM cannot be used (no answer over UDP); using TCP') == 1, mount.messages
    assert 'Client cannot use PM' in servers.log(0)
    print('fell back')


@pytest.mark.skipif(os.geteuid() != 0 or not all(map(shutil.which, ('unshare', 'nft', 'ip'))), reason='needs root, unshare, ip and nft')
def test_without_datagrams_data_goes_by_tcp():
    with make_temporary() as root:
        done = subprocess.run(['unshare', '-n', sys.executable, __file__, 'without-udp', root], capture_output=True, text=True, timeout=300,
                              env=os.environ | {'PYTHONPATH': os.pathsep.join(sys.path)})
        assert done.returncode == 0 and 'fell back' in done.stdout, done.stdout + done.stderr


if __name__ == '__main__':
    run_without_udp()
