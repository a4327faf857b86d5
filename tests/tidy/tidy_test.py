#!/usr/bin/env python3
"""tidy.py must find each kind of fault, and only that."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import comments  # noqa: E402
import prose  # noqa: E402
import structure  # noqa: E402
import tidy  # noqa: E402


def write(root, texts):
    for path, text in texts.items():
        file = pathlib.Path(root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def faults_of(texts, exceptions=''):
    """(rule, subject) of each fault in a tree of these files; READMEs are added."""
    folders = {str(pathlib.Path(path).parent) for path in texts}
    folders |= {folder.split('/')[0] for folder in folders}
    texts = {f'{folder}/README.md': '# A folder\n' for folder in folders} | texts
    texts['tests/tidy/exceptions.txt'] = exceptions
    texts['tests/README.md'] = '# Tests\n'
    with tempfile.TemporaryDirectory() as root:
        write(root, texts)
        return sorted((fault.split(': ')[1], fault.split(':')[0]) for fault in tidy.faults(root))


def rules_of(path, text, readme='# scored\n'):
    with tempfile.TemporaryDirectory() as root:
        file = pathlib.Path(root, path)
        file.parent.mkdir(parents=True)
        if readme is not None:
            pathlib.Path(root, path.split('/')[0], 'README.md').write_text(readme)
        file.write_text(text)
        return [fault.split(': ')[1] for fault in tidy.faults(root)]


CASES = {
    'long file': ('scored/a.cpp', '\n' * 700, ['size']),
    'long line': ('scored/a.cpp', 'int ' + 'x' * 100 + ';\n', ['size']),
    'long function': ('scored/a.cpp', 'int f() {\n' + '  g();\n' * 61 + '}\n', ['size']),
    'function at the limit': ('scored/a.cpp', 'int f() {\n' + '  g();\n' * 60 + '}\n', []),
    'layer': ('gang/a.hpp', '#pragma once\n#include "proto/frames/frames.hpp"\n', ['include']),
    'helper of tests': ('scored/a.cpp', '#include "tests/support/head/head_fixture.hpp"\n', ['include']),
    'helper in a test': ('scored/a_test.cpp', '#include "tests/support/head/head_fixture.hpp"\n', []),
    'impure': ('gang/a.hpp', '#pragma once\n#include "base/async/asio.hpp"\n', ['include']),
    'pure': ('gang/a.hpp', '#pragma once\n#include "base/ids.hpp"\n', []),
    'library': ('scored/a.cpp', '#include <rdma/fabric.h>\n', ['include']),
    'systemd': ('scored/a.cpp', '#include <systemd/sd-daemon.h>\n', ['include']),
    'detached': ('scored/a.cpp', 'co_spawn(io, f(), asio::detached);\n', ['banned']),
    'clock': ('scored/a.cpp', 'auto t = std::chrono::steady_clock::now();\n', ['banned']),
    'sleep': ('scored/a.cpp', '  usleep(5);\n', ['banned']),
    'sleep in a comment': ('scored/a.cpp', '// usleep(5)\n', []),
    'excused': ('scored/a.cpp', '  usleep(5);  // tidy: allow banned, the probe waits\n', []),
    'trap lambda': ('scored/a.cpp', 'co_await run([v]{ use(v); });\n', ['trap']),
    'trap lambda over lines': ('scored/a.cpp', 'auto r = co_await run(\n    [v = 1]() { return v; });\n', ['trap']),
    'lambda by reference': ('scored/a.cpp', 'co_await run([&v]{ use(v); });\n', []),
    'trap aggregate': ('scored/a.cpp', 'co_await take(Agg{x, 3});\n', ['trap']),
    'named local': ('scored/a.cpp', 'Agg a{x, 3};\nco_await take(std::move(a));\n', []),
    'subscript': ('scored/a.cpp', 'co_await take(table[index](1));\n', []),
    'pragma': ('scored/a.hpp', 'int f();\n', ['pragma']),
    'backtrace': ('scored/a.80s-28525,vm.btr', 'terminated\n', ['left']),
    'merge': ('tests/a.py', 'import os\n<<<<<<< HEAD\nimport re\n', ['left']),
    'core': ('scored/core.123', '\n', ['left']),
    'output of a job': ('tests/score-7.out', 'done\n', ['left']),
    'header of that name': ('scored/core.hpp', '#pragma once\n', []),
    'no test': ('base/a.cpp', 'int f() { return 1; }\n', ['test']),
}


PROSE = {  # path, text, lines with a fault
    'document': ('a.md', 'The head tells the node.\nNobody is asked.\nThe head reports it.\n', [1, 2]),
    'code in a document': ('a.md', '```\ntells\n```\nuse `pm_tell`\n', []),
    'heading': ('a.md', '# What one head bears\n# Head capacity\n', [1]),
    'message': ('a.cpp', 'fail("one a node");\n// one a node\nint whom;\n', [1]),
    'page': ('a.tsx', '<p>Who sends to whom here</p>\n', [1, 1]),
    'question': ('a.md', 'Find out who is logged in.\nGone: who is asleep.\n', [2]),
    'protocol comment': ('a.proto', 'string text = 1;  // told once\nstring told = 2;\n', [1]),
    'test': ('a_test.cpp', 'fail("nobody");\n', []),
}


class Tidy(unittest.TestCase):
    def test_local_functions_of_one_name(self):
        first = '// This file is tested by a_test.cpp.\nnamespace {\nint f(int a) {\n  return a;\n}\n}  // namespace\n'
        other = '// This file is tested by a_test.cpp.\nnamespace {\nint f(long a) {\n  return 0;\n}\n}  // namespace\n'
        both = {'scored/a.cpp': first, 'scored/b.cpp': other}
        listing = 'score_library(x SOURCES a.cpp b.cpp)\n'
        self.assertEqual(faults_of(both | {'scored/CMakeLists.txt': listing}), [('batch', 'scored/b.cpp')])
        self.assertEqual(faults_of(both | {'scored/CMakeLists.txt': listing + 'score_alone(b.cpp)\n'}), [])
        self.assertEqual(faults_of(both | {'scored/CMakeLists.txt': 'score_executable(x SOURCES a.cpp b.cpp)\n'}), [])

    def test_cases(self):
        for name, (path, text, expected) in CASES.items():
            with self.subTest(name):
                self.assertEqual(rules_of(path, text), expected)

    def test_every_folder_has_a_short_readme(self):
        self.assertEqual(rules_of('scored/a.cpp', '\n', readme=None), ['readme'])
        self.assertEqual(rules_of('scored/a.cpp', '\n', readme='\n' * 41), ['readme'])

    def test_cycles_between_folders_and_files(self):
        tree = {'scored/x/a.hpp': '#pragma once\n#include "scored/y/b.hpp"\n',
                'scored/x/a.cpp': '#include "scored/x/a.hpp"\n',
                'scored/y/b.hpp': '#pragma once\n',
                'scored/y/c.cpp': '#include "scored/x/a.hpp"\n'}
        self.assertEqual(faults_of(tree), [('folder-cycle', 'scored/x scored/y')])
        self.assertEqual(faults_of(tree, 'folder-cycle scored/y -> scored/x\n'), [])
        del tree['scored/y/c.cpp']
        tree['scored/y/b.cpp'] = '#include "scored/x/a.hpp"\n'
        self.assertEqual(faults_of(tree, 'folder-cycle scored/y -> scored/x  # reason\n'),
                         [('file-cycle', 'scored/x/a scored/y/b')])
        tree['scored/y/b_test.cpp'] = tree.pop('scored/y/b.cpp')
        self.assertEqual(faults_of(tree), [])

    def test_cycle_of_three(self):
        self.assertEqual(structure.cycles([('a', 'b'), ('b', 'c'), ('c', 'a'), ('c', 'd')]), [['a', 'b', 'c']])
        self.assertEqual(structure.cycles([('a', 'b'), ('a', 'c'), ('b', 'c')]), [])

    def test_large_folder_and_missing_readme_below_the_top(self):
        tree = {f'scored/x/a{i}.hpp': '#pragma once\n' for i in range(29)}
        self.assertEqual(faults_of(tree), [('room', 'scored/x')])
        self.assertEqual(faults_of(tree, 'room scored/x\n'), [])
        self.assertEqual(faults_of({'scored/x/a.hpp': '#pragma once\n', 'scored/x/README.md': '\n' * 41}),
                         [('readme', 'scored/x/README.md')])
        self.assertEqual(rules_of('scored/x/a.cpp', '\n'), ['readme'])

    def test_systemd_has_its_place(self):
        text = '// tested by b\n#include <systemd/sd-daemon.h>\n'
        self.assertEqual(faults_of({'base/systemd/a.cpp': text, 'scored/shared/journal/journal.cpp': text}), [])
        self.assertEqual(faults_of({'base/os/a.cpp': text}), [('include', 'base/os/a.cpp')])

    def test_text_fields_are_not_compared_with_literals(self):
        proto = 'message A {\n  bytes fate = 1;\n  repeated bytes words = 2;\n  uint32 kind = 3;\n}\n'
        faulty = ('if (a.fate() == "bad") f();', 'if ("bad" != node->a().fate()) f();', 'a.words(0).starts_with("x");')
        for line in faulty:
            self.assertEqual(faults_of({'proto/a.proto': proto, 'scout/a.cpp': line + '\n'}),
                             [('wire', 'scout/a.cpp')], line)
        for line in ('if (a.fate() == "") f();', 'if (a.kind() == 1) f();', 'set_fate("bad");',
                     'f(a.fate()); g("bad");', 'if (a.fate() == b.fate()) f();'):
            self.assertEqual(faults_of({'proto/a.proto': proto, 'scout/a.cpp': line + '\n'}), [], line)
        self.assertEqual(faults_of({'proto/a.proto': proto, 'scout/a_test.cpp': faulty[0] + '\n'}), [])

    def test_comments_that_begin_as_a_fragment(self):
        for text in ('The number of jobs that wait.', 'Until the task is cancelled.', 'Of its checksum nothing.', 'Frames on the way.',
                     'True if the job has ended.', 'As one number, for messages.'):
            self.assertTrue(comments.is_fragment(text), text)
        for text in ('Returns the number of jobs that wait.', 'Runs until the task is cancelled.', 'The checksum is not verified here.',
                     'If the node is late, the head waits.', 'Errors: Malformed.', 'They end with the job.', 'Do not call this twice.'):
            self.assertFalse(comments.is_fragment(text), text)

    def test_share_of_fragments_per_folder(self):
        sentence, fragment, opening = ('// %s\nint a();\n' % text for text in ('Returns one.', 'One more.', 'Of jobs it keeps only one.'))
        for faulty in (fragment, opening):
            few, many = sentence * 99 + faulty, sentence * 97 + faulty * 4
            self.assertEqual(faults_of({'scored/a.cpp': '#include "a"\n' + few}), [])
            self.assertEqual({rule for rule, _ in faults_of({'scored/a.cpp': '#include "a"\n' + many})}, {'voice'})
        field = '// One more.\nint a = 0;\n'
        self.assertEqual(faults_of({'scored/a.cpp': field * 99}), [])

    def test_names_of_tests_have_eight_words(self):
        name = 'OneTwoThreeFourFiveSixSevenEight'
        self.assertEqual(faults_of({'scored/a_test.cpp': f'TEST(Suite, {name}) {{}}\n'}), [])
        self.assertEqual(faults_of({'scored/a_test.cpp': f'TEST(Suite, {name}Nine) {{}}\n'}), [('voice', 'scored/a_test.cpp')])

    def test_table_without_share(self):
        tree = {'docs/reference/limits.md': 'The table of `kMaxKnown` is of one job.\n',
                'scored/a.cpp': 'if (known.size() >= kMaxKnown) return;\nif (all.size() == limits::kMaxNew) return;\n'}
        self.assertEqual(faults_of(tree), [('share', 'scored/a.cpp')])

    def test_unused_limit(self):
        tree = {'base/limits.hpp': '#pragma once\ninline constexpr int kA = 1;\n'
                                   'inline constexpr int kB = 2 * kA;\ninline constexpr int kC = 3;\n'
                                   'static_assert(kC > kA);  // kC\n',
                'scored/a.cpp': 'int f() { return kB; }\n'}
        self.assertEqual(faults_of(tree), [('limit', 'kC')])
        self.assertEqual(faults_of(tree, 'limit kC\n'), [])

    def test_unlisted_test(self):
        tree = {'tests/integration/x/test_a.py': '', 'tests/integration/x/CMakeLists.txt': 'score_integration_tests(ab)\n'}
        self.assertEqual(faults_of(tree), [('listed', 'tests/integration/x/test_a.py')])
        tree['tests/integration/x/CMakeLists.txt'] = 'score_integration_tests(ab a)\n'
        self.assertEqual(faults_of(tree), [])

    def test_decision_in_the_list(self):
        tree = {'docs/adr/0001-a.md': '', 'docs/adr/README.md': '[a](0001-a.md), [a](0001-a.md)\n'}
        self.assertEqual(faults_of(tree), [('listed', 'docs/adr/0001-a.md')])
        tree['docs/adr/README.md'] = '[a](0001-a.md)\n'
        self.assertEqual(faults_of(tree), [])

    def test_prose(self):
        for name, (path, text, expected) in PROSE.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                write(root, {path: text})
                self.assertEqual([number for _, number, _ in prose.check_prose(root, [path])], expected)
        tree = {'scored/a.md': 'It tells.\n'}
        self.assertEqual(faults_of(tree), [('prose', 'scored/a.md')])
        self.assertEqual(faults_of(tree, 'prose scored/\n'), [])

    def test_the_guide_for_contributors_names_these_rules(self):
        guide = (pathlib.Path(tidy.__file__).parents[2] / 'CONTRIBUTING.md').read_text(encoding='utf-8')
        for words in (f'at most {structure.FOLDER_FILES} sources', f'a README of at most {structure.README_LINES} lines',
                      f'({tidy.FUNCTION_LINES} at most)', f'({tidy.FILE_LINES})', f'lines of {tidy.LINE_CHARS}'):
            self.assertIn(words, guide)
        order = next(line for line in guide.splitlines() if line.startswith('- Includes go one way'))
        for folder in tidy.MAY_INCLUDE.keys() - {'examples'}:
            self.assertIn(f'`{folder}`', order)


if __name__ == '__main__':
    unittest.main()
