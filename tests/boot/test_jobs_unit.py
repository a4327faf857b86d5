"""scored-jobs.service on a machine that is head and node: nothing that confines the node daemon holds for jobs, the
daemons restart above running jobs, stopping the unit ends them, and jobs of the layout before it go on."""
import re

import pytest
from bed import Bed, wait_until
from booted_cluster import FORMER_UNIT, OF_HEAD, OF_NODE, add_users, install

JOBS = '/scored.slice/scored-jobs.service'
DAEMON = '/scored.slice/scored-node.service'
FORMER = '/system.slice/scored-node.service'
PUBLIC = '203.0.113.5'
CONNECT = f"import socket; socket.create_connection(('{PUBLIC}', 7000), 20)"
LISTEN = f"import socket, time; s = socket.create_server(('{PUBLIC}', 7000), backlog=100); time.sleep(1000)"
# The kernel's log, for writing, and tun may be opened by everyone whom the mode of the file allows.
DEVICE, OTHER = '/dev/scored-test0', '/dev/scored-test1'
CONFIG = f'''[head]
nodes = "one"
[node]
name = "one"
cores = 4
[gres.gpu]
files = ["{DEVICE}"]
'''


class One:
    def __init__(self, machine):
        self.machine = machine
        machine.boot()
        add_users(machine)
        install(machine, sorted({*OF_HEAD, *OF_NODE}))
        for path, numbers in ((DEVICE, '1 11'), (OTHER, '10 200')):
            machine.run('sh', '-c', f'mknod -m 666 {path} c {numbers}')
        machine.run('ip', 'address', 'add', f'{PUBLIC}/32', 'dev', 'lo')
        machine.write('/etc/scored/scored.toml', CONFIG)
        machine.run('sh', '-c', '''cd /etc/scored && scored --role=head --new-key && scored --role=head --node-key one &&
            mv one.key node.key && systemd-tmpfiles --create scored.conf &&
            systemctl start scored-head scored-launcher scored-node''')
        self.wait_until_up()
        self.server = machine.start('python3', '-c', LISTEN)
        wait_until(lambda: self.in_job('python3', '-c', CONNECT, code=None).returncode == 0, 'the server listens')

    def wait_until_up(self):
        wait_until(lambda: self.machine.run('scnodes', '--no-header', '-o', 'state', code=None).stdout.strip() == 'up',
                   'the node is up')

    def in_job(self, *words, code=0):
        return self.machine.run('scrun', '-q', *words, user='alice', code=code)

    def in_daemons_place(self, *words):
        """In the cgroup, the devices and the files of the node daemon, but as root: its status."""
        pid = self.property('scored-node', 'MainPID')
        script = f'echo $$ >/sys/fs/cgroup{DAEMON}/cgroup.procs && exec nsenter -t {pid} -m "$@"'
        return self.machine.run('sh', '-c', script, 'sh', *words, code=None)

    def property(self, unit, name):
        return self.machine.run('systemctl', 'show', '-P', name, unit).stdout.strip()

    def start_job(self):
        """Of a task; gives the job and the task's pid on the machine."""
        job = self.machine.run('scrun', '--detach', 'sleep', '100000', user='alice').stdout.strip()
        return job, wait_until(self.tasks, f'job {job} runs')

    def tasks(self):
        return self.machine.run('pgrep', '-x', '-u', 'alice', 'sleep', code=None).stdout.split()

    def state(self, job):
        return self.machine.json('scq', job)['jobs'][0]['state']

    def cancel(self, job, code=0):
        self.machine.run('sccancel', job, code=code)
        wait_until(lambda: not self.tasks(), f'job {job} is gone')

    def processes(self, cgroup):
        """In it and below."""
        return self.machine.run('sh', '-c', f'find /sys/fs/cgroup{cgroup} -name cgroup.procs -exec cat {{}} + || true').stdout.split()


@pytest.fixture(scope='module')
def one(empty_bed, base, installed):
    bed = Bed([installed, base])
    try:
        made = One(bed.machine('one'))
        yield made
        made.server.kill()
    finally:
        bed.close()


def cgroup_of_job(one):
    return one.in_job('cat', '/proc/self/cgroup').stdout.split('0::')[1]


def test_jobs_are_in_their_unit(one):
    assert cgroup_of_job(one).startswith(JOBS + '/job_')
    job, (task,) = one.start_job()
    keeper = one.machine.read(f'/sys/fs/cgroup{JOBS}/keeper/cgroup.procs').split()
    assert keeper == [one.property('scored-jobs', 'MainPID')]
    assert one.machine.read(f'/sys/fs/cgroup{JOBS}/cgroup.procs') == ''
    assert {task, *keeper} < set(one.processes(JOBS))
    one.cancel(job)


def test_no_filter_of_the_node_daemon_holds_for_jobs(one):
    shown = one.machine.run('systemd-analyze', 'security', '--no-pager', 'scored-node').stdout
    print([line for line in shown.splitlines() if 'exposure level' in line][0])
    for words in (('python3', '-c', CONNECT), ('sh', '-c', f'exec 3<>{OTHER}')):
        assert one.machine.run(*words, code=None).returncode == 0, words
        one.in_job(*words)
    refused = one.in_daemons_place('python3', '-c', CONNECT)
    assert 'PermissionError' in refused.stderr or 'TimeoutError' in refused.stderr, refused
    for path in (OTHER, '/run/scored-node' + OTHER):
        assert one.in_daemons_place('sh', '-c', f'exec 3<>{path}').returncode != 0, path
    refused = one.in_daemons_place('sh', '-c', f'exec 3<>/run/scored-node{OTHER}').stderr
    assert 'Operation not permitted' in refused or 'Permission denied' in refused or 'Read-only' in refused, refused


def test_the_node_daemon_writes_cgroups_of_jobs_only(one):
    for path, status in (('/sys/fs/cgroup/other', 1), ('/sys/fs/cgroup/scored.slice/other', 1), (f'/sys/fs/cgroup{JOBS}/other', 0)):
        made = one.in_daemons_place('mkdir', path)
        assert made.returncode == status, (path, made.stderr)
    one.machine.run('rmdir', f'/sys/fs/cgroup{JOBS}/other')
    # Nor can it leave its filters for a cgroup that is its own.
    as_daemon = ('setpriv', '--reuid=scored-node', '--regid=scored-node', '--clear-groups', '--bounding-set=-all')
    keeper = f'/sys/fs/cgroup{JOBS}/keeper/cgroup.procs'
    assert one.in_daemons_place(*as_daemon, 'sh', '-c', f'exec 3>{keeper}').returncode == 0
    assert one.in_daemons_place(*as_daemon, 'sh', '-c', f'echo $$ >{keeper}').returncode != 0
    assert one.machine.read(keeper).split() == [one.property('scored-jobs', 'MainPID')]
    status = one.machine.read(f"/proc/{one.property('scored-node', 'MainPID')}/status")
    assert 'CapBnd:\t0000000000000000' in status and 'CapEff:\t0000000000000000' in status


def test_the_switcher_is_real_time_without_a_capability(one):
    limits = one.machine.read(f"/proc/{one.property('scored-node', 'MainPID')}/limits")
    if re.search(r'^Max realtime priority +0 ', limits, re.M):
        pytest.skip('the service manager of this machine lacks CAP_SYS_RESOURCE and cannot set LimitRTPRIO=')
    threads = one.machine.run('ps', '-L', '-o', 'cls=,ni=,comm=', '-p', one.property('scored-node', 'MainPID')).stdout
    lines = [line.split() for line in threads.splitlines()]
    assert ['FF', 'switcher'] in [[line[0], line[-1]] for line in lines], threads
    assert ['TS', '-10'] in [line[:2] for line in lines], threads


def test_devices_of_generic_resources_are_found(one):
    one.in_job('--gres', 'gpu:1', 'sh', '-c', f'exec 3>{DEVICE}')
    assert one.in_job('sh', '-c', f'exec 3>{DEVICE}', code=None).returncode != 0


def test_the_daemons_restart_above_jobs_with_controllers(one):
    """The kernel lets no process into a cgroup above one with controllers: the daemon could not come back there."""
    if not one.machine.enable_controller('hugetlb', '/scored.slice', JOBS):
        pytest.skip('the controller hugetlb is not in version 2 here')
    job, task = one.start_job()
    for unit in ('scored-node', 'scored-launcher', 'scored-head'):
        before = one.property(unit, 'MainPID')
        one.machine.run('systemctl', 'restart', unit)
        assert one.property(unit, 'MainPID') != before
        one.wait_until_up()
        assert one.tasks() == task
    one.machine.run('systemctl', 'daemon-reload')
    one.machine.run('systemctl', 'daemon-reexec')
    assert one.tasks() == task and one.state(job) == 'running'
    assert 'hugetlb' in one.machine.read(f'/sys/fs/cgroup{JOBS}/keeper/cgroup.controllers')
    one.cancel(job)


def test_a_stopped_daemon_leaves_jobs_and_the_stopped_unit_of_jobs_leaves_nothing(one):
    job, task = one.start_job()
    one.machine.run('systemctl', 'stop', 'scored-node')
    assert one.tasks() == task and task[0] in one.processes(JOBS)
    one.machine.run('systemctl', 'start', 'scored-node')
    wait_until(lambda: one.state(job) == 'running', 'the daemon has adopted the job')
    one.machine.run('systemctl', 'stop', 'scored-jobs')
    assert one.property('scored-node', 'ActiveState') == 'inactive'
    assert one.machine.run('ls', f'/sys/fs/cgroup{JOBS}', code=None).returncode != 0
    assert one.machine.run('pgrep', '-u', 'alice', code=None).stdout == ''
    one.machine.run('systemctl', 'start', 'scored-node')
    one.wait_until_up()
    assert cgroup_of_job(one).startswith(JOBS + '/job_')


def test_no_job_stays_frozen_when_the_daemon_and_its_guard_are_killed_and_cannot_start(one):
    """ExecStopPost thaws in the unit of the jobs."""
    job, _ = one.start_job()
    freeze = one.machine.run('sh', '-c', f'echo /sys/fs/cgroup{JOBS}/job_*/tasks/cgroup.freeze').stdout.strip()
    drop_in = '/etc/systemd/system/scored-node.service.d/test.conf'
    one.machine.run('mkdir', '-p', drop_in.rpartition('/')[0])
    one.machine.write(drop_in, '[Service]\nExecStart=\nExecStart=/bin/false\n')
    one.machine.run('systemctl', 'daemon-reload')
    one.machine.run('sh', '-c', f'echo 1 >{freeze}; systemctl kill --kill-whom=all --signal=KILL scored-node')
    wait_until(lambda: one.machine.read(freeze) == '0\n', 'the job is thawed')
    one.machine.run('rm', drop_in)
    one.machine.run('systemctl', 'daemon-reload')
    one.machine.run('systemctl', 'restart', 'scored-node')
    one.wait_until_up()
    # On a busy machine the daemon was away for longer than node_timeout, so the job has ended.
    one.cancel(job, code=None)


def test_a_killed_keeper_ends_the_jobs_and_the_daemon_comes_back(one):
    job, _ = one.start_job()
    daemon = one.property('scored-node', 'MainPID')
    one.machine.run('systemctl', 'kill', '--kill-whom=main', '--signal=KILL', 'scored-jobs')
    wait_until(lambda: not one.tasks(), 'the job ends')
    wait_until(lambda: one.property('scored-node', 'MainPID') not in ('0', daemon), 'the daemon starts again')
    one.wait_until_up()
    wait_until(lambda: one.machine.json('score', 'job', job)['job']['final'], 'its end is known')
    assert cgroup_of_job(one).startswith(JOBS + '/job_')


def test_jobs_of_the_layout_before_go_on(one):
    one.machine.run('systemctl', 'stop', 'scored-jobs')
    one.machine.write('/etc/systemd/system/scored-node.service', FORMER_UNIT)
    one.machine.run('systemctl', 'daemon-reload')
    one.machine.run('systemctl', 'start', 'scored-node')
    one.wait_until_up()
    job, task = one.start_job()
    assert task[0] in one.processes(FORMER)
    one.machine.run('rm', '/etc/systemd/system/scored-node.service')
    one.machine.run('systemctl', 'daemon-reload')
    for _ in range(2):  # the new daemon leaves its cgroup so that it can start there again
        one.machine.run('systemctl', 'restart', 'scored-node')
        one.wait_until_up()
        # Until no job is left there.
        assert one.property('scored-node', 'ControlGroup') == FORMER
    assert one.tasks() == task and one.state(job) == 'running'
    assert cgroup_of_job(one).startswith(FORMER + '/job_'), 'both are switched in one place'
    doctor = one.machine.run('score', 'doctor', code=None).stdout
    assert 'jobs run in the unit of the node daemon' in doctor, doctor
    one.cancel(job)
    one.machine.run('systemctl', 'restart', 'scored-node')
    one.wait_until_up()
    assert one.property('scored-node', 'ControlGroup') == DAEMON
    assert cgroup_of_job(one).startswith(JOBS + '/job_')
