"""Files of daemons that others can change or read, and secrets that could be where they do not belong."""
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import subprocess

from cluster import BIN
from figures import figure
from web import Web

NOBODY = pwd.getpwnam('nobody').pw_uid


@contextlib.contextmanager
def mode(path, bits):
    before = path.stat().st_mode & 0o7777
    path.chmod(bits)
    yield
    path.chmod(before)


@contextlib.contextmanager
def owner(path):
    before = path.stat()
    os.chown(path, NOBODY, NOBODY)
    yield
    os.chown(path, before.st_uid, before.st_gid)


@contextlib.contextmanager
def link(path):
    real = path.with_name(path.name + '.real')
    path.rename(real)
    path.symlink_to(real)
    yield
    path.unlink()
    real.rename(path)


def refusals(directory):
    """(role, file, how it is wrong, what the message says)"""
    for role, place in (('head', directory / 'key'), ('node', directory / 'node00' / 'key')):
        for bits in (0o644, 0o640, 0o666, 0o604):
            yield role, place, mode(place, bits), f'mode {bits:04o}'
        yield role, place, owner(place), f'uid {NOBODY}'
        yield role, place, link(place), str(place)
    for role in ('head', 'node'):
        config = directory / ('head' if role == 'head' else 'node00') / 'scored.toml'
        for bits in (0o666, 0o620, 0o602):
            yield role, config, mode(config, bits), f'mode {bits:04o}'
        yield role, config.parent, mode(config.parent, 0o775), 'mode 0775'
    state = directory / 'head'
    yield 'head', state, mode(state, 0o777), 'other users'
    yield 'head', state, mode(state, 0o770), 'other users'
    yield 'head', state, owner(state), 'must belong to'


def test_daemons_refuse_what_others_can_change(fresh, as_root):
    cluster = fresh(1)
    cluster.kill('head')
    cluster.kill('node00')
    count = 0
    for role, path, trouble, says in refusals(cluster.directory):
        config = cluster.directory / ('head' if role == 'head' else 'node00') / 'scored.toml'
        with trouble:
            words = [BIN / 'scored', f'--role={role}', '--config', config]
            result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            checked = subprocess.run([*words, '--check-config'], capture_output=True, text=True, timeout=60, check=False)
        if path.name in ('scored.toml', 'key') or says == 'mode 0775':
            assert checked.returncode != 0 and says in checked.stderr, (path, says, checked)
        lines = [line for line in result.stderr.splitlines() if line]
        assert result.returncode != 0, (role, path, says)
        assert str(path) in result.stderr and says in result.stderr, (says, result.stderr)
        assert len(lines) == 1, lines
        count += 1
    cluster.restart('head')
    cluster.restart('node00')
    cluster.wait_up()
    figure('S21', f'{count} wrong modes, owners and links refused with path and reason')


def texts_of_processes():
    for entry in pathlib.Path('/proc').iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                yield f'arguments of {entry.name}', (entry / 'cmdline').read_bytes(), False
                yield f'environment of {entry.name}', (entry / 'environ').read_bytes(), True


def texts_of_cluster(cluster, job):
    for path in (cluster.directory / 'log').iterdir():
        yield path.name, path.read_bytes(), False
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    for target in ('/metrics', '/api/v1/snapshot', '/'):
        yield target, web.ask(target).body, False
    for words in (['scq', '--json', '-a'], ['score', 'job', job, '--json'], ['scnodes', '--json'], ['score', 'info', '--json'],
                  ['scadm', 'trace', '--json']):
        yield ' '.join(map(str, words)), cluster.run(*words, code=None).stdout.encode(), False


def test_no_key_and_no_environment_is_shown(fresh, as_root):
    cluster = fresh(2, '--node-metrics')
    secret = 'do-not-show-' + os.urandom(8).hex()
    job = cluster.submit('-N', 2, 'sh', '-c', 'cat /proc/self/cmdline; sleep 600', extra_env={'PASSWORD': secret})
    cluster.wait_job(job, 'running')
    keys = [path.read_text().strip() for path in [cluster.directory / 'key', *cluster.directory.glob('node*/key')]]
    assert len(keys) == 3 and all(re.fullmatch('[0-9a-f]{64}', key) for key in keys)
    forms = [form for key in keys for form in (key.encode(), key.upper().encode(), bytes.fromhex(key))]
    looked_at = 0
    for where, text, may_have_environment in [*texts_of_processes(), *texts_of_cluster(cluster, job)]:
        assert not [form for form in forms if form in text], where
        assert may_have_environment or secret.encode() not in text, where
        looked_at += len(text)
    others = subprocess.run([shutil.which('setpriv'), f'--reuid={NOBODY}', '--clear-groups', 'cat', str(cluster.directory / 'key'),
                             *map(str, pathlib.Path(cluster.directory).glob('*/*'))], capture_output=True, check=False)
    assert others.stdout == b'', 'another user can read files of the cluster'
    cluster.cancel(job)
    for row in ('S20', 'rule-9'):
        figure(row, f'{looked_at >> 10} KiB of arguments, environments, logs, metrics and documents: nothing found')
