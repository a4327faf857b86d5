#!/usr/bin/env python3
"""Checks that rules, dashboards and docs/reference/metrics.md use the metrics that exist.

usage: check_monitoring.py SOURCE_DIR     exit 77: no promtool, only the rest was checked
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / 'grafana'))
sys.dont_write_bytecode = True
import make_dashboard  # noqa: E402  (needs the path)

NAME = re.compile(r'\b(?:scored|process)_[a-z0-9_]+|\bscored:[a-z0-9_:]+')


def exported(source):
    """Returns the names in the C++ sources that begin a family, with the suffixes of histograms."""
    names = set()
    for path in ('monitor/metrics/exporter.cpp', 'scored/control/metrics.hpp', 'scored/head/clients/metrics.cpp',
                 'scored/node/observe/metrics.cpp'):
        for kind, name in re.findall(r'\.(counter|gauge|histogram)\(\s*"([a-z_]+)"', (source / path).read_text()):
            names |= {name + end for end in ('_bucket', '_sum', '_count')} if kind == 'histogram' else set()
            names.add(name)
    return names


def main():
    source = pathlib.Path(sys.argv[1])
    known, faults = exported(source), []
    rules = (source / 'deploy/prometheus/scored.rules.yml').read_text()
    recorded = set(re.findall(r'record: (\S+)', rules))
    written = (source / 'deploy/grafana/scored.json').read_text()
    if json.loads(written) != make_dashboard.dashboard():
        faults.append('scored.json is not what make_dashboard.py makes')
    expressions = [target['expr'] for panel in json.loads(written)['panels'] for target in panel['targets']]
    text = re.sub(r'summary:.*', '', rules)
    for name in NAME.findall(' '.join(expressions) + text):
        if name not in known and name not in recorded:
            faults.append(f'no metric {name}')
    documented = (source / 'docs/reference/metrics.md').read_text()
    bare = {name for name in known if not name.endswith(('_bucket', '_sum', '_count'))}
    faults += [f'docs/reference/metrics.md does not have {name}' for name in sorted(bare) if f'`{name}' not in documented]
    faults += [f'docs/reference/metrics.md has {name}, which is not there'
               for name in set(NAME.findall(documented)) - known - recorded if not name.startswith('scored:')]
    for fault in faults:
        print(fault)
    if faults:
        return 1
    if shutil.which('promtool') is None:
        print('no promtool: rules are not tested')
        return 77
    for command in (['check', 'rules', 'scored.rules.yml'], ['test', 'rules', 'scored.rules.test.yml']):
        subprocess.run(['promtool', *command], cwd=source / 'deploy/prometheus', check=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
