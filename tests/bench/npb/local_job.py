#!/usr/bin/env python3
"""local_job.py RANKS shmem|udp COMMAND...: runs the ranks of a PM job as processes of this machine,
without scored, by an address file. Exits with 0 if all ranks do; one that fails ends the others."""
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile

LIMIT = 120  # seconds that a job may take


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


def run(ranks, device, command):
    with tempfile.TemporaryDirectory(prefix='pm-job-') as directory:
        path = address_file(ranks, device, pathlib.Path(directory))
        processes = [subprocess.Popen(command, env=dict(os.environ, PM_ADDRESS_FILE=str(path), PM_RANK=str(rank)))
                     for rank in range(ranks)]
        try:
            return max(abs(process.wait(LIMIT)) for process in processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()


if __name__ == '__main__':
    if len(sys.argv) < 4 or not sys.argv[1].isdigit() or sys.argv[2] not in ('shmem', 'udp'):
        sys.exit(__doc__)
    sys.exit(run(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
