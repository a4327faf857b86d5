#!/usr/bin/env python3
"""Checks that the launcher keeps only the capabilities that it uses: with these it gives its socket to the node
daemon's user, and starts an attempt as a different user, in the attempt's cgroups if there are any. Its children
inherit the whole bounding set, and nothing in the unit restricts jobs.
usage: check_launcher.py UNIT LAUNCHER        exit 77: not root, or not allowed here"""
import contextlib
import os
import pathlib
import pwd
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

REQUEST = struct.Struct('=IIQIHBB1024s')  # scored/privileged/launcher/protocol.hpp
REPLY = struct.Struct('=IIQii40s')
MAGIC, VERSION = 0x4C524353, 10
LIMIT = 20
PARTS = ('shepherd', 'tasks', 'helpers')  # cgroups of an attempt
KEPT = (0, 1, 5, 6, 7, 23, 24)  # chown, dac_override, kill, setgid, setuid, sys_nice, sys_resource
HARDENING = ('CapabilityBoundingSet=', 'AmbientCapabilities=', 'SystemCall', 'Restrict', 'Protect', 'Private', 'NoNewPrivileges=',
             'LockPersonality=', 'MemoryDenyWriteExecute=', 'Device')


def skip(why):
    print(why)
    sys.exit(77)


def field(pid, name):
    lines = pathlib.Path('/proc', str(pid), 'status').read_text().splitlines()
    return next(line.split(':', 1)[1].split() for line in lines if line.startswith(f'{name}:'))


def wait_for(claim, what):
    end = time.monotonic() + LIMIT
    while not claim():
        assert time.monotonic() < end, f'not within {LIMIT} s: {what}'
        time.sleep(0.02)


def ask(path, user, attempt, cgroups, daemon):
    """Sends Launch with a listening socket, as the node daemon does. Returns error, step, and the pids of shepherd and spawner."""
    pipe = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(daemon.pw_gid)
        os.setuid(daemon.pw_uid)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind('')
        listener.listen()
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link.settimeout(LIMIT)
        link.connect(str(path))
        places = [os.open(cgroup, os.O_PATH | os.O_DIRECTORY) for cgroup in cgroups]
        socket.send_fds(link, [REQUEST.pack(MAGIC, VERSION, attempt, user, 0, 0, 0, b'')], [listener.fileno(), *places])
        os.write(pipe[1], link.recv(REPLY.size))
        os._exit(0)
    os.close(pipe[1])
    reply = os.read(pipe[0], REPLY.size)
    os.close(pipe[0])
    os.waitpid(child, 0)
    assert len(reply) == REPLY.size, 'no answer from the launcher'
    _, error, _, shepherd, spawner, step = REPLY.unpack(reply)
    return error, step.rstrip(b'\0').decode(), shepherd, spawner


@contextlib.contextmanager
def cgroups(attempt, daemon):
    """Makes a delegated directory with an attempt's cgroups, as the node daemon does, or none."""
    mounts = [line.split() for line in pathlib.Path('/proc/self/mounts').read_text().splitlines()]
    mount = next((words[1] for words in mounts if words[2] == 'cgroup2'), None)
    if mount is None:
        yield None
        return
    root = pathlib.Path(mount, f'scored-check-{os.getpid()}')
    made = [root, root / f'job_{attempt}', *(root / f'job_{attempt}' / part for part in PARTS)]
    try:
        for directory in made:
            directory.mkdir()
            os.chown(directory, daemon.pw_uid, daemon.pw_gid)
    except OSError:
        root = None
    try:
        yield root
    finally:
        for directory in reversed(made):
            for _ in range(200):
                with contextlib.suppress(OSError):
                    directory.rmdir()
                if not directory.exists():
                    break
                time.sleep(0.02)


def check(base, launcher, daemon, user):
    run, shepherd, attempt = base / 'run', base / 'shepherd', 256
    run.mkdir(mode=0o755)
    shepherd.write_text('#!/bin/sh\nexec sleep 60\n')
    shepherd.chmod(0o755)
    with cgroups(attempt, daemon) as root:
        process = subprocess.Popen([launcher, '--rundir', run, '--daemon-user', daemon.pw_name, '--shepherd', shepherd,
                                    '--min-uid', '1'])
        pid = spawner = 0
        try:
            path = run / 'launcher.sock'
            wait_for(lambda: process.poll() is not None or (path.exists() and path.stat().st_uid == daemon.pw_uid),
                     'a socket that belongs to the node daemon')
            assert process.poll() is None, 'the launcher did not start'
            mine, most = int(field(process.pid, 'CapPrm')[0], 16), int(field('self', 'CapPrm')[0], 16)
            assert mine == most & sum(1 << bit for bit in KEPT), f'the launcher has capabilities {mine:x}'
            assert field(process.pid, 'CapEff') == field(process.pid, 'CapPrm')
            places = [root / f'job_{attempt}' / part for part in PARTS] if root else []
            error, step, pid, spawner = ask(path, user.pw_uid, attempt, places, daemon)
            assert error == 0, f'{step}: {os.strerror(error)}'
            assert field(pid, 'Uid') == [str(user.pw_uid)] * 4
            for name in ('CapBnd', 'Seccomp', 'NoNewPrivs'):
                assert field(pid, name) == field('self', name), f'jobs inherit another {name} than the host has'
            if root:
                assert f'{root.name}/job_{attempt}/shepherd' in pathlib.Path('/proc', str(pid), 'cgroup').read_text()
        finally:
            if pid:
                os.kill(pid, signal.SIGKILL)  # the launcher becomes the parent of its processes and kills them
                wait_for(lambda: not any(pathlib.Path('/proc', str(p)).exists() for p in (pid, spawner)), 'their end')
            process.terminate()
            process.wait()


def main():
    unit, launcher = pathlib.Path(sys.argv[1]), sys.argv[2]
    found = [line for line in unit.read_text().splitlines() if line.startswith(HARDENING)]
    assert not found, f'{unit.name}: jobs would inherit {found}'
    if os.geteuid() != 0:
        skip('needs root')
    accounts = sorted((entry for entry in pwd.getpwall() if 0 < entry.pw_uid), key=lambda entry: entry.pw_uid)
    if len(accounts) < 2:
        skip('needs two accounts')
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        check(pathlib.Path(base), launcher, accounts[0], accounts[1])


main()
