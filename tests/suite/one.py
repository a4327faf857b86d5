#!/usr/bin/env python3
"""one.py BUILD FILE.cpp[::TEST]: prints the test program that has this file, and the GoogleTest filter of its tests.

TEST is a name, a suite's name or SUITE.NAME."""
import json
import pathlib
import re
import sys

# TEST(Suite, Name), TEST_F, TEST_P, TYPED_TEST, TYPED_TEST_P
MACRO = re.compile(r'^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)', re.M)


def sources_of(compiled):
    """The file itself, or the files of a batch that SCORE_UNITY_TESTS compiles as one."""
    if compiled.parent.name != 'Unity':
        return {compiled}
    return set(map(pathlib.Path, re.findall(r'^#include "(.*)"', compiled.read_text(encoding='utf-8'), re.M)))


def program_of(build, path):
    """The target that compiles the file, from the name of its object."""
    for command in json.loads((build / 'compile_commands.json').read_text(encoding='utf-8')):
        if path in sources_of(pathlib.Path(command['file'])):
            found = re.search(r' -o \S*CMakeFiles/([^/ ]+)\.dir/', command['command'])
            if found:
                return found[1]
    sys.exit(f'{path}: no test program has this file')


def filter_of(path, test):
    """Names with a parameter have it before and after."""
    named = [(suite, name) for suite, name in MACRO.findall(path.read_text(encoding='utf-8'))
             if test in ('', suite, name, f'{suite}.{name}')]
    if not named:
        sys.exit(f'{path}: no test {test}')
    return ':'.join(form.format(suite, name) for suite, name in named for form in ('{}.{}', '*/{}.{}/*', '{}/*.{}'))


def main(words):
    if len(words) != 2:
        sys.exit(__doc__)
    file, _, test = words[1].partition('::')
    path = pathlib.Path(file).resolve()
    if not path.is_file():
        sys.exit(f'{file}: no such file')
    print(program_of(pathlib.Path(words[0]), path), filter_of(path, test))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
