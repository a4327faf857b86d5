#!/usr/bin/env python3
"""check_rows.py REPOSITORY: each row G1 ... of the table in docs/reference/pm.md has a packet script, a test of
pmlib whose name says the row; and each repair that the engine can switch off has a search that
must fail without it."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
rows = set()
for line in (root / 'docs/reference/pm.md').read_text().splitlines():
    cells = re.match(r'\| ((?:G\d+(?:, )?)+) \|', line)
    if cells:
        rows |= set(re.findall(r'G\d+', cells[1]))
scripts = set()
for path in (root / 'pmlib').rglob('*_test.cpp'):
    for name in re.findall(r'TEST(?:_F|_P)?\(\w+,\s*(\w+)\)', path.read_text()):
        scripts |= set(re.findall(r'G\d+(?=[A-Z])', name))
switches = set(re.findall(r'static constexpr bool k(G\d+)', (root / 'pmlib/core/engine.hpp').read_text()))
model = (root / 'tests/model/pair_model_test.cpp').read_text()
searched = {g for g in switches if f'BreaksWithout{g})' in model and f'k{g} = false' in model}

faults = [f'docs/reference/pm.md: {g} has no packet script' for g in sorted(rows - scripts)]
faults += [f'engine.hpp: k{g} can be switched off, but no search shows that it is needed'
           for g in sorted(switches - searched)]
if len(rows) < 20 or len(switches) < 6:
    faults.append(f'only {len(rows)} rows and {len(switches)} switches found')
print('\n'.join(faults) or f'{len(rows)} rows, {len(switches)} switches')
sys.exit(1 if faults else 0)
