"""Reads the outcome of each case from the exit code and the output of a task's process."""
import dataclasses
import re
import signal

# A test may print before these words without an end of line.
STARTED = re.compile(r'\[ RUN      \] (\S+)')
ENDED = re.compile(r'\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)(?:, where [^\n]*)? \((\d+) ms\)')
WORDS = {'OK': 'passed', 'FAILED': 'failed', 'SKIPPED': 'skipped'}


@dataclasses.dataclass
class Outcome:
    case: object
    word: str            # passed, failed, skipped
    seconds: float
    busy: float          # seconds of processor
    text: str = ''       # why it failed: its output


def ending(code, seconds):
    if code is None:
        return f'ended after {seconds:.0f} s, its limit'
    return f'killed by {signal.Signals(-code).name}' if code < 0 else f'exit code {code}'


def of_entry(entry, result, text):
    """Judges an entry that is not a TEST(), as ctest does."""
    code = result['code']
    matches = lambda patterns: any(re.search(pattern, text) for pattern in patterns)
    if code is not None and (code == entry.skip_code or matches(entry.skip_patterns)):
        word = 'skipped'
    elif code is None or code < 0 or matches(entry.fail_patterns):
        word = 'failed'
    else:
        is_good = matches(entry.pass_patterns) if entry.pass_patterns else code == 0
        word = 'passed' if is_good != entry.is_inverted else 'failed'
    if word == 'failed':
        text += f'\n{ending(code, result["seconds"])}\n'
    return Outcome(entry, word, result['seconds'], result['busy'], text)


def of_tests(cases, result, text):
    """(the outcomes of TEST()s of one program, the cases that did not start). A program that dies, or that fails though its tests pass,
    fails the test that it was in, or else its last one."""
    by_name = {case.filter: case for case in cases}
    found = {}
    share = result['busy'] / max(result['seconds'], 0.001)  # each by its time
    begins = {match[1]: match.start() for match in STARTED.finditer(text)}
    for match in ENDED.finditer(text):
        name, word = match[2], WORDS[match[1].strip()]
        if name in by_name and name not in found:
            seconds = int(match[3]) / 1000
            shown = text[begins.get(name, 0):match.end()] + '\n' if word == 'failed' else ''
            found[name] = Outcome(by_name[name], word, seconds, seconds * share, shown)
    undone = [case for case in cases if case.filter not in found]
    has_failed = any(outcome.word == 'failed' for outcome in found.values())
    if not undone and result['code'] == int(has_failed):
        return list(found.values()), []
    unfinished = [name for name in begins if name in by_name and name not in found]
    blamed = by_name[unfinished[-1]] if unfinished else undone[0] if undone else cases[-1]
    why = f'{text[begins.get(blamed.filter, 0):]}\nthe program ended: {ending(result["code"], result["seconds"])}\n'
    before = sum(outcome.seconds for outcome in found.values() if outcome.case is not blamed)
    found[blamed.filter] = Outcome(blamed, 'failed', max(result['seconds'] - before, 0.0), 0.0, why)
    return list(found.values()), [case for case in undone if case is not blamed]
