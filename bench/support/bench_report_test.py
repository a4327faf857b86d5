#!/usr/bin/env python3
"""Verdicts, the envelope, CSV and kept results, without a measurement."""
import argparse
import contextlib
import csv
import io
import json
import math
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import bench_report as report  # noqa: E402


def options(**more):
    return argparse.Namespace(**{'json': True, 'csv': None, 'resume': None, 'plot': None, 'seconds': 5.0, **more})


def printed(function, *words):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = function(*words)
    return code, out.getvalue(), err.getvalue()


class Verdicts(unittest.TestCase):
    def test_whole_interval_decides(self):
        for value, interval, expected in ((0.5, [0.1, 0.9], report.OK), (3, [2, 4], report.MISSED), (0.5, [0.1, 1.9], report.INCONCLUSIVE),
                                          (-48, [-63, 111], report.INCONCLUSIVE), (1, [1, 1], report.OK), (2, None, report.MISSED),
                                          (1, None, report.OK), (math.nan, None, report.INCONCLUSIVE), (1, [0, math.inf], report.INCONCLUSIVE)):
            self.assertEqual(report.verdict(value, '<=', 1, interval), expected, (value, interval))

    def test_relations(self):
        self.assertEqual(report.verdict(2, '>=', 1.5, [1.6, 3]), report.OK)
        self.assertEqual(report.verdict(2, '>=', 1.5, [1.4, 3]), report.INCONCLUSIVE)
        self.assertEqual(report.verdict(1, '<', 1), report.MISSED)

    def test_missed_counts_more_than_inconclusive(self):
        self.assertEqual(report.status([]), 0)
        self.assertEqual(report.status([report.OK, report.INCONCLUSIVE]), 2)
        self.assertEqual(report.status([report.INCONCLUSIVE, report.MISSED, report.OK]), 1)

    def test_only_measured_figures_are_judged(self):
        figures = {'a': 1, 'a_interval': [0, 3], 'b': 1, 'b_spread': [1, 1], 'c': None}
        bounds = report.at_most({'a': 2, 'c': 2, 'd': 2}) | report.at_most({'b': 2}, {'b'})
        self.assertEqual(report.verdicts(figures, bounds), {'a': report.INCONCLUSIVE, 'b': report.MISSED})


class Envelope(unittest.TestCase):
    def test_has_all_that_a_repetition_needs(self):
        report.begin(['scbench', 'gang', '--seconds', '5'])
        run = report.envelope('scored.bench.test/1', options(seed=7, device=pathlib.Path('/x')), {'figure': 1})['run']
        self.assertEqual(set(run), {'version', 'commit', 'date', 'command', 'options', 'seed', 'seconds', 'load_before', 'load_after', 'processors',
                                    'usable_processors', 'processor', 'memory_bytes', 'kernel', 'machine'})
        self.assertEqual((run['command'], run['seed'], run['options']['seconds']), (['scbench', 'gang', '--seconds', '5'], 7, 5.0))
        self.assertEqual(len(run['load_before']), 3)
        self.assertGreater(run['processors'], 0)
        self.assertRegex(run['date'], r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$')
        json.dumps(run)

    def test_finish_prints_verdicts_and_returns_their_status(self):
        cases = [('case', {'a': 1.0, 'a_interval': [0, 3]}, {'a': ('<=', 2)})]
        code, out, err = printed(report.finish, options(), 'scored.bench.test/1', {'results': [1]}, cases, self.fail)
        found = json.loads(out)
        self.assertEqual((code, found['verdicts'], found['results']), (2, {'case': {'a': 'inconclusive'}}, [1]))
        self.assertIn('inconclusive', err)

    def test_text_says_inconclusive(self):
        code, out, _ = printed(report.finish, options(json=False), 's/1', {}, [('case', {'a': -48.0, 'a_interval': [-63, 111]}, {'a': ('<=', 3.3)})],
                               lambda: print(report.line('a', {'a': -48.0, 'a_interval': [-63, 111]}, {'a': ('<=', 3.3)})))
        self.assertEqual(code, 2)
        self.assertIn('[-63, 111]  <= 3.3: inconclusive', out)
        self.assertLessEqual(len(out.strip()), 80)

    def test_csv_has_a_line_per_figure(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'a.csv'
            figures = {'nodes': 2, 'a': 1.5, 'a_interval': [1, 2], 'is': True, 'name': 'x', 'samples': {'a': [1, 1.5, 2]}}
            report.write_csv(path, [('one, two', figures, {'a': ('<=', 1.2)})])
            rows = list(csv.DictReader(io.StringIO(path.read_text())))
        self.assertEqual([row['figure'] for row in rows], ['nodes', 'a'])
        self.assertEqual([rows[1][key] for key in ('case', 'value', 'low', 'high', 'samples', 'bound', 'verdict')],
                         ['one, two', '1.5', '1', '2', '3', '1.2', 'inconclusive'])


class Pictures(unittest.TestCase):
    def test_caption_has_pairs_and_load(self):
        results = [{'pairs': 6, 'load': 0.5}, {'pairs': 13, 'load': 1.25}]
        self.assertRegex(report.caption(results), r'^6-13 pairs or rounds, load 0.5 to 1.2, \d+ processors, \d{4}-\d\d-\d\d$')
        self.assertRegex(report.caption([], 1), r'^1 pair or round, load ')
        self.assertRegex(report.caption([]), r'^load ')

    def test_files_that_cannot_be_written_are_refused_at_once(self):
        with self.assertRaisesRegex(SystemExit, '--csv /nowhere/a.csv: cannot write in /nowhere'):
            report.check_files(options(csv='/nowhere/a.csv'))
        report.check_files(options(csv='a.csv', resume='/tmp/x'))


class Kept(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / 'kept.json'

    def kept(self, **more):
        return report.Kept(options(resume=str(self.path), **more))

    def test_parts_are_measured_once(self):
        calls = []
        for _ in range(2):
            kept = self.kept()
            self.assertEqual(kept.part('a', lambda: calls.append(1) or {'x': (1, 2), 'samples': {}}), {'x': [1, 2], 'samples': {}})
            kept.part('a', self.fail).pop('samples')  # a copy
            self.assertTrue(kept.has('a') and not kept.has('a', 'b'))
        self.assertEqual(calls, [1])

    def test_a_failure_keeps_what_is_measured(self):
        kept = self.kept()
        kept.part('a', dict)
        with self.assertRaises(ZeroDivisionError):
            kept.part('b', lambda: 1 / 0)
        self.assertTrue(self.kept().has('a') and not self.kept().has('b'))
        self.assertEqual([path.name for path in self.path.parent.iterdir()], ['kept.json'])

    def test_other_options_are_refused(self):
        self.kept(parts=['a'], nodes=[2]).part('a', dict)
        self.assertTrue(self.kept(parts=['a', 'b'], nodes=[2], json=False).has('a'))
        with self.assertRaisesRegex(SystemExit, r'measured with --nodes \[2\]'):
            self.kept(parts=['a'], nodes=[4])

    def test_damaged_files_are_refused(self):
        self.kept().part('a', lambda: {'x': 1})
        whole = self.path.read_bytes()
        chance = random.Random(1)
        damaged = [whole[:chance.randrange(len(whole) - 2)] for _ in range(50)]
        damaged += [bytes(chance.randrange(256) for _ in range(40)) for _ in range(50)] + [b'[]', b'{"schema": 3}', b'']
        for data in damaged:
            self.path.write_bytes(data)
            with self.assertRaisesRegex(SystemExit, 'not what --resume wrote'):
                self.kept()

    def test_without_a_file_nothing_is_kept(self):
        report.Kept(options()).part('a', dict)
        self.assertEqual(list(self.path.parent.iterdir()), [])


if __name__ == '__main__':
    unittest.main()
