#!/usr/bin/env python3
"""Checks that the journal's catalog has the ids and fields that the daemons send, and that journalctl compiles it.

usage: check_catalog.py SOURCE_DIR     exit 77: no journalctl, only the rest was checked
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ID = '[0-9a-f]{32}'


def compiled(catalog):
    """Returns the entries that journalctl shows in a separate root directory: {id: text}."""
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root, 'usr/lib/systemd/catalog')
        folder.mkdir(parents=True)
        shutil.copy(catalog, folder)
        run = ['journalctl', '--root', root]
        made = subprocess.run([*run, '--update-catalog'], capture_output=True, text=True, check=True)
        if made.stderr.strip():
            sys.exit(f'journalctl --update-catalog: {made.stderr}')
        out = subprocess.run([*run, '--dump-catalog'], capture_output=True, text=True, check=True).stdout
    parts = re.split(rf'^-- ({ID})$', out, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def main():
    source = pathlib.Path(sys.argv[1])
    code = (source / 'scored/shared/journal/event.cpp').read_text()
    catalog = source / 'deploy/systemd/scored.catalog'
    text = catalog.read_text()
    sent = re.findall(rf'\{{"({ID})"', code)
    fields = set(re.findall(r'\{"[a-z_]+", "([A-Z_]+)"\}', code))
    explained = re.findall(rf'^-- ({ID})$', text, re.M)
    listed = re.findall(rf'^({ID})$', (source / 'deploy/man/scored.8.scd').read_text(), re.M)
    faults = []
    if not sent or not fields:
        faults.append('event.cpp: no ids or no fields found')
    for name, ids in (('scored.catalog', explained), ('scored.8.scd', listed)):
        have, want = collections.Counter(ids), collections.Counter(sent)
        faults += [f'{name}: {one} is missing, or twice in the code' for one in want - have]
        faults += [f'{name}: {one} is not sent, or twice here' for one in have - want]
    faults += [f'scored.catalog: no field {name}' for name in set(re.findall(r'@(.*?)@', text)) - fields]
    if shutil.which('journalctl'):
        shown = compiled(catalog)
        faults += [f'journalctl does not show {one}' for one in sent if 'Subject: ' not in shown.get(one, '')]
    print('\n'.join(faults) or f'{len(sent)} ids, {len(fields)} fields')
    return 1 if faults else 0 if shutil.which('journalctl') else 77


if __name__ == '__main__':
    sys.exit(main())
