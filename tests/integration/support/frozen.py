"""Measures how long tasks of a cluster's jobs stay frozen."""
import pathlib
import threading
import time


def value(path, key):
    """The value of `key` in a control file; None: the cgroup is gone."""
    try:
        return next(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(key + ' '))
    except (OSError, StopIteration):
        return None


class FrozenWatch:
    """Checks every job's cgroup on every node while `with` lasts. A cgroup seen frozen counts as frozen until it is
    seen thawed or has used the processor in between."""

    def __init__(self, cluster, period=0.02):
        self.root, self.period = pathlib.Path(cluster.description['cgroup'] or '/none'), period
        self.longest, self.checks = 0.0, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def run(self):
        since = {}  # cgroup: (seen frozen first, processor time then)
        while not self.ended.wait(self.period):
            for tasks in self.root.glob('*/job_*/tasks'):
                used = value(tasks / 'cpu.stat', 'usage_usec')
                is_frozen = value(tasks / 'cgroup.events', 'frozen') == 1
                first, used_then = since.get(tasks, (None, None))
                now = time.monotonic()
                if not is_frozen:
                    since.pop(tasks, None)
                elif first is None or used != used_then:
                    since[tasks] = (now, used)
                else:
                    self.longest = max(self.longest, now - first)
                self.checks += 1
