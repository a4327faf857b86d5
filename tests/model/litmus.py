#!/usr/bin/env python3
"""Checks litmus tests under the C++ memory model, as herd7 does, which Debian 12 does not have.

  litmus.py FILE.litmus...            every execution that RC11 allows
  litmus.py --herd7 FILE.litmus...    the same by herd7; exit code 77 if it is not installed

The files have herd7's format for C, of which this reads: explicit loads, stores and exchanges, fences, plain accesses,
"if" without "else", and a last line "exists" (some execution ends so) or "~exists" (none does, and none has a data race).
The model: Lahav, Vafeiadis, Kang, Hur, Dreyer, "Repairing sequential consistency in C/C++11" (PLDI 2017), with the release
sequences of C++20. Compilers map it to arm64 as to x86-64, so what it forbids happens on neither."""
import itertools
import pathlib
import re
import shutil
import subprocess
import sys

CALL = r'(?:(?:int )?(\w+) = )?atomic_(load|store|exchange)_explicit\((\w+), (?:(\w+), )?memory_order_(\w+)\);'
STATEMENT = re.compile(rf'{CALL}|atomic_thread_fence\(memory_order_(\w+)\);|(?:int )?(\w+) = \*(\w+);|\*(\w+) = (\w+);'
                       r'|if \((\w+) == (\w+)\) \{|(\})')
ACQUIRES, RELEASES = {'acquire', 'acq_rel', 'seq_cst'}, {'release', 'acq_rel', 'seq_cst'}


class Event:
    """An access or a fence; an exchange is one that reads and writes."""

    def __init__(self, thread, place='', order='plain', read=None, written=None):
        self.thread, self.place, self.order, self.read, self.written = thread, place, order, read, written

    reads = property(lambda self: self.read is not None)
    writes = property(lambda self: self.written is not None)
    is_fence = property(lambda self: not self.place)
    is_atomic = property(lambda self: self.order != 'plain')


def parse(text):
    """(the statements of each thread, the word exists or ~exists, the condition)"""
    text = re.sub(r'\(\*.*?\*\)', '', text, flags=re.S)
    threads = []
    for body in re.findall(r'^P\d+ ?\([^)]*\) ?\{$(.*?)^\}$', text, flags=re.S | re.M):
        lines = [line.strip() for line in body.splitlines() if line.strip()]
        found = [STATEMENT.fullmatch(line) for line in lines]
        assert all(found), f'cannot read: {lines[found.index(None)]}'
        threads.append([match.groups() for match in found])
    word, condition = re.search(r'^(~?exists) \((.*)\)$', text, flags=re.M).groups()
    parts = [re.fullmatch(r'(\d+):(\w+)=(\d+)', part.strip()).groups() for part in condition.split('/\\')]
    return threads, word, [(int(thread), register, int(value)) for thread, register, value in parts]


def end_of_block(statements, at):
    depth = 1
    while depth > 0:
        depth += 1 if statements[at][10] else -1 if statements[at][12] else 0
        at += 1
    return at


def runs(thread, statements, values):
    """Each way in which a thread can run: its events, and its registers at the end."""
    def value(word, registers):
        return registers[word] if word in registers else int(word)

    def go_on(at, events, registers):
        while at < len(statements):
            register, call, place, word, order, fence, to, source, target, stored, left, right, _ = statements[at]
            at += 1
            if left and value(left, registers) != value(right, registers):
                at = end_of_block(statements, at)
            elif fence:
                events = [*events, Event(thread, order=fence)]
            elif target or call == 'store':
                written = value(word if call else stored, registers)
                events = [*events, Event(thread, target or place, order or 'plain', written=written)]
            elif call or source:
                written = value(word, registers) if call == 'exchange' else None
                for read in values(source or place):
                    event = Event(thread, source or place, order or 'plain', read, written)
                    yield from go_on(at, [*events, event], registers | {register or to or '': read})
                return
        yield events, registers

    return go_on(0, [], {})


def all_runs(threads):
    """The runs of each thread, with every value that any of them can write."""
    written = {}
    while True:
        found = [list(runs(i, statements, lambda place: {0} | written.get(place, set()))) for i, statements in enumerate(threads)]
        size = sum(map(len, written.values()))
        for event in (event for thread in found for events, _ in thread for event in events if event.writes):
            written.setdefault(event.place, set()).add(event.written)
        if sum(map(len, written.values())) == size:
            return found


# ---- Relations are sets of pairs of the events' indices. -----------------------------------------

def join(*relations):
    result = relations[0]
    for other in relations[1:]:
        after = {}
        for a, b in other:
            after.setdefault(a, []).append(b)
        result = {(a, c) for a, b in result for c in after.get(b, ())}
    return result


def closure(relation):
    result = set(relation)
    while not (more := join(result, relation)) <= result:
        result |= more
    return result


def is_acyclic(relation):
    return all(a != b for a, b in closure(relation))


class Execution:
    """Events with the paper's relations: order in the program (sb), reads-from (rf), order of the writes of a place (mo)."""

    def __init__(self, events, sb, rf, mo):
        self.events, self.sb, self.rf, self.mo = events, sb, rf, mo
        self.all = {(i, i) for i in range(len(events))}
        self.rb = {(r, w) for source, r in rf for before, w in mo if source == before and r != w}

    def those(self, test):
        return {(i, i) for i, event in enumerate(self.events) if test(event)}

    def happens_before(self):
        release, acquire = self.those(lambda e: e.order in RELEASES), self.those(lambda e: e.order in ACQUIRES)
        fence = self.those(lambda e: e.is_fence)
        sequence = closure(self.all | join(self.rf, self.those(lambda e: e.reads and e.writes)))
        stores, loads = self.those(lambda e: e.writes and e.is_atomic), self.those(lambda e: e.reads and e.is_atomic)
        synchronizes = join(release, self.all | join(fence, self.sb), stores, sequence, self.rf, loads,
                            self.all | join(self.sb, fence), acquire)
        return closure(self.sb | synchronizes)

    def is_consistent(self, hb):
        eco = closure(self.rf | self.mo | self.rb)
        maybe_hb = self.all | hb
        if any(a == b for a, b in join(hb, self.all | eco)) or not is_acyclic(self.sb | self.rf):
            return False
        if self.all & join(self.rb, self.mo):  # another write came between the two halves of an exchange
            return False
        strong = self.those(lambda e: e.order == 'seq_cst')
        fence = self.those(lambda e: e.order == 'seq_cst' and e.is_fence)

        def same(pair):
            return self.events[pair[0]].place == self.events[pair[1]].place != ''

        elsewhere = {pair for pair in self.sb if not same(pair)}
        scb = self.sb | join(elsewhere, hb, elsewhere) | {pair for pair in hb if same(pair)} | self.mo | self.rb
        base = join(strong | join(fence, maybe_hb), scb, strong | join(maybe_hb, fence))
        return is_acyclic(base | join(fence, hb | join(hb, eco, hb), fence))

    def has_race(self, hb):
        pairs = itertools.combinations(enumerate(self.events), 2)
        return any(one.place == other.place != '' and (one.writes or other.writes) and not (one.is_atomic and other.is_atomic)
                   and (a, b) not in hb and (b, a) not in hb for (a, one), (b, other) in pairs)


def executions(chosen):
    """The candidates for one run of each thread: each read reads from some write, the writes of a place have some order."""
    places = sorted({event.place for events, _ in chosen for event in events if event.place})
    events = [Event(-1, place, written=0) for place in places] + [event for events, _ in chosen for event in events]
    sb = {(a, b) for a in range(len(events)) for b in range(a + 1, len(events))
          if events[b].thread >= 0 and events[a].thread in (-1, events[b].thread)}
    reads = [i for i, event in enumerate(events) if event.reads]
    sources = [[w for w, event in enumerate(events) if event.place == events[r].place and event.written == events[r].read
                and w != r and (r, w) not in sb] for r in reads]
    writes = [[w for w, event in enumerate(events) if event.writes and event.place == place] for place in places]
    orders = [[(first, *order) for order in itertools.permutations(others)] for first, *others in writes]
    for picked in itertools.product(*sources):
        for order in itertools.product(*orders):
            mo = {pair for one in order for pair in itertools.combinations(one, 2)}
            yield Execution(events, sb, set(zip(picked, reads)), mo)


def check(text):
    """None, or what contradicts the last line."""
    threads, word, condition = parse(text)
    happened = False
    for chosen in itertools.product(*all_runs(threads)):
        meets = all(chosen[thread][1].get(register) == value for thread, register, value in condition)
        if word == 'exists' and not meets:
            continue
        for execution in executions(chosen):
            hb = execution.happens_before()
            if not execution.is_consistent(hb):
                continue
            if word == '~exists' and execution.has_race(hb):
                return 'an execution has a data race'
            happened = happened or meets
    return None if happened == (word == 'exists') else f'the condition is {"met" if happened else "never met"}'


def run_herd7(files):
    if not shutil.which('herd7'):
        print('herd7 is not installed')
        return 77
    result = subprocess.run(['herd7', '-model', 'rc11.cat', *files], capture_output=True, text=True, check=False)
    print(result.stdout, result.stderr)
    return 0 if result.stdout.count('\nOk\n') == len(files) else 1


def main(words):
    if words[0] == '--herd7':
        return run_herd7(words[1:])
    failed = 0
    for path in map(pathlib.Path, words):
        problem = check(path.read_text(encoding='utf-8'))
        print(f'{path.stem}: {problem or "as expected"}')
        failed += problem is not None
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
