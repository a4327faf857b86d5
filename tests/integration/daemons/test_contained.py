"""What a task may not do to its shepherd."""
from figures import figure

# As a task could do to its parent, the shepherd, which is the same user: every descriptor, and its memory.
THIEF = r'''
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
PIDFD_OPEN, PIDFD_GETFD, PTRACE_SEIZE = 434, 438, 0x4206
shepherd = os.getppid()
assert open(f"/proc/{shepherd}/comm").read() == "scored-shepherd\n"
pidfd = libc.syscall(PIDFD_OPEN, shepherd, 0)
taken = [fd for fd in range(64) if libc.syscall(PIDFD_GETFD, pidfd, fd, 0) >= 0]
traced = libc.ptrace(PTRACE_SEIZE, shepherd, 0, 0) == 0
try:
    read = bool(open(f"/proc/{shepherd}/environ").read())
except OSError:
    read = False
print("taken", taken, "traced", traced, "read", read)
'''


def test_a_task_cannot_take_its_shepherds_connection(fresh, as_root):
    cluster = fresh(1, user=65534)
    out = cluster.run('scrun', '-q', 'python3', '-c', THIEF).stdout
    figure('hole-9', f'of the shepherd: {out.strip()}')
    assert out == 'taken [] traced False read False\n'
