#!/usr/bin/env python3
"""check_frames.py REPOSITORY: the tables of PM's frames in docs/reference/pm.md agree with
pmlib/wire/frame.hpp (the layout, the kinds) and frame_fields.hpp (what fields mean per kind)."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
frame = (root / 'pmlib/wire/frame.hpp').read_text()
views = (root / 'pmlib/wire/frame_fields.hpp').read_text()
page = (root / 'docs/reference/pm.md').read_text().split('## The frame', 1)[1].split('\n## ', 1)[0]
SIZES = {'std::uint8_t': 1, 'FrameKind': 1, 'std::uint16_t': 2, 'std::uint32_t': 4,
         'std::uint64_t': 8}


def layout(struct):
    body = re.search(r'struct %s \{(.*?)\n\};' % struct, frame, re.S)[1]
    at, rows = 0, set()
    for kind, name in re.findall(r'^  (std::uint\d+_t|FrameKind) (\w+) =', body, re.M):
        rows.add((at, SIZES[kind], name))
        at += SIZES[kind]
    return rows


def named_fields():
    parents, own = {}, {}
    for name, parent, body in re.findall(
            r'class (\w+) : public (\w+)<Header> \{(.*?)\n\};', views, re.S):
        parents[name] = parent
        own[name] = set(re.findall(r'auto& (\w+)\(\) const \{ return this->h\.(\w+); \}', body))
    for name in own:
        parent = parents[name]
        own[name] |= own.get(parent, set())
    return own


faults = []


def compare(what, code, text):
    for row in sorted(code - text, key=str):
        faults.append(f'{what}: {row} is in the code only')
    for row in sorted(text - code, key=str):
        faults.append(f'{what}: {row} is in docs/reference/pm.md only')


rows = [[cell.strip(' `') for cell in line.strip('|').split('|')]
        for line in page.splitlines() if line.startswith('|')]
tables, current = {}, None
for row in rows:
    if row[0] in ('offset', 'offset in RmaHeader', 'kind', 'view'):
        current = tables.setdefault(row[0], [])
    elif not row[0].startswith('---'):
        current.append(row)
for heading, struct in (('offset', 'FrameHeader'), ('offset in RmaHeader', 'RmaHeader')):
    compare(struct, layout(struct), {(int(r[0]), int(r[1]), r[2]) for r in tables[heading]})
kinds = re.search(r'enum class FrameKind.*?\{(.*?)\n\};', frame, re.S)[1]
compare('FrameKind', {(int(n), k) for k, n in re.findall(r'^  (\w+) = (\d+),', kinds, re.M)},
        {(int(r[1]), r[0]) for r in tables['kind']})
fields = {(view, name, field) for view, pairs in named_fields().items() for name, field in pairs}
compare('fields', fields, {(r[0], r[1], r[2]) for r in tables['view']})
print('\n'.join(faults) or f'{len(fields)} named fields')
sys.exit(1 if faults else 0)
