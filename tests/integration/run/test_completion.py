"""Completion in bash, zsh and fish: the words that a cluster knows. deploy/check_completion.sh tests the others."""
import pathlib
import shutil
import subprocess

import pytest
from cluster import LIMIT, wait_until

DEPLOY = pathlib.Path(__file__).resolve().parents[3] / 'deploy'


def offered(cluster, shell, line):
    script = f'files={DEPLOY}/completion; . {DEPLOY}/ask_shells.sh; ask_{shell} "$1"'
    env = dict(cluster.env, SCORED_COMPLETION_WORDS=str(DEPLOY / 'completion/completion-words'))
    return subprocess.run(['bash', '-c', script, 'bash', line], capture_output=True, text=True, timeout=LIMIT, env=env).stdout.split('\n')


@pytest.mark.parametrize('shell', ['bash', 'zsh', 'fish'])
def test_completion_offers_names_of_the_cluster(few, shell):
    if shutil.which(shell) is None:
        pytest.skip(f'no {shell}')
    done = few.submit('-i', 'none', 'true')
    wait_until(lambda: few.job(done)['final'])
    active = str(few.submit('--hold', 'true'))
    done = str(done)
    for line in ('scq ', 'scacct -j ', 'scattach ', 'score job '):
        assert {active, done} <= set(offered(few, shell, line)), line
    for line in ('sccancel ', 'score release '):
        found = offered(few, shell, line)
        assert active in found and done not in found, line
    for line in ('scnodes ', 'scrun -w ', 'scrun --nodelist ', 'scadm drain ', 'scadm key rotate ', 'scacct --nodelist '):
        assert 'node01' in offered(few, shell, line), line
    assert 'node01,node02' in offered(few, shell, 'scrun -x node01,')
    assert few.run('scadm', 'reserve', 'node01', '2h', '1h', '-', '--name', 'service', code=None).returncode in (0, 125)
    if 'service' in few.run('scadm', 'reservations').stdout:
        assert 'service' in offered(few, shell, 'scrun --reservation ')
        few.run('scadm', 'unreserve', 'service')
