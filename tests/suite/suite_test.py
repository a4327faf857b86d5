#!/usr/bin/env python3
"""The runner over a build folder whose ctest knows small scripts."""
import contextlib
import io
import json
import os
import pathlib
import re
import select
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import entries as listed  # noqa: E402
import needed  # noqa: E402
import outcomes  # noqa: E402
import suite  # noqa: E402
import supervise  # noqa: E402
import tiers  # noqa: E402
import watcher  # noqa: E402
from report import Report  # noqa: E402

# A GoogleTest program: X.Good passes, X.Bad fails, X.Skips skips, X.Dies kills the program, X.Late fails it at its end.
PROGRAM = '''#!/usr/bin/env python3
import os, sys
names = next(word for word in sys.argv if word.startswith('--gtest_filter=')).split('=', 1)[1].split(':')
code = 0
for name in names:
    print('[ RUN      ]', name, flush=True)
    if name == 'X.Dies': os.abort()
    word = {'X.Bad': '  FAILED  ', 'X.Skips': '  SKIPPED '}.get(name, '       OK ')
    code = max(code, int(name in ('X.Bad', 'X.Late')))
    print(f'no end of line [{word}] {name} (3 ms)', flush=True)
sys.exit(code)
'''


def cmake_test(name, words, **properties):
    lines = [f'add_test({name} {" ".join(f"[==[{word}]==]" for word in words)})\n']
    if properties:
        pairs = ' '.join(f'{key} [==[{value}]==]' for key, value in properties.items())
        lines.append(f'set_tests_properties({name} PROPERTIES {pairs})\n')
    return ''.join(lines)


class Signals(unittest.TestCase):
    def test_tests_of_a_suite_in_the_background_can_be_interrupted(self):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with tempfile.NamedTemporaryFile() as output:
            running = supervise.Running(['/bin/sh', '-c', 'kill -INT $$; echo ignored'], dict(os.environ), '/', 60, output.name)
            running.result()
            self.assertEqual(pathlib.Path(output.name).read_text(), '')


class Suite(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.build = pathlib.Path(place.name)

    def program(self, name='x_test', text=PROGRAM):
        path = self.build / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def cases(self, *names):
        program = self.program()
        return [cmake_test(f'x_test.{name}', [program, f'--gtest_filter={name}'], LABELS='unit') for name in names]

    def run_suite(self, tests, *options):
        (self.build / 'CTestTestfile.cmake').write_text(''.join(tests))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = suite.main([str(self.build), *map(str, options)])
        return code, out.getvalue()

    def closing(self, tests, *options):
        code, text = self.run_suite(tests, *options)
        return code, text.splitlines()[-1]

    def test_tests_of_one_program_run_in_one_process_and_each_counts(self):
        code, text = self.run_suite(self.cases('X.Good', 'X.Skips', 'X.Other'))
        self.assertEqual((code, text.splitlines()[-1]), (0, '2 passed, 0 failed, 1 skipped'))
        self.assertEqual(text.count('x_test:'), 1, text)

    def test_a_test_that_kills_its_program_fails_and_the_others_run(self):
        code, text = self.run_suite(self.cases('X.Good', 'X.Dies', 'X.Other'))
        self.assertEqual((code, text.splitlines()[-1]), (1, '2 passed, 1 failed, 0 skipped'))
        self.assertIn('==== x_test.X.Dies failed', text)
        self.assertIn('killed by SIGABRT', text)

    def test_a_program_that_fails_after_its_tests_have_passed_fails(self):
        self.assertEqual(self.closing(self.cases('X.Good', 'X.Late')), (1, '1 passed, 1 failed, 0 skipped'))

    def test_a_failed_test_is_counted_once_and_named(self):
        code, text = self.run_suite(self.cases('X.Good', 'X.Bad'))
        self.assertEqual((code, text.splitlines()[-1]), (1, '1 passed, 1 failed, 0 skipped'))
        self.assertIn('failed: x_test.X.Bad', text)

    def test_other_entries_are_judged_as_ctest_does(self):
        tests = [cmake_test('good', ['/bin/true']), cmake_test('bad', ['/bin/false']),
                 cmake_test('coded', ['/bin/sh', '-c', 'exit 77'], SKIP_RETURN_CODE=77),
                 cmake_test('matched', ['/bin/echo', '3 skipped in 1 s'], SKIP_REGULAR_EXPRESSION='(^|\\n)[0-9]+ skipped in '),
                 cmake_test('inverted', ['/bin/false'], WILL_FAIL='ON'),
                 cmake_test('absent', [self.build / 'none']), cmake_test('given', ['/usr/bin/test', '-n', '']),
                 cmake_test('heard', ['/bin/sh', '-c', 'test "$A" = "b c"'], ENVIRONMENT='A=b c')]
        code, text = self.run_suite(tests)
        self.assertEqual((code, text.splitlines()[-1]), (1, '3 passed, 3 failed, 2 skipped'), text)
        self.assertIn('failed: ', text)

    def test_a_test_beyond_its_limit_is_ended_with_all_that_it_started(self):
        mark = f'{3000 + os.getpid() % 1000}.25'
        script = f'setsid sleep {mark} & sleep {mark}'
        code, text = self.run_suite([cmake_test('hangs', ['/bin/sh', '-c', script], TIMEOUT=1)])
        self.assertEqual((code, text.splitlines()[-1]), (1, '0 passed, 1 failed, 0 skipped'))
        self.assertRegex(text, r'ended after [1-9]\d* s, its limit')  # later than 1 s where the machine is busy
        self.assertEqual(subprocess.run(['pgrep', '-f', f'sleep {mark}'], stdout=subprocess.DEVNULL, check=False).returncode, 1)

    def test_the_processor_time_of_a_daemon_counts(self):
        loop = 'import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass'
        script = f"(setsid python3 -c '{loop}' &) ; sleep 1.5"
        self.run_suite([cmake_test('daemon', ['/bin/sh', '-c', script])])
        name, seconds, busy = (self.build / 'suite/times.txt').read_text().split()
        self.assertEqual(name, 'daemon')
        self.assertGreaterEqual(float(busy), 0.5)

    def test_tests_with_one_lock_never_run_together_and_a_serial_one_runs_alone(self):
        script = f'mkdir {self.build}/in && sleep 0.2 && rmdir {self.build}/in'
        tests = [cmake_test(f'locked{n}', ['/bin/sh', '-c', script], RESOURCE_LOCK='one') for n in range(3)]
        tests.append(cmake_test('serial', ['/bin/sh', '-c', script], RUN_SERIAL='ON'))
        self.assertEqual(self.closing(tests), (0, '4 passed, 0 failed, 0 skipped'))

    def test_a_test_runs_after_what_sets_up_its_fixture(self):
        tests = [cmake_test('uses', ['/usr/bin/test', '-e', self.build / 'made'], FIXTURES_REQUIRED='f'),
                 cmake_test('makes', ['/bin/sh', '-c', f'sleep 0.3; touch {self.build}/made'], FIXTURES_SETUP='f')]
        self.assertEqual(self.closing(tests), (0, '2 passed, 0 failed, 0 skipped'))
        self.assertEqual(self.closing(tests, '--match', 'uses'), (0, '2 passed, 0 failed, 0 skipped'))
        broken = [tests[0], cmake_test('makes', ['/bin/false'], FIXTURES_SETUP='f')]
        self.assertEqual(self.closing(broken), (1, '0 passed, 2 failed, 0 skipped'))

    def test_the_short_tier_names_what_it_leaves_out(self):
        tests = [cmake_test('quick', ['/bin/true']), cmake_test('soak', ['/bin/true'], LABELS='integration;long')]
        code, text = self.run_suite(tests)
        self.assertEqual((code, text.splitlines()[-1]), (0, '1 passed, 0 failed, 0 skipped'))
        self.assertIn('left out, the long tier: 1 tests: soak', text)
        code, text = self.run_suite(tests, '--tier', 'long')
        self.assertEqual((code, text.splitlines()[-1]), (0, '1 passed, 0 failed, 0 skipped'))
        self.assertIn('left out, the short tier: 1 tests\n', text)
        self.assertEqual(self.closing(tests, '--match', 'k'), (0, '2 passed, 0 failed, 0 skipped'))
        self.assertEqual(self.closing(tests, '--label', '^integration$'), (0, '1 passed, 0 failed, 0 skipped'))

    def test_long_tests_that_cannot_end_in_time_are_left_and_named(self):
        tests = [cmake_test('quick', ['/bin/true']), cmake_test('soak', ['/bin/true'], LABELS='integration;long')]
        code, text = self.run_suite(tests, '--until', time.time() + 10)
        self.assertEqual((code, text.splitlines()[-1]), (0, '1 passed, 0 failed, 0 skipped'))
        self.assertRegex(text, 'left out, (of this day.s third of the long tier, for lack of time|for lack of time, until their day): 1 tests: soak')
        self.assertEqual(self.closing(tests, '--until', time.time() + 600), (0, '2 passed, 0 failed, 0 skipped'))

    def test_a_serial_test_of_the_long_tier_has_its_turn(self):
        """It does not wait until there is no time for anything."""
        script = f'mkdir {self.build}/in && sleep 0.3 && rmdir {self.build}/in'
        tests = [cmake_test('quick', ['/bin/true']),
                 cmake_test('serial', ['/bin/sh', '-c', script], LABELS='long', RUN_SERIAL='ON')]
        tests += [cmake_test(f'after{n}', ['/bin/sh', '-c', script], LABELS='long', RESOURCE_LOCK='one') for n in range(4)]
        code, text = self.run_suite(tests, '--until', time.time() + 600, '--day', 1)  # after1 and serial are first
        self.assertEqual((code, text.splitlines()[-1]), (0, '6 passed, 0 failed, 0 skipped'), text)
        order = [line.split()[2].rstrip(':') for line in text.splitlines() if ' to go)' in line]
        self.assertEqual(order[:3], ['quick', 'after1', 'serial'])

    def test_two_runs_at_the_same_time_keep_their_outputs_apart(self):
        (self.build / 'CTestTestfile.cmake').write_text(cmake_test('slow', ['/bin/sh', '-c', 'sleep 1; echo done']))
        runs = [subprocess.Popen([sys.executable, HERE / 'suite.py', self.build], stdout=subprocess.PIPE, text=True) for _ in range(2)]
        texts = [run.communicate()[0] for run in runs]
        self.assertEqual([text.splitlines()[-1] for text in texts], ['1 passed, 0 failed, 0 skipped'] * 2)
        self.assertEqual(len(list((self.build / 'suite').glob('run.*/*slow.log'))), 2)
        self.run_suite([cmake_test('good', ['/bin/true'])])
        self.assertEqual(len(list((self.build / 'suite').glob('run.*'))), 1)

    def test_nothing_to_run_is_a_failure(self):
        self.assertEqual(self.closing([], '--match', 'none'), (1, '0 passed, 0 failed, 0 skipped'))

    def test_an_unknown_property_is_refused(self):
        with self.assertRaises(listed.Unsupported):
            listed.entry_of({'name': 'x', 'command': ['x'], 'properties': [{'name': 'GENERATED_RESOURCE_SPEC_FILE', 'value': 'y'}]})


class Order(unittest.TestCase):
    def test_required_tests_run_first(self):
        times = listed.Times(['alone 50 1', 'first 40 1', 'second 30 1', 'makes 5 1'])
        lock = {'locks': frozenset({'machines'}), 'requires': frozenset({'packages'})}
        made = [listed.Entry('alone', ['x']), listed.Entry('first', ['x'], **lock), listed.Entry('second', ['x'], **lock),
                listed.Entry('makes', ['x'], sets_up=frozenset({'packages'}))]
        self.assertEqual([task.name for task in listed.tasks_of(made, times)], ['makes', 'first', 'second', 'alone'])

    def test_a_long_program_is_cut_into_pieces(self):
        cases = [listed.Entry(f'x.T.N{n}', ['/x', f'--gtest_filter=T.N{n}']) for n in range(6)]
        tasks = listed.tasks_of(cases, listed.Times(['x.T.N1 14 14', 'x.T.N4 40 40']))
        self.assertEqual([[case.filter for case in task.cases] for task in tasks], [['T.N4'], ['T.N0', 'T.N1', 'T.N2', 'T.N3'], ['T.N5']])


class One(unittest.TestCase):
    def test_a_source_gives_its_program_and_the_filter_of_its_tests(self):
        with tempfile.TemporaryDirectory() as place:
            source = pathlib.Path(place, 'x_test.cpp')
            source.write_text('TEST(A, One) {}\nTEST_P(B, Two) {}\n')
            words = f'c++ -include /b/CMakeFiles/pch.dir/pch.hpp -o a/CMakeFiles/x_test.dir/x_test.cpp.o -c {source}'
            pathlib.Path(place, 'compile_commands.json').write_text(json.dumps([{'file': str(source), 'command': words}]))

            def run(test):
                return subprocess.run([sys.executable, HERE / 'one.py', place, f'{source}{test}'], capture_output=True, text=True, check=False)
            self.assertEqual(run('::One').stdout, 'x_test A.One:*/A.One/*:A/*.One\n')
            self.assertEqual(run('::B.Two').stdout, 'x_test B.Two:*/B.Two/*:B/*.Two\n')
            self.assertIn('A.One:', run('').stdout)
            self.assertIn('no test Three', run('::Three').stderr)
            batch = pathlib.Path(place, 'CMakeFiles/y_test.dir/Unity/unity_0_cxx.cxx')
            batch.parent.mkdir(parents=True)
            batch.write_text(f'/* generated by CMake */\n\n#include "/else_test.cpp"\n\n#include "{source}"\n\n')
            words = f'c++ -o a/CMakeFiles/y_test.dir/Unity/unity_0_cxx.cxx.o -c {batch}'
            pathlib.Path(place, 'compile_commands.json').write_text(json.dumps([{'file': str(batch), 'command': words}]))
            self.assertEqual(run('::One').stdout, 'y_test A.One:*/A.One/*:A/*.One\n')


class Tiers(unittest.TestCase):
    def tasks(self):
        times = listed.Times([f't{n} {10 + 7 * n} 5' for n in range(20)])
        return listed.tasks_of([listed.Entry(f't{n}', ['true']) for n in range(20)], times)

    def test_three_days_in_a_row_begin_with_everything(self):
        tasks = self.tasks()
        first = {}
        for day in range(100, 103):
            spent, third = 0.0, sum(task.seconds for task in tasks) / 3
            for task in tiers.order(tasks, day):
                spent += task.seconds
                if spent <= third + 2 * max(t.seconds for t in tasks):
                    first.setdefault(task.name, day)
        self.assertEqual(set(first), {task.name for task in tasks})

    def test_an_order_holds_each_test_once(self):
        self.assertEqual(sorted(task.name for task in tiers.order(self.tasks(), 7)), sorted(task.name for task in self.tasks()))


class Needed(unittest.TestCase):
    def test_names_are_those_of_ctest(self):
        text = 'TEST(A, One) {\n  TEST_P(Of, Two) {\nINSTANTIATE_TEST_SUITE_P(Each, Of, values);\n'
        self.assertEqual(list(needed.names_in('a_test', text)), ['a_test.A.One', 'a_test.Each/Of.Two'])

    def test_a_script_needs_programs_that_tests_start(self):
        entries = [listed.Entry('docs.user', ['python3', 'x.py']), listed.Entry('fuzz_x', ['/b/test/fuzz_x_replay', 'corpus'])]
        self.assertEqual(needed.targets_of(entries, re.compile('user')), {'all', 'score_test_helpers'})
        self.assertEqual(needed.targets_of(entries, re.compile('fuzz')), {'fuzz_x_replay'})
        self.assertEqual(needed.targets_of(entries, re.compile('none')), set())


class Watching(unittest.TestCase):
    def test_only_waiting_for_others_of_this_machine_is_starvation(self):
        self.assertEqual(watcher.judge(3.0, 2.9, 0.0), ('starved', 2.9))
        self.assertEqual(watcher.judge(3.0, 2.9, 2.9)[0], 'stolen')
        self.assertEqual(watcher.judge(30.0, 0.01, 0.0)[0], 'still')
        self.assertEqual(watcher.judge(3.0, None, 0.0), ('unknown', 0.0))

    def test_starvation_fails_the_run_and_names_concurrent_tests(self):
        with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(io.StringIO()) as out:
            report = Report(pathlib.Path(place))
            report.outcomes = [outcomes.Outcome(listed.Entry('t', []), 'passed', 1.0, 1.0)]
            event = {'at': 5.0, 'late': 2.5, 'cause': 'starved', 'starved': 2.4, 'beside': ['integration.sharing', 'integration.gang']}
            self.assertEqual(report.close([event]), 1)
        text = out.getvalue()
        self.assertIn('2.5 s late (other threads had the processors), beside: integration.sharing, integration.gang', text)
        self.assertEqual(text.splitlines()[-1], '1 passed, 1 failed, 0 skipped')

    def test_a_watcher_that_gets_no_turn_says_so(self):
        """On one processor with real-time threads, which an ordinary one never displaces."""
        if os.geteuid() != 0:
            self.skipTest('needs root')
        mine = os.sched_getaffinity(0)
        loop = 'import os, time\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))\n' \
               'end = time.monotonic() + 0.7\nwhile time.monotonic() < end: pass'
        os.sched_setaffinity(0, {max(mine)})
        watching = subprocess.Popen([sys.executable, HERE / 'watcher.py'], stdout=subprocess.PIPE)
        events = []
        try:
            for _ in range(20):  # on a busy machine the watcher may begin after the first loops
                if subprocess.run([sys.executable, '-c', loop], stderr=subprocess.DEVNULL, check=False).returncode != 0:
                    self.skipTest('no real-time priority here')
                if select.select([watching.stdout], [], [], 1)[0]:
                    events += map(json.loads, os.read(watching.stdout.fileno(), 65536).splitlines())
                if any(event['starved'] > 0.2 for event in events):
                    break
        finally:
            os.sched_setaffinity(0, mine)
            watching.kill()
            watching.communicate()
        self.assertTrue(any(event['starved'] > 0.2 for event in events), events)


if __name__ == '__main__':
    unittest.main()
