#!/usr/bin/env python3
"""Checks that a program's --help and its man page name the same options.

usage: check_man.py PAGE.scd PROGRAM [WORD...]    e.g. check_man.py scadm.1.scd build/bin/scadm
       Several invocations may be joined by a single '+': score + score job + score info.
"""
import re
import subprocess
import sys

LONG = re.compile(r'(?<![\w-])(--?[a-zA-Z][a-zA-Z0-9-]*)')


def options_of_help(command):
    run = subprocess.run([*command, '--help'], capture_output=True, text=True, timeout=20)
    if run.returncode != 0:
        sys.exit(f'{" ".join(command)} --help ended with {run.returncode}: {run.stderr}')
    found = set()
    for line in run.stdout.splitlines():
        head = re.match(r'^(?:usage: \S+|\s)\s+(\[?-\S.*?)(?:\s{2,}|$)', line)
        if head:
            found |= {o for o in LONG.findall(head[1]) if o.startswith('--')}
    return found | {'--help'}  # it was used just now


def subcommands_of_help(command):
    run = subprocess.run([*command, '--help'], capture_output=True, text=True, timeout=20)
    section = re.search(r'^Subcommands:\n((?:\s+\S.*\n?)+)', run.stdout, re.M)
    return re.findall(r'^\s{2}([a-z]+)\s', section[1], re.M) if section else []


def options_of_page(page):
    text = open(page, encoding='utf-8').read()
    section = text[text.index('\n# OPTIONS'):]
    end = section.find('\n# ', 3)
    section = section[:end] if end > 0 else section
    found = set()
    for line in section.splitlines():
        if line.startswith('*-'):
            found |= set(re.findall(r'\*(--[a-z][a-z0-9-]*)\*', line))
    return found


def main():
    page, words = sys.argv[1], sys.argv[2:]
    commands = [[]]
    for word in words:
        commands.append([]) if word == '+' else commands[-1].append(word)
    helped = set()
    for command in commands:
        helped |= options_of_help(command)
        for name in subcommands_of_help(command):
            helped |= options_of_help([*command, name])
    paged = options_of_page(page)
    for option in sorted(helped - paged):
        print(f'{page}: {option} is in --help but not in the page')
    for option in sorted(paged - helped):
        print(f'{page}: {option} is in the page but not in --help')
    if not helped:
        print(f'{page}: --help names no option')
    return 0 if helped and helped == paged else 1


if __name__ == '__main__':
    sys.exit(main())
