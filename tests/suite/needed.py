#!/usr/bin/env python3
"""needed.py BUILD REGEX: prints what ninja must build for the tests whose names match."""
import json
import pathlib
import re
import sys

import entries as listed
import one

INSTANCES = re.compile(r'^\s*INSTANTIATE_(?:TYPED_)?TEST_SUITE_P\(\s*(\w+)\s*,\s*(\w+)\s*,', re.M)
TEST_PROGRAM = re.compile(r'/test/([^/]+)$')
PROGRAM = re.compile(r' -o \S*CMakeFiles/([^/ ]+)\.dir/')


def names_in(program, text):
    """The names that ctest gives to the TEST()s of a source; of those with parameters without the number at the end."""
    instances = INSTANCES.findall(text)
    for suite, name in one.MACRO.findall(text):
        prefixes = [f'{prefix}/' for prefix, of_suite in instances if of_suite == suite]
        yield from (f'{program}.{prefix}{suite}.{name}' for prefix in prefixes or [''])


def programs_of(build, pattern):
    found = set()
    for command in json.loads((build / 'compile_commands.json').read_text(encoding='utf-8')):
        program = PROGRAM.search(command['command'])
        if not program or program[1] in found:
            continue
        for source in one.sources_of(pathlib.Path(command['file'])):
            text = source.read_text(encoding='utf-8', errors='replace') if source.is_file() else ''
            if any(pattern.search(name) for name in names_in(program[1], text)):
                found.add(program[1])
    return found


def targets_of(entries, pattern):
    """Other entries of ctest: those of a test program need this program; scripts need what users and tests start."""
    found = set()
    for entry in entries:
        if entry.filter is not None or entry.name.endswith('_NOT_BUILT') or not pattern.search(entry.name):
            continue
        program = TEST_PROGRAM.search(entry.command[0]) if entry.command else None
        found |= {program[1]} if program else {'all', 'score_test_helpers'}
    return found


def main(words):
    if len(words) != 2:
        sys.exit(__doc__)
    build, pattern = pathlib.Path(words[0]), re.compile(words[1])
    found = programs_of(build, pattern) | targets_of(listed.read_entries(build), pattern)
    print(*sorted(found or {'all', 'score_tests'}))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
