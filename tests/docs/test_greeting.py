"""`score virtual -- bash` on a terminal: what was made, the address of the page, and commands that work."""
import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import time

from cluster import BIN, LIMIT

ADDRESS = re.compile(r'Page: +(http://127\.0\.0\.1:\d+/)')


def terminal(words, lines):
    """Types the lines, each after the prompt "$ ", and gives everything that the terminal shows."""
    child, fd = pty.fork()
    if child == 0:
        os.execve(words[0], words, {'PATH': '/usr/bin:/bin', 'PS1': '$ ', 'TERM': 'xterm', 'HOME': '/nowhere'})
    text, todo, end = '', [*lines, 'exit'], time.monotonic() + LIMIT
    with contextlib.suppress(OSError):  # EIO: the shell has ended
        while time.monotonic() < end:
            ready, _, _ = select.select([fd], [], [], 0.5)
            if ready:
                text += os.read(fd, 65536).decode(errors='replace')
            if todo and text.endswith('$ '):
                os.write(fd, (todo.pop(0) + '\n').encode())
                text += '\n'
        else:
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(fd)
    assert not todo or not lines, text
    return os.waitstatus_to_exitcode(status), text


def test_a_shell_on_a_terminal():
    status, text = terminal([str(BIN / 'score'), 'virtual', '--nodes', '2', '--cores', '3', '--', 'sh'],
                            ["scrun -N 2 -l sh -c 'echo $SCORE_NODENAME'", 'scq', 'sctop --once'])
    greeting = text.split('$ ')[0].splitlines()
    assert status == 0 and 3 <= len(greeting) <= 5, text
    assert greeting[0].startswith('Virtual cluster: 2 nodes, each with 3 cores, 1G of memory and 1G of scratch'), greeting
    assert ADDRESS.search(text), greeting
    tried = [line[7:].split('  ')[0].strip() for line in greeting[2:]]
    assert tried == ["scrun -N 2 -l sh -c 'echo $SCORE_NODENAME'", 'scq', 'sctop'], greeting
    assert '1: node01' in text and 'JOB' in text, text


def test_commands_and_scripts_get_none():
    words = [str(BIN / 'score'), 'virtual', '--nodes', '1', '--']
    _, text = terminal([*words, 'sh', '-c', 'echo only this'], [])
    assert text.split() == ['only', 'this'], text
    done = subprocess.run([*words, 'sh'], input='echo only this', capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stdout, done.stderr) == (0, 'only this\n', ''), done
