"""README's numbers of what ./try installs on a minimal Debian 12, computed by apt without an installation."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUPS = {'build': ['build'], 'demo': ['build', 'demo'], 'test': ['build', 'demo', 'test'],
          'test --long': ['build', 'demo', 'test', 'package', 'tarball', 'all-tests']}
MOST = (450, 300)  # packages and megabytes of ./try test
TOLERANCE = 0.05  # updates of the release change both


def packages(group):
    section = (ROOT / 'packaging/build-deps.txt').read_text().split(f'[{group}]')[1].split('\n[')[0]
    lines = (line.split('#')[0].replace('|', ' ').split() for line in section.splitlines()[1:])
    return [words[0] for words in lines if words]


def minimal():
    """The packages that every Debian has, and apt."""
    dump = subprocess.run(['apt-cache', 'dumpavail'], capture_output=True, text=True, check=True).stdout
    always = re.compile(r'^(Priority: required|Essential: yes)$', re.MULTILINE)
    return [stanza.split()[1] for stanza in dump.split('\n\n') if always.search(stanza)] + ['apt']


def installed(names):
    """The archives' numbers of bytes, by file name, if the names are installed onto an empty disk."""
    done = subprocess.run(
        ['apt-get', '-y', '--print-uris', '-o', 'Dir::State::status=/dev/null', '-o', 'APT::Install-Recommends=false',
         '-o', 'Debug::NoLocking=true', '-o', 'Dir::Cache::archives=/nonexistent', 'install', *names], capture_output=True,
        text=True, check=False)
    found = {words[1]: int(words[2]) for words in map(str.split, done.stdout.splitlines()) if words[:1] and words[0][0] == "'"}
    if not found:
        pytest.skip(f'apt has no list of these packages: {done.stderr.strip().splitlines()[-1:]}')
    return found


def test_readme_names_what_try_installs():
    release = pathlib.Path('/etc/os-release').read_text()
    if 'VERSION_CODENAME=bookworm' not in release or not shutil.which('apt-get'):
        pytest.skip('not Debian 12')
    shown = re.search(r'`\./try build`\s+installs\s+(\d+)\s+packages\s+\((\d+)\s+MB.*?`demo`\s+(\d+)\s+\((\d+)\s+MB.*?'
                      r'`test`\s+(\d+)\s+\((\d+)\s+MB.*?`test --long`\s+(\d+)\s+\((\d+)\s+MB', (ROOT / 'README.md').read_text(), re.DOTALL)
    told = dict(zip(GROUPS, zip(*[iter(map(int, shown.groups()))] * 2)))
    base = minimal()
    has = installed(base)
    for command, groups in GROUPS.items():
        with_groups = installed(base + [name for group in groups for name in packages(group)])
        new = [size for name, size in with_groups.items() if name not in has]
        count, megabytes = len(new), sum(new) / 1e6
        print(f'{command}: {count} packages, {megabytes:.0f} MB')
        assert count == pytest.approx(told[command][0], rel=TOLERANCE), command
        assert megabytes == pytest.approx(told[command][1], rel=TOLERANCE), command
        if command == 'test':
            assert count <= MOST[0] and megabytes <= MOST[1]
