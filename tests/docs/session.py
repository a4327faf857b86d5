"""A shell on the cluster that a page starts: the lines of the page are typed into it one by one."""
import contextlib
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import time

from cluster import BIN, EXAMPLES, LIMIT

SHELL_END = '-- bash'
ENVIRONMENT = {'COLUMNS': '150', 'TERM': 'dumb', 'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}


def make_tree(directory):
    """A directory that looks like the tree after `./try build`. What commands write into it stays out of the tree."""
    release = directory / 'build/release'
    release.mkdir(parents=True)
    for name in ('bin', 'lib'):
        (release / name).symlink_to(BIN.parent / name)
    shutil.copytree(EXAMPLES, release / 'examples', ignore=shutil.ignore_patterns('CMakeFiles', '*.cmake'))
    (directory / 'examples').symlink_to(pathlib.Path(__file__).resolve().parents[2] / 'examples')


class Session:
    """`first` is the line that starts the cluster: "build/release/bin/score virtual ... -- bash"."""

    def __init__(self, first, directory):
        self.first, self.directory, self.count = first, directory, 0
        self.marks = directory / 'marks'
        os.mkfifo(self.marks)
        # As a user of this machine, who may be root, in a wide window.
        env = {name: value for name, value in os.environ.items() if not name.startswith(('SCORE', 'SLURM', 'OMPI_'))}
        self.shell = subprocess.Popen(['bash', '-c', first], cwd=directory, env=dict(env, **ENVIRONMENT),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = os.open(self.marks, os.O_RDWR)  # never at its end
        self.background = []
        self.type(f'exec 9>{self.marks}; echo $$ >&9')
        self.pid = int(self.mark()[0])

    def type(self, line):
        self.shell.stdin.write(line + '\n')
        self.shell.stdin.flush()

    def mark(self):
        """The next line that the shell writes to the pipe of marks."""
        text, end = b'', time.monotonic() + LIMIT
        while not text.endswith(b'\n'):
            ready, _, _ = select.select([self.reader], [], [], 0.2)
            if ready:
                text += os.read(self.reader, 1)
            elif self.shell.poll() is not None:
                raise AssertionError(f'{self.first}: ended: {self.shell.stdout.read()}')
            assert time.monotonic() < end, f'{self.first}: a command has not ended'
        return text.decode().split()

    def here(self):
        """The shell's directory."""
        return pathlib.Path(os.readlink(f'/proc/{self.pid}/cwd'))

    def run(self, command, keys=None):
        """Runs a command; gives its status and the lines that it printed."""
        self.count += 1
        script, out = self.directory / f'command{self.count}', self.directory / f'output{self.count}'
        if keys is not None:
            return self.run_on_terminal(command, keys)
        script.write_text(command + '\n')
        self.type(f'eval "$(cat {script})" </dev/null >{out} 2>&1 9>&-; echo $? $! >&9')
        status, *last = self.mark()
        if last and last[0] not in [pid for pid, _, _ in self.background]:
            self.background.append((last[0], command, out))
        return int(status), out.read_text(errors='replace').splitlines()

    def run_on_terminal(self, command, keys):
        """For a command that needs a terminal: `keys` are typed 2 s after it has begun to print."""
        env = self.directory / 'environment'
        self.type(f'env -0 >{env}; pwd >{env}.pwd; echo 0 >&9')
        self.mark()
        environment = dict(one.split('=', 1) for one in env.read_text().split('\0')[:-1])
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(pathlib.Path(f'{env}.pwd').read_text().strip())
            os.execvpe('bash', ['bash', '-c', command], dict(environment, TERM='xterm', COLUMNS='120', LINES='40'))
        text, typed, end = b'', None, time.monotonic() + LIMIT
        with contextlib.suppress(OSError):  # EIO: the command has ended
            while time.monotonic() < end:
                ready, _, _ = select.select([terminal], [], [], 0.2)
                if ready:
                    text += os.read(terminal, 65536)
                if text and typed is None:
                    typed = time.monotonic() + 2
                if typed and time.monotonic() > typed:
                    os.write(terminal, keys.encode())
                    typed = end
            else:
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(terminal)
        return os.waitstatus_to_exitcode(status), text.decode(errors='replace').splitlines()

    def wait_for(self, pid):
        """The status of a command that runs in the background."""
        self.type(f'wait {pid}; echo $? >&9')
        return int(self.mark()[0])

    def close(self):
        """Ends the shell, and so the cluster; gives its status."""
        with contextlib.suppress(BrokenPipeError):
            self.shell.stdin.close()
        try:
            self.shell.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.shell.terminate()
            raise
        finally:
            os.close(self.reader)
            self.marks.unlink()
        return self.shell.returncode
