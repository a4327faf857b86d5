"""scrun: exit codes, limits, environment, places of tasks."""
import json
import os
import re
import signal
import time

import pytest


@pytest.mark.parametrize('command, code', [
    (['true'], 0),
    (['sh', '-c', 'exit 7'], 7),
    (['sh', '-c', 'exit $((SCORE_RANK * 3))'], 9),           # the highest of four
    (['sh', '-c', 'kill -USR1 $$'], 128 + signal.SIGUSR1),
    (['/no/such/program'], 127),
    (['no-such-program'], 127),
    (['/etc/passwd'], 126),
])
def test_exit_code(few, command, code):
    extra = ['--keep-going'] if code == 9 else []
    result = few.run('scrun', '-n', 4, *extra, *command, code=code)
    if code in (126, 127):
        assert command[0] in result.stderr and 'node' in result.stderr, result.stderr


def test_dry_run_says_where_and_starts_nothing(few):
    before = [job['job'] for job in few.json('scq', '--all')['jobs']]
    line = few.run('scrun', '--dry-run', '-N', 4, '--ppn', 2, 'true').stdout
    assert re.fullmatch(r'would start now in slot \d+ on \S+: 8 tasks, 2 on each node\n', line)
    plan = json.loads(few.run('scrun', '--dry-run', '--json', '-nodes=4x2', 'true').stdout)
    assert plan['starts'] and plan['tasks'] == 8 and plan['tasks_on_node'] == [2] * 4, plan
    few.run('scadm', 'drain', 'node00', '-m', 'test')
    try:
        line = few.run('scrun', '--dry-run', '-N', 8, 'true').stdout
        assert line.startswith('would wait: ') and 'node00' in line and line.count('\n') == 1
    finally:
        few.run('scadm', 'resume', 'node00')
    refused = few.run('scrun', '--dry-run', '-N', 9, 'true', code=125).stderr
    assert refused == few.run('scrun', '-N', 9, 'true', code=125).stderr
    assert few.run('scrun', '--dry-run', 'no-such-program', code=127).stderr.count('\n') == 1
    few.run('scrun', '--dry-run', '/etc/passwd', code=126)
    assert [job['job'] for job in few.json('scq', '--all')['jobs']] == before


def test_scores_keys_stand_without_a_dash(few):
    assert few.run('scrun', 'hosts=2', 'echo', 'x').stdout == 'x\nx\n'
    assert few.run('scrun', '-l', 'nodes=1x2', 'true').returncode == 0


def test_first_failure_ends_the_job(few):
    few.run('scrun', '-N', 4, 'sh', '-c', '[ $SCORE_RANK = 2 ] && exit 3; sleep 1000', code=3)


def test_time_limit_counts_scheduled_time(few):
    result = few.run('scrun', '-N', 2, '-t', '300ms', 'sleep', '60', code=124)
    assert 'limit' in result.stderr


def test_wall_limit(few):
    few.run('scrun', '-N', 2, '--wall-time', '300ms', 'sleep', '60', code=124)


def test_signal_before_the_limit(few):
    script = 'trap "echo warned; exit 0" USR1; while :; do sleep 0.05; done'
    result = few.run('scrun', '-N', 1, '-t', '60s', '--signal', 'USR1@52s', 'sh', '-c', script)
    assert result.stdout == 'warned\n'


def test_memory_limit(few):
    eater = 'x = bytearray(300 << 20); import time; time.sleep(30)'
    result = few.run('scrun', '-N', 1, '--mem', '64M', 'python3', '-c', eater, code=None)
    assert result.returncode not in (0, None)


# A shell whose child the kernel killed returns its own code, or that of the last command.
@pytest.mark.parametrize('after', ['', '; exit 0', '; exit 3'])
def test_a_child_that_runs_out_of_memory_gives_the_state(few, after):
    eater = 'x = bytearray(300 << 20)'
    if 'memory limit' not in few.run('scrun', '-N', 1, '--mem', '64M', 'python3', '-c', eater, code=None).stderr:
        pytest.skip('no controller for memory here')
    job = few.submit('-N', 1, '--mem', '64M', 'sh', '-c', f"python3 -c '{eater}'{after}")
    shown = few.wait_job(job, 'out-of-memory')
    assert shown['exit_code'] == (3 if '3' in after else 137), shown
    assert 'memory limit 64M exceeded; the kernel killed 1 process' in shown['reasons'][0]
    assert {row['job']: row['state'] for row in few.json('scacct')['jobs']}[job] == 'out-of-memory'


def test_each_task_has_a_session(few):
    """One session is one share of the processor for the kernel, however many tasks it has."""
    if few.json('scnodes')['nodes'][0]['switch_method'] != 'cgroup.freeze':
        pytest.skip('a process group is switched')
    result = few.run('scrun', '-n', 6, '-N', 3, 'sh', '-c', 'cut -d" " -f6 /proc/self/stat')
    assert len(set(result.stdout.split())) == 6, result.stdout


def test_tasks_know_their_place(few):
    names = ['JOBID', 'RANK', 'SIZE', 'NNODES', 'NODEID', 'LOCALID']
    show = ' '.join(f'$SCORE_{name}' for name in names)
    lines = few.run('scrun', '-N', 2, '--ppn', 2, 'sh', '-c', f'echo {show}').stdout.splitlines()
    rows = sorted([int(word) for word in line.split()] for line in lines)
    assert [row[1:] for row in rows] == [[0, 4, 2, 0, 0], [1, 4, 2, 0, 1], [2, 4, 2, 1, 0], [3, 4, 2, 1, 1]]


def test_score_form(few):
    result = few.run('scrun', f'-nodes=2x2,scored={few.env["SCORED_SERVER"]}', 'echo', 'x')
    assert result.stdout == 'x\n' * 4
    result = few.run('scrun', 'echo', 'x', extra_env={'SCORE_OPTIONS': 'nodes=3'})
    assert result.stdout == 'x\n' * 3


def test_export(few):
    show = ['sh', '-c', 'echo "$ONE-$TWO"']
    extra = {'ONE': '1', 'TWO': '2'}
    assert few.run('scrun', *show, extra_env=extra).stdout == '1-2\n'
    assert few.run('scrun', '--export=NONE', *show, extra_env=extra).stdout == '-\n'
    assert few.run('scrun', '--export=ONE,TWO=3', *show, extra_env=extra).stdout == '1-3\n'


def test_large_environment(few):
    extra = {f'BIG{i}': 'x' * 100_000 for i in range(10)}
    result = few.run('scrun', '-N', 2, 'sh', '-c', 'echo ${#BIG9}', extra_env=extra)
    assert result.stdout == '100000\n' * 2


def test_arguments_and_environment_may_be_as_large_as_execve_takes(few):
    """The shells that start scrun have the limits of execve, too; the program gets what it got."""
    program = 'import os, sys; print(len(sys.argv) - 1, sum(map(len, sys.argv[1:])), len(os.environ.get("BIG19", "")))'
    start = ('import os, sys; count, length, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]; '
             'os.execvp("scrun", ["scrun", "-q", "-N", "2", "python3", "-c", program] + ["a" * length] * count)')
    for count, length, stack in ((20000, 40, 8192), (100000, 6, 8192), (1, 131000, 8192), (32, 120000, 64000)):
        result = few.run('bash', '-c', f'ulimit -s {stack}; exec /usr/bin/python3 -c "$@"', 'bash',
                         start, count, length, program)
        assert result.stdout == f'{count} {count * length} 0\n' * 2, (count, length, result.stderr[:300])
    script = ('ulimit -s 200000; x=$(head -c 120000 /dev/zero | tr "\\0" x); '
              'for i in $(seq 20); do export BIG$i=$x; done; exec scrun python3 -c "$1"')
    assert few.run('bash', '-c', script, 'bash', program).stdout == '0 0 120000\n'


def test_directory(few, tmp_path):
    tmp_path.chmod(0o755)
    assert few.run('scrun', '-D', tmp_path, 'pwd').stdout == f'{tmp_path}\n'


def test_missing_directory_is_refused(few):
    result = few.run('scrun', '-N', 2, '-D', '/no/such/place', 'true', code=None)
    assert result.returncode in (125, 126) and '/no/such/place' in result.stderr


def test_a_range_of_nodes_takes_what_is_free(few):
    assert few.run('scrun', '-N', '2-4', 'sh', '-c', 'echo $SCORE_SIZE').stdout == '4\n' * 4
    assert few.run('scrun', '-N', '2-99', '-n', 3, 'sh', '-c', 'echo $SCORE_NNODES').stdout == '3\n' * 3
    half = few.submit('-N', 6, '-c', 2, 'sleep', 600)
    few.wait_job(half, 'running')
    assert few.run('scrun', '-N', '1-8', 'sh', '-c', 'echo $SCORE_SIZE').stdout == '2\n' * 2
    few.cancel(half)


def test_immediate_gives_up(few):
    result = few.run('scrun', '--hold', '--immediate=100ms', 'true', code=None)
    assert result.returncode == 125, result
    assert 'could not start within 100ms' in result.stderr and 'owner' not in result.stderr


def test_immediate_without_a_time_leaves_the_program_alone(few):
    assert few.run('scrun', '--immediate', 'echo', 'placed').stdout == 'placed\n'


def test_score_form_takes_long_options(few):
    job = few.submit('-hosts=2,wall-time=5m,weight=200', 'true')
    shown = few.wait_job(job, 'completed')
    assert (len(shown['nodes']), shown['wall_limit_s'], shown['weight']) == (2, 300, 200)


def test_named_nodes_get_a_task_each(few):
    lines = few.run('scrun', '-w', 'node[01-03]', 'sh', '-c', 'echo $SCORE_NODENAME').stdout.splitlines()
    assert sorted(lines) == ['node01', 'node02', 'node03']
    assert few.run('scrun', '-w', 'node[01-03]', '-n', 1, 'echo', 'x').stdout == 'x\n'
    assert few.run('scrun', '-w', 'node[01-02]', '-i', 1, 'cat', input='typed').stdout == 'typed'


@pytest.mark.parametrize('command, state, code', [('true', 'completed', 0), ('exit 3', 'failed', 3)])
def test_json_at_the_end(few, command, state, code):
    result = few.run('scrun', '--json', '-n', 2, 'sh', '-c', f'echo out; {command}', code=code)
    shown = json.loads(result.stderr.splitlines()[-1])
    assert shown['schema'] == 'scored.job/1'
    assert (shown['job']['state'], shown['job']['exit_code'], shown['job']['tasks']) == (state, code, 2)
    assert 0 < shown['job']['submitted_unix_s'] <= shown['job']['ended_unix_s']


def test_virtual_nodes_spread_over_the_processors(few):
    processors = len(os.sched_getaffinity(0))
    result = few.run('scrun', '-q', '-N', 4, '--ntasks-per-node', 1, '--cpu-bind=core', 'python3', '-c',
                     'import os; print(*os.sched_getaffinity(0))')
    assert len(set(result.stdout.split())) >= min(2, processors), result.stdout


def test_parallel_shell_merges_equal_output(few):
    assert few.run('scout', 'echo', 'same').stdout == 'node[00-07]:\nsame\n'
    result = few.run('scout', '-x', 'node03', 'echo $SCORE_NODEID | grep -q 0 && echo first || echo other')
    assert 'node00:\nfirst\n' in result.stdout
    assert few.run('scout', '-w', 'node05', 'exit 3', code=3).stdout == ''
