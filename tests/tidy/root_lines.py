#!/usr/bin/env python3
"""What runs as root stays short: counts the lines of code that are linked into a program, with every header of this repository that
they include, without blank lines, comments and #include lines.

usage: root_lines.py ROOT MOST SOURCE...
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)


def closure(root, sources):
    """The sources and all that they include from the repository."""
    found, left = set(), [pathlib.Path(source).resolve() for source in sources]
    while left:
        path = left.pop()
        if path in found:
            continue
        found.add(path)
        left += [(root / name).resolve() for name in INCLUDE.findall(path.read_text(encoding='utf-8'))]
    return sorted(found)


def code_lines(path):
    lines = (line.strip() for line in path.read_text(encoding='utf-8').splitlines())
    return sum(1 for line in lines if line and not line.startswith(('//', '#include', '#pragma')))


def main():
    root, most = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    total = 0
    for path in closure(root, sys.argv[3:]):
        total += code_lines(path)
        print(f'{code_lines(path):5} {path.relative_to(root)}')
    print(f'{total:5} of at most {most}')
    sys.exit(total > most)


if __name__ == '__main__':
    main()
