#!/usr/bin/env python3
"""Compares the settings in scadm(1) and scored.toml(5) with those of `scadm set --help`, or writes them there.

usage: settings.py SCADM [--write]
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ENTRY = re.compile(r'^  (\w+) \((.*); default (.*)\)\n((?:      .*\n)+)', re.M)
SECTION = re.compile(r'(?<=; settings: written by deploy/man/settings.py\n).*?(?=; end of settings\n)', re.S)
KEYS = {'idle': 'idle_detection'}  # where scored.toml has another word


def read_settings(scadm):
    text = subprocess.run([scadm, 'set', '--help'], capture_output=True, text=True, check=True).stdout
    found = [(name, values, initial, ' '.join(purpose.split())) for name, values, initial, purpose in ENTRY.findall(text + '\n')]
    assert found, text
    return found


def command_section(found):
    return ''.join(f'\n*set {name}*\n\tSet to {values}. {purpose}\n' for name, values, _, purpose in found) + '\n'


def file_section(found):
    """A time is a string in quotes there; a switch is true or false, or "on" or "off"."""
    found = [(name, values.replace('on or off', 'true or false, or "on" or "off"'), *rest) for name, values, *rest in found]
    return ''.join(f'\n*{KEYS.get(name, name)}*\n\t{purpose} {values[0].upper() + values[1:]}. Default: {initial}. *scadm set {name}* changes it.\n'
                   for name, values, initial, purpose in found) + '\n'


def main():
    found = read_settings(sys.argv[1])
    is_same = True
    for page, section in (('scadm.1.scd', command_section(found)), ('scored.toml.5.scd', file_section(found))):
        text = (HERE / page).read_text(encoding='utf-8')
        wanted, count = SECTION.subn(lambda _: section, text)
        assert count == 1, f'{page}: no section of settings'
        if wanted == text:
            continue
        is_same = False
        if '--write' in sys.argv:
            (HERE / page).write_text(wanted, encoding='utf-8')
        else:
            print(f'{page}: differs from scadm set --help; run deploy/man/settings.py SCADM --write')
    sys.exit(0 if is_same or '--write' in sys.argv else 1)


if __name__ == '__main__':
    main()
