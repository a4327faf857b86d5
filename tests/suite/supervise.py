"""Runs one command and everything that it starts, counts the processor time of all of that, and ends all of it at a time limit.

The supervisor is a fork of the runner. It is the "child subreaper" of the command, so that daemons whose parent has ended become its
children: their processor time counts, and none outlives the test."""
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
STAY = 10.0  # seconds that processes may go on after the command has ended
libc = ctypes.CDLL(None, use_errno=True)


def children_of(pid):
    found = []
    try:
        for task in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return found


def descendants(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def name_of(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            return file.read().replace(b'\0', b' ').decode(errors='replace').strip()[:120]
    except OSError:
        return ''


def end_all():
    """Kills what is left, again and again: it may be starting processes."""
    for _ in range(100):
        left = descendants(os.getpid())
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not reap() and not left:
            return
        time.sleep(0.02)


def reap(known=None, codes=None):
    """Takes the exit codes of what has ended. Returns False when there is no child any more."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        if pid == known:
            codes.append(os.waitstatus_to_exitcode(status))


def wait_for(pid, timeout, ended):
    """Returns (exit code or None at the limit, what was left behind)."""
    limit, codes, over = time.monotonic() + timeout, [], None
    while True:
        some_left = reap(pid, codes)
        if codes and not some_left:
            return codes[0], []
        now = time.monotonic()
        if codes and over is None:
            over = now
        if codes and now > over + STAY:
            return codes[0], [name_of(left) for left in descendants(os.getpid())]
        if not codes and now > limit:
            return None, []
        wait = (over + STAY if codes else limit) - now
        select.select([ended], [], [], min(wait + 0.01, 5))
        try:
            os.read(ended, 4096)
        except BlockingIOError:
            pass


def supervise(command, environment, directory, timeout, output):
    """Gives the outcome as a dictionary."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    began = time.monotonic()
    try:
        process = subprocess.Popen(command, env=environment, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    except OSError as error:
        output.write(f'{command[0]}: {error}\n'.encode())
        return {'code': 127, 'seconds': 0.0, 'busy': 0.0, 'left': []}
    code, left = wait_for(process.pid, timeout, read)
    process.returncode = code or 0  # already taken
    seconds = time.monotonic() - began
    end_all()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {'code': code, 'seconds': seconds, 'busy': used.ru_utime + used.ru_stime, 'left': left}


def stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_all()
    os._exit(1)


class Running:
    """A command under its supervisor. `descriptor` is readable once it has ended; then result() gives the outcome."""

    def __init__(self, command, environment, directory, timeout, path):
        read, write = os.pipe2(os.O_CLOEXEC)
        self.path, self.descriptor = path, read
        runner = os.getpid()
        self.pid = os.fork()
        if self.pid != 0:
            os.close(write)
            return
        try:  # in the supervisor
            os.setsid()
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)  # they are ignored in a suite that a shell started in the background
            signal.signal(signal.SIGTERM, stop)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
            if os.getppid() == runner:
                with open(path, 'ab', buffering=0) as output:
                    outcome = supervise(command, environment, directory, timeout, output)
                os.write(write, json.dumps(outcome).encode())
        finally:
            os._exit(0)

    def result(self):
        text = b''
        while part := os.read(self.descriptor, 65536):
            text += part
        os.close(self.descriptor)
        os.waitpid(self.pid, 0)
        return json.loads(text) if text else {'code': 127, 'seconds': 0.0, 'busy': 0.0, 'left': []}

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
