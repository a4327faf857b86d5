#!/usr/bin/env python3
"""Checks socket activation as in scored-head.socket: the head uses the socket that it is given, connections
wait on it while no head runs, and the head refuses a socket at a different path.
usage: check_socket.py SOCKET_UNIT SCORED SCQ"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

LIMIT = 60
FIRST_PASSED = 3  # SD_LISTEN_FDS_START


def start_head(scored, config, listener):
    """Starts a head as the service manager does: the socket is descriptor 3."""
    def pass_socket():
        os.dup2(listener.fileno(), FIRST_PASSED)
        os.set_inheritable(FIRST_PASSED, True)  # also if it was that number before
        os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))
        os.execv(scored, [scored, '--role=head', '--config', str(config)])
    pid = os.fork()
    if pid == 0:
        try:
            pass_socket()
        finally:
            os._exit(127)
    return pid


def stop(pid):
    os.kill(pid, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main():
    unit, scored, scq = sys.argv[1:]
    text = pathlib.Path(unit).read_text()
    assert re.search(r'^ListenStream=/run/scored/head.sock$', text, re.M) and 'SocketMode=0666' in text, text
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'head.sock')
        config = pathlib.Path(folder, 'scored.toml')
        config.write_text(f'[head]\nnodes = "n0"\nlisten = "127.0.0.1:0"\nkey_file = "{folder}/key"\n'
                          f'run_dir = "{folder}"\nstate_dir = "{folder}/state"\nsocket = "{path}"\n')
        subprocess.run([scored, '--role=head', '--config', config, '--new-key'], check=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            for _ in range(2):
                with socket.socket(socket.AF_UNIX) as early:  # connects while no head runs
                    early.settimeout(LIMIT)
                    early.connect(str(path))
                    early.sendall(b'?' * 64)
                    head = start_head(scored, config, listener)
                    while early.recv(4096):  # until the head refuses it: no frame
                        pass
                assert subprocess.run([scq, '--server', path], timeout=LIMIT).returncode == 0
                assert stop(head) == 0
                assert path.is_socket(), 'the head removed a socket that is not its own'
            # The socket is at a different path.
            config.write_text(config.read_text().replace('head.sock', 'other.sock'))
            head = start_head(scored, config, listener)
            assert os.waitstatus_to_exitcode(os.waitpid(head, 0)[1]) == 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
