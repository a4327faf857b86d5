#!/usr/bin/env python3
"""Runs the tests that ctest knows: many TEST()s in one process, what waits side by side, the long ones first.

  suite.py BUILD [options]

  --tier short|long|all   the short tier (the default), the long one (label "long"), or both
  --label REGEX           only tests with such a label (of all tiers unless --tier says otherwise)
  --match REGEX           only tests with such a name (the same)
  --until SECONDS         epoch seconds: after the short tier, as much of the long tier as ends before, in the order of this day
  --without REGEX         for --until: leaves out tests of the long tier with such a name
  --day N                 for --until: the day, instead of today's
  --list                  prints what would run, and starts nothing

The last line is "N passed, N failed, N skipped". Exit code: 1 if a test failed, if none ran, or if tests starved the machine."""
import argparse
import pathlib
import re
import sys
import time

import entries as listed
import tiers
from report import Report
from runner import Runner

HERE = pathlib.Path(__file__).resolve().parent


def arguments(words):
    parser = argparse.ArgumentParser(usage='suite.py BUILD [options]')
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--tier', choices=['short', 'long', 'all'])
    parser.add_argument('--label', type=re.compile)
    parser.add_argument('--match', type=re.compile)
    parser.add_argument('--until', type=float)
    parser.add_argument('--without', type=re.compile)
    parser.add_argument('--day', type=int, default=int(time.time() // 86400))
    parser.add_argument('--list', action='store_true')
    return parser.parse_args(words)


def choose(entries, options):
    """(the entries to run first, those of the long tier that follow while there is time, those left out)"""
    named = [e for e in entries if (not options.match or options.match.search(e.name))
             and (not options.label or any(options.label.search(label) for label in e.labels))]
    is_part = options.match or options.label
    tier = options.tier or ('all' if is_part and options.until is None else 'short')
    first = [e for e in named if tier == 'all' or e.is_long == (tier == 'long')]
    later = [e for e in named if e.is_long and tier == 'short' and not (options.without and options.without.search(e.name))]
    later = later if options.until else []
    left = [] if is_part else [e for e in named if e not in first and e not in later]
    return first, later, left


def main(words):
    options = arguments(words)
    times = listed.Times((HERE / 'times.txt').read_text(encoding='utf-8').splitlines())
    entries = listed.read_entries(options.build)
    first, later, left = choose(entries, options)
    first, later = listed.with_fixtures(first, entries), listed.with_fixtures(later, entries)
    done = {entry.name for entry in first}
    later = [entry for entry in later if entry.name not in done]
    tasks = listed.tasks_of(first, times)
    rotating = tiers.order(listed.tasks_of(later, times), options.day)
    if options.list:
        for task in [*tasks, *rotating]:
            print(f'{task.name}: {len(task.cases)} tests, {task.seconds:.0f} s, {task.demand:.1f} processors')
        return 0
    report = Report(options.build)
    runner = Runner(report)
    try:
        runner.run(tasks, None)
        not_run = runner.run(rotating, options.until) if rotating else []
    except KeyboardInterrupt:
        runner.end()
        report.interrupted()
        not_run = []
    report.left_out('the long tier', [entry for entry in left if entry.is_long])
    if short := sum(not entry.is_long for entry in left):
        report.notes.append(f'left out, the short tier: {short} tests')
    todays = {task.name for task in tiers.groups(rotating)[options.day % tiers.DAYS]}
    for is_todays, why in ((True, "of this day's third of the long tier, for lack of time"), (False, 'for lack of time, until their day')):
        report.left_out(why, [case for task in not_run if (task.name in todays) == is_todays for case in task.cases])
    return report.close(runner.stop_watcher())


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
