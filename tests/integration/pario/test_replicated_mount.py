"""Real programs on a mount of a volume with two copies, while servers are killed, and lost for a while."""
import contextlib
import shutil
import sqlite3
import subprocess
import time

import pytest
from mounts import REQUIRED, Mount
from test_mounted_programs import start_writers
from test_replicas import wait_in_sync
from volumes import Servers, make_temporary

pytestmark = REQUIRED
LIMIT = 300


@pytest.fixture
def volume(tmp_path):
    with make_temporary() as root:
        servers = Servers(root, 3, replicas=2)
        try:
            with contextlib.ExitStack() as stack:
                mounts = [Mount(servers.file, tmp_path / f'mount{i}') for i in range(2)]
                for one in mounts:
                    stack.callback(one.stop)
                yield servers, [one.directory for one in mounts]
        finally:
            codes = servers.stop()
        assert codes == [0, 0, 0], ''.join(map(servers.log, range(3)))


def lose_servers(servers, is_running):
    """One after the other, each once the others have everything; until nothing runs any more. Returns how many."""
    lost = 0
    while is_running():
        servers.kill(lost % 3)
        time.sleep(1.5)  # the others take over: requests go on without it
        servers.start(lost % 3)
        wait_in_sync(servers)
        lost += 1
    return lost


@pytest.mark.parametrize('mode', ['delete', 'persist', 'truncate'])
def test_sqlite_while_servers_are_lost(volume, mode):
    servers, directories = volume
    wait_in_sync(servers)
    path = directories[0] / 'base'
    writers = start_writers(path, mode)
    assert lose_servers(servers, lambda: any(writer.is_alive() for writer in writers)) > 0
    for writer in writers:
        writer.join(LIMIT)
    assert [writer.exitcode for writer in writers] == [0] * 4, ''.join(map(servers.log, range(3)))
    with contextlib.closing(sqlite3.connect(directories[1] / 'base')) as base:
        assert base.execute('pragma integrity_check').fetchall() == [('ok',)]
        assert base.execute('select sum(amount) from account').fetchone() == (100_000,)
        rows = base.execute('select writer, i from log order by writer, i').fetchall()
    assert len(rows) == len(set(rows)) and len(rows) > 20


@pytest.mark.skipif(not shutil.which('fio'), reason='fio is not installed')
def test_fio_verifies_what_it_wrote_while_servers_are_lost(volume, tmp_path):
    servers, directories = volume
    wait_in_sync(servers)
    done = subprocess.Popen(['fio', '--name=verify', f'--directory={directories[0]}', '--rw=randrw', '--ioengine=psync', '--size=16M',
                             '--bsrange=4k-256k', '--numjobs=2', '--loops=4', '--verify=crc32c', '--do_verify=1', '--verify_fatal=1',
                             '--fsync=20', '--end_fsync=1', '--group_reporting'],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path)
    assert lose_servers(servers, lambda: done.poll() is None) > 0
    output = done.communicate(timeout=LIMIT)[0]
    assert done.returncode == 0 and 'err= 0' in output, output
