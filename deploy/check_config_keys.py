#!/usr/bin/env python3
"""Checks that every key of the configuration parsers is explained in the example file and in scored.toml(5).

usage: check_config_keys.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

ACCOUNTS = 'scored/head/config/accounts.cpp'
# Each table has its files, or one function of a file.
PARSERS = {
    'head': [('scored/head/config/config.cpp', ''), ('base/model/settings.cpp', '')],
    'heads': [('scored/head/etcd/lease_config.cpp', '')],
    'limits': [('scored/head/config/user_limits.cpp', ''), (ACCOUNTS, 'read_running_limits')],
    'accounts': [(ACCOUNTS, 'read_account'), (ACCOUNTS, 'read_running_limits')],
    'fair_share': [(ACCOUNTS, 'read_accounts')],
    'notify': [('scored/head/config/notify_config.cpp', '')],
    'partitions': [('scored/head/config/partitions.cpp', '')],
    'topology': [('scored/head/config/topology.cpp', '')],
    'licenses': [('scored/head/config/licenses.cpp', '')],
    'node': [('scored/node/**/config.cpp', '')],
    'network': [('scored/shared/config/network_config.cpp', '')],
    'gres': [('scored/shared/config/generic_config.cpp', '')],
    'memory': [('scored/shared/config/memory_config.cpp', '')],
    'pario': [('scored/shared/config/pario_config.cpp', '')],
    'hooks': [('scored/shared/config/hooks_config.cpp', '')],
    'devices': [('scored/shared/config/device_config.cpp', '')],
    'monitor': [('monitor/model/settings.cpp', '')],
}
READ = re.compile(r'\bread(?:_\w+)?\(\s*(?:section,\s*)?"([a-z_]+)"')
SETTING_KEY = re.compile(r'\{Setting::\w+, "\w+",\s+"([a-z_]+)",')
NODE_KEY = re.compile(r'^\s*\{"([a-z_]+)",', re.M)
EXAMPLE_TABLE = re.compile(r'^(# )?\[+(\w+)')
EXAMPLE_KEY = re.compile(r'^(?:# )?([a-z_]+) = ')
PAGE_KEY = re.compile(r'\*([a-z_]+)\*')


def parsed_keys(root, table):
    """Returns the keys that the table's parser reads, without those that it reads only to refuse them."""
    keys = set()
    for files, function in PARSERS[table]:
        for path in root.glob(files):
            text = path.read_text(encoding='utf-8')
            if function:
                text = re.search(rf'^\w+ {function}\(.*?^}}$', text, re.M | re.S)[0]
            text = re.sub(r'^void refuse_removed_\w+\(.*?^}$', '', text, flags=re.M | re.S)
            keys |= set(READ.findall(text)) | set(SETTING_KEY.findall(text))
            if table == 'node':
                keys |= set(NODE_KEY.findall(text))
    return keys


def example_keys(root):
    """Returns the keys of each table of the example, commented or not, that have a comment above them."""
    keys, table, explained = {}, None, False
    for line in (root / 'deploy/etc/scored.toml').read_text(encoding='utf-8').splitlines():
        if match := EXAMPLE_TABLE.match(line):
            # The text before a commented table explains its keys.
            table, explained = match[2], explained and bool(match[1])
        elif match := EXAMPLE_KEY.match(line):
            if explained:
                keys.setdefault(table, set()).add(match[1])
        else:
            explained = line.startswith('# ')
    return keys


def page_keys(root):
    """Returns the keys that have an entry in each section of scored.toml(5)."""
    keys, table = {}, None
    for line in (root / 'deploy/man/scored.toml.5.scd').read_text(encoding='utf-8').splitlines():
        if line.startswith('# '):
            table = line[2:].lower().replace(' ', '_')
        elif line.startswith('*') and not line.startswith('*['):
            keys.setdefault(table, set()).update(PAGE_KEY.findall(line))
    return keys


def main():
    root = pathlib.Path(sys.argv[1])
    documents = {'deploy/etc/scored.toml': example_keys(root), 'scored.toml(5)': page_keys(root)}
    faults = []
    known = (root / 'scored/shared/config/tables.hpp').read_text(encoding='utf-8')
    faults += [f'tables.hpp does not name the table [{table}]' for table in PARSERS if f'"{table}"' not in known]
    for table in PARSERS:
        parsed = parsed_keys(root, table)
        if not parsed:
            faults.append(f'{PARSERS[table]}: no key of [{table}] found')
        for name, keys in documents.items():
            documented = keys.get(table, set())
            faults += [f'{name}: [{table}] {key} is read by the parser but not explained' for key in sorted(parsed - documented)]
            faults += [f'{name}: [{table}] {key} is explained but no parser reads it' for key in sorted(documented - parsed)]
    print('\n'.join(faults))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
