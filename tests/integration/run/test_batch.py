"""scbatch and scalloc: scripts, their directives, steps inside a job's cores, and how they end."""
import os
import random
import signal
import subprocess

import mpis
import pytest
from cluster import LIMIT, wait_until

PINGPONG = r'''
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 50; ++i) {
    int mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("sum %d of %d\n", sum, size);
  MPI_Finalize();
  return 0;
}
'''


class Batch:
    """Scripts of one test, in a directory of its own."""

    def __init__(self, cluster, directory):
        self.cluster = cluster
        self.directory = directory
        directory.chmod(0o777)

    def write(self, text, name='job.sh'):
        (self.directory / name).write_text(text)
        return name

    def submit(self, text, *options, arguments=(), **more):
        name = self.write(text)
        result = self.cluster.run('scbatch', *options, name, *arguments, cwd=self.directory, **more)
        return int(result.stdout), result.stderr

    def refused(self, text, *options):
        before = len(self.cluster.json('scq', '--all')['jobs'])
        result = self.cluster.run('scbatch', *options, self.write(text), cwd=self.directory, code=125)
        assert len(self.cluster.json('scq', '--all')['jobs']) == before
        assert result.stderr.count('\n') == 1 and len(result.stderr) < 400, result.stderr
        return result.stderr

    def output(self, job):
        return (self.directory / f'score-{job}.out').read_text()

    def finish(self, text, *options, state='completed', **more):
        """Runs a script to its end; gives the job and its output."""
        job, _ = self.submit(text, *options, **more)
        return self.cluster.wait_job(job, state), self.output(job)


@pytest.fixture
def batch(few, tmp_path):
    return Batch(few, tmp_path)


def test_a_script_runs_once_in_its_submission_environment(batch):
    job, out = batch.finish('#!/bin/sh\n#SCORE -N 2 --ppn 2 -J named\n'
                            'echo "$1 $MINE $(pwd) $(umask)"; env | grep ^SCORE_ | sort; echo failed >&2\n',
                            arguments=['one'], extra_env={'MINE': 'yes'}, umask=0o027)
    lines = out.splitlines()
    assert lines[0] == f'one yes {batch.directory} 0027'
    assert lines[-1] == 'failed'
    env = dict(line.split('=', 1) for line in lines[1:-1])
    assert env['SCORE_JOB_ID'] == env['SCORE_ALLOCATION'] == str(job['job'])
    assert (env['SCORE_NNODES'], env['SCORE_NTASKS'], env['SCORE_TASKS_PER_NODE']) == ('2', '4', '2,2')
    assert env['SCORE_NODELIST'].startswith('node[') and env['SCORE_JOB_NAME'] == 'named'
    assert 'SCORE_RANK' not in env
    assert (job['name'], job['tasks'], len(job['nodes'])) == ('named', 4, 2)


def test_a_script_is_a_file_while_it_runs(batch):
    """Interpreters and programs open it by its name; its own descriptors are those of any command."""
    job, out = batch.finish('#!/bin/sh\necho $0\nhead -1 $0\nls /proc/self/fd | tr "\\n" " "\nstat -c %a $(dirname $0)\n')
    path, first, rest = out.split('\n', 2)
    assert os.path.basename(path) == 'job.sh' and first == '#!/bin/sh'
    assert rest == '0 1 2 3 700\n', rest  # 3: the directory that ls reads
    assert not os.path.exists(os.path.dirname(path))


def test_a_python_script_may_spawn_processes(batch):
    job, out = batch.finish('#!/usr/bin/python3\nimport multiprocessing\n\n\ndef square(x):\n    return x * x\n\n\n'
                            'if __name__ == "__main__":\n    context = multiprocessing.get_context("spawn")\n'
                            '    with context.Pool(2) as pool:\n        print(pool.map(square, [2, 3]))\n')
    assert out == '[4, 9]\n'


def test_messages_about_a_script_name_it_and_its_interpreter(batch):
    job, out = batch.finish('#!/no/such/interpreter\n', state='failed')
    assert job['exit_code'] == 127
    assert out.endswith('exec job.sh: interpreter /no/such/interpreter: No such file or directory\n'), out
    job, out = batch.finish('#!/bin/sh\nno-such-command\nexit 3\n', state='failed')
    assert '/job.sh: 2: no-such-command: not found' in out


def test_names_of_output_files(batch):
    job, _ = batch.submit('#!/bin/sh\n#SBATCH -J named -o %x-%j-%J-%u-%n-%N-%t-%s-%A-%a.out\necho here\n')
    batch.cluster.wait_job(job, 'completed')
    user = batch.cluster.run('id', '-un').stdout.strip()
    names = [path.name for path in batch.directory.glob('named-*')]
    assert names == [f'named-{job}-{job}-{user}-0-{batch.cluster.job(job)["nodes"][0]}-0-0-{job}-0.out'], names
    for line in ('#SBATCH -o out-%q', '#SCORE --error out-%'):
        assert 'job.sh line 2: ' in (text := batch.refused(f'#!/bin/sh\n{line}\ntrue\n')) and '%x' in text
    result = batch.cluster.run('scrun', '-o', 'x%y', 'true', code=125)
    assert '%y' in result.stderr and result.stderr.count('\n') == 1


def test_output_files_are_continued_where_that_is_asked_for(batch):
    for mode, text in (('append', 'old\nnew\n'), ('truncate', 'new\n')):
        (batch.directory / 'out').write_text('old\n')
        (batch.directory / 'out').chmod(0o666)
        job, _ = batch.submit(f'#!/bin/sh\n#SBATCH --open-mode={mode} -o out\necho new\n')
        batch.cluster.wait_job(job, 'completed')
        assert (batch.directory / 'out').read_text() == text


def test_common_options_of_slurm_are_taken_or_refused(batch):
    job, err = batch.submit('#!/bin/sh\n#SBATCH --nice --distribution=cyclic --gres=none --mem=100MB --begin=now\n'
                            '#SBATCH --deadline=now+1hour --account=proj1 --gpus=0\ntrue\n')
    assert 'job.sh: ignoring #SBATCH --account=proj1: this cluster has no accounts' in err
    assert batch.cluster.wait_job(job, 'completed')['priority'] == -100
    assert 'no accounts' in batch.cluster.run('scrun', '-A', 'proj1', 'true', code=125).stderr
    for line, text in (('--gpus=2', '--gpus-per-node=N'), ('--licenses=a:1', 'this cluster has no licenses'), ('--tmp=1G', '--scratch')):
        assert text in batch.refused(f'#!/bin/sh\n#SBATCH {line}\ntrue\n')


def test_options_of_the_command_line_replace_those_of_the_script(batch):
    job, _ = batch.submit('#!/bin/sh\n#SCORE -N 2 -J script\nsleep 1000\n', '-N', 3, '--hold')
    shown = batch.cluster.job(job)
    assert (shown['name'], shown['tasks'], shown['state']) == ('script', 3, 'pending')


def test_dry_run_of_a_script(batch):
    name = batch.write('#!/bin/sh\n#SCORE -N 2 --ppn 2\n')
    line = batch.cluster.run('scbatch', '--dry-run', name, cwd=batch.directory).stdout
    assert line.startswith('would start now') and '4 tasks, 2 on each node' in line


def test_steps_run_in_the_cores_of_the_job(batch):
    job, out = batch.finish('#!/bin/sh\n#SCORE -N 2 --ppn 2\n'
                            'scrun hostname | wc -l\n'
                            'scrun -n 1 sh -c "echo step \\$SCORE_STEP_ID of \\$SCORE_JOB_ID, \\$SCORE_SIZE"\n'
                            'scrun -N 2 sh -c "exit 3"; echo code $?\n')
    lines = out.splitlines()
    assert lines[:2] == ['4', f'step 1 of {job["job"]}, 1'] and lines[-1] == 'code 3', out
    steps = job['steps']
    assert [(s['step'], s['state'], s['exit_code'], s['tasks'], s['nodes']) for s in steps] == [
        (0, 'completed', 0, 4, 2), (1, 'completed', 0, 1, 1), (2, 'failed', 3, 2, 2)]
    page = batch.cluster.run('score', 'job', job['job']).stdout
    assert f'{job["job"]}.2' in page and 'failed, exit code 3' in page
    listed = [j['job'] for j in batch.cluster.json('scq')['jobs']]
    assert job['job'] in listed and not {s['job'] for s in steps} & set(listed)
    assert {s['job'] for s in steps} <= {j['job'] for j in batch.cluster.json('scq', '--steps')['jobs']}
    accounted = [row['job'] for row in batch.cluster.json('scacct')['jobs']]
    assert job['job'] in accounted and not {s['job'] for s in steps} & set(accounted)


def test_several_steps_at_once_and_one_that_waits_for_cores(batch):
    """Two steps meet through files, so they run at the same time; a third one waits for cores."""
    job, out = batch.finish('#!/bin/sh\n#SCORE -N 1 --ppn 2\n'
                            'scrun -n 1 sh -c "touch a; while ! [ -e b ]; do sleep 0.05; done" &\n'
                            'scrun -n 1 sh -c "touch b; while ! [ -e a ]; do sleep 0.05; done; sleep 1" &\n'
                            'while ! [ -e a -a -e b ]; do sleep 0.05; done\n'
                            'scrun -n 2 echo alone\n'
                            'scrun --overlap -n 2 echo over\n'
                            'wait; echo all\n')
    assert out.count('alone') == 2 and out.count('over\n') == 2 and out.endswith('all\n'), out
    assert [s['state'] for s in job['steps']] == ['completed'] * 4


def test_steps_take_turns_with_other_jobs_as_their_job_does(batch):
    """A step of the whole cluster beside a job of the whole cluster: both go on."""
    other = batch.cluster.submit('-N', 8, '--ppn', 2, 'sh', '-c', 'while :; do :; done')
    job, _ = batch.submit('#!/bin/sh\n#SCORE -N 8 --ppn 2\nscrun sh -c "while :; do :; done"\n')
    wait_until(lambda: any(s['state'] == 'running' for s in batch.cluster.job(job)['steps']))
    wait_until(lambda: batch.cluster.job(f'{job}.0')['scheduled_s'] > 0.5)
    step, shown, beside = (batch.cluster.job(j) for j in (f'{job}.0', job, other))
    assert step['slot'] == shown['slot'] != beside['slot']
    assert 0.2 < beside['share'] < 0.8 and step['share'] == shown['share']
    batch.cluster.run('score', 'suspend', job)
    before = batch.cluster.job(f'{job}.0')['scheduled_s']
    wait_until(lambda: batch.cluster.job(other)['share'] > 0.9)
    assert batch.cluster.job(f'{job}.0')['scheduled_s'] < before + 1
    batch.cluster.cancel(job, other)


def test_a_step_is_cancelled_alone_and_the_job_with_its_steps(batch):
    job, _ = batch.submit('#!/bin/sh\n#SCORE -N 2\nscrun sleep 1000; echo code $?\nscrun sleep 1000 &\nscrun -n 1 '
                          '--overlap sleep 1000 & sleep 1000\n')
    step = lambda number: next((s for s in batch.cluster.job(job)['steps'] if s['step'] == number), {})
    wait_until(lambda: step(0).get('state') == 'running')
    batch.cluster.run('sccancel', f'{job}.0')
    assert step(0)['state'] == 'cancelled'
    wait_until(lambda: step(1).get('state') == step(2).get('state') == 'running')
    assert batch.cluster.run('sccancel', f'{job}.9', code=125).stderr == f'sccancel: no step {job}.9\n'
    batch.cluster.run('sccancel', job)
    shown = batch.cluster.job(job)
    assert shown['state'] == 'cancelled' and 'code 1' in batch.output(job)
    assert [s['state'] for s in shown['steps']] == ['cancelled'] * 3, shown['steps']


def test_steps_that_are_left_end_with_the_script(batch):
    job, _ = batch.finish('#!/bin/sh\n#SCORE -N 2\nscrun sleep 1000 &\n'
                          'while ! score job $SCORE_JOB_ID | grep -q "sleep): running"; do sleep 0.1; done; exit 0\n')
    assert job['exit_code'] == 0
    assert [s['state'] for s in job['steps']] == ['cancelled']


@pytest.mark.parametrize('command, code', [('exit 7', 7), ('kill -TERM $$', 143), ('no-such-program', 127)])
def test_exit_code_of_a_script(batch, command, code):
    job, _ = batch.finish(f'#!/bin/sh\n{command}\n', state='failed')
    assert job['exit_code'] == code


def test_wait_for_the_end_of_a_script(batch):
    name = batch.write('#!/bin/sh\necho done\nexit 3\n')
    job = int(batch.cluster.run('scbatch', '--wait', name, cwd=batch.directory, code=3).stdout)
    assert batch.output(job) == 'done\n'


def test_wait_for_the_end_of_an_array(batch):
    name = batch.write('#!/bin/sh\nexit $SCORE_ARRAY_TASK_ID\n')
    batch.cluster.run('scbatch', '--wait', '--array', '0-1', name, cwd=batch.directory, code=1)
    batch.cluster.run('scbatch', '-W', '--array', '0-1', batch.write('#!/bin/sh\n'), cwd=batch.directory)


def test_an_interpreter_of_another_kind(batch):
    job, out = batch.finish('#!/usr/bin/env python3\n#SCORE -n 2\nimport os\nprint("python", os.environ["SCORE_NTASKS"])\n')
    assert out == 'python 2\n'


def test_a_script_from_standard_input(batch):
    result = batch.cluster.run('scbatch', '-o', 'here-%j', cwd=batch.directory, input='#!/bin/sh\necho piped\n')
    job = int(result.stdout)
    batch.cluster.wait_job(job, 'completed')
    assert (batch.directory / f'here-{job}').read_text() == 'piped\n'


def test_a_command_in_the_place_of_a_script(batch):
    result = batch.cluster.run('scbatch', '--wrap', 'echo "$SCORE_JOB_NAME of $SCORE_NTASKS"; exit 3', '-n', 2, '--wait', cwd=batch.directory,
                               code=3)
    assert (batch.directory / f'score-{result.stdout.strip()}.out').read_text() == 'wrap of 2\n'
    refused = batch.cluster.run('scbatch', '--wrap', 'true', 'script', cwd=batch.directory, code=125)
    assert refused.stderr == 'scbatch: --wrap and a script cannot be given together\n', refused


def test_lines_of_slurm(batch):
    job, errors = batch.submit('#!/bin/bash\n#SBATCH -N 2 --ntasks=4\n#SBATCH --time=1:00:00 --partition=debug\n'
                               '#SBATCH --mail-type END\nscrun -l true\n')
    assert errors == ('scbatch: job.sh: ignoring #SBATCH --partition=debug: this cluster has no partitions\n'
                      'scbatch: ignoring --mail-type: this cluster sends no mail; an administrator can set [notify] sendmail\n')
    shown = batch.cluster.wait_job(job, 'completed')
    assert (shown['tasks'], len(shown['nodes']), shown['wall_limit_s']) == (4, 2, 3600)


def test_an_array_of_scripts_with_steps(batch):
    """Its options come from lines of Slurm; every task is a job with steps, which have its numbers."""
    array, errors = batch.submit('#!/bin/sh\n#SBATCH --array=3-6%2\n#SBATCH -n 2 -J sweep\n'
                                 'echo $SCORE_ARRAY_JOB_ID $SCORE_ARRAY_TASK_ID\n'
                                 'scrun -o step-%A-%a-%t sh -c "echo \\$SCORE_JOB_ID \\$SCORE_ARRAY_TASK_ID"\n')
    assert errors == ''
    ended = batch.cluster.wait_job(array, 'completed')
    assert (ended['name'], ended['array']['completed_count']) == ('sweep', 4)
    for number in range(3, 7):
        assert (batch.directory / f'score-{array}_{number}.out').read_text() == f'{array} {number}\n'
        task = batch.cluster.job(f'{array}_{number}')
        assert (task['array_task'], [s['state'] for s in task['steps']]) == (number, ['completed'])
        step = batch.cluster.job(f'{array}_{number}.0')
        assert (step['step_of'], step['step']) == (task['job'], 0)
        for rank in range(2):
            assert (batch.directory / f'step-{array}-{number}-{rank}').read_text() == f'{task["job"]} {number}\n'
    rows = batch.cluster.json('scq', '--expand', '--steps')['jobs']
    assert len([row for row in rows if row.get('array_job') == array]) == 5


def test_a_script_waits_for_another(batch):
    first, _ = batch.submit('#!/bin/sh\nwhile ! [ -e go ]; do sleep 0.05; done\n')
    second, _ = batch.submit(f'#!/bin/sh\n#SBATCH --dependency=afterok:{first}\necho second\n')
    third, _ = batch.submit(f'#!/bin/sh\n#SCORE --after afterok:{second} --begin 1s\necho third\n')
    assert f'afterok:{first}' in batch.cluster.run('scq', '--why', second).stdout
    (batch.directory / 'go').touch()
    batch.cluster.wait_job(third, 'completed')
    assert (batch.output(second), batch.output(third)) == ('second\n', 'third\n')


def test_a_step_is_no_array_and_does_not_wait(batch):
    job, out = batch.finish('#!/bin/sh\nscrun --detach --array 0-3 true 2>&1\nscrun --after singleton true 2>&1; exit 0\n')
    assert out.count('a step cannot be an array or wait for jobs or times') == 2, out


def test_bad_scripts_are_refused_in_one_line(batch):
    assert 'job.sh line 2: unknown option \'--nodse\'; did you mean --nodes?' in batch.refused('#!/bin/sh\n#SCORE --nodse=2\necho\n')
    assert 'line 3' in batch.refused('#!/bin/sh\n\n#SCORE -N many\n')
    assert 'line 2' in batch.refused('#!/bin/sh\n#SCORE -N 2 program\n')
    assert 'job.sh line 2: ' in batch.refused('#!/bin/sh\n#SBATCH --dependency=afterok:1?afterok:2,afterok:3\n')
    assert 'job.sh line 2: ' in batch.refused('#!/bin/sh\n#SBATCH --begin=teatime\n')
    assert 'array x: ' in batch.refused('#!/bin/sh\n#SBATCH --array=x\n')
    assert 'line 2' in batch.refused('#!/bin/sh\n#SCORE -J "open\n')
    assert 'line 1' in batch.refused('echo no interpreter\n')
    assert 'NUL' in batch.refused('#!/bin/sh\n\0\n')
    assert '512 KiB' in batch.refused('#!/bin/sh\n' + '#' * (512 * 1024))
    noise = random.Random(1)
    for _ in range(10):
        batch.refused('#!/bin/sh\n#SCORE -' + ''.join(chr(noise.randrange(33, 127)) for _ in range(40)) + " '\n")
    for file in ('no-such-file', '/proc/self/mem', '/'):
        result = batch.cluster.run('scbatch', file, cwd=batch.directory, code=125)
        assert result.stderr.count('\n') == 1, result.stderr


def test_steps_that_cannot_be(batch):
    cluster = batch.cluster
    job, _ = batch.submit('#!/bin/sh\n#SCORE -N 1 --ppn 2\nsleep 1000\n')
    cluster.wait_job(job, 'running')
    step = lambda *words, **more: cluster.run('scrun', '--job', job, *words, code=125, **more).stderr
    assert 'job %d has 2 cores on 1 node' % job in step('-n', 3, 'true')
    assert step('-N', 2, 'true').count('\n') == 1
    plain = cluster.submit('-N', 1, 'sleep', 1000)
    cluster.wait_job(plain, 'running')
    assert 'takes no steps' in cluster.run('scrun', '--job', plain, 'true', code=125).stderr
    cluster.cancel(job, plain)
    assert step('true') == f'scrun: job {job} has ended\n'
    assert cluster.run('scrun', 'true', code=125, extra_env={'SCORE_ALLOCATION': str(job)}).stderr.count('\n') == 1
    assert cluster.run('scrun', '--job', 999999, 'true', code=125).stderr == 'scrun: no job 999999\n'
    cluster.run('scrun', '--job', 'none', 'true', extra_env={'SCORE_ALLOCATION': str(job)})


def test_a_step_of_another_users_job(fresh, as_root, tmp_path):
    cluster = fresh(2)
    directory = tmp_path
    directory.chmod(0o777)
    batch = Batch(cluster, directory)
    job, _ = batch.submit('#!/bin/sh\nsleep 1000\n')
    cluster.wait_job(job, 'running')
    result = subprocess.run(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'scrun', '--job', str(job), 'id'],
                            env=cluster.env, cwd='/tmp', capture_output=True, text=True)
    assert result.returncode == 125 and result.stderr.count('\n') == 1, result
    cluster.cancel(job)


def test_mpi_steps_on_pm_side_by_side(batch, tmp_path):
    """Two MPICH 5 programs at once, each with a PM network of its own, on all nodes of the job."""
    program = mpis.build('mpich5', PINGPONG, tmp_path)
    job, out = batch.finish('#!/bin/sh\n#SCORE -N 4 --ppn 2\n'
                            f'scrun --net=pm -N 4 --ppn 1 {program} &\nscrun --net=pm -N 4 --ppn 1 {program} &\nwait\n'
                            f'scrun --net=pm {program}\n')
    assert out.count('sum 10 of 4') == 2 and 'sum 36 of 8' in out, out
    assert [s['exit_code'] for s in job['steps']] == [0, 0, 0]


def test_restart_of_the_head_amid_a_step(fresh, tmp_path):
    cluster = fresh(4)
    batch = Batch(cluster, tmp_path)
    job, _ = batch.submit('#!/bin/sh\n#SCORE -N 4\nscrun true\n'
                          'scrun -n 1 sh -c "touch begun; while ! [ -e go ]; do sleep 0.05; done; exit 5"; echo code $?\n'
                          'scrun echo after\n')
    wait_until((tmp_path / 'begun').exists)
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    shown = cluster.job(job)
    assert shown['state'] == 'running' and [s['state'] for s in shown['steps']] == ['completed', 'running']
    (tmp_path / 'go').touch()
    shown = cluster.wait_job(job, 'completed')
    assert [s['exit_code'] for s in shown['steps']] == [0, 5, 0]
    out = batch.output(job)
    assert 'code 5\n' in out and out.count('after') == 4, out


def test_restart_of_a_node_daemon_amid_a_step(fresh, tmp_path):
    cluster = fresh(2)
    batch = Batch(cluster, tmp_path)
    job, _ = batch.submit('#!/bin/sh\n#SCORE -N 2\n'
                          'scrun sh -c "touch begun; while ! [ -e go ]; do sleep 0.05; done"; echo code $?\n')
    wait_until((tmp_path / 'begun').exists)
    for name in ('node00', 'node01'):
        cluster.kill(name)
        cluster.restart(name)
    cluster.wait_up()
    (tmp_path / 'go').touch()
    cluster.wait_job(job, 'completed')
    assert batch.output(job) == 'code 0\n'


def test_scalloc_runs_a_command_whose_scrun_runs_inside(few):
    result = few.run('scalloc', '-N', 4, 'sh', '-c', 'echo $SCORE_NNODES; scrun hostname | wc -l; scrun -n 1 '
                     'sh -c "echo in \\$SCORE_JOB_ID.\\$SCORE_STEP_ID"; echo $SCORE_ALLOCATION; exit 3', code=3)
    lines = result.stdout.split()
    assert lines[:2] == ['4', '4'] and lines[2:4] == ['in', f'{lines[-1]}.1'], result.stdout
    assert result.stderr.startswith(f'scalloc: job {lines[-1]} has node['), result.stderr
    job = few.wait_job(int(lines[-1]), 'completed')
    assert [s['state'] for s in job['steps']] == ['completed'] * 2


def test_a_terminal_inside_an_allocation(few):
    result = few.run('scalloc', '-N', 1, 'scrun', '--pty', 'sh', '-c', 'test -t 0 && tty && echo has one')
    assert 'has one' in result.stdout


def test_scalloc_that_is_killed_leaves_no_job(few):
    process = few.start('scalloc', '-N', 2, 'sh', '-c', 'echo $$; exec sleep 1000')
    job = int(process.stderr.readline().split()[2])
    command = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait(LIMIT)
    wait_until(lambda: few.job(job)['final'])
    os.kill(command, signal.SIGKILL)  # it is not a task of the job


def test_scalloc_of_a_command_that_is_not_there(few):
    result = few.run('scalloc', 'no-such-program', code=127)
    assert 'no-such-program' in result.stderr
