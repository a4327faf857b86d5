"""score start in an allocation of Debian's Slurm: slurmctld here, a slurmd with a munged on each host."""
import os
import shutil
import signal
import subprocess

import lan
import pytest
from cluster import BIN, LIMIT, wait_until

PROGRAMS = {'slurmctld': 'slurmctld', 'slurmd': 'slurmd', 'srun': 'slurm-client', 'munged': 'munge'}
ABSENT = [package for program, package in PROGRAMS.items()
          if not shutil.which(program, path='/usr/sbin:/usr/bin:/sbin:/bin')]
WHY_NOT = lan.missing() or (f'needs {", ".join(ABSENT)}' if ABSENT else '')
pytestmark = pytest.mark.skipif(WHY_NOT != '', reason=WHY_NOT)

SLURM_CONF = """ClusterName=test
SlurmctldHost=login
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket
CredType=cred/munge
StateSaveLocation=/run/slurm
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=30
NodeName=h[00-03] CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""
MUNGED = ('munged -F --force --socket=/run/munge.socket --key-file={base}/munge.key --pid-file=/run/munged.pid '
          '--log-file=/run/munged.log --seed-file=/run/munged.seed')
SERVICES = f"""{MUNGED} 2> {{base}}/log/munged-{{name}} &
until [ -S /run/munge.socket ]; do sleep 0.05; done
slurmd -D -f {{base}}/slurm.conf 2> {{base}}/log/slurmd-{{name}} &"""


def prepare(network):
    (network.base / 'slurm.conf').write_text(SLURM_CONF)
    (network.base / 'munge.key').write_bytes(os.urandom(128))
    (network.base / 'munge.key').chmod(0o400)


def slurm_run(network, *words, **options):
    return network.run(*words, env={'SLURM_CONF': str(network.base / 'slurm.conf')}, **options)


def idle_nodes(network):
    return slurm_run(network, 'sinfo', '-h', '-t', 'idle', '-o', '%D', code=None).stdout.strip()


@pytest.fixture(scope='module')
def slurm():
    """4 hosts with Slurm, shared by the tests."""
    network = lan.Lan(4, prepare, SERVICES)
    try:
        network.serve('munged', *MUNGED.format(base=network.base).split())
        network.serve('slurmctld', 'slurmctld', '-D', '-i', '-f', network.base / 'slurm.conf')
        wait_until(lambda: idle_nodes(network) == '4', 120, network.logs)
        yield network
    finally:
        network.close()


@pytest.fixture(autouse=True)
def nothing_left(request):
    yield
    if 'slurm' in request.fixturenames:
        network = request.getfixturevalue('slurm')
        network.check_clean()
        wait_until(lambda: idle_nodes(network) == '4', 120, network.logs)


def test_the_allocation_is_found_and_shared_in_time(slurm):
    script = f'{BIN}/scrun --detach -N 4 sleep 60 && {BIN}/scrun --detach -N 4 sleep 60 && scrun -N 4 hostname'
    result = slurm_run(slurm, 'salloc', '-Q', '-N', 4, BIN / 'score', 'start', '--', 'sh', '-ec', script)
    assert sorted(result.stdout.split()[2:]) == slurm.names, result


def test_cores_and_memory_are_those_of_the_allocation(slurm):
    result = slurm_run(slurm, 'salloc', '-Q', '-N', 2, '--ntasks-per-node=1', '--mem=500', BIN / 'score', 'start', '--',
                       'scnodes', '--json')
    assert '"cores": 1' in result.stdout or '"cores":1' in result.stdout, result.stdout
    assert str(500 << 20) in result.stdout


def test_the_exit_code_is_the_commands(slurm):
    result = slurm_run(slurm, 'salloc', '-Q', '-N', 1, BIN / 'score', 'start', '--', 'sh', '-c', 'exit 9', code=None)
    assert result.returncode == 9


KILLED = pytest.param('kill', marks=pytest.mark.skip('hosts that Slurm ends amid their cleaning keep files'))


@pytest.mark.parametrize('end', [KILLED, 'scancel'])
def test_nothing_is_left_when_it_is_killed_or_the_job_is_cancelled(slurm, end):
    env = {'SLURM_CONF': str(slurm.base / 'slurm.conf')}
    command = 'scrun --detach -N 4 sh -c "trap \\"\\" TERM; setsid sleep 600" && echo $SLURM_JOB_ID $SCORED_SERVER && cat'
    process = slurm.popen('salloc', '-Q', '-N', 4, BIN / 'score', 'start', '--', 'sh', '-c', command, env=env,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    job, server = process.stdout.readline().split()
    if end == 'scancel':
        slurm_run(slurm, 'scancel', job)
    else:
        for pid, words in slurm.left_processes():
            if b'score-start' in words and b'--host-agent' not in words:
                os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=LIMIT)
    if end == 'kill':
        slurm_run(slurm, 'scancel', job, code=None)
        wait_until(lambda: not [name for name, _ in slurm.left_files() if name != 'login'], 120)
        slurm.start('--', 'true')  # removes what is left on the login host
