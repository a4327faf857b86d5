#!/usr/bin/env python3
"""Runs the tests of the table of promises and writes docs/reference/survival.md.

  survive.py --check             compares the table, the sources and the page; starts no test
  survive.py --write [FILE ...]  writes the page with the figures that it has, or those that runs of the tests recorded in FILEs
                                 (SCORE_FIGURES); of a test that several recorded the last one counts
  survive.py --short [ID...]     runs the tests, or those of some rows (about 5 minutes in all)
  survive.py --long [ID...]      the same for hours; also the tests of booted machines
  survive.py --figures FILE      prints what another run of the tests recorded in FILE (SCORE_FIGURES)

The programs are those of build/release, or of the build whose bin is SCORE_BIN."""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

import table

PAGE = table.ROOT / 'docs/reference/survival.md'
BIN = pathlib.Path(os.environ.get('SCORE_BIN', table.ROOT / 'build/release/bin')).resolve()
BUILD = BIN.parent
LONG = {'SCORE_KILLS': '200', 'SCORE_ATTACK_SECONDS': '60', 'SCORE_SOAK_SECONDS': '3600', 'SCORE_CUTS': '100',
        'SCORE_FUZZ_SECONDS': '600', 'SCORE_GROWTH_JOBS': '20000', 'SCORE_LOAD_JOBS': '10000', 'SCORE_LOSS_SECONDS': '100', 'SCORE_CLOCK_STEPS': '500',
        'SCORE_RESTLESS_ROUNDS': '50', 'SCORE_RANDOM_CONNECTIONS': '10000', 'SCORE_CHAOS_SECONDS': '600'}
# Rows that are asked for by name run as long as their promise says.
BY_NAME = {'heads': {'SCORE_CHAOS_SECONDS': '600'}, 'two-heads-etcd': {'SCORE_CHAOS_SECONDS': '600'}}
HEAD = """# Promises and their tests

Promises about faults, load and attacks, and the tests that check them. Rows are in `tests/survival/*.toml`; `ctest -R survival_table` compares them
with the sources and this page. `./try survive --short` runs the tests and writes the figures; `--long` with more kills, cuts and time.

"no test yet": nothing checks the promise. "not tested: ...": the tests leave that out. "N/M ran": of M tests N were built and ran.
"(... in the test)": the test allows more, because the machine may be busy; the figure counts.
"""
NOTE = 'Last run: '


# ---- the page

def cell(text):
    return re.sub(r'\s+', ' ', text).replace('|', '\\|')


def short(test):
    return f'`{test if table.is_gtest(test) else test.split("/")[-1]}`'


def shown(row):
    tests = '<br>'.join(short(test) for test in row['tests']) or 'no test yet'
    return tests + (f'<br>not tested: {row["gap"]}' if 'gap' in row else '')


def page(figures, note):
    text = HEAD + (f'\n{note}\n' if note else '')
    for title, rows in table.sections():
        text += f'\n## {title}\n\n| id | promise | bound | test | figure |\n| --- | --- | --- | --- | --- |\n'
        for key, row in rows.items():
            text += f'| {key} | {cell(row["promise"])} | {cell(row["bound"])} | {cell(shown(row))} | {figures.get(key, "")} |\n'
    return text


def figures_of_page():
    lines = PAGE.read_text(encoding='utf-8').splitlines() if PAGE.exists() else []
    cells = [re.split(r'(?<!\\)\|', line) for line in lines if line.startswith('| ')]
    return {row[1].strip(): row[5].strip() for row in cells if len(row) == 7}


def note_of_page():
    lines = PAGE.read_text(encoding='utf-8').splitlines() if PAGE.exists() else []
    return next((line for line in lines if line.startswith(NOTE)), '')


def note_of_run(size, count, seconds, loads):
    """The machine counts: a figure of a loaded one is no figure of a calm one."""
    return (f'{NOTE}{time.strftime("%Y-%m-%d")}, `--{size}`, {count} promises in {seconds / 60:.0f} min on {os.cpu_count()} processors; '
            f'load average {loads[0]:.1f} at its begin, {loads[1]:.1f} at its end.')


def check():
    faults = list(table.faults())
    if not PAGE.exists() or PAGE.read_text(encoding='utf-8') != page(figures_of_page(), note_of_page()):
        faults.append('docs/reference/survival.md is not what the table says: python3 tests/survival/survive.py --write')
    for fault in faults:
        print(fault)
    rows = table.rows()
    untested = [key for key, row in rows.items() if not row['tests'] and 'gap' not in row]
    partly = [key for key, row in rows.items() if 'gap' in row]
    print(f'{len(rows)} promises, {len(untested)} without a test ({", ".join(untested)}), '
          f'{len(partly)} tested in part ({", ".join(partly)})')
    return 1 if faults else 0


# ---- running the tests

def cases_of(report):
    """(suite and name, outcome) of a JUnit report."""
    for case in xml.parse(report).iter('testcase'):
        if case.get('status') == 'notrun' and 'Unable to find' in xml.tostring(case, encoding='unicode'):
            continue  # not built
        kinds = {child.tag for child in case}
        is_skipped = 'skipped' in kinds or case.get('status') in ('disabled', 'notrun')
        yield case.get('name'), 'failed' if kinds & {'failure', 'error'} else 'skipped' if is_skipped else 'passed'


def run_pytest(path, names, environment, report):
    words = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--maxfail=100', f'--junitxml={report}',
             *(f'{table.ROOT}/tests/{path}::{name}' for name in sorted(names))]
    subprocess.run(words, env=environment, check=False)
    outcomes = collections.defaultdict(list)
    for name, outcome in cases_of(report) if report.exists() else []:
        outcomes[f'{path}::{name.split("[")[0]}'].append(outcome)
    return outcomes


def ctest_pattern(test):
    name = test.replace(' ', '.') if table.is_gtest(test) else test
    return re.escape(name).replace(r'\*', '.*') + ('(/.*)?' if table.is_gtest(test) else '')


def run_ctest(tests, environment, report):
    regex = '^(' + '|'.join(sorted(ctest_pattern(test) for test in tests)) + ')$'
    subprocess.run(['ctest', '--test-dir', str(BUILD), '-j', str(os.cpu_count()), '--output-junit', str(report), '-R', regex],
                   env=environment, check=False, stdout=subprocess.DEVNULL)
    outcomes = collections.defaultdict(list)
    for name, outcome in cases_of(report) if report.exists() else []:
        for test in tests:
            if re.fullmatch(ctest_pattern(test), name):
                outcomes[test].append(outcome)
    return outcomes


def run_all(tests, is_long, more):
    """({test: its outcomes}, {id: figures})"""
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        environment = dict(os.environ, SCORE_BIN=str(BIN), SCORE_EXAMPLES=str(BUILD / 'examples'),
                           SCORE_FIGURES=str(place / 'figures'), PYTHONDONTWRITEBYTECODE='1', **(LONG if is_long else {}), **more)
        files, programs = collections.defaultdict(set), set()
        for test in tests:
            if table.is_pytest(test):
                path, name = test.split('::')
                files[path].add(name)
            else:
                programs.add(test)
        outcomes = run_ctest(programs, environment, place / 'ctest.xml') if programs else {}
        for number, (path, names) in enumerate(sorted(files.items())):
            if is_long or not path.startswith('boot/'):  # those need packages: ./try test boot
                print(f'{path}: {", ".join(sorted(names))}', flush=True)
                outcomes |= run_pytest(path, names, environment, place / f'{number}.xml')
        return outcomes, read_figures(place / 'figures')


def read_figures(*paths):
    """{id: figures}"""
    by_test = {}
    for path in paths:
        found = collections.defaultdict(list)
        for line in path.read_text(encoding='utf-8').splitlines() if path.exists() else []:
            record = json.loads(line)
            found[record['promise'], record.get('test', '')].append(cell(record['figure']))
        by_test |= found
    figures = collections.defaultdict(list)
    for (promise, _), texts in by_test.items():
        figures[promise] += texts
    return figures


def show_figures(path):
    figures = read_figures(path)
    for key in table.rows():
        if key in figures:
            print(f'{key}: {"; ".join(dict.fromkeys(figures[key]))}')
    print(f'{len(figures)} promises with figures')
    return 0


def result(row, outcomes, figures):
    """The figure of a row; the word fails where a test of it does."""
    got = [outcome for test in row['tests'] for outcome in outcomes.get(test, [])]
    if 'failed' in got:
        return 'fails'
    ran = sum(test in outcomes for test in row['tests'])
    words = list(dict.fromkeys(figures)) or (['holds'] if 'passed' in got else [])
    if words and ran < len(row['tests']):
        words.append(f'{ran}/{len(row["tests"])} ran')
    skipped = [test for test in row['tests'] if outcomes.get(test) and set(outcomes[test]) == {'skipped'}]
    return '; '.join(words + [f'{short(test)} skipped' for test in skipped])


def run(ids, is_long):
    rows = table.rows()
    chosen = {key: row for key, row in rows.items() if (not ids or key in ids) and row['tests']}
    unknown = set(ids) - set(rows)
    if unknown:
        sys.exit(f'survive: no such row: {", ".join(sorted(unknown))}')
    began, load = time.monotonic(), os.getloadavg()[0]
    more = {name: value for key in ids for name, value in BY_NAME.get(key, {}).items()}
    outcomes, figures = run_all({test for row in chosen.values() for test in row['tests']}, is_long, more)
    found = {key: result(row, outcomes, figures[key]) for key, row in chosen.items()}
    note = note_of_page()
    if not ids:
        note = note_of_run('long' if is_long else 'short', len(found), time.monotonic() - began, (load, os.getloadavg()[0]))
    PAGE.write_text(page(figures_of_page() | {key: text for key, text in found.items() if text}, note), encoding='utf-8')
    for key, text in found.items():
        print(f'{key}: {text or "did not run"}')
    failed = [key for key, text in found.items() if text == 'fails']
    print(f'{len(found) - len(failed)} promises hold, {len(failed)} fail; docs/reference/survival.md is written')
    return 1 if failed else 0


def main(words):
    if words[:1] == ['--check']:
        return check()
    if words[:1] == ['--write']:
        recorded = {key: '; '.join(dict.fromkeys(found)) for key, found in read_figures(*map(pathlib.Path, words[1:])).items()}
        PAGE.write_text(page(figures_of_page() | recorded, note_of_page()), encoding='utf-8')
        return 0
    if words[:1] == ['--figures'] and len(words) == 2:
        return show_figures(pathlib.Path(words[1]))
    if words[:1] in (['--short'], ['--long']):
        return run(words[1:], words[0] == '--long')
    sys.exit(__doc__)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
