#!/usr/bin/env python3
"""Checks deploy/Containerfile: its instructions are known, and its stages, packages and programs exist. The test
boot.container builds it.

usage: check_containerfile.py ROOT
"""
import fnmatch
import json
import pathlib
import re
import shlex
import sys

INSTRUCTIONS = {'ARG', 'CMD', 'COPY', 'ENTRYPOINT', 'ENV', 'EXPOSE', 'FROM', 'RUN', 'USER', 'WORKDIR'}


def instructions(text):
    """Returns (word, rest) of each instruction, with continued lines joined."""
    lines = [line for line in text.splitlines() if not line.startswith('#')]
    for line in re.sub(r'\\\n', '', '\n'.join(lines)).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(' ')
            yield word, rest.strip()


def installed_programs(root):
    """Returns the paths where install() puts programs: {"/usr/sbin/scored"}."""
    found = set()
    for path in root.glob('**/CMakeLists.txt'):
        if 'build' in path.relative_to(root).parts[:1]:
            continue
        for names, place in re.findall(r'install\((?:TARGETS|PROGRAMS)\s+(.*?)\s+(?:RUNTIME\s+)?DESTINATION\s+(\S+?)\)',
                                       path.read_text(encoding='utf-8'), re.S):
            found |= {f'/usr/{place}/{name}' for name in names.split()}
        for name, place in re.findall(r'score_install_unreadable\((\S+)\s+(\S+?)\)', path.read_text(encoding='utf-8')):
            found.add(f'/usr/{place}/{name}')
    return found


def check_copy(root, words):
    files = [f'{path.stem}_1_all.deb' for path in (root / 'debian').glob('*.install')]
    return [f'COPY of {word}, which is no package' for word in words[:-1] if not fnmatch.filter(files, word)]


def faults(root):
    stages = []
    text = (root / 'deploy/Containerfile').read_text(encoding='utf-8')
    for word, rest in instructions(text):
        if word not in INSTRUCTIONS:
            yield f'unknown instruction {word}'
        elif not stages and word not in ('FROM', 'ARG'):
            yield f'{word} before FROM'
        if word == 'FROM':
            source, _, name = rest.partition(' AS ')
            if ':' not in source and source not in stages:
                yield f'FROM the unknown stage {source}'
            stages.append(name)
        elif word == 'COPY':
            yield from check_copy(root, rest.split())
        elif word == 'CMD':
            json.loads(rest)
        elif word == 'RUN':
            shlex.split(rest)
    known = installed_programs(root)
    for path in sorted(set(re.findall(r'/usr/(?:s?bin|libexec/scored)/[a-z-]+', text)) - known):
        yield f'{path} is not installed'
    for target in re.findall(r'--target (\w+)', text):
        if target not in stages:
            yield f'no stage {target}'


def main():
    found = list(faults(pathlib.Path(sys.argv[1])))
    for fault in found:
        print(f'deploy/Containerfile: {fault}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
