"""[devices]: what jobs may open, enforced by the kernel at the node's cgroup. As root."""
import os
import pathlib
import stat
import subprocess

import pytest
from cluster import BIN, wait_until

KVM = os.makedev(10, 232)
TUN = os.makedev(10, 200)
OPEN = 'import os, sys; os.close(os.open(sys.argv[1], os.O_RDWR))'


@pytest.fixture
def guarded(fresh, as_root):
    cluster = fresh(2, '--cores', 1)
    if not cluster.description['cgroup']:
        pytest.skip('needs cgroup version 2')
    return cluster


@pytest.fixture
def nodes(tmp_path):
    """Device nodes of this test's own: the guard decides by number, whatever the path."""
    tmp_path.chmod(0o755)
    for name, number in (('kvm', KVM), ('tun', TUN), ('null', os.makedev(1, 3))):
        try:
            os.mknod(tmp_path / name, stat.S_IFCHR | 0o666, number)
            os.close(os.open(tmp_path / name, os.O_RDWR))
        except OSError as error:
            pytest.skip(f'cannot open {name} here: {error}')
    return tmp_path


def cgroup_of(cluster, node):
    return pathlib.Path(cluster.description['cgroup']) / node


def guard(cluster, node, table, code=0):
    """As the node's unit does before the daemon starts."""
    config = cluster.directory / f'{node}-devices.toml'
    config.write_text(table)
    done = subprocess.run([str(BIN / 'scored-device-guard'), '--config', str(config), '--cgroup',
                           str(cgroup_of(cluster, node))], capture_output=True, text=True)
    assert done.returncode == code, done
    return done.stderr


def opens(cluster, path, node='node00'):
    """Whether a job on this node can open the device."""
    done = cluster.run('scrun', '-q', '-w', node, 'python3', '-c', OPEN, path, code=None)
    assert done.returncode == 0 or 'Operation not permitted' in done.stderr, done
    return done.returncode == 0


def test_jobs_open_what_the_table_allows(guarded, nodes):
    kvm, tun, null = nodes / 'kvm', nodes / 'tun', nodes / 'null'
    assert opens(guarded, kvm) and opens(guarded, tun)

    guard(guarded, 'node00', '[devices]\ndeny = ["/dev/kvm"]\n')
    assert not opens(guarded, kvm)
    assert opens(guarded, tun) and opens(guarded, null)
    assert opens(guarded, kvm, 'node01'), 'another node has its own table'

    note = guard(guarded, 'node00', '[devices]\nallow = ["/dev/kv?", "/dev/nvidia*"]\n')
    assert '/dev/nvidia*: it names no device now' in note or pathlib.Path('/dev/nvidia0').exists()
    assert opens(guarded, kvm), 'the program before is gone'
    assert not opens(guarded, tun)
    assert opens(guarded, null), 'always allowed'
    guarded.run('scrun', '-q', '-w', 'node00', '--pty', 'true')

    guard(guarded, 'node00', '')
    assert opens(guarded, kvm) and opens(guarded, tun)


def test_a_running_job_is_restricted_too(guarded, nodes):
    script = f'while python3 -c "{OPEN}" {nodes / "kvm"} 2>/dev/null; do sleep 0.1; done'
    job = guarded.submit('-w', 'node00', 'sh', '-c', script)
    guarded.wait_job(job, 'running')
    guard(guarded, 'node00', '[devices]\nallow = []\n')
    guarded.wait_job(job, 'completed')


def test_a_daemon_does_not_run_without_the_guard(guarded):
    table = '\n[devices]\ndeny = ["/dev/kvm"]\n'
    config = guarded.directory / 'node01' / 'scored.toml'
    config.write_text(config.read_text() + table)
    guarded.kill('node01')
    guarded.run('score', 'virtual', '--restart', 'node01', guarded.directory, code=None)
    log = guarded.directory / 'log' / 'node01'
    wait_until(lambda: '[devices] is not in force' in log.read_text(), what=guarded.logs)
    guard(guarded, 'node01', table)
    guarded.restart('node01')
    guarded.wait_up()


def test_an_unenforceable_device_rule_is_reported(guarded, tmp_path):
    config = tmp_path / 'scored.toml'
    config.write_text('[devices]\ndeny = ["/dev/kvm"]\n')
    words = [str(BIN / 'scored-device-guard'), '--config', str(config), '--cgroup', '/tmp']
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    assert '[devices] cannot be put in force here' in done.stderr
    config.write_text('[devices]\ndeny = ["kvm"]\n')
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and "scored.toml:2: deny: 'kvm' is neither" in done.stderr
    config.write_text('')
    assert subprocess.run(words).returncode == 0, 'nothing to do'


def opens_in(cgroup, path):
    """Whether a process in this cgroup can open the device."""
    enter = lambda: (cgroup / 'cgroup.procs').write_text('0')
    return subprocess.run(['python3', '-c', OPEN, path], preexec_fn=enter, stderr=subprocess.DEVNULL).returncode == 0


def test_the_devices_of_a_job_hold_for_its_shepherd_and_helpers_too(guarded, nodes):
    job = cgroup_of(guarded, 'device_test')
    parts = [job / name for name in ('tasks', 'helpers', 'shepherd')]
    for part in parts:
        part.mkdir(parents=True)
    try:
        words = [BIN / 'scored-device-guard', '--job', parts[0], 'c10:232']
        subprocess.run(words, check=True)
        assert [(opens_in(part, nodes / 'kvm'), opens_in(part, nodes / 'tun')) for part in parts] == [(False, True)] * 3
        os.chown(parts[0], 65534, 65534)
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 1 and 'belongs to user 0' in done.stderr, 'the parent is not the node daemon\'s'
    finally:
        for part in (*parts, job):
            wait_until(lambda part=part: not part.exists() or remove(part))


def remove(cgroup):
    try:
        cgroup.rmdir()
    except OSError:
        return False
    return True
