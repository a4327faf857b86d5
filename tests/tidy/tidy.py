#!/usr/bin/env python3
"""Style as a test: what CONTRIBUTING.md promises and a machine can see.

usage: tidy.py ROOT        prints one line per fault, `file:line: rule: what`, and exits 1 if any

Rules per file: size (file, function, line), include (which folder may include which), banned (calls
that break testability or safety), trap (g++ 12 coroutine faults), pragma, test (a source without a
test), share (a full table that docs/reference/limits.md does not name), left (files that a crash or a merge left behind), wire (a text field of a message that is
compared with a literal: wire_words.py). A line is excused by a comment on it or the line above:
`tidy: allow RULE, reason`.

Rule per folder (comments.py): voice (the share of comments that begin as a fragment, names of tests).

Rules for the tree (structure.py): room (files per folder), readme (a folder without one, or a long
one), folder-cycle, file-cycle, limit (a limit that no code uses), listed (a test that ctest does
not run, a decision that the list of decisions does not name once). Rule for local names
(batches.py): batch. Rule for language (prose.py): prose. Their exceptions stand in exceptions.txt, which only ever gets shorter.
"""
import pathlib
import re
import subprocess
import sys

import batches
import comments
import prose
import structure
import wire_words

FILE_LINES, FUNCTION_LINES, LINE_CHARS = 600, 60, 100

# Folder -> folders it may include. Tests may include anything.
MAY_INCLUDE = {
    'base': {'base'},
    'proto': {'base', 'proto'},
    'gang': {'base', 'gang'},
    'pmlib': {'base', 'pmlib'},
    'pario': {'base', 'pmlib', 'pario'},
    'monitor': {'base', 'proto', 'monitor'},
    'scored': {'base', 'proto', 'gang', 'pmlib', 'monitor', 'pario', 'scored'},
    'scout': {'base', 'proto', 'scout'},
    'examples': {'examples', 'pmlib'},
}
ONLY_FOR_TESTS = {'bench', 'tests'}  # no folder above includes them
# Asio-free headers of base, the only ones that pure code may use.
PURE_FOLDERS = ('gang', 'pmlib')
PURE_BASE = {'ids', 'units', 'time', 'result', 'errc', 'limits', 'shares', 'assert', 'cpu/counter', 'exit_codes', 'lazy', 'overloaded', 'model/deadlines', 'model/model', 'model/distribution', 'model/resources', 'model/settings', 'text', 'text/plain',
             'text/hostlist'}
LIBRARY_ONLY_IN = [  # (include pattern, where it is allowed)
    (re.compile(r'<rdma/'), re.compile(r'^(bench|pmlib|tests)/')),
    (re.compile(r'<prometheus/'), re.compile(r'/observe/metrics\.|^monitor/metrics/exporter\.')),
    (re.compile(r'<systemd/'), re.compile(r'^base/systemd/[a-z_]+\.cpp$|^scored/shared/journal/journal\.cpp$')),
    (re.compile(r'\.pb\.h[">]'), re.compile(r'^(proto|scored|scout|tests)/')),
    (re.compile(r'<boost/asio'), re.compile(r'^(base|bench|tests)/')),
]
BANNED = [  # (pattern, where it is allowed, why)
    (re.compile(r'\basio::detached\b|[^_\w]detached\)'), None, 'a detached coroutine swallows exceptions: TaskGroup'),
    (re.compile(r'(?<![\w.:>])(u?sleep|nanosleep)\s*\('), re.compile(r'^(bench|examples|tests)/|_test\.cpp$'),
     'waiting is the clock\'s'),
    (re.compile(r'steady_clock::now|system_clock::now'),
     re.compile(r'^(base|bench|examples|tests)/|_test\.cpp$'), 'time is passed in (base/async/clock.hpp)'),
    (re.compile(r'(?<![\w.:>])(s?rand|system|popen|strcpy|strcat|sprintf|gets)\s*\('), None, 'unsafe or global'),
    (re.compile(r'\bstd::(cout|cerr)\b'), re.compile(r'^(bench|scout|tests|examples)/|_test\.cpp$'),
     'libraries return, daemons log'),
]
SOURCE = re.compile(r'\.(cpp|hpp|h|c)$')
MERGE_MARKER = re.compile(rb'^(<{7}|>{7}) ', re.M)
LEFT_BEHIND = re.compile(r'\.(btr|orig|rej|pyc|log)$|(^|/)core(\.\d+)?$|(^|/)score-\d+\.(out|err)$|,vm\.')
NEEDS_TEST = re.compile(r'^(base|gang|proto)/(?!pch/|async/asio_|generate_)[^.]+\.cpp$')


def tracked(root):
    """Files git knows or would add; every file where there is no git."""
    try:
        out = subprocess.run(['git', '-C', root, 'ls-files', '-co', '--exclude-standard'],
                             capture_output=True, text=True, check=True).stdout
        return sorted(set(out.splitlines()))
    except (OSError, subprocess.CalledProcessError):
        base = pathlib.Path(root)
        return sorted(str(p.relative_to(base)) for p in base.rglob('*')
                      if p.is_file() and 'build' not in p.parts)


def excused(lines, index, rule):
    mark = f'tidy: allow {rule}'
    return mark in lines[index] or (index > 0 and mark in lines[index - 1])


def code_of(line):
    """The line without string contents and comment."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r'//.*', '', line)


def check_size(path, lines):
    limit = FILE_LINES
    if len(lines) > limit:
        yield 1, 'size', f'{len(lines)} lines, at most {limit}'
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_CHARS and 'R"' not in line and 'http' not in line:
            yield number, 'size', f'line of {len(line)} characters, at most {LINE_CHARS}'
    yield from function_sizes(lines)


NOT_FUNCTION = re.compile(r'^\s*(if|for|while|switch|else|do|namespace|class|struct|enum|union|'
                          r'extern|try|catch|case|default)\b|=\s*\{$|^\s*\}')


def function_sizes(lines):
    """A function is a line that ends in `{`, has a `)`, and closes at the same indentation."""
    for start, line in enumerate(lines):
        code = code_of(line).rstrip()
        if not code.endswith('{') or ')' not in code or NOT_FUNCTION.search(code):
            continue
        indent = len(line) - len(line.lstrip())
        if indent > 2:
            continue
        closing = re.compile(r'^' + ' ' * indent + r'\}')
        for end in range(start + 1, len(lines)):
            if closing.match(lines[end]):
                if end - start - 1 > FUNCTION_LINES:
                    yield start + 1, 'size', (f'function of {end - start - 1} lines, '
                                              f'at most {FUNCTION_LINES}')
                break


def check_includes(path, lines):
    folder = path.split('/')[0]
    is_test = path.endswith('_test.cpp') or folder in ('bench', 'tests')
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith('#include'):
            continue
        for pattern, allowed in LIBRARY_ONLY_IN:
            if pattern.search(line) and not allowed.search(path) and not is_test:
                yield number, 'include', f'{line.strip()} is not for {path}'
        own = re.search(r'#include "([a-z]+)/([^"]+)"', line)
        if not own or is_test or folder not in MAY_INCLUDE or own[1] not in MAY_INCLUDE.keys() | ONLY_FOR_TESTS:
            continue
        if own[1] not in MAY_INCLUDE[folder]:
            yield number, 'include', f'{folder}/ may not include {own[1]}/'
        if folder in PURE_FOLDERS and own[1] == 'base':
            if own[2].removesuffix('.hpp') not in PURE_BASE:
                yield number, 'include', f'{folder}/ is pure: not base/{own[2]}'


def check_banned(path, lines):
    for number, line in enumerate(lines, 1):
        code = code_of(line)
        for pattern, allowed, why in BANNED:
            if pattern.search(code) and not (allowed and allowed.search(path)):
                yield number, 'banned', f'{pattern.search(code)[0].strip()}: {why}'


LAMBDA_BY_VALUE = re.compile(r'\[(=|[^\]&]*\b(?!this\b)[a-z_]\w*(\s*=[^\]]*)?)\]\s*(\(|mutable|\{)')
AGGREGATE = re.compile(r'[(,]\s*[A-Z]\w*\{[^}]')
BRACED_LIST = re.compile(r'[(,]\s*\{[^}]')


def statements(lines):
    """(number of the first line, text) of statements that contain co_await."""
    start, text = 0, ''
    for number, line in enumerate(lines, 1):
        code = code_of(line).strip()
        if not text:
            start = number
        text += ' ' + code
        if code.endswith((';', '{', '}')) or not code:
            if 'co_await' in text:
                yield start, text
            text = ''


def check_traps(path, lines):
    if path.endswith('tidy_test.py'):
        return
    for number, text in statements(lines):
        after = text[text.index('co_await'):]
        subscripts = re.sub(r'\w\[[^\]]*\]', '', after)
        if LAMBDA_BY_VALUE.search(subscripts):
            yield number, 'trap', 'lambda with captured values in a co_await statement (g++ 12 frees twice)'
        if AGGREGATE.search(after) or BRACED_LIST.search(after):
            yield number, 'trap', 'braced aggregate in a co_await statement (g++ 12 frees twice)'


def check_pragma(path, lines):
    if path.endswith('.hpp') and not any('#pragma once' in line for line in lines[:60]):
        yield 1, 'pragma', 'no #pragma once'


def check_test(path, files, lines):
    if not NEEDS_TEST.match(path) or path.endswith('_test.cpp'):
        return
    if path.removesuffix('.cpp') + '_test.cpp' in files:
        return
    if any('tested by' in line or 'tidy: allow test' in line for line in lines[:40]):
        return
    yield 1, 'test', 'no _test.cpp beside it and no "tested by" in its head'


def check_left(root, files):
    """Files that do not belong into the repository, and what a merge has left in others."""
    for path in files:
        if LEFT_BEHIND.search(path):
            yield path, 1, 'left', 'does not belong into the repository'
        data = pathlib.Path(root, path).read_bytes()
        marker = None if b'\0' in data else MERGE_MARKER.search(data)
        if marker:
            yield path, data.count(b'\n', 0, marker.start()) + 1, 'left', 'marker of an unfinished merge'


def exceptions(root):
    """(rule, subject) of each line of exceptions.txt."""
    path = pathlib.Path(root, 'tests/tidy/exceptions.txt')
    lines = path.read_text(encoding='utf-8').splitlines() if path.is_file() else []
    lines = (re.sub(r'#.*', '', line).split(None, 1) for line in lines)
    return {(words[0], words[1].strip()) for words in lines if words}


def check_tree(root, files, allowed):
    """Faults of structure.py and prose.py, and exceptions that are no longer needed."""
    needed = set()
    for rule, subject, what in [*structure.check_folders(root, files), *structure.check_limits(root, files),
                                *structure.check_listed(root, files), *structure.check_cycles(root, files, allowed),
                                *batches.check_batches(root, files)]:
        if (rule, subject) in allowed:
            needed.add((rule, subject))
        else:
            yield f'{subject}:1: {rule}: {what}'
    folders = {subject for rule, subject in allowed if rule == 'prose'}
    for path, number, what in prose.check_prose(root, files):
        covered = {subject for subject in folders if path.startswith(subject)}
        needed.update(('prose', subject) for subject in covered)
        if not covered:
            yield f'{path}:{number}: prose: {what}'
    for rule, subject in sorted(allowed - needed):
        print(f'note: tests/tidy/exceptions.txt: delete "{rule} {subject}": it is no longer needed')


def faults(root):
    files = [path for path in tracked(root) if not path.startswith('build/') and pathlib.Path(root, path).is_file()]
    known = set(files)
    words = wire_words.pattern_of(wire_words.text_fields(root))
    described = structure.described_tables(root, known)
    for path, number, rule, what in check_left(root, files):
        yield f'{path}:{number}: {rule}: {what}'
    yield from check_tree(root, files, exceptions(root))
    for path, number, what in comments.check_comments(root, files):
        yield f'{path}:{number}: voice: {what}'
    for path in files:
        if not SOURCE.search(path) or path.startswith('tests/fuzz/corpus'):
            continue
        lines = pathlib.Path(root, path).read_text(encoding='utf-8', errors='replace').splitlines()
        found = [*check_size(path, lines), *check_includes(path, lines), *check_banned(path, lines),
                 *check_traps(path, lines), *check_pragma(path, lines),
                 *check_test(path, known, lines), *structure.check_shares(path, lines, described),
                 *wire_words.check_wire_words(path, lines, words)]
        for number, rule, what in found:
            if not excused(lines, number - 1, rule):
                yield f'{path}:{number}: {rule}: {what}'


def main():
    found = list(faults(sys.argv[1] if len(sys.argv) > 1 else '.'))
    for fault in found:
        print(fault)
    print(f'{len(found)} faults')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
