"""scrun: streams, exit codes, limits, signals, front ends that come and go."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import pytest
from cluster import LIMIT, is_alive, wait_until


# ---- exit codes

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


def test_errors_are_printed_though_quiet(few):
    result = few.run('scrun', '-q', '-n', 2, 'sh', '-c', 'exit 3', code=3)
    assert 'exited with 3' in result.stderr


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


def test_each_task_has_a_session(few):
    """One session is one share of the processor for the kernel, however many tasks it has."""
    if few.json('scnodes')['nodes'][0]['switch_method'] != 'cgroup.freeze':
        pytest.skip('a process group is switched')
    result = few.run('scrun', '-n', 6, '-N', 3, 'sh', '-c', 'cut -d" " -f6 /proc/self/stat')
    assert len(set(result.stdout.split())) == 6, result.stdout


# ---- environment, directory, files

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


def test_too_large_environment_is_refused(few):
    # A larger stack lets the kernel take it; then scrun must not.
    script = ('ulimit -s 200000; x=$(head -c 120000 /dev/zero | tr "\\0" x); '
              'for i in $(seq 20); do export BIG$i=$x; done; exec scrun true')
    result = few.run('bash', '-c', script, code=125)
    assert 'environment' in result.stderr and len(result.stderr.splitlines()) == 1


def test_directory(few, tmp_path):
    tmp_path.chmod(0o755)
    assert few.run('scrun', '-D', tmp_path, 'pwd').stdout == f'{tmp_path}\n'


def test_missing_directory_is_refused(few):
    result = few.run('scrun', '-N', 2, '-D', '/no/such/place', 'true', code=None)
    assert result.returncode in (125, 126) and '/no/such/place' in result.stderr


def test_output_files(few, tmp_path):
    few.run('scrun', '-n', 3, '-o', tmp_path / 'out-%t', '-e', tmp_path / 'err-%j', 'sh', '-c',
            'echo out $SCORE_RANK; echo err >&2')
    assert [(tmp_path / f'out-{i}').read_text() for i in range(3)] == [f'out {i}\n' for i in range(3)]


# ---- streams

def test_label(few):
    lines = few.run('scrun', '-l', '-n', 3, 'sh', '-c', 'printf "a\\nb"').stdout.splitlines()
    assert sorted(lines) == sorted(f'{rank}: {text}' for rank in range(3) for text in 'ab')


@pytest.mark.parametrize('label', [[], ['-l']])
def test_long_lines_of_ranks_do_not_mix(few, label):
    program = "import os,sys\nfor _ in range(5): sys.stdout.write(os.environ['SCORE_RANK'] * 100000 + chr(10))"
    lines = few.run('scrun', '-n', 4, *label, 'python3', '-c', program).stdout.splitlines()
    whole = [(f'{rank}: ' if label else '') + str(rank) * 100000 for rank in range(4) for _ in range(5)]
    assert sorted(lines) == whole, [len(line) for line in lines]


def test_a_line_beyond_the_limit_comes_in_marked_pieces(few):
    program = "import sys; sys.stdout.write('x' * 3000000 + chr(10))"
    lines = few.run('scrun', '-l', '-n', 1, 'python3', '-c', program).stdout.splitlines()
    assert [(line.startswith('0: [...]'), line.endswith('[...]')) for line in lines] == [
        (False, True), (True, True), (True, False)]
    assert sum(line.count('x') for line in lines) == 3000000


def test_a_prompt_is_shown_before_its_line_ends(few):
    process = few.start('scrun', '-n', 2, '-i', 'all', 'sh', '-c', 'printf "name? "; read name; echo $name',
                        stdin=subprocess.PIPE)
    assert process.stdout.read(12) == 'name? name? '
    out, err = process.communicate('x\n', timeout=LIMIT)
    assert out == 'x\nx\n', (out, err)


def test_input_goes_to_rank_0(few):
    result = few.run('scrun', '-l', '-n', 2, 'cat', input='hello\n')
    assert result.stdout == '0: hello\n'


def test_input_goes_to_all(few):
    result = few.run('scrun', '-l', '-n', 3, '-i', 'all', 'cat', input='hello\n')
    assert sorted(result.stdout.splitlines()) == ['0: hello', '1: hello', '2: hello']


def test_input_for_a_rank_that_is_not_there_is_refused(few):
    assert few.run('scrun', '-l', '-n', 3, '-i', 2, 'cat', input='hello\n').stdout == '2: hello\n'
    refused = few.run('scrun', '-n', 3, '-i', 3, 'cat', input='hello\n', code=None)
    assert refused.returncode != 0 and refused.stderr.count('\n') == 1, refused
    assert 'rank 3' in refused.stderr and '3 tasks' in refused.stderr


def test_much_output_and_input(few):
    text = 'x' * 79 + '\n'
    result = few.run('scrun', 'cat', input=text * 50_000)
    assert result.stdout == text * 50_000


def test_streams_stay_apart(few):
    result = few.run('scrun', 'sh', '-c', 'echo out; echo err >&2')
    assert (result.stdout, 'err\n' in result.stderr) == ('out\n', True)


def test_a_slow_reader_delays_no_other_job(few):
    flood = few.start('scrun', '-N', 2, 'yes')
    time.sleep(1)
    assert few.run('scrun', '-N', 8, 'echo', 'x').stdout == 'x\n' * 8
    flood.stdout.close()  # as `| head -1`: the job ends
    assert flood.wait(LIMIT) != 0
    flood.stderr.close()


def test_a_reader_that_goes_takes_the_job_along(few):
    # More is on its way to it then than the front end's window holds.
    flood = few.start('scrun', '-N', 8, 'yes', 'y' * 60)
    flood.stdout.readline()
    flood.stdout.close()
    assert flood.wait(LIMIT) == 128 + signal.SIGPIPE
    flood.stderr.close()


def test_quiet_hides_no_error(few):
    failed = few.run('scrun', '-q', '-n', 2, 'sh', '-c', 'exit 3', code=3)
    assert ' failed: ' in failed.stderr
    missing = few.run('scrun', '-q', '/no/such/program', code=127)
    assert 'not found' in missing.stderr


def test_closed_descriptors_are_not_taken_for_the_link(few):
    for redirection in ('<&-', '>&-', '2>&-'):
        result = few.run('sh', '-c', f'timeout {LIMIT} scrun -q sh -c "echo out; echo err >&2; exit 3" {redirection}', code=None)
        assert (result.returncode, 'lost connection' in result.stderr) == (3, False), redirection


def test_unread_output_keeps_no_front_end(few):
    process = few.start('scrun', 'head', '-c', 150_000, '/dev/zero')
    wait_until(lambda: any(job['final'] and job['command'].startswith('head -c 150000')
                           for job in few.json('scq')['jobs']))
    assert process.poll() is None  # the pipe holds less, the windows more
    wait_until(lambda: process.send_signal(signal.SIGTERM) or process.poll() is not None)
    assert process.returncode == 128 + signal.SIGTERM
    process.stdout.close()
    process.stderr.close()


# ---- control

def read_until(fd, pattern, limit=LIMIT):
    text = b''
    end = time.monotonic() + limit
    while not re.search(pattern, text):
        assert time.monotonic() < end, text
        text += os.read(fd, 4096)
    return text


def on_terminal(few, *words):
    main, side = pty.openpty()
    process = subprocess.Popen([str(word) for word in words], stdin=side, stdout=side, stderr=side,
                               env=few.env, start_new_session=True,
                               preexec_fn=lambda: __import__('fcntl').ioctl(0, 0x540E, 0))  # TIOCSCTTY
    os.close(side)
    return process, main


def test_interrupt_prints_the_status_then_ends(few):
    process, terminal = on_terminal(few, 'scrun', '-N', 2, 'sleep', '60')
    read_until(terminal, b'2 hosts ready')
    os.write(terminal, b'\x03')
    shown = read_until(terminal, b'is running')

    def is_over():  # the second must follow soon, and it may be held up
        if process.poll() is None:
            os.write(terminal, b'\x03')
            time.sleep(0.3)
        return process.poll() is not None
    assert process.poll() is None, shown
    wait_until(is_over)
    assert process.returncode == 130
    os.close(terminal)
    wait_until(lambda: not few.json('scq', '--active')['jobs'])


def test_interrupt_without_a_terminal_ends_at_once(few):
    process = few.start('scrun', '-N', 2, 'sleep', '60')
    wait_until(lambda: few.json('scq', '--active')['jobs'])
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 130


def test_terminal_for_rank_0(few):
    process, terminal = on_terminal(few, 'scrun', '--pty', 'sh')
    os.write(terminal, b'tty >/dev/null && echo has-$((20+3))-terminal; exit 5\n')
    read_until(terminal, b'has-23-terminal')
    assert process.wait(LIMIT) == 5
    os.close(terminal)


def test_signals_are_forwarded(few):
    process = few.start('scrun', 'sh', '-c', 'trap "echo got; exit 4" USR2; echo on; while :; do sleep 0.05; done')
    assert process.stdout.readline() == 'on\n'
    process.send_signal(signal.SIGUSR2)
    out, _ = process.communicate(timeout=LIMIT)
    assert (out, process.returncode) == ('got\n', 4)


def test_sccancel_sends_a_signal(few):
    process = few.start('scrun', 'sh', '-c', 'trap "echo got; exit 4" HUP; echo on; while :; do sleep 0.05; done')
    assert process.stdout.readline() == 'on\n'
    job = few.json('scq', '--active')['jobs'][0]['job']
    few.run('sccancel', '-s', 'HUP', job)
    out, _ = process.communicate(timeout=LIMIT)
    assert (out, process.returncode) == ('got\n', 4)


def test_sccancel_returns_when_the_end_is_recorded(few):
    jobs = [few.submit('-N', 1, 'sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done') for _ in range(2)]
    jobs.append(few.submit('-N', 1, 'sleep', 600))
    for job in jobs:
        few.wait_job(job, 'running')
    few.run('sccancel', '--grace', '1s', *jobs)
    ended = {row['job']: row['state'] for row in few.json('scacct', '--since', '1h')['jobs']}
    assert [ended.get(job) for job in jobs] == ['cancelled'] * 3


def test_sccancel_need_not_wait(few, tmp_path):
    job = few.submit('-N', 1, 'sh', '-c', f'trap "" TERM; touch {tmp_path}/on; while :; do sleep 0.1; done')
    wait_until((tmp_path / 'on').exists)
    few.run('sccancel', '--no-wait', '--grace', '1h', job)
    assert few.job(job)['state'] == 'running'
    few.run('sccancel', '--grace', 0, job)
    assert few.job(job)['state'] == 'cancelled'


def test_a_time_limit_ends_a_job_as_a_cancel_does(few):
    script = 'trap "echo term; sleep 0.2; echo done; exit 0" TERM; while :; do sleep 0.05; done'
    result = few.run('scrun', '-N', 2, '-t', '1s', 'sh', '-c', script, code=124)
    assert sorted(result.stdout.split()) == ['done', 'done', 'term', 'term']
    assert 'time limit' in result.stderr


def test_double_forker_that_ignores_term_is_gone(few, tmp_path):
    script = f'trap "" TERM; (setsid sh -c "trap \\"\\" TERM; echo \\$\\$ > {tmp_path}/pid; while :; do sleep 1; done" &) ; while :; do sleep 1; done'
    job = few.submit('-N', 1, 'sh', '-c', script)
    wait_until((tmp_path / 'pid').exists)
    wait_until(lambda: (tmp_path / 'pid').read_text().strip())
    pid = int((tmp_path / 'pid').read_text())
    assert is_alive(pid)
    few.run('sccancel', '--grace', '500ms', job)
    wait_until(lambda: few.job(job)['final'])
    wait_until(lambda: not is_alive(pid))


def test_detached_job_is_watched_by_others(few, tmp_path):
    job = few.submit('sh', '-c', f'while [ ! -e {tmp_path}/go ]; do echo on; sleep 0.1; done; echo seen; exit 6')
    watchers = [few.start('scattach', job) for _ in range(2)]
    for watcher in watchers:
        assert watcher.stdout.readline() == 'on\n'
    (tmp_path / 'go').touch()
    for watcher in watchers:
        *before, last = watcher.stdout.read().splitlines()
        assert last == 'seen' and set(before) <= {'on'}
        assert watcher.wait(LIMIT) == 6
        watcher.stderr.close()


def test_front_end_killed_ends_its_job(few):
    process = few.start('scrun', 'sleep', '600')
    wait_until(lambda: [j for j in few.json('scq', '--active')['jobs'] if j['state'] == 'running'])
    job = few.json('scq', '--active')['jobs'][0]['job']
    process.kill()
    process.communicate()
    few.wait_job(job, 'cancelled')


def test_held_job_waits_and_says_why(few):
    job = few.submit('--hold', 'true')
    assert few.job(job)['state'] == 'pending'
    assert 'held' in few.run('scq', '--why', job).stdout
    few.cancel(job)


def test_held_job_starts_when_it_is_released(few):
    jobs = [few.submit('--hold', 'true') for _ in range(2)]
    few.run('score', 'release', *jobs)
    assert [few.wait_job(job, 'completed')['exit_code'] for job in jobs] == [0, 0]


def test_a_waiting_job_is_held(few):
    runs = few.submit('--queue', 'exclusive', '-N', 8, 'sleep', 600)
    few.wait_job(runs, 'running')
    waits = few.submit('true')
    few.run('score', 'hold', waits)
    few.cancel(runs)
    assert 'held' in few.run('scq', '--why', waits).stdout
    few.run('score', 'release', waits)
    few.wait_job(waits, 'completed')


def test_priority_of_a_waiting_job_is_changed(few):
    job = few.submit('--hold', 'true')
    few.run('score', 'priority', -7, job)
    assert few.job(job)['priority'] == -7
    few.run('score', 'priority', '--', 1000001, job, code=125)
    few.run('score', 'release', job)
    few.wait_job(job, 'completed')


def test_a_range_of_nodes_takes_what_is_free(few):
    assert few.run('scrun', '-N', '2-4', 'sh', '-c', 'echo $SCORE_SIZE').stdout == '4\n' * 4
    assert few.run('scrun', '-N', '2-99', '-n', 3, 'sh', '-c', 'echo $SCORE_NNODES').stdout == '3\n' * 3
    half = few.submit('-N', 6, '-c', 2, 'sleep', 600)
    few.wait_job(half, 'running')
    assert few.run('scrun', '-N', '1-8', 'sh', '-c', 'echo $SCORE_SIZE').stdout == '2\n' * 2
    few.cancel(half)


def test_suspend_resume_and_weight(few, tmp_path):
    job = few.submit('sh', '-c', f'while :; do echo >> {tmp_path}/steps; sleep 0.02; done')
    few.wait_job(job, 'running')
    few.run('score', 'weight', 300, job)
    assert few.job(job)['weight'] == 300
    few.run('score', 'suspend', job)
    few.wait_job(job, 'suspended')
    size = lambda: (tmp_path / 'steps').stat().st_size if (tmp_path / 'steps').exists() else 0
    steps = [size()]

    def stands_still():
        time.sleep(0.2)
        steps.append(size())
        return steps[-1] == steps[-2]

    wait_until(stands_still)
    few.run('score', 'resume', job)
    wait_until(lambda: size() > steps[-1])
    few.cancel(job)


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


def test_the_end_is_reported_after_the_last_output(few):
    result = few.run('scrun', 'sh', '-c', 'echo out; exit 3', code=3, stderr=subprocess.STDOUT)
    assert result.stdout.splitlines()[0] == 'out' and 'exited with 3' in result.stdout.splitlines()[1]


def test_a_kept_job_reports_the_failed_rank(few):
    result = few.run('scrun', '-n', 4, '--keep-going', 'sh', '-c', '[ $SCORE_RANK -lt 2 ] || exit 9', code=9)
    assert 'rank 2 on ' in result.stderr and 'exited with 9, and 1 more failed' in result.stderr


def test_a_full_disk_ends_the_job(few):
    with open('/dev/full', 'w') as full:
        result = few.run('scrun', 'sh', '-c', 'echo $SCORE_JOBID >&2; echo x; sleep 60', code=125, stdout=full)
        assert 'No space left' in result.stderr
        listed = few.run('scq', code=125, stdout=full)
    assert listed.stderr == 'cannot write to standard output: No space left on device\n'
    job = next(word for word in result.stderr.split() if word.isdigit())
    assert few.job(job)['state'] == 'cancelled'


def test_each_task_of_a_cancelled_job_has_the_grace(few, tmp_path):
    tmp_path.chmod(0o777)
    script = (f'[ $SCORE_RANK = 0 ] || trap "sleep 1; touch {tmp_path}/saved-$SCORE_RANK; exit 0" TERM; '
              f'touch {tmp_path}/ready-$SCORE_RANK; while :; do sleep 0.05; done')
    job = few.submit('-n', 3, 'sh', '-c', script)
    wait_until(lambda: len(list(tmp_path.glob('ready-*'))) == 3)
    few.run('sccancel', '--grace', '60', job)
    few.wait_job(job, 'cancelled')
    assert sorted(path.name for path in tmp_path.glob('saved-*')) == ['saved-1', 'saved-2']


def test_virtual_nodes_spread_over_the_processors(few):
    processors = len(os.sched_getaffinity(0))
    result = few.run('scrun', '-q', '-N', 4, '--ntasks-per-node', 1, '--cpu-bind=core', 'python3', '-c',
                     'import os; print(*os.sched_getaffinity(0))')
    assert len(set(result.stdout.split())) >= min(2, processors), result.stdout


def test_cancel_reaches_stopped_tasks(few, tmp_path):
    job = few.submit('sh', '-c', f'echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; kill -STOP $$; sleep 60')
    wait_until((tmp_path / 'pid').exists)
    stat = pathlib.Path('/proc', (tmp_path / 'pid').read_text().strip(), 'stat')
    wait_until(lambda: ') T ' in stat.read_text())
    few.run('sccancel', '--grace', '1h', job)
    shown = few.wait_job(job, 'cancelled')
    assert shown['exit_code'] == 128 + signal.SIGTERM


def test_attaching_to_an_ended_job_reports_its_end(few):
    job = few.submit('true')
    few.wait_job(job, 'completed')
    assert few.run('scattach', job).stderr == f'scattach: job {job} completed\n'
    assert few.run('scattach', '-q', job).stderr == ''


def test_parallel_shell_merges_equal_output(few):
    assert few.run('scout', 'echo', 'same').stdout == 'node[00-07]:\nsame\n'
    result = few.run('scout', '-x', 'node03', 'echo $SCORE_NODEID | grep -q 0 && echo first || echo other')
    assert 'node00:\nfirst\n' in result.stdout
    assert few.run('scout', '-w', 'node05', 'exit 3', code=3).stdout == ''


def test_json_of_what_changes_something(few):
    job = few.submit('--hold', '-N', 1, 'true')
    assert few.json('score', 'release', job) == {'schema': 'scored.done/1', 'jobs': [{'job': job, 'done': True}]}
    few.wait_job(job, 'completed')
    result = few.run('sccancel', '--json', job, 99999, code=125)
    first, second = json.loads(result.stdout)['jobs']
    assert not first['done'] and 'has ended' in first['error'] and second == {
        'job': 99999, 'done': False, 'error': 'no job 99999'}
    assert json.loads(few.run('scattach', '--json', job).stderr.splitlines()[-1])['job']['job'] == job
    shown = few.json('scadm', 'set', 'quantum', '100ms')
    assert shown['schema'] == 'scored.done/1' and '100ms' in shown['text']
    assert few.json('scadm', 'drain', 'node07')['text'] == ''
    assert few.json('scadm', 'resume', 'node07')['schema'] == 'scored.done/1'
    assert few.json('scadm', 'web-login')['url'].startswith('http://127.0.0.1:')
    result = few.run('scout', '--json', 'echo $((SCORE_RANK / 7)); exit $((SCORE_RANK / 7))', code=1)
    names = [f'node0{i}' for i in range(8)]
    assert json.loads(result.stdout) == {'schema': 'scored.outputs/1', 'outputs': [
        {'nodes': names[:7], 'stream': 'stdout', 'text': '0\n'},
        {'nodes': names[7:], 'stream': 'stdout', 'text': '1\n'}]}
    assert json.loads(result.stderr.splitlines()[-1])['job']['exit_code'] == 1


def test_json_has_a_schema(few):
    few.run('scrun', 'true')
    for words in (['scq'], ['scnodes'], ['score', 'info'], ['scadm', 'trace']):
        assert re.fullmatch(r'scored\.[a-z]+/1', few.json(*words)['schema'])


def test_tables(few):
    few.run('scrun', '-J', 'a\x1bname', 'true')
    text = few.run('scq').stdout
    assert '\x1b' not in text and 'JOB' in text.splitlines()[0]
    assert few.run('scq', '--no-header', '-o', 'state').stdout.split()[-1] == 'completed'
    assert len(few.run('scnodes', '--no-header').stdout.splitlines()) == 8


# ---- the past

def test_accounting_of_ended_jobs(few):
    job = few.submit('-N', 2, '-J', 'with, comma', 'sh', '-c', 'exit 3')
    few.wait_job(job, 'failed')
    row, = [row for row in few.json('scacct', '--since', '1h')['jobs'] if row['job'] == job]
    assert (row['name'], row['state'], row['exit_code'], row['nodes']) == ('with, comma', 'failed', 3, 2)
    assert 0 <= row['scheduled_s'] <= row['elapsed_s'] + 0.1
    lines = few.run('scacct', '--csv', '-o', 'job,name,exit').stdout.splitlines()
    assert lines[0] == 'job,name,exit' and f'{job},"with, comma",3' in lines
    assert few.run('scacct', '--no-header', '--until', '1h').stdout == ''
    assert "'soon'" in few.run('scacct', '--since', 'soon', code=125).stderr


def test_events_report_what_happened(few):
    job = few.submit('-N', 2, 'sleep', '60')
    few.wait_job(job, 'running')
    few.run('scadm', 'drain', 'node07', '-m', 'unrelated')
    few.run('sccancel', '-s', 'CONT', job)
    few.run('scadm', 'resume', 'node07')
    few.cancel(job)
    texts = [event['text'] for event in few.json('score', 'job', job)['events']]
    wanted = ['accepted', 'launching on node', '2 tasks started', 'signal 18 requested by', 'cancel', 'cancelled, exit code']
    found = [next(i for i, text in enumerate(texts) if text.startswith(want)) for want in wanted]
    assert found == sorted(found), texts
    assert 'launching on' in few.run('score', 'job', job, '--events').stdout
    assert all('events' not in listed for listed in few.json('scq')['jobs'])
