"""The tests that ctest knows, as tasks of the runner.

A task is one process. An entry of ctest that is no GoogleTest is a task of its own. ctest has one entry for each TEST() of a GoogleTest
program, and 2,900 processes take a minute to start alone; a task therefore runs many TEST()s of one program, and each still counts."""
import dataclasses
import json
import os
import shutil
import subprocess

PIECE_SECONDS = 15.0  # a task of TEST()s ends about then, so that none is the last one for long
BRIEF = 0.02          # seconds that a TEST() takes which times.txt does not list
UNKNOWN = 20.0        # the same of other entries
COMPUTING = {'unit', 'flow', 'sim', 'fuzz', 'tidy'}  # labels of tests that wait little
LONG = 'long'
IGNORED = {'DEPENDS', 'COST', 'PROCESSORS', 'ENVIRONMENT_MODIFICATION', '_BACKTRACE_TRIPLES', 'MEASUREMENT', 'ATTACHED_FILES'}


class Unsupported(Exception):
    """ctest's list has a property that the runner would ignore wrongly."""


@dataclasses.dataclass
class Entry:
    """An entry of ctest."""
    name: str
    command: list
    labels: frozenset = frozenset()
    timeout: float = 1500.0
    environment: tuple = ()
    directory: str = '.'
    skip_code: int | None = None
    skip_patterns: tuple = ()
    pass_patterns: tuple = ()
    fail_patterns: tuple = ()
    is_inverted: bool = False
    is_disabled: bool = False
    is_serial: bool = False
    locks: frozenset = frozenset()
    sets_up: frozenset = frozenset()
    requires: frozenset = frozenset()

    @property
    def is_long(self):
        return LONG in self.labels

    @property
    def filter(self):
        """The name inside its GoogleTest program, or None."""
        words = [word for word in self.command if word.startswith('--gtest_filter=')]
        is_one = words and not set(words[0].split('=', 1)[1]) & set('*?:-')
        return words[0].split('=', 1)[1] if is_one else None


@dataclasses.dataclass
class Task:
    """The cases that one process runs: more than one for a GoogleTest program only."""
    name: str
    cases: list
    seconds: float   # expected, of a machine that has nothing else to do
    demand: float    # processors that it keeps busy meanwhile

    @property
    def first(self):
        return self.cases[0]

    @property
    def is_gtest(self):
        return self.first.filter is not None

    def command(self, cases):
        if not self.is_gtest:
            return self.first.command
        names = ':'.join(case.filter for case in cases)
        return [self.first.command[0], f'--gtest_filter={names}', '--gtest_also_run_disabled_tests', '--gtest_color=no']


def words_of(value):
    return tuple(value) if isinstance(value, list) else tuple(value.split(';')) if isinstance(value, str) else (value,)


KINDS = {
    'LABELS': ('labels', lambda v: frozenset(words_of(v))),
    'TIMEOUT': ('timeout', float),
    'ENVIRONMENT': ('environment', words_of),
    'WORKING_DIRECTORY': ('directory', str),
    'SKIP_RETURN_CODE': ('skip_code', int),
    'SKIP_REGULAR_EXPRESSION': ('skip_patterns', words_of),
    'PASS_REGULAR_EXPRESSION': ('pass_patterns', words_of),
    'FAIL_REGULAR_EXPRESSION': ('fail_patterns', words_of),
    'WILL_FAIL': ('is_inverted', bool),
    'DISABLED': ('is_disabled', bool),
    'RUN_SERIAL': ('is_serial', bool),
    'RESOURCE_LOCK': ('locks', lambda v: frozenset(words_of(v))),
    'FIXTURES_SETUP': ('sets_up', lambda v: frozenset(words_of(v))),
    'FIXTURES_REQUIRED': ('requires', lambda v: frozenset(words_of(v))),
}


def entry_of(test):
    """From ctest's JSON. A program that is not built has no command, or one that is no file."""
    entry = Entry(test['name'], test.get('command', []))
    for prop in test.get('properties', []):
        if prop['name'] in KINDS:
            field, read = KINDS[prop['name']]
            setattr(entry, field, read(prop['value']))
        elif prop['name'] not in IGNORED:
            raise Unsupported(f"{test['name']}: property {prop['name']}")
    return entry


def read_entries(build):
    """Every entry of ctest in this build folder. The first reading after a build writes the lists of TEST()s, so it is locked."""
    listed = subprocess.run(['flock', f'{build}/ctest.lock', 'ctest', '--test-dir', str(build), '--show-only=json-v1'],
                            stdout=subprocess.PIPE, check=True)
    return [entry_of(test) for test in json.loads(listed.stdout)['tests']]


def is_built(entry):
    return bool(entry.command) and not entry.name.endswith('_NOT_BUILT') and shutil.which(entry.command[0]) is not None


def with_fixtures(chosen, entries):
    """Adds what sets up the fixtures that the chosen ones need."""
    needed = set().union(*(entry.requires for entry in chosen)) if chosen else set()
    names = {entry.name for entry in chosen}
    return [entry for entry in entries if entry.sets_up & needed and entry.name not in names] + chosen


class Times:
    """times.txt: "NAME SECONDS PROCESSOR-SECONDS" of the tests that take a second or more, measured on two processors."""

    def __init__(self, lines=()):
        self.known = {}
        for line in lines:
            words = line.split()
            if words and not line.startswith('#'):
                self.known[words[0]] = float(words[1]), float(words[2])

    def of(self, entry):
        """(seconds, seconds of processor); a guess for what is not listed."""
        guess = BRIEF if entry.filter else 1.0 if entry.labels & COMPUTING else UNKNOWN
        share = 1.0 if entry.labels & COMPUTING else 0.5
        return self.known.get(entry.name.replace(' ', '_'), (guess, guess * share))


def task_of(name, cases, times):
    found = [times.of(case) for case in cases]
    seconds, busy = sum(s for s, _ in found), sum(b for _, b in found)
    return Task(name, cases, seconds, max(busy / max(seconds, 0.01), 0.05))


def pieces(cases, times):
    """The TEST()s of a program in their order, cut where a piece takes long enough."""
    cut, spent = [[]], 0.0
    for case in cases:
        seconds = times.of(case)[0]
        if cut[-1] and spent + seconds > PIECE_SECONDS:
            cut.append([])
            spent = 0.0
        cut[-1].append(case)
        spent += seconds
    return cut


def tasks_of(entries, times):
    """All tasks of these entries, those first from which the longest time remains."""
    tasks, programs = [], {}
    for entry in entries:
        if entry.filter is None:
            tasks.append(task_of(entry.name, [entry], times))
        else:
            # Serial or disabled TEST()s, and those with locks or fixtures of their own, do not mix with others.
            key = (entry.command[0], entry.environment, entry.directory, entry.is_serial, entry.is_disabled, entry.locks, entry.requires,
                   entry.is_long)
            programs.setdefault(key, []).append(entry)
    for (program, *_), cases in programs.items():
        cut = pieces(cases, times)
        for number, piece in enumerate(cut, 1):
            name = os.path.basename(program) + (f' {number}/{len(cut)}' if len(cut) > 1 else '')
            tasks.append(task_of(name, piece, times))
    return sorted(tasks, key=lambda task: -chain(task, tasks))


def chain(task, tasks):
    """How long it takes from this task's begin to the end of those that must wait for it: the ones with its lock, run one after the other,
    and the ones that need what it sets up."""
    locked = sum(other.seconds for other in tasks if other.first.locks & task.first.locks)
    following = max((chain(other, tasks) for other in tasks if other.first.requires & task.first.sets_up), default=0.0)
    return max(task.seconds, locked) + following
