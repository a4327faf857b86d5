"""`./try` on systems with other packages: dpkg-query, apt-get and cmake are scripts that answer for such a system."""
import os
import pathlib
import subprocess

import pytest

TREE = pathlib.Path(__file__).resolve().parents[2]
CONFIGURED = 3
FAKES = {
    # Every package is installed, but for those in the variable.
    'dpkg-query': '''for package; do :; done
        case " $OTHERS " in *" $package="*) o=${OTHERS#*"$package="}; [ "${o%% *}" != none ] && echo "installed ${o%% *}";;
        *) echo installed 99;; esac''',
    'apt-get': '''case "$*" in
        update*) exit "$UPDATE";;
        *satisfy\\ -s*) case "$*" in *"$NOWHERE"*) exit 100;; esac;;
        *) exit 100;; esac''',
    'sudo': 'exec "$@"',
    'cmake': f'exit {CONFIGURED}'}


@pytest.fixture
def build(tmp_path):
    for name, text in FAKES.items():
        (tmp_path / name).write_text(f'#!/bin/sh\n{text}\n')
        (tmp_path / name).chmod(0o755)

    def run(others='', update=0, nowhere='none', before=()):
        env = os.environ | {'PATH': f'{tmp_path}:{os.environ["PATH"]}', 'OTHERS': others, 'UPDATE': str(update), 'NOWHERE': nowhere}
        done = subprocess.run([*before, TREE / 'try', 'build'], env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr
    return run


def test_installed_alternative_is_enough(build):
    assert build('libboost1.81-dev=none libboost-dev=1.83.0.2')[0] == CONFIGURED


def test_old_alternative_is_not_enough(build):
    code, errors = build('libboost1.81-dev=none libboost-dev=1.74.0.3')
    assert code == 1 and 'try: missing packages: libboost1.81-dev | libboost-dev (>= 1.81)\n' in errors


def test_package_without_candidate_is_named(build):
    code, errors = build('libfmt-dev=none libssl-dev=none', nowhere='libfmt-dev')
    assert code == 1 and errors.endswith(' has no candidate for:\n  libfmt-dev\n'), errors


def test_unreachable_registry_is_reported(build):
    code, errors = build('libfmt-dev=none', update=100, nowhere='libfmt-dev')
    assert code == 1 and errors.endswith('registry reachable?\n'), errors


@pytest.mark.skipif(os.geteuid() != 0, reason='another os-release is mounted: needs root')
@pytest.mark.parametrize('release, told', [
    ('ID=debian\nVERSION_ID=13', ''), ('ID=ubuntu\nVERSION_ID=24.04', ''),
    ('ID=linuxmint\nVERSION_ID=22\nPRETTY_NAME="Linux Mint 22"', 'try: Linux Mint 22 is untested; it is taken for Debian 13\n'),
    ('ID=debian\nPRETTY_NAME="Debian forky"', 'try: Debian forky is untested; it is taken for Debian 13\n'),
    ('ID=ubuntu\nVERSION_ID=22.04\nPRETTY_NAME=Jammy', 'try: Jammy is untested and old; it is taken for Debian 12\n')])
def test_untested_system_is_named(build, tmp_path, release, told):
    file = tmp_path / 'os-release'
    file.write_text(release + '\n')
    mounted = ['unshare', '-m', 'sh', '-c', f'mount --bind {file} /etc/os-release; exec "$@"', 'sh']
    assert build(before=mounted) == (CONFIGURED, told)
