"""Random kills of everything while jobs run that check their own arithmetic.

By hand: SCORE_SOAK_SECONDS=3600 (an hour), SCORE_SEED=N (another order of kills).
"""
import collections
import contextlib
import os
import pathlib
import random
import signal
import threading
import time

import pytest
from cluster import EXAMPLES, LIMIT, wait_until
from figures import figure
from frozen import FrozenWatch
from workers import Workers

SECONDS = float(os.environ.get('SCORE_SOAK_SECONDS', 20))
SEED = int(os.environ.get('SCORE_SEED', 1))
NODES = 4
PRIME = 2147483647

# 300,000 steps of a generator whose state after each count of steps can be computed at once.
STEPS = 300_000
COMPUTES = f'''
x = 1
for _ in range({STEPS}): x = x * 48271 % {PRIME}
import sys; sys.stdout.write(str(x) + chr(10))
'''
# Rank and restart of every task that begins, one line each, written at once.
NOTE = 'echo "$0 $SCORE_RANK $SCORE_RESTART_COUNT" >> "$NOTES"; exec "$@"'


class Work(Workers):
    """Workers that run one job after the other until told to stop, and what became of each job."""

    def __init__(self, cluster, notes):
        super().__init__(3)
        self.cluster, self.notes = cluster, notes
        self.lock = threading.Lock()
        self.done = {}  # name: (exit code, stdout, stderr)

    def run(self, worker):
        chance = random.Random(SEED * 100 + worker)
        for number in range(1_000_000):
            if self.is_over.is_set():
                return
            kind = chance.choice(('talk', 'compute'))
            name = f'{kind}-{worker}-{number}'
            program = [EXAMPLES / 'pm_talk', 1] if kind == 'talk' else ['python3', '-c', COMPUTES]
            result = self.cluster.run('scrun', '-q', '--no-requeue', '-J', name, '-N', chance.choice((1, 2, 3)), 'sh', '-c', NOTE,
                                      name, *program, code=None, extra_env={'NOTES': str(self.notes)})
            if result.returncode == 125 and 'cannot reach the head' in result.stderr:
                continue  # it was not submitted
            with self.lock:
                self.done[name] = (result.returncode, result.stdout, result.stderr)


class Kills:
    """Kills something at random; remembers which jobs that may have hurt."""

    def __init__(self, cluster):
        self.cluster, self.chance = cluster, random.Random(SEED)
        self.counts = collections.Counter()
        self.struck = set()       # jobs that lost a task or a shepherd
        self.daemons = collections.defaultdict(list)  # node: when its daemon was killed, Unix time

    def processes(self, part):
        """(job, pid) of the `tasks` or `shepherd` of every attempt."""
        for file in pathlib.Path(self.cluster.description['cgroup']).glob(f'*/job_*/{part}/cgroup.procs'):
            with contextlib.suppress(OSError):  # it has ended
                job = int(file.parent.parent.name.removeprefix('job_')) >> 8
                yield from ((job, int(pid)) for pid in file.read_text().split())

    def cost_its_daemon(self, job):
        """Whether a node daemon was killed beside the job. What the daemon alone knew of a job's end is lost if the
        head dies with it."""
        begin, end = job['submitted_unix_s'], job['ended_unix_s']
        return any(begin <= at <= end for node in names_of(job['nodelist']) for at in self.daemons[node])

    def strike(self):
        kind = self.chance.choice(('head', 'node', 'launcher', 'task', 'shepherd', 'node and launcher', 'head and node'))
        if kind in ('task', 'shepherd'):
            found = sorted(self.processes('tasks' if kind == 'task' else 'shepherd'))
            if not found:
                return
            job, pid = self.chance.choice(found)
            with contextlib.suppress(ProcessLookupError):
                self.struck.add(job)
                os.kill(pid, signal.SIGKILL)
        else:
            node = f'node{self.chance.randrange(NODES):02}'
            names = {'head': ['head'], 'node': [node], 'launcher': [f'launcher-{node}'],
                     'node and launcher': [node, f'launcher-{node}'], 'head and node': ['head', node]}[kind]
            for name in names:
                assert self.cluster.daemon(name)['pid'] > 0, f'{name} ended by itself\n{self.cluster.logs(30)}'
                self.cluster.kill(name)
                self.daemons[name].append(time.time())
            for name in names:
                self.cluster.restart(name)
        self.counts[kind] += 1


def names_of(nodelist):
    """node[00,02-03]"""
    numbers = set()
    for part in nodelist.removeprefix('node').strip('[]').split(','):
        first, _, last = part.partition('-')
        numbers |= set(range(int(first), int(last or first) + 1)) if first else set()
    return [f'node{number:02}' for number in sorted(numbers)]


def is_right(name, job, code, out):
    size = job['tasks']
    if name.startswith('talk'):
        return code == 0 and out.count(': correct') == size
    return code == 0 and out == f'{pow(48271, STEPS, PRIME)}\n' * size


def has_lost_output(name, code, out, err):
    """Output that a head had got is lost if that head dies after the job's end, before the front end has come back."""
    is_fine = ': correct' if name.startswith('talk') else f'{pow(48271, STEPS, PRIME)}'
    return code == 0 and 'lost connection to the head' in err and all(is_fine in line for line in out.splitlines())


def jobs_by_name(cluster):
    rows = cluster.json('scacct')['jobs']
    return {row['name']: row for row in rows}


def test_random_kills_of_everything(fresh, as_root, tmp_path):
    cluster = fresh(NODES, '--slice', '10ms', '--cores', 2)
    if not cluster.description['cgroup']:
        pytest.skip('needs cgroups, to know whose process it kills')
    notes = tmp_path / 'notes'
    notes.touch()
    kills = Kills(cluster)
    end = time.monotonic() + SECONDS
    with FrozenWatch(cluster) as watch, Work(cluster, notes) as work:
        while time.monotonic() < end:
            time.sleep(kills.chance.uniform(0, 1.5))
            kills.strike()
    cluster.wait_up()
    wait_until(lambda: not cluster.json('scq', '--active')['jobs'], LIMIT, lambda: cluster.json('scq', '--active'))
    jobs = jobs_by_name(cluster)
    wrong, became = [], collections.Counter()
    for name, (code, out, err) in work.done.items():
        assert name in jobs, (name, code, err)
        job = jobs[name]
        if is_right(name, job, code, out):
            became['right'] += 1
        elif has_lost_output(name, code, out, err):
            became['lost output with the head'] += 1
        elif job['job'] in kills.struck and code != 0:
            became['ended with their task or shepherd'] += 1
        elif job['state'] == 'node-failed' and kills.cost_its_daemon(job):
            became['ended with their node daemon'] += 1
        else:
            wrong.append((name, code, out, err, {key: job[key] for key in ('job', 'state', 'nodelist', 'exit_code')}))
    assert not wrong, '\n'.join(map(str, wrong))
    lines = notes.read_text().splitlines()
    twice = [line for line, times in collections.Counter(lines).items() if times > 1]
    assert not twice, twice
    assert not [line for line in lines if not line.endswith(' 0')], 'a job was started again though it must not be'
    assert watch.longest < 30
    figure('soak', f'{sum(kills.counts.values())} kills in {SECONDS:.0f} s {dict(kills.counts)}: {len(work.done)} jobs, '
           f'{dict(became)}, 0 wrong, 0 ran twice, '
           f'frozen {watch.longest:.2f} s at most')
