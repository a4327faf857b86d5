"""Runs a virtual cluster for benchmarks and tests. `score virtual` boots it; tests use it through the commands."""
import contextlib
import json
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import time

BIN = pathlib.Path(os.environ.get('SCORE_BIN', 'build/release/bin')).resolve()
PROGRAMS = pathlib.Path(os.environ.get('SCBENCH_PROGRAMS', BIN)).resolve()  # scbench-*
EXAMPLES = pathlib.Path(os.environ.get('SCORE_EXAMPLES', BIN.parent / 'examples')).resolve()
LIMIT = 600  # seconds that one command or wait may take; only a fault takes that long, even on a busy machine


class Cluster:
    """A cluster that ends with the process that made it: its command is a `cat` that reads a pipe of this process."""

    def __init__(self, nodes, *options, user=None, environment=None, before=()):
        """before: words before each command, for example those of without_calls."""
        self.nodes = nodes
        self.user = user
        self.before = [*map(str, before)]
        base = dict(os.environ if environment is None else environment)
        base.pop('SCORE_OPTIONS', None)
        command = as_user(user) + self.before + [str(BIN / 'score'), 'virtual', '--nodes', str(nodes), '--print-json',
                                   *map(str, options), '--', 'cat']
        self.shm_before = shared_memory()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=base, cwd='/tmp' if user else None)
        text = ''
        for line in self.process.stdout:
            text += line.decode()
            if line == b'}\n':
                break
        assert text, 'score virtual did not come up'
        self.description = json.loads(text)
        self.directory = pathlib.Path(self.description['directory'])
        # `score virtual` sets the same for its command: Open MPI cannot know that its nodes share processors and loopback.
        base.setdefault('OMPI_MCA_mpi_yield_when_idle', '1')
        if '--netns' not in options:
            base.setdefault('OMPI_MCA_btl_tcp_if_include', 'lo')
        self.env = dict(base, SCORED_SERVER=self.description['socket'], PATH=f'{BIN}:{base["PATH"]}')

    # ---- commands

    def start(self, *words, **options):
        """Starts a command of the cluster; returns its Popen."""
        options.setdefault('stdin', subprocess.DEVNULL)
        options.setdefault('stdout', subprocess.PIPE)
        options.setdefault('stderr', subprocess.PIPE)
        options['env'] = dict(self.env, **options.pop('extra_env', {}))
        if self.user:
            options.setdefault('cwd', '/tmp')
        name, *rest = map(str, words)
        program = str(BIN / name) if (BIN / name).exists() else name
        return subprocess.Popen(as_user(self.user) + self.before + [program, *rest], text=True, **options)

    def run(self, *words, code=0, input=None, limit=LIMIT, **options):
        """Runs a command of the cluster to its end; code None accepts any exit code."""
        if input is not None:
            options['stdin'] = subprocess.PIPE
        process = self.start(*words, **options)
        try:
            out, err = process.communicate(input, timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f'{words}: not done after {limit} s\n{out}\n{err}\n{self.logs()}')
        result = subprocess.CompletedProcess(words, process.returncode, out, err)
        if code is not None:
            assert result.returncode == code, f'{words}: {result}\n{self.logs()}'
        return result

    def json(self, *words):
        return json.loads(self.run(*words, '--json').stdout)

    def submit(self, *words, **options):
        """Starts a detached job; returns its id."""
        return int(self.run('scrun', '--detach', *words, **options).stdout)

    def job(self, job):
        return self.json('score', 'job', job)['job']

    def wait_job(self, job, *states, limit=LIMIT):
        """Returns when the job is in one of the states; fails if it has ended in a different one."""
        def is_there():
            found = self.job(job)
            assert found['state'] in states or not found['final'], found
            return found['state'] in states
        wait_until(is_there, limit, lambda: self.job(job))
        return self.job(job)

    def cancel(self, *jobs):
        self.run('sccancel', '--grace', '0', *jobs, code=None)
        for job in jobs:
            wait_until(lambda: self.job(job)['final'], LIMIT)

    def cancel_all(self):
        listed = self.json('scq', '--active')['jobs']
        self.cancel(*[job['job'] for job in listed])

    # ---- daemons

    def daemon(self, name):
        description = self.describe()
        heads = [description[name] for name in ('head', 'head2') if name in description]
        for daemon in [*heads, *description['nodes'], *description['launchers']]:
            if daemon['name'] == name:
                return daemon
        raise KeyError(name)

    def describe(self):
        return json.loads((self.directory / 'cluster.json').read_text())

    def kill(self, name, number=signal.SIGKILL):
        """Returns when the daemon has ended: its sockets and locks are free."""
        process = os.pidfd_open(self.daemon(name)['pid'])
        signal.pidfd_send_signal(process, number)
        select.select([process], [], [], LIMIT)
        os.close(process)

    def restart(self, name):
        return int(self.run('score', 'virtual', '--restart', name, self.directory).stdout)

    def wait_up(self, nodes=None, limit=LIMIT):
        wait_until(lambda: self.nodes_up() == (nodes or self.nodes), limit)

    def nodes_up(self):
        result = self.run('score', 'info', '--json', code=None)
        return json.loads(result.stdout)['nodes_up'] if result.returncode == 0 else 0

    def logs(self, lines=5):
        """Returns the last lines of every log, for a failing test."""
        text = ''
        for path in sorted((self.directory / 'log').glob('*')) if self.directory.exists() else []:
            tail = path.read_text(errors='replace').splitlines()[-lines:]
            text += ''.join(f'{path.name}: {line}\n' for line in tail)
        return text[-20000:]

    # ---- the end

    def stop(self):
        """Ends the cluster and checks that nothing is left."""
        self.process.stdin.close()
        assert self.process.wait(LIMIT) == 0
        self.process.stdout.close()
        self.check_gone()

    def check_gone(self):
        assert not self.directory.exists()
        assert users_of(self.directory) == []
        if self.description['cgroup']:
            assert not pathlib.Path(self.description['cgroup']).exists()
        wait_until(lambda: not self.left_behind(), what=lambda: str(self.left_behind()))

    def left_behind(self):
        """Returns the new names in shared memory. A name that a live process uses belongs to a different cluster."""
        new = [name for name in shared_memory() - self.shm_before if 'scor' in name.lower()]
        return [name for name in new if not users_of(f'/dev/shm/{name}')]


def as_user(user):
    if user is None:
        return []
    return ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups']


def shared_memory():
    return set(os.listdir('/dev/shm'))


def abandoned_memory(before):
    """Returns the files in shared memory that are not in `before` and that no process has open or mapped. Files of other
    clusters on this machine are in use, or will be removed soon."""
    new = {name for name in shared_memory() - before if os.path.isfile(f'/dev/shm/{name}')}
    for process in pathlib.Path('/proc').iterdir() if new else []:
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            maps = (process / 'maps').read_text(errors='replace')
            new -= {name for name in new if f'/dev/shm/{name}' in maps}
            for descriptor in os.listdir(process / 'fd'):
                with contextlib.suppress(OSError):
                    new.discard(os.readlink(process / 'fd' / descriptor).removeprefix('/dev/shm/'))
    return new


def users_of(directory):
    """Returns the processes that have the cluster's directory in their environment or arguments."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            known = (entry / 'environ').read_bytes() + (entry / 'cmdline').read_bytes()
            if str(directory).encode() in known:
                found.append((int(entry.name), (entry / 'cmdline').read_bytes()))
    return found


def wait_until(claim, limit=LIMIT, what=lambda: ''):
    """Checks until the claim is true. The limit only ends a test that has failed."""
    end = time.monotonic() + limit
    while not claim():
        assert time.monotonic() < end, f'not within {limit} s {what()}'
        time.sleep(0.02)


def free_port():
    """Returns a TCP port for a program that cannot choose one. It is below those that the kernel assigns, so that no
    other program gets it in the meantime."""
    while True:
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(('127.0.0.1', random.randrange(10_000, 32_000)))
            return free.getsockname()[1]


def configure_head(cluster, text):
    """Adds to the head's configuration and restarts the head."""
    with open(cluster.directory / 'head/scored.toml', 'a') as config:
        config.write(text)
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()


def started(pid):
    """When the living process of this pid started, in ticks; None: there is none. A pid can soon be that of another process."""
    try:
        fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == 'Z' else int(fields[19])


def is_alive(pid):
    return started(pid) is not None
