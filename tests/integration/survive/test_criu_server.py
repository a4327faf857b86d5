"""scored-checkpoint runs criu with a fixed request, which users cannot extend. A script stands for criu and shows how it was started."""
import os
import socket
import struct
import subprocess

import pytest
from cluster import BIN

REQUEST = struct.Struct('=IIiIQ')  # scored/privileged/checkpoint/protocol.hpp
REPLY = struct.Struct('=Iii')
MAGIC = 0x50434353
SAVE, RESTORE, UNKNOWN = 2, 3, 9
SCRIPT = '#!/bin/sh\necho "$@" >words\ngrep NoNewPrivs /proc/self/status >rights\nls /proc/self/fd >files\n'


@pytest.fixture
def server(tmp_path):
    """Returns a function that gives an order for a directory, and returns (errno value, exit status), or None."""
    script = tmp_path / 'criu'
    script.write_text(SCRIPT)
    script.chmod(0o755)
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(['bash', '-c', f'exec "$0" serve "$1" 4<&{theirs.fileno()}', BIN / 'scored-checkpoint', script],
                               pass_fds=[theirs.fileno()])
    theirs.close()

    def order(kind):
        directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        socket.send_fds(ours, [REQUEST.pack(MAGIC, kind, process.pid, 0, 0)], [directory])
        os.close(directory)
        answer = ours.recv(REPLY.size)
        return REPLY.unpack(answer)[1:] if answer else None
    yield order
    ours.close()
    assert process.wait() in (0, 1)


def test_criu_reads_no_file_of_the_user_and_gains_no_rights(server, tmp_path):
    assert server(RESTORE) == (0, 0)
    assert '--no-default-config' in (tmp_path / 'words').read_text().split()
    assert (tmp_path / 'rights').read_text().split() == ['NoNewPrivs:', '1']
    assert '4' not in (tmp_path / 'files').read_text().split(), 'the connection to the shepherd'


def test_an_unknown_order_ends_the_connection(server, tmp_path):
    assert server(UNKNOWN) is None
    assert not (tmp_path / 'words').exists()
