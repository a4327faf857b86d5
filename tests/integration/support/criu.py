"""criu for the tests of checkpoints: Debian 13's, or what SCORED_CRIU names."""
import os
import subprocess

import pytest

CRIU = os.environ.get('SCORED_CRIU', '/usr/sbin/criu')


def skip_without_criu():
    if os.geteuid() != 0:
        pytest.skip('needs root')
    try:
        said = subprocess.run([CRIU, '--version'], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f'needs criu ({CRIU}; SCORED_CRIU names another)')
    version = [int(part) for part in said.split('Version:')[1].split()[0].split('.')[:2]]
    if version < [4, 1]:
        pytest.skip(f'needs criu 4.1 or later, not {said.split()}')
