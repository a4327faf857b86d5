#!/usr/bin/env python3
"""tidy.py must find each kind of fault, and only that."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tidy  # noqa: E402


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
    'impure': ('gang/a.hpp', '#pragma once\n#include "base/async/asio.hpp"\n', ['include']),
    'pure': ('gang/a.hpp', '#pragma once\n#include "base/ids.hpp"\n', []),
    'library': ('scored/a.cpp', '#include <rdma/fabric.h>\n', ['include']),
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
    'core': ('scored/core.123', '\n', ['left']),
    'header of that name': ('scored/core.hpp', '#pragma once\n', []),
    'no test': ('base/a.cpp', 'int f() { return 1; }\n', ['test']),
}


class Tidy(unittest.TestCase):
    def test_cases(self):
        for name, (path, text, expected) in CASES.items():
            with self.subTest(name):
                self.assertEqual(rules_of(path, text), expected)

    def test_every_folder_has_a_short_readme(self):
        self.assertEqual(rules_of('scored/a.cpp', '\n', readme=None), ['readme'])
        self.assertEqual(rules_of('scored/a.cpp', '\n', readme='\n' * 41), ['readme'])


if __name__ == '__main__':
    unittest.main()
