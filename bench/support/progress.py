"""Reads the counter files of examples/progress.c; examples/progress.h defines the layout."""
import mmap
import os
import struct
import time

from cluster import EXAMPLES, wait_until

MAGIC = 0x31474f5250435353
HEADER_BYTES, RING = 4096, 1024
SLOT_BYTES = 64 + 64 + RING * 16


class Counters:
    """The counters of one running job."""

    def __init__(self, path, ranks, what=lambda: ''):
        self.path, self.ranks = path, ranks
        wait_until(self._is_ready, what=what)
        with open(path, 'rb') as file:
            self.memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def _is_ready(self):
        try:
            return os.path.getsize(self.path) >= HEADER_BYTES + self.ranks * SLOT_BYTES
        except OSError:
            return False

    def _field(self, rank, offset):
        return struct.unpack_from('<Q', self.memory, HEADER_BYTES + rank * SLOT_BYTES + offset)[0]

    def counter(self, rank):
        return self._field(rank, 0)

    def total(self):
        return sum(self.counter(rank) for rank in range(self.ranks))

    def last_ns(self, rank):
        return self._field(rank, 8)

    def first_ns(self, rank):
        return self._field(rank, 96 + 8)

    def all_started(self):
        return all(self.last_ns(rank) for rank in range(self.ranks))

    def gaps(self, rank):
        """Returns (count, sum in ns, longest in ns)."""
        return self._field(rank, 64), self._field(rank, 72), self._field(rank, 80)

    def intervals(self, rank):
        """Returns the latest run intervals of the rank, at most RING: [(start_ns, end_ns)]."""
        count = self._field(rank, 96)
        base = HEADER_BYTES + rank * SLOT_BYTES + 128
        # The rank may overwrite the oldest ones while they are read.
        kept = range(max(0, count - RING + 32), count)
        found = [struct.unpack_from('<QQ', self.memory, base + i % RING * 16) for i in kept]
        return [(start, end) for start, end in found if end > start]


def start_progress(cluster, tmp_path, name, nodes, *options, seconds=0, gap_us=1000):
    """Starts a detached job whose ranks count. Returns (job id, its Counters)."""
    path = tmp_path / name
    job = cluster.submit('-N', nodes, '-J', name, *options, EXAMPLES / 'progress', '--counters', path,
                         '--seconds', seconds, '--gap-us', gap_us)
    cluster.wait_job(job, 'running', 'completed')
    counters = Counters(path, nodes, lambda: cluster.job(job))
    wait_until(counters.all_started, what=lambda: cluster.job(job))
    return job, counters


def merge(intervals, slack_ns=0):
    """Returns the intervals sorted, with adjacent ones joined."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1] + slack_ns:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def overlaps(left, right):
    """Returns the intervals in which both run, from two merged lists."""
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < end:
            found.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found


def wait_shares(counters, claim, seconds=3):
    """Waits until the jobs' work in such a period is as claimed. Other programs may disturb one period; a wrong
    timetable disturbs all."""
    seen = []

    def is_so():
        seen.append(advance(counters, seconds))
        return all(seen[-1]) and claim(seen[-1])
    wait_until(is_so, what=lambda: seen)


def advance(counters, seconds):
    """Returns how far the total of each job advanced in that time."""
    before = [c.total() for c in counters]
    time.sleep(seconds)
    return [c.total() - b for c, b in zip(counters, before)]
