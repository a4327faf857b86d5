"""Nothing is answered before it is on disk: full disks, and heads killed at random instants while clients change things.

`SCORE_KILLS=200` is the long form of the second."""
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import threading
import time

from cluster import wait_until
from figures import figure
from load import Client, Refused, field, numbers
from trouble import small_disk

KILLS = int(os.environ.get('SCORE_KILLS', '20'))
DONE, SUBMIT, SUBMITTED, CANCEL, CONTROL, SET, DRAIN = 4, 10, 11, 31, 32, 69, 62
HOLD, RELEASE, SET_WEIGHT, SET_PRIORITY = 2, 3, 4, 5
WEIGHT, PRIORITY, HELD = 9, 10, 11  # fields of ResourceRequest
FINAL = 5  # base::JobState: this and larger ones


# ---- full disk

def all_commands(cluster, waiting, held, other):
    """Words of a command, and what shows that it was done."""
    def job(number):
        return cluster.job(number)

    def info(name):
        return cluster.json('score', 'info')[name]

    def drained():
        return cluster.json('scnodes')['nodes'][0]['drained']

    return [
        (['scrun', '--detach', '--hold', 'true'], None),
        (['score', 'hold', waiting], lambda: 'held' in str(job(waiting)['reasons'])),
        (['score', 'weight', 77, waiting], lambda: job(waiting)['weight'] == 77),
        (['score', 'priority', 5, waiting], lambda: job(waiting)['priority'] == 5),
        (['score', 'release', held], lambda: 'held' not in str(job(held)['reasons'])),
        (['sccancel', '--grace', '0', other], lambda: job(other)['final']),
        (['scadm', 'set', 'quantum', '73ms'], lambda: abs(info('quantum_s') - 0.073) < 1e-9),
        (['scadm', 'set', 'slots', 5], lambda: info('max_slots') == 5),
        (['scadm', 'set', 'idle', 'off'], lambda: not info('idle_detection')),
        (['scadm', 'set', 'fill', 'off'], lambda: info('fill') == 'off'),
        (['scadm', 'drain', 'node[00-01]', '-m', 'fans'], drained),
        (['scadm', 'resume', 'node[00-01]'], lambda: not drained()),
    ]


def fill(filler):
    with open(filler, 'ab', buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


def test_a_full_disk_refuses_every_change(fresh, as_root):
    cluster = fresh(2, '--cores', '1')
    with small_disk(cluster, '4m') as filler:
        blocker = cluster.submit('--queue', 'exclusive', '-N', 2, 'sleep', 1000)
        cluster.wait_job(blocker, 'running')
        waiting, held, other = (cluster.submit(*words, '-N', 2, 'true') for words in ([], ['--hold'], ['--hold']))
        commands = all_commands(cluster, waiting, held, other)
        refused = 0
        for words, is_done in commands:
            before = is_done() if is_done else None
            jobs = len(cluster.json('scq')['jobs'])
            fill(filler)
            result = cluster.run(*words, code=None)
            filler.unlink()
            assert result.returncode != 0 and 'full' in result.stderr, (words, result)
            refused += 1
            if is_done:
                assert is_done() == before, f'{words} was refused and done'
            assert len(cluster.json('scq')['jobs']) == jobs
            cluster.run(*words)  # without a restart
            if is_done:
                wait_until(is_done)
        cluster.kill('head')
        cluster.restart('head')
        cluster.wait_up()
        for words, is_done in commands:
            if is_done and words[1] != 'drain':
                assert is_done(), f'{words} was answered and lost'
        assert cluster.job(blocker)['state'] == 'running'
        figure('F12', f'{refused} of {len(commands)} kinds of change refused on a full disk, 0 lost after it')
        cluster.cancel_all()


# ---- killed daemons

def test_an_end_that_no_head_has_stored_survives_all_daemons(fresh, tmp_path):
    """Node daemons and head are killed between the end of the tasks and the head's commit."""
    cluster = fresh(2, '--slice', '50ms')
    goes_on = tmp_path / 'go'
    script = (f'touch {tmp_path}/began-$$; until [ -e {goes_on} ]; do sleep 0.05; done; touch {tmp_path}/ended-$$; '
              'exit $((3 + SCORE_RANK))')
    jobs = [cluster.submit('-N', nodes, 'sh', '-c', script) for nodes in (1, 2)]
    # A job is running before its tasks begin: their start waits until the placement is on disk.
    wait_until(lambda: len(list(tmp_path.glob('began-*'))) == 3, what=lambda: [cluster.job(job) for job in jobs])
    os.kill(cluster.daemon('head')['pid'], signal.SIGSTOP)
    goes_on.touch()
    wait_until(lambda: len(list(tmp_path.glob('ended-*'))) == 3)
    time.sleep(1)  # shepherds and node daemons have reported, to a head that hears nothing
    for name in ('node00', 'node01', 'head'):
        cluster.kill(name)
    for name in ('node00', 'node01', 'head'):
        cluster.restart(name)
    cluster.wait_up()
    for job in jobs:
        ended = cluster.wait_job(job, 'failed')
        assert ended['exit_code'] in (3, 4), ended
    wait_until(lambda: not list(cluster.directory.glob('node*/shepherds/*')))
    figure('F04', 'the exit statuses of 2 jobs that ended before all daemons were killed: stored after it')


# ---- killed heads

class Job:
    """What the database may say of one job: each value is a set, of one unless an answer is missing."""

    def __init__(self):
        self.id = None
        self.runs = False
        self.weight, self.priority, self.held, self.cancelled = {100}, {0}, {True}, {False}


class Lost(Exception):
    """No answer: it was done, or not."""


class Worker(threading.Thread):
    """Changes its own jobs, and keeps the history that the database must agree with."""

    def __init__(self, path, seed, runs):
        super().__init__(daemon=True)
        self.path, self.random, self.runs = path, random.Random(seed), runs
        self.jobs, self.answers, self.error = [], 0, None
        self.may_run, self.is_parked, self.is_over = threading.Event(), threading.Event(), False
        self.client = None

    def ask(self, kind, payload, answer=DONE):
        try:
            if self.client is None:
                self.client = Client(self.path)
            reply = self.client.ask(kind, payload, answer)
        except OSError as error:
            self.client = None
            raise Lost from error
        self.answers += 1
        return reply

    def change(self, job, name, value, kind, payload):
        """While no answer is there, both values are possible."""
        possible = getattr(job, name)
        possible.add(value)
        try:
            self.ask(kind, payload)
        except Refused:
            if name == 'cancelled' or job.runs:
                return  # it has ended meanwhile
            raise
        possible.clear()
        possible.add(value)

    def submit(self):
        job = Job()
        job.runs = self.random.random() < 0.2
        request = self.random.randbytes(16)
        script = f'echo $SCORE_JOBID >> {self.runs}' if job.runs else 'true'
        program = b''.join(field(2, word) for word in ('sh', '-c', script))
        resources = field(2, 1) + field(4, 1) + field(WEIGHT, 100) + (b'' if job.runs else field(HELD, 1))
        spec = field(26, program) + field(3, 'PATH=/usr/bin:/bin') + field(4, '/') + field(9, -2) + field(14, 1)
        payload = field(2, request) + field(3, resources) + field(4, spec) + field(5, 1) + field(7, 1)
        while True:  # as a command does: the same request again
            try:
                job.id = numbers(self.ask(SUBMIT, payload, SUBMITTED))[2]
                break
            except Lost:
                self.park()
        self.jobs.append(job)

    def turn(self):
        mine = [job for job in self.jobs[-20:] if not job.runs and job.cancelled == {False}]
        if not mine or self.random.random() < 0.3:
            return self.submit()
        job = self.random.choice(mine)
        about = field(2, job.id)
        what = self.random.randrange(3)
        if what == 0:
            weight = self.random.randrange(1, 1000)
            return self.change(job, 'weight', weight, CONTROL, about + field(3, SET_WEIGHT) + field(4, weight))
        if what == 1:
            priority = self.random.randrange(1, 1000)
            return self.change(job, 'priority', priority, CONTROL, about + field(3, SET_PRIORITY) + field(5, priority))
        return self.change(job, 'cancelled', True, CANCEL, about + field(3, 0))

    def park(self):
        time.sleep(0.01)
        while not self.may_run.is_set():
            self.is_parked.set()
            self.may_run.wait(0.05)

    def run(self):
        try:
            while not self.is_over:
                with contextlib.suppress(Lost):
                    self.turn()
                if not self.may_run.is_set():
                    self.park()
        except Exception as error:  # the test shows it
            self.error = error
        finally:
            self.is_parked.set()


class Operator(Worker):
    """Changes the cluster."""

    def __init__(self, path, seed):
        super().__init__(path, seed, None)
        self.quantum, self.drained = {None}, {None}

    def set(self, possible, value, kind, payload):
        possible.add(value)
        self.ask(kind, payload)
        possible.clear()
        possible.add(value)

    def turn(self):
        if self.random.random() < 0.5:
            ms = self.random.randrange(20, 200)
            return self.set(self.quantum, f'{ms}ms', SET, field(2, 'quantum') + field(3, f'{ms}ms'))
        reason = f'reason {self.random.randrange(1000)}'
        return self.set(self.drained, reason, DRAIN, field(2, 'node01') + field(3, reason))


def read_database(directory, copy):
    """What a crash leaves, read from a copy: the head's own recovery comes later."""
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for name in ('jobs.db', 'jobs.db-wal'):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(directory / name, copy)
    with contextlib.closing(sqlite3.connect(copy / 'jobs.db')) as store:
        assert store.execute('PRAGMA integrity_check').fetchone() == ('ok',)
        jobs = {row[0]: row[1:] for row in store.execute('SELECT id, state, resources FROM jobs')}
        settings = {key: value if isinstance(value, bytes) else str(value).encode()
                    for key, value in store.execute('SELECT key, value FROM settings')}
        ended = [row[0] for row in store.execute('SELECT job FROM accounting')]
    assert len(ended) == len(set(ended)), 'a job was accounted twice'
    return jobs, settings


def check_history(workers, jobs, settings):
    """Gives how many facts were compared."""
    compared = 0
    ids = [job.id for worker in workers for job in worker.jobs]
    assert len(ids) == len(set(ids)), 'a job number was given twice'
    for worker in workers:
        for job in worker.jobs:
            assert job.id in jobs, f'job {job.id} was answered and is lost'
            state, resources = jobs[job.id]
            compared += 1
            if job.runs:
                continue
            values = numbers(resources)
            assert values.get(WEIGHT) in job.weight, (job.id, values, job.weight)
            assert values.get(PRIORITY, 0) in job.priority, (job.id, values, job.priority)
            is_cancelled = state >= FINAL or f'cancel:{job.id}' in settings
            assert is_cancelled in job.cancelled, (job.id, state, job.cancelled)
            compared += 3
    return compared


def check_operator(operator, settings):
    assert settings.get('quantum', b'').decode() in {value or '' for value in operator.quantum}
    assert settings.get('drain:node01', b'').decode() in {value or '' for value in operator.drained}


def test_clients_agree_with_the_database_after_random_kills_of_the_head(fresh, tmp_path):
    cluster = fresh(2)
    seed = int(os.environ.get('SCORE_SEED', '1'))
    chance = random.Random(seed)
    runs = tmp_path / 'runs'
    runs.touch()
    path = cluster.description['socket']
    operator = Operator(path, seed)
    workers = [Worker(path, seed + 1 + i, runs) for i in range(6)]
    everyone = [operator, *workers]
    for worker in everyone:
        worker.start()
    compared = 0
    for kill in range(KILLS):
        for worker in everyone:
            worker.may_run.set()
        time.sleep(chance.uniform(0.02, 0.5))
        cluster.kill('head')
        for worker in everyone:
            worker.may_run.clear()
            worker.is_parked.clear()
        for worker in everyone:
            assert worker.error or worker.is_parked.wait(120), 'a client waits for a dead head'
            assert worker.error is None, worker.error
        jobs, settings = read_database(cluster.directory / 'head', tmp_path / 'copy')
        compared += check_history(workers, jobs, settings) if kill % 10 == 9 or KILLS <= 50 else 0
        check_operator(operator, settings)
        cluster.restart('head')
    for worker in everyone:
        worker.is_over = True
        worker.may_run.set()
    for worker in everyone:
        worker.join(120)
        assert worker.error is None, worker.error
    cluster.wait_up()
    cluster.run('scadm', 'resume', 'node01')
    ran = [job.id for worker in workers for job in worker.jobs if job.runs]
    wait_until(lambda: cluster.json('score', 'info')['jobs_active'] <= sum(
        not job.runs for worker in workers for job in worker.jobs))
    wait_until(lambda: not [job for job in cluster.json('scq', '--active')['jobs'] if job['job'] in set(ran)])
    lines = [int(line) for line in runs.read_text().split()]
    assert len(lines) == len(set(lines)), 'a job ran twice'
    missing = {job: cluster.job(job) for job in sorted(set(ran) - set(lines))}
    assert not missing, f'answered and never ran: {missing}'
    answers = sum(worker.answers for worker in everyone)
    figure('hole-6', f'0 lost of {answers} answers over {KILLS} kills of the head, {compared} values compared')
    figure('F05', f'{KILLS} random kills: 0 answers lost, {len(ran)} jobs ran once each')
    cluster.cancel_all()
