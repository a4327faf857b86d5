"""The packages of Debian on a machine of their own: installed, configured, upgraded under running jobs, not downgraded
below the store, not removed under running jobs, purged without a trace."""
import itertools
import pathlib
import re
import shutil
import subprocess

import pytest
from bed import wait_until
from booted_cluster import FORMER_UNIT, packages

NAMES = ('libpm-fi1', 'libpm1', 'scored-client', 'scored-common', 'scored-head', 'scored-node')
PLACE = '/var/tmp/packages'
AUTOPKGTEST = pathlib.Path(__file__).parents[2] / 'debian/tests/one-node'
JOBS = 10
# As an administrator of the earlier versions wrote it, for one more option.
LAUNCHER = '''[Service]
ExecStart=
ExecStart=/usr/libexec/scored/scored-launcher --rundir /run/scored-launcher --daemon-user scored --allow-uid 500 \\
    --shepherd /usr/libexec/scored/scored-shepherd
'''
numbers = itertools.count()


def files_of_packages():
    found = {path.name.split('_')[0]: path for path in packages()}
    missing = [name for name in NAMES if name not in found]
    if missing:
        pytest.skip(f'no package {missing[0]}: ./try package builds them')
    return [found[name] for name in NAMES]


class Host:
    """A head and its only node on one machine."""

    def __init__(self, machine):
        self.machine = machine
        machine.boot()
        machine.run('useradd', '--create-home', '--uid', 2001, 'alice')
        for path in files_of_packages():
            machine.copy(path, f'{PLACE}/{path.name}')

    def install(self, place=PLACE, code=0):
        return self.machine.run('sh', '-c', f'apt-get install -q -y --allow-downgrades {place}/*.deb', code=code)

    def configure(self, node='', owner=None):
        name = self.machine.name
        self.machine.write('/etc/scored/scored.toml', f'[head]\nnodes = "{name}"\n[node]\nname = "{name}"\ncores = 4\n{node}')
        give = f'chown {owner} key node.key' if owner else 'systemd-tmpfiles --create scored.conf'
        self.machine.run('sh', '-c', f'''cd /etc/scored && scored --role=head --new-key &&
            scored --role=head --node-key {name} && mv {name}.key node.key && {give} &&
            systemctl start scored-head scored-launcher scored-node''')
        wait_until(lambda: self.machine.run('scnodes', '--no-header', '-o', 'state').stdout.strip() == 'up', 'the node is up')

    def start_jobs(self, count):
        jobs = [self.machine.run('scrun', '--detach', 'sleep', 100_000 + i, user='alice').stdout.strip() for i in range(count)]
        wait_until(lambda: len(self.tasks()) == count, 'all jobs run')
        return jobs

    def tasks(self):
        return sorted(self.machine.run('pgrep', '-x', '-u', 'alice', 'sleep', code=None).stdout.split())

    def states(self, jobs):
        return {job['state'] for job in self.machine.json('scq', *jobs)['jobs']}

    def daemons(self):
        units = [self.machine.run('systemctl', 'show', '-P', 'MainPID', f'scored-{unit}').stdout.strip()
                 for unit in ('head', 'launcher', 'node')]
        assert '0' not in units, units
        return units

    def users(self):
        """Of head, launcher and node daemon."""
        return [self.machine.run('ps', '-o', 'user:20=', '-p', pid).stdout.strip() for pid in self.daemons()]

    def owner(self, path):
        return self.machine.run('stat', '-c', '%U', path).stdout.strip()

    def run_as_one_user(self):
        self.machine.run('sh', '-c', '''userdel scored-head; userdel scored-node; useradd --system --home-dir /var/lib/scored scored
            install -d -o scored -g scored /run/scored''')
        self.machine.write('/etc/systemd/system/scored-head.service.d/earlier.conf', '[Service]\nUser=scored\nGroup=scored\n')
        self.machine.write('/etc/systemd/system/scored-node.service', FORMER_UNIT.replace('=scored-node\n', '=scored\n'))
        self.machine.write('/etc/systemd/system/scored-launcher.service.d/ours.conf', LAUNCHER)
        self.machine.run('systemctl', 'daemon-reload')
        self.configure(node='run_dir = "/run/scored"\n', owner='scored')

    def forget_old_units(self):
        """What the units of the new packages do: they name the new users and the new directory."""
        self.machine.run('sh', '-c', '''rm /etc/systemd/system/scored-head.service.d/earlier.conf /etc/systemd/system/scored-node.service
            sed -i '/run_dir/d' /etc/scored/scored.toml''')

    def version(self, name):
        return self.machine.run('dpkg-query', '-W', '-f', '${Version}', name).stdout


@pytest.fixture
def host(empty_bed):
    return Host(empty_bed.machine(f'packaged{next(numbers)}'))


def newer(machine, directory):
    """The same packages as version 9 of themselves, on the machine; gives the directory there."""
    for path in files_of_packages():
        tree = directory / path.stem
        subprocess.run(['dpkg-deb', '--raw-extract', path, tree], check=True)
        control = tree / 'DEBIAN/control'
        version = re.search(r'^Version: (.+)$', control.read_text(), re.M)[1]
        control.write_text(control.read_text().replace(f'Version: {version}', 'Version: 9').replace(f'(= {version})', '(= 9)'))
        built = directory / f'{path.name.split("_")[0]}_9.deb'
        subprocess.run(['dpkg-deb', '-Zgzip', '-z1', '--build', tree, built], check=True, capture_output=True)
        machine.copy(built, f'{PLACE}-9/{built.name}')
    return f'{PLACE}-9'


def test_installing_starts_nothing_and_gives_every_program_its_version(host):
    host.install()
    for unit in ('scored-head.service', 'scored-head.socket', 'scored-launcher.service', 'scored-node.service'):
        assert host.machine.run('systemctl', 'is-enabled', unit, code=None).stdout.strip() == 'disabled'
        assert host.machine.run('systemctl', 'is-active', unit, code=None).stdout.strip() == 'inactive'
    version = host.version('scored-common')
    for program in ('scored', 'scored --role=head', '/usr/libexec/scored/scored-launcher', 'score', 'scrun', 'sctop', 'scq'):
        assert host.machine.run(*program.split(), '--version').stdout == f'scored {version}\n'
    host.machine.write('/etc/scored/scored.toml', '# mine\n')
    host.machine.run('sh', '-c', f'dpkg -i {PLACE}/*.deb')
    assert host.machine.read('/etc/scored/scored.toml') == '# mine\n'


def test_the_autopkgtest_passes(host, tmp_path):
    """Machines have no compiler: its program is compiled on this host, and what it calls there copies that."""
    if not shutil.which('mpicc.mpich'):
        pytest.skip('needs libmpich-dev')
    script = AUTOPKGTEST.read_text(encoding='utf-8')
    (tmp_path / 'hello.c').write_text(re.search(r"<<'C'\n(.*?)\nC\n", script, re.S)[1] + '\n', encoding='utf-8')
    subprocess.run(['mpicc.mpich', '-o', 'hello', 'hello.c'], cwd=tmp_path, check=True)
    host.install()
    host.machine.copy(tmp_path / 'hello', '/usr/local/share/hello')
    host.machine.copy(AUTOPKGTEST, '/var/tmp/one-node')
    host.machine.write('/usr/local/bin/mpicc.mpich', '#!/bin/sh\nexec cp /usr/local/share/hello "$2"\n')
    host.machine.run('chmod', '755', '/usr/local/bin/mpicc.mpich', '/usr/local/share/hello')
    host.machine.run('sh', '/var/tmp/one-node')


def test_the_units_restrict_no_job(host):
    host.install()
    host.configure()
    shown = 'grep -E "^(CapBnd|NoNewPrivs|Seccomp):" /proc/{}/status'
    as_alice = ['setpriv', '--reuid=alice', '--regid=alice', '--init-groups', 'scrun', '-q', '--chdir', '/tmp', 'sh', '-c']
    assert host.machine.run(*as_alice, shown.format('self')).stdout == host.machine.run('sh', '-c', shown.format(1)).stdout
    assert host.machine.run('systemctl', 'show', '-P', 'LimitMEMLOCK', 'scored-launcher').stdout == 'infinity\n'
    for device in ('/dev/net/tun', '/dev/fuse'):
        if host.machine.run('sh', '-c', f'exec 3<{device}', code=None).returncode == 0:
            host.machine.run('chmod', '666', device)
            host.machine.run(*as_alice, f'exec 3<{device}')


def test_users_cannot_read_the_programs_that_run_as_them(host):
    host.install()
    as_alice = ['setpriv', '--reuid=alice', '--regid=alice', '--init-groups', 'sh', '-c']
    for program in ('libexec/scored/scored-shepherd', 'libexec/scored/scored-pmix', 'sbin/scored-pario', 'bin/scored-pario-mount'):
        if host.machine.run('test', '-e', f'/usr/{program}', code=None).returncode == 0:
            host.machine.run(*as_alice, f'test -x /usr/{program} && ! test -r /usr/{program}')
    host.machine.run(*as_alice, 'test -r /usr/libexec/scored/bundle/scored-shepherd')


def test_a_reload_fails_with_what_needs_a_restart(host):
    host.install()
    host.configure()
    host.machine.run('systemctl', 'reload', 'scored-head')
    host.machine.run('sed', '-i', 's/^.head.$/&\\ncluster = "other"\\nnode_timeout = "1m"/', '/etc/scored/scored.toml')
    host.machine.run('systemctl', 'reload', 'scored-head', code=1)
    assert 'cluster, node_timeout: a change needs a restart of the head' in host.machine.journal('-u', 'scored-head')
    host.daemons()


def test_jobs_survive_an_upgrade(host, tmp_path):
    host.install()
    host.configure()
    jobs = host.start_jobs(JOBS)
    tasks, daemons = host.tasks(), host.daemons()
    host.install(newer(host.machine, tmp_path))
    assert host.version('scored-node') == host.version('scored-head') == '9'
    assert not set(daemons) & set(host.daemons())
    wait_until(lambda: host.states(jobs) == {'running'}, 'the new head has the jobs')
    assert host.tasks() == tasks
    host.machine.run('sccancel', *jobs)
    wait_until(lambda: not host.tasks(), 'the new node daemon ends the jobs')

def test_head_and_node_daemon_have_users_of_their_own(host):
    host.install()
    host.configure()
    assert host.users() == ['scored-head', 'root', 'scored-node']
    as_node, as_head = (['setpriv', f'--reuid={user}', f'--regid={user}', '--init-groups'] for user in ('scored-node', 'scored-head'))
    for path in ('/etc/scored/key', '/var/lib/scored/jobs.db'):
        host.machine.run(*as_head, 'wc', '-c', path)
        assert 'Permission denied' in host.machine.run(*as_node, 'wc', '-c', path, code=1).stderr
    assert 'Permission denied' in host.machine.run(*as_head, 'wc', '-c', '/etc/scored/node.key', code=1).stderr
    assert 'Permission denied' in host.machine.run(*as_node, 'touch', '/run/scored/another.sock', code=1).stderr
    assert host.owner('/run/scored-launcher') == 'root' and host.owner('/run/scored-launcher/launcher.sock') == 'scored-node'
    asking = ("import socket; link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
              "link.connect('/run/scored-launcher/launcher.sock')")
    assert 'PermissionError' in host.machine.run(*as_head, 'python3', '-c', asking, code=1).stderr
    host.machine.run('chown', 'scored-node', '/etc/scored/key')
    found = host.machine.run('score', 'doctor', code=None).stdout
    assert re.search(r'key /etc/scored/key belongs to uid \d+, and the daemon runs as uid \d+', found), found


def test_jobs_survive_the_upgrade_from_one_user(host, tmp_path):
    """The units and users of the versions before 'scored' became two users; then the upgrade."""
    host.install()
    host.run_as_one_user()
    assert host.users() == ['scored', 'root', 'scored']
    jobs = host.start_jobs(2)
    talking = host.machine.start('scrun', 'cat', user='alice', stdin=subprocess.PIPE)
    wait_until(lambda: host.machine.run('pgrep', '-x', '-u', 'alice', 'cat', code=None).stdout, 'the job with a front end runs')
    tasks = host.tasks()
    host.forget_old_units()
    host.install(newer(host.machine, tmp_path))
    wait_until(lambda: host.states(jobs) == {'running'}, 'the new head has the jobs')
    assert host.users() == ['scored-head', 'root', 'scored-node']
    assert host.owner('/etc/scored/key') == host.owner('/var/lib/scored/jobs.db') == 'scored-head'
    assert host.owner('/etc/scored/node.key') == 'scored-node'
    assert host.tasks() == tasks
    out, err = talking.communicate('still here\n', timeout=60)
    assert (out, talking.returncode) == ('still here\n', 0), err
    host.machine.run('sccancel', *jobs)
    wait_until(lambda: not host.tasks(), 'the new node daemon ends the jobs')
    assert host.start_jobs(1)


def test_jobs_survive_the_upgrade_to_a_unit_of_their_own(host, tmp_path):
    host.install()
    host.machine.write('/etc/systemd/system/scored-node.service', FORMER_UNIT)
    host.machine.run('systemctl', 'daemon-reload')
    host.configure()
    jobs = host.start_jobs(2)
    # As the daemon of that version did with the controllers that it used.
    unit = '/system.slice/scored-node.service'
    host.machine.run('sh', '-c', 'cd "$0" && mkdir -p daemon && for pid in $(cat cgroup.procs); do echo $pid >daemon/cgroup.procs; done',
                     f'/sys/fs/cgroup{unit}')
    if not host.machine.enable_controller('hugetlb', '/system.slice', unit):
        pytest.skip('the controller hugetlb is not in version 2 here')
    tasks = host.tasks()
    host.machine.run('rm', '/etc/systemd/system/scored-node.service')
    host.install(newer(host.machine, tmp_path))
    wait_until(lambda: host.states(jobs) == {'running'}, 'the new head has the jobs')
    wait_until(lambda: host.machine.run('systemctl', 'is-active', 'scored-node', code=None).stdout == 'active\n', 'the daemon runs')
    assert host.tasks() == tasks
    assert 'IPAddressAllow=any' in host.machine.read('/etc/systemd/system/scored-node.service.d/scored-setup.conf')
    host.machine.run('systemctl', 'restart', 'scored-node')
    wait_until(lambda: host.states(jobs) == {'running'}, 'the daemon starts again above the jobs')
    assert host.tasks() == tasks
    host.machine.run('sccancel', *jobs)
    wait_until(lambda: not host.tasks(), 'the new node daemon ends the jobs')
    host.machine.run('systemctl', 'restart', 'scored-node')
    host.start_jobs(1)
    assert '/scored.slice/scored-jobs.service/job_' in host.machine.run('sh', '-c', 'cat /proc/$(pgrep -x -u alice sleep)/cgroup').stdout


def test_a_head_that_is_older_than_the_store_is_refused(host, tmp_path):
    host.install()
    host.configure()
    host.machine.run('systemctl', 'stop', 'scored-head')
    host.install(newer(host.machine, tmp_path))
    store = '/var/lib/scored/jobs.db'
    schema = int(host.machine.run('od', '-An', '-tu1', '-j63', '-N1', store).stdout)
    host.machine.run('sh', '-c', rf"printf '\143' | dd of={store} bs=1 seek=63 conv=notrunc status=none")
    refused = host.install(code=100)
    assert f'{store} has schema version 99, this package knows {schema}:' in refused.stdout + refused.stderr
    assert {host.version(name) for name in ('scored-client', 'scored-common', 'scored-head', 'scored-node')} == {'9'}
    host.machine.run('sh', '-c', rf"printf '\{schema:03o}' | dd of={store} bs=1 seek=63 conv=notrunc status=none")
    host.install()
    assert host.version('scored-head') == host.version('scored-common')


def test_a_node_or_head_with_jobs_is_not_removed(host):
    host.install()
    host.configure()
    jobs = host.start_jobs(2)
    for name in ('scored-node', 'scored-head'):
        refused = host.machine.run('apt-get', 'remove', '-q', '-y', name, code=100)
        assert 'SCORED_END_JOBS=1' in refused.stdout + refused.stderr
    host.daemons()
    assert host.states(jobs) == {'running'} and len(host.tasks()) == 2


def listing(machine):
    """Every file that packages could leave; not logs, caches and the package system's own."""
    return set(machine.run('sh', '-c', '''find / -xdev \\( -path /proc -o -path /sys -o -path /var/log -o -path /var/cache \
        -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path '/tmp/*' -o -path '/var/tmp/*' -o -path '/run/systemd/*' \
        -o -path '/home/*' -o -path '/var/lib/systemd/*' -o -path '/root/*' \\) -prune -o -print; ls /run''').stdout.splitlines())


@pytest.mark.parametrize('with_jobs', [False, True])
def test_purging_leaves_nothing(host, with_jobs):
    before = listing(host.machine)
    host.install()
    host.configure()
    jobs = host.start_jobs(2)
    if not with_jobs:
        host.machine.run('sccancel', *jobs)
        wait_until(lambda: not host.tasks(), 'the jobs end')
    consent = ['env', 'SCORED_END_JOBS=1'] if with_jobs else []
    host.machine.run(*consent, 'apt-get', 'purge', '-q', '-y', *NAMES)
    left = {name for name in listing(host.machine) - before if not re.search(r'~$|-$|\.dpkg-|ld\.so\.cache', name)}
    assert not left
    assert not host.tasks()
    assert host.machine.run('pgrep', '-f', 'scored', code=None).stdout == ''
    for database in ('passwd', 'group'):
        assert 'scored' not in host.machine.run('getent', database).stdout
