"""Commands with Slurm's names: what programs that call them read, and the variables of their jobs."""
import re

import pytest
from cluster import wait_until


@pytest.fixture(scope='module')
def slurm(few, tmp_path_factory):
    """Runs one of Slurm's commands through a link, in a directory that jobs can write to."""
    links = tmp_path_factory.mktemp('links')
    few.run('score', 'slurm-commands', links)
    place = tmp_path_factory.mktemp('place')
    place.chmod(0o777)

    def run(name, *words, **options):
        options.setdefault('cwd', place)
        path = f'{links}:{few.env["PATH"]}'
        return few.run(links / name, *words, extra_env={'PATH': path, **options.pop('env', {})}, **options)

    run.place = place
    run.links = links
    return run


def submit(slurm, *words, **options):
    return int(slurm('sbatch', '--parsable', *words, **options).stdout)


def ended(slurm, job):
    """Waits until sacct shows that the job has ended; returns its state."""
    def state():
        return slurm('sacct', '-X', '-n', '-P', '-j', job, '-o', 'state').stdout.strip()
    wait_until(lambda: state() not in ('', 'PENDING', 'RUNNING', 'COMPLETING'), what=state)
    return state()


def queued_state(slurm, job):
    return slurm('squeue', '-h', '-o', '%t', '-j', job).stdout.strip()


def test_links_replace_links_only(few, tmp_path):
    few.run('score', 'slurm-commands', tmp_path / 'a')
    few.run('score', 'slurm-commands', tmp_path / 'a')
    names = sorted(path.name for path in (tmp_path / 'a').iterdir())
    assert names == sorted('sbatch srun salloc squeue scancel sacct sinfo scontrol sacctmgr sstat'.split())
    (tmp_path / 'b').mkdir()
    (tmp_path / 'b/squeue').write_text('')
    refused = few.run('score', 'slurm-commands', tmp_path / 'b', code=125)
    assert 'squeue exists and is not a link' in refused.stderr
    assert [path.name for path in (tmp_path / 'b').iterdir()] == ['squeue']


def test_job_is_submitted_listed_and_recorded(slurm):
    job = re.fullmatch(r'Submitted batch job (\d+)\n', slurm('sbatch', '-J', 'one', '--wrap', 'exit 3').stdout)[1]
    assert ended(slurm, job) == 'FAILED'
    row = slurm('sacct', '--parsable2', '-n', '-j', job, '--format=jobid,jobname,state,exitcode,alloccpus').stdout
    assert row.splitlines() == [f'{job}|one|FAILED|3:0|1', f'{job}.batch|batch|FAILED|3:0|1']
    table = slurm('sacct', '-X', '-j', job, '--format=JobID,State%12').stdout.splitlines()
    assert table[0].split() == ['JobID', 'State'] and table[1].strip() == '------------ ------------'
    assert table[2].split() == [job, 'FAILED']
    assert slurm('squeue', '-h', '-j', job).stdout == ''
    shown = slurm('squeue', '-O', 'JobArrayID,StateCompact,Reason', '-t', 'all', '--me', '-h').stdout
    assert [job, 'F', 'NonZeroExitCode'] in [line.split() for line in shown.splitlines()]
    assert (slurm.place / f'slurm-{job}.out').exists()


def test_queue_shows_waiting_and_running_jobs(slurm):
    first = submit(slurm, '-J', 'sleeper', '--wrap', 'sleep 600')
    wait_until(lambda: queued_state(slurm, first) == 'R')
    second = submit(slurm, '-d', f'afterok:{first}', '--wrap', 'true')
    held = submit(slurm, '-H', '--wrap', 'true')
    rows = slurm('squeue', '--noheader', '--format=%i %j %t %r', '--job', f'{first},{second},{held}').stdout
    assert rows.splitlines() == [f'{first} sleeper R None', f'{second} wrap PD Dependency', f'{held} wrap PD JobHeldUser']
    assert slurm('squeue', '-h', '-n', 'sleeper', '-o', '%A|%D|%C|%P').stdout == f'{first}|1|1|normal\n'
    heading = slurm('squeue').stdout.splitlines()[0].split()
    assert heading == 'JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)'.split()
    slurm('scontrol', 'release', held)
    assert ended(slurm, held) == 'COMPLETED'
    slurm('scontrol', 'suspend', first)
    wait_until(lambda: queued_state(slurm, first) == 'S')
    slurm('scontrol', 'resume', first)
    slurm('scancel', first)
    assert re.fullmatch(r'CANCELLED by \d+', ended(slurm, first))
    slurm('scancel', first)  # it has ended: no error
    assert 'Invalid job id' in slurm('scancel', 'x', code=1).stderr
    slurm('scancel', '--name', 'wrap')
    assert ended(slurm, second).startswith('CANCELLED')


def test_array_tasks_have_rows(slurm):
    array = submit(slurm, '--array=1-4%1', '--wrap', 'sleep 600')
    wait_until(lambda: '_1 R' in slurm('squeue', '-h', '-j', array, '-o', '%i %t').stdout)
    rows = slurm('squeue', '-h', '-j', array, '-o', '%i %t').stdout.split('\n')
    assert f'{array}_1 R' in rows and any(row.startswith(f'{array}_[') and row.endswith('] PD') for row in rows), rows
    ended_first = submit(slurm, '-d', f'afterany:{array}_1', '--wrap', 'true')
    slurm('scancel', f'{array}_[3-4]')
    slurm('scancel', f'{array}_1')
    assert ended(slurm, ended_first) == 'COMPLETED'
    slurm('scancel', f'{array}_2')
    rows = slurm('sacct', '-X', '-n', '-P', '-j', array, '-o', 'jobid,state').stdout
    wait_until(lambda: f'{array}_1|CANCELLED' in slurm('sacct', '-XnPj', array, '-o', 'jobid,state').stdout, what=lambda: rows)


SHOW = 'for v in %s; do eval "echo $v=\\$$v"; done'


def test_script_and_steps_know_their_place(slurm):
    job_names = 'SLURM_JOB_ID SLURM_NNODES SLURM_NTASKS SLURM_JOB_NUM_NODES SLURM_TASKS_PER_NODE SLURM_CPUS_ON_NODE ' \
        'SLURM_JOB_CPUS_PER_NODE SLURM_MEM_PER_NODE SLURM_SUBMIT_DIR SLURM_JOB_PARTITION SLURM_JOB_NAME SLURM_PROCID'
    script = slurm.place / 'place.sh'
    script.write_text(f'''#!/bin/sh
#SBATCH -N 2 --ntasks-per-node=2 --mem=100
{SHOW % job_names}
srun sh -c 'echo rank $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_STEP_ID $SLURM_GTIDS' | sort
srun -n 2 sh -c 'echo few $SLURM_NNODES $SLURM_JOB_NUM_NODES $SLURM_STEP_NUM_NODES' | sort -u
scrun -n 1 sh -c 'echo own $SLURM_PROCID $SLURM_NTASKS $SCORE_NODELIST'
scontrol show hostnames | wc -l
''')
    job = submit(slurm, '-J', 'two words', '-o', 'made/%j/out', script)
    assert ended(slurm, job) == 'COMPLETED'
    out = (slurm.place / f'made/{job}/out').read_text()
    for line in (f'SLURM_JOB_ID={job}', 'SLURM_NNODES=2', 'SLURM_NTASKS=4', 'SLURM_JOB_NUM_NODES=2', 'SLURM_TASKS_PER_NODE=2(x2)',
                 'SLURM_CPUS_ON_NODE=2', 'SLURM_JOB_CPUS_PER_NODE=2(x2)', 'SLURM_MEM_PER_NODE=100',
                 f'SLURM_SUBMIT_DIR={slurm.place}', 'SLURM_JOB_PARTITION=normal', 'SLURM_JOB_NAME=two words', 'SLURM_PROCID=0',
                 'rank 0 0 0 4 0 0,1', 'rank 1 1 0 4 0 0,1', 'rank 2 0 1 4 0 2,3', 'rank 3 1 1 4 0 2,3', 'few 2 2 2'):
        assert line in out.splitlines(), (line, out)
    assert re.search(r'^own 0 1 node\d+$', out, re.M) and out.endswith('2\n'), out


def test_array_variables_replace_those_around(slurm):
    inner = 'env | grep ^SLURM_ARRAY | sort'
    array = submit(slurm, '-a', '2-6:2', '-o', 'array-%a', '--wrap', inner, env={'SLURM_ARRAY_TASK_ID': '77'})
    wait_until(lambda: slurm('sacct', '-XnPj', array, '-o', 'state').stdout.split() == ['COMPLETED'] * 3)
    assert (slurm.place / 'array-4').read_text().splitlines() == [
        f'SLURM_ARRAY_JOB_ID={array}', 'SLURM_ARRAY_TASK_COUNT=3', 'SLURM_ARRAY_TASK_ID=4', 'SLURM_ARRAY_TASK_MAX=6',
        'SLURM_ARRAY_TASK_MIN=2', 'SLURM_ARRAY_TASK_STEP=2']


def test_environment_gives_defaults(slurm):
    script = slurm.place / 'limit.sh'
    script.write_text('#!/bin/sh\n#SBATCH -t 1\nsleep 600\n')
    job = submit(slurm, script, env={'SBATCH_TIMELIMIT': '0:02', 'SBATCH_JOB_NAME': 'fromenv'})
    assert ended(slurm, job) == 'TIMEOUT'
    row = slurm('sacct', '-XnPj', job, '-o', 'jobname,timelimit,exitcode').stdout
    assert row == 'fromenv|00:00:02|0:0\n'


def test_memory_per_core_is_that_of_the_node(slurm):
    job = submit(slurm, '-H', '-N', 2, '--ntasks-per-node=2', '--mem-per-cpu=30', '--wrap', 'true')
    assert slurm('squeue', '-h', '-j', job, '-o', '%m').stdout == '60M\n'
    slurm('scancel', job)


def test_nodes_are_listed(slurm):
    assert slurm('sinfo', '-h', '-o', '%D %t %c').stdout == '8 idle 2\n'
    assert slurm('sinfo', '-o', '%P').stdout.split()[:2] == ['PARTITION', 'normal*']
    rows = slurm('sinfo', '-h', '-N', '-p', 'normal', '-o', '%N %P').stdout.splitlines()
    assert rows[0] == 'node00 normal*' and len(rows) == 8
    job = submit(slurm, '--wrap', 'sleep 600')
    wait_until(lambda: queued_state(slurm, job) == 'R')
    assert sorted(slurm('sinfo', '-h', '-p', 'normal', '-o', '%D %T %C').stdout.splitlines()) == ['1 mixed 1/1/0/2', '7 idle 0/14/0/14']
    assert 'CPUAlloc=1 ' in slurm('scontrol', 'show', 'node', 'node00').stdout
    shown = slurm('scontrol', 'show', 'job', job).stdout
    assert shown.startswith(f'JobId={job} JobName=wrap\n') and 'JobState=RUNNING' in shown
    assert slurm('scontrol', '-o', 'show', 'job', job).stdout.count('\n') == 1
    assert 'PartitionName=normal\n' in slurm('scontrol', 'show', 'partition').stdout
    assert re.search(r'MinJobAge +=', slurm('scontrol', 'show', 'config').stdout)
    assert slurm('sstat', '-nPj', job, '-o', 'jobid').stdout == f'{job}.batch\n'


def test_host_lists(few, slurm):
    assert slurm('scontrol', 'show', 'hostnames', 'n[08-10],m').stdout == 'n08\nn09\nn10\nm\n'
    assert slurm('scontrol', 'show', 'hostlist', 'n1,n2').stdout == 'n[1-2]\n'
    assert few.run('score', 'hosts', 'n[08-10]', 'm').stdout == 'n08\nn09\nn10\nm\n'
    assert few.run('score', 'hosts', '--list', 'n08,n09').stdout == 'n[08-09]\n'
    assert few.run('score', 'hosts', 'n[1', code=125).stderr.count('\n') == 1


def test_errors_are_one_line(slurm):
    for words, text in ((('squeue', '-o', '%i %J'), 'unknown field %J'), (('squeue', '-t', 'odd'), 'invalid job state'),
                        (('sacct', '-o', 'jobid,nope'), 'Invalid field requested: "nope"'), (('squeue', '--nope'), 'unknown option --nope'),
                        (('sbatch', '--gpus=2', '--wrap', 'x'), '--gpus=2'), (('scontrol', 'update', 'x=1'), 'cannot be changed'),
                        (('scontrol', 'update', 'jobid=1'), 'nothing to change'),
                        (('scontrol', 'requeue', '999999'), 'no job 999999'), (('sbatch', '/no/such/script'), '/no/such/script'),
                        (('srun',), 'no executable'), (('squeue', '-j', '999999'), 'Invalid job id')):
        refused = slurm(*words, code=1)
        assert text in refused.stderr and refused.stderr.count('\n') == 1, (words, refused.stderr)


def test_jobs_are_changed_and_requeued(slurm, few):
    job = submit(slurm, '-H', '--requeue', '--wrap', 'sleep 600')
    slurm('scontrol', 'update', f'JobId={job}', 'TimeLimit=60', 'JobName=renamed')
    shown = few.job(job)
    assert (shown['wall_limit_s'], shown['name']) == (3600, 'renamed')
    slurm('scontrol', 'release', job)
    wait_until(lambda: few.job(job)['state'] == 'running')
    slurm('scontrol', 'requeue', job)
    wait_until(lambda: few.job(job)['restarts'] == 1)
    few.run('sccancel', '--grace', 0, job)


def test_a_signal_fits_any_limit(slurm):
    script = 'trap "echo came; exit 0" USR2; echo ready; while :; do sleep 0.1; done'
    job = submit(slurm, '--signal=B:USR2@30', '-t', '00:00:20', '-o', 'signal.out', '--wrap', script)
    assert ended(slurm, job) == 'COMPLETED'
    assert (slurm.place / 'signal.out').read_text() == 'ready\ncame\n'
    job = submit(slurm, '--signal=B:USR2@30', '-o', '/dev/null', '--wrap', 'true')
    assert ended(slurm, job) == 'COMPLETED'


def test_plan_names_a_time(slurm):
    planned = slurm('sbatch', '--test-only', '-n', 2, '--wrap', 'true').stderr
    assert re.fullmatch(r'sbatch: Job to start at \d{4}-\d\d-\d\dT\S+ using 2 processors on nodes node\S+ in partition normal\n', planned)


def test_allocation_has_variables(slurm):
    held = slurm('salloc', '-N', 2, 'sh', '-c', 'echo $SLURM_JOB_NUM_NODES; srun -l hostname | wc -l')
    assert held.stdout == '2\n2\n' and re.search(r'^salloc: Granted job allocation \d+$', held.stderr, re.M)


def test_manager_lists_accounts(slurm):
    assert slurm('sacctmgr', '-n', '-s', 'list', 'user', 'root', 'format=account%256').stdout == ''
    assert slurm('sacctmgr', '-nP', 'show', 'cluster').stdout.strip() != ''
