#!/usr/bin/env python3
"""local_job.py RANKS shmem|udp|datagrams COMMAND...: runs the ranks of a job as local processes, without scored.
The ranks of a PM job find each other by an address file, those of `datagrams` (npb-udp) by inherited sockets. The program exits with 0
if all ranks do; a rank that fails ends the others."""
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile

LIMIT = 600  # seconds that a job may take
FIRST_SOCKET = 300  # descriptor in the ranks


def free_ports(count):
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for each in sockets:
        each.bind(('127.0.0.1', 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def address_file(ranks, device, directory):
    lines = [f'key {secrets.randbits(60) + 1:x}']
    lines += ['device none', f'shmem {directory}/context'] if device == 'shmem' else [f'device {device}']
    lines += [f'rank {rank} host 127.0.0.1:{port}' for rank, port in enumerate(free_ports(ranks))]
    path = directory / 'job'
    path.write_text('\n'.join(lines) + '\n')
    return path


def bound_sockets(count):
    """Returns consecutive descriptors from FIRST_SOCKET on, already bound, so that nothing sent is lost. The caller must close them."""
    found = range(FIRST_SOCKET, FIRST_SOCKET + count)
    for descriptor in found:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
            each.bind(('127.0.0.1', 0))
            os.dup2(each.fileno(), descriptor)
    return found


def run(ranks, device, command):
    with tempfile.TemporaryDirectory(prefix='pm-job-') as directory:
        if device == 'datagrams':
            inherited, words = bound_sockets(ranks), {'NPB_RANKS': str(ranks), 'NPB_FIRST_SOCKET': str(FIRST_SOCKET)}
        else:
            inherited, words = (), {'PM_ADDRESS_FILE': str(address_file(ranks, device, pathlib.Path(directory)))}
        processes = [subprocess.Popen(command, env={**os.environ, **words, 'PM_RANK': str(rank), 'NPB_RANK': str(rank)},
                                      pass_fds=inherited) for rank in range(ranks)]
        try:
            return max(abs(process.wait(LIMIT)) for process in processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()


if __name__ == '__main__':
    if len(sys.argv) < 4 or not sys.argv[1].isdigit() or sys.argv[2] not in ('shmem', 'udp', 'datagrams'):
        sys.exit(__doc__)
    sys.exit(run(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
