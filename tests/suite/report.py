"""Prints the report, and writes the files in BUILD/suite: run.XXXXXX has the output of each task, times.txt the times of each
test. Two runs may share a build folder; a run removes what those before it have left."""
import collections
import fcntl
import pathlib
import shutil
import tempfile
import time

SLOWEST = 20
STARVED = 2.0   # seconds without a turn that fail a run
SHOWN = 200     # lines of a failed test's output


def locked(path):
    """The open file, or None if another run has it."""
    file = open(path, 'w', encoding='utf-8')
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file
    except BlockingIOError:
        file.close()
        return None


class Report:
    def __init__(self, build):
        self.place = build / 'suite'
        self.place.mkdir(exist_ok=True)
        with open(self.place / 'lock', 'w', encoding='utf-8') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for old in self.place.glob('run.*'):
                if is_over := locked(old / 'lock'):
                    is_over.close()
                    shutil.rmtree(old)
            self.directory = pathlib.Path(tempfile.mkdtemp(prefix='run.', dir=self.place))
            self.lock = locked(self.directory / 'lock')
        self.outcomes, self.notes, self.is_interrupted = [], [], False
        self.began = time.monotonic()

    def say(self, text):
        print(text, flush=True)

    def add(self, task, outcomes, left, remaining):
        """Prints a line for the task, and the output of each failed test."""
        self.outcomes += outcomes
        seconds, busy = sum(o.seconds for o in outcomes), sum(o.busy for o in outcomes)
        words = collections.Counter(o.word for o in outcomes)
        counted = ', '.join(f'{words[word]} {word}' for word in ('passed', 'failed', 'skipped') if words[word])
        verdict = counted if task.is_gtest else outcomes[0].word
        self.say(f'{time.monotonic() - self.began:6.1f} s  {task.name}: {verdict} ({seconds:.1f} s, {busy:.1f} s of processor; '
                 f'{remaining} to go)')
        for outcome in outcomes:
            if outcome.word == 'failed':
                lines = outcome.text.splitlines()
                cut = [f'... {len(lines) - SHOWN} lines before'] if len(lines) > SHOWN else []
                self.say('\n'.join([f'==== {outcome.case.name} failed', *cut, *lines[-SHOWN:], f'==== end of {outcome.case.name}']))
        if left:
            self.notes.append(f'{task.name} left processes behind, which were killed: {"; ".join(left[:5])}')

    def left_out(self, why, entries):
        if entries:
            names = collections.Counter(entry.name if entry.filter is None else entry.name.split('.')[0] for entry in entries)
            listed = ', '.join(name if count == 1 else f'{name} ({count} tests)' for name, count in sorted(names.items()))
            self.notes.append(f'left out, {why}: {len(entries)} tests: {listed}')

    def interrupted(self):
        self.is_interrupted = True

    def slowest(self):
        slow = sorted(self.outcomes, key=lambda outcome: -outcome.seconds)[:SLOWEST]
        rows = [f'{o.seconds:8.1f} s {o.busy:8.1f} s  {o.case.name}' for o in slow]
        return '\n'.join([f'The {len(rows)} slowest tests: time, time of processor', *rows])

    def write_times(self):
        """In the form of times.txt, for all tests of a second or more."""
        known = {o.case.name.replace(' ', '_'): o for o in self.outcomes if o.word == 'passed' and o.seconds >= 1}
        lines = [f'{name} {known[name].seconds:.1f} {known[name].busy:.1f}\n' for name in sorted(known)]
        (self.directory / 'times.txt').write_text(''.join(lines), encoding='utf-8')
        (self.directory / 'times.txt').rename(self.place / 'times.txt')

    def starvation(self, events):
        """Says when ordinary programs were late, and beside what. Gives the number of failures."""
        failed = [event for event in events if event['starved'] >= STARVED]
        for event in events:
            if event['late'] >= STARVED:
                what = {'starved': 'other threads had the processors', 'stolen': 'the hypervisor took the processors away',
                        'still': 'the machine stood still: it was suspended, or its timers were blocked',
                        'unknown': 'this kernel does not say why'}[event['cause']]
                self.say(f'A program that sleeps 10 ms was {event["late"]:.1f} s late ({what}), beside: {", ".join(event["beside"])}')
        if failed:
            self.say(f'==== suite.watcher failed: {len(failed)} times a test starved the machine for {STARVED:.0f} s or more (above)')
        elif events:
            worst = max(events, key=lambda event: event['late'])
            self.say(f'Ordinary programs were late by {worst["late"]:.1f} s at most ({worst["cause"]}).')
        return 1 if failed else 0

    def close(self, events):
        """Prints the end of the report and gives the exit code."""
        self.write_times()
        words = collections.Counter(outcome.word for outcome in self.outcomes)
        seconds, busy = time.monotonic() - self.began, sum(o.busy for o in self.outcomes)
        self.say(self.slowest())
        starved = self.starvation(events)
        for note in self.notes:
            self.say(note)
        failed = [outcome.case.name for outcome in self.outcomes if outcome.word == 'failed']
        if failed:
            self.say('failed: ' + ', '.join(failed))
        if not self.outcomes:
            self.say('no test ran')
        if self.is_interrupted:
            self.say('interrupted: the other tests did not run')
        self.say(f'output of each test: {self.directory}')
        self.lock.close()
        self.say(f'{len(self.outcomes)} tests in {seconds / 60:.1f} minutes, {busy / 60:.1f} minutes of processor')
        self.say(f'{words["passed"]} passed, {words["failed"] + starved} failed, {words["skipped"]} skipped')
        return 1 if failed or starved or not self.outcomes or self.is_interrupted else 0
