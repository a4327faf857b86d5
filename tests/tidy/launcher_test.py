#!/usr/bin/env python3
"""launcher_test.py SOURCE_DIR BUILD_DIR: a compiler cache that is installed later changes no command.

Everything would be compiled again if the commands of ninja named ccache. cmake/launch_compiler
looks for it at each compilation in their place.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(arg) for arg in sys.argv[1:3])


class Launcher(unittest.TestCase):
    def launch(self, path):
        command = [SOURCE / "cmake/launch_compiler", SOURCE, "/bin/echo", "compiled"]
        return subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=True).stdout

    def test_runs_the_compiler_without_ccache(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(self.launch(empty), "compiled\n")

    def test_runs_ccache_where_it_is_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            ccache = pathlib.Path(folder, "ccache")
            ccache.write_text('#!/bin/sh\necho "$CCACHE_BASEDIR: $*"\n')
            os.chmod(ccache, 0o755)
            self.assertEqual(self.launch(folder), f"{SOURCE}: /bin/echo compiled\n")

    def test_no_command_of_the_build_names_ccache(self):
        ninja = BUILD / "CMakeFiles/rules.ninja"
        if not ninja.exists():
            self.skipTest("not built with ninja")
        self.assertNotIn("ccache", ninja.read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
