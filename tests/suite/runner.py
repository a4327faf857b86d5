"""Starts tasks, as many at the same time as the processors bear, beside the watcher.

A task has a demand: the processors that it keeps busy, from times.txt. Tasks start in the order given, each as soon as the sum of the
demands leaves room for it; a test that waits for most of its time therefore runs beside many others, one that computes beside few."""
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import time

import outcomes as judged
import tiers
from entries import Task, is_built
from supervise import Running

MOST = 8         # tasks per processor, whatever they demand
ROOM = 1.5       # of the processors: demands are averages, and jobs that only compute until they are seen need not compute fast
MARGIN = 600.0    # seconds after `until` in which a task that takes too long is ended
REMEMBERED = 300.0  # seconds that an ended task is remembered, to be named beside a late watcher


class Runner:
    def __init__(self, report):
        self.report = report
        self.processors = len(os.sched_getaffinity(0))
        self.running = {}    # descriptor: (task, Running, began)
        self.ended = []      # (name, began, ended)
        self.broken = set()  # fixtures whose setup failed
        self.events, self.text = [], b''
        self.number = 0
        self.places = {}     # path of the output: the task's directory for temporary files
        self.until = None
        words = [sys.executable, str(pathlib.Path(__file__).with_name('watcher.py'))]
        # ^C is for the runner, which then stops the watcher.
        self.watcher = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
        os.set_blocking(self.watcher.stdout.fileno(), False)

    def run(self, tasks, until):
        """Runs them all; gives those that could not end before `until`, which did not start."""
        waiting, late = list(tasks), []
        self.until = until
        while waiting or self.running:
            now = time.time()
            late += [task for task in waiting if not tiers.fits(task, now, until)]
            waiting = [task for task in waiting if tiers.fits(task, now, until)]
            while task := self.next_of(waiting, until is not None):
                waiting.remove(task)
                self.start(task)
            if self.running:
                self.wait(waiting)
            elif waiting:
                raise RuntimeError(f'these wait for each other: {", ".join(task.name for task in waiting)}')
        return late

    def next_of(self, waiting, in_order):
        """The first task that may start now. A serial one runs when all others are done or, in order, when its turn has come."""
        now = [task for task, _, _ in self.running.values()]
        if len(now) >= MOST * self.processors or any(task.first.is_serial for task in now):
            return None
        locks = set().union(*(task.first.locks for task in now))
        unready = set().union(*(task.first.sets_up for task in [*now, *waiting]))
        room = ROOM * self.processors - sum(task.demand for task in now)
        for task in waiting:
            fits = min(task.demand, self.processors) <= room or not now
            if task.first.is_serial and in_order and task is waiting[0]:
                return None if now else task
            if task.first.is_serial:
                fits = not now and all(other.first.is_serial for other in waiting)
            if fits and not task.first.locks & locks and not task.first.requires & unready:
                return task
        return None

    def start(self, task):
        self.number += 1
        first = task.first
        path = self.report.directory / f'{self.number:04}-{re.sub("[^A-Za-z0-9_.-]", "_", task.name)}.log'
        path.write_bytes(b'')
        lacking = self.broken & first.requires
        if first.is_disabled or not is_built(first) or lacking:
            why = 'its program is not built' if not is_built(first) else f'what it needs failed: {", ".join(lacking)}'
            word = 'skipped' if first.is_disabled else 'failed'
            self.close(task, [judged.Outcome(case, word, 0.0, 0.0, why) for case in task.cases], [], 0)
            return
        environment = dict(os.environ, **dict(word.split('=', 1) for word in first.environment if word))
        # Each pytest closes the directory of all to other users when it starts, also while a test lets them in.
        place = tempfile.mkdtemp(prefix='t', dir='/tmp')
        os.chmod(place, 0o755)
        environment['PYTEST_DEBUG_TEMPROOT'] = place
        self.places[path] = place
        running = Running(task.command(task.cases), environment, first.directory, self.limit_of(first), path)
        self.running[running.descriptor] = task, running, time.monotonic()

    def limit_of(self, entry):
        return entry.timeout if self.until is None else min(entry.timeout, self.until + MARGIN - time.time())

    def wait(self, waiting):
        """Until a task ends; takes what the watcher has said meanwhile."""
        watched = [self.watcher.stdout.fileno()] if self.watcher.poll() is None else []
        ready, _, _ = select.select([*self.running, *watched], [], [], 5)
        self.listen()
        for descriptor in ready:
            if descriptor in self.running:
                self.finish(descriptor, waiting)

    def finish(self, descriptor, waiting):
        task, running, began = self.running.pop(descriptor)
        result = running.result()
        self.clear(running.path)
        now = time.monotonic()
        self.ended = [past for past in self.ended if past[2] > now - REMEMBERED] + [(task.name, began, now)]
        text = running.path.read_text(encoding='utf-8', errors='replace')
        rest = []
        if task.is_gtest:
            found, rest = judged.of_tests(task.cases, result, text)
        else:
            found = [judged.of_entry(task.first, result, text)]
        if rest:
            waiting.insert(0, Task(task.name, rest, task.seconds, task.demand))
        self.close(task, found, result['left'], len(waiting))

    def clear(self, path):
        subprocess.run(['timeout', '60', 'rm', '-rf', '--one-file-system', self.places.pop(path)], check=False)

    def close(self, task, found, left, remaining):
        if any(outcome.word == 'failed' for outcome in found):
            self.broken |= task.first.sets_up
        self.report.add(task, found, left, remaining + len(self.running))

    # ---- the watcher

    def listen(self):
        """Reads the watcher's lines; names the tasks that ran while it was late."""
        try:
            self.text += os.read(self.watcher.stdout.fileno(), 65536)
        except BlockingIOError:
            return
        *lines, self.text = self.text.split(b'\n')
        for line in lines:
            event = json.loads(line)
            since = event['at'] - event['late']
            past = [name for name, began, ended in self.ended if ended > since and began < event['at']]
            event['beside'] = past + [task.name for task, _, began in self.running.values() if began < event['at']]
            self.events.append(event)

    def stop_watcher(self):
        """Gives what it noticed."""
        self.listen()
        if self.watcher.poll() is not None:
            self.report.say(f'the watcher ended by itself with {self.watcher.returncode}')
            self.events.append({'at': 0, 'late': 0.0, 'cause': 'unknown', 'starved': 1e9, 'beside': []})
        self.watcher.kill()
        self.watcher.wait()
        self.watcher.stdout.close()
        return self.events

    def end(self):
        for _, running, _ in self.running.values():
            running.end()
            self.clear(running.path)
        self.running.clear()
