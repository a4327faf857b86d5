"""scq, scacct, sccancel, scnodes: several ids, filters, what is shown and how; one line for what is wrong."""
import csv
import io
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from cluster import BIN, LIMIT, wait_until


def ids(text):
    return [int(line.split()[0]) for line in text.splitlines()]


def ended(cluster, *words):
    job = cluster.submit('-i', 'none', *words)
    # The record is stored a moment after the end is known.
    wait_until(lambda: cluster.job(job)['final'] and cluster.run('scacct', job, code=None).returncode == 0)
    return job


# ---- several ids, some of them unknown

def test_an_unknown_id_does_not_hide_the_others(few):
    first, second = ended(few, 'true'), ended(few, 'true')
    for words in (['scq', '--no-header', '-o', 'job'], ['scacct', '--no-header', '-o', 'job']):
        done = few.run(*words, first, 888888, second, 999999, code=125)
        assert ids(done.stdout) == [first, second]
        assert [line for line in done.stderr.splitlines() if '888888' in line] and done.stderr.count('\n') == 2, done.stderr
    done = few.run('scq', '--json', first, 888888, code=125)
    assert f'"job": {first}' in done.stdout
    done = few.run('scnodes', '--no-header', '-o', 'node', 'node01', 'nodeXX', code=125)
    assert done.stdout.split() == ['node01'] and done.stderr == 'scnodes: no node nodeXX\n'


def test_one_call_accepts_thousands_of_ids(few):
    job = ended(few, 'true')
    done = few.run('scq', '--no-header', '-o', 'job', *range(max(1, job - 2500), job + 2500), code=125)
    assert job in ids(done.stdout)


def test_commands_that_change_jobs_do_the_rest(few):
    jobs = [few.submit('--hold', 'true') for _ in range(2)]
    done = few.run('score', 'release', jobs[0], 888888, '12_3', code=125)
    assert '888888' in done.stderr and done.stderr.count('\n') == 2
    few.wait_job(jobs[0], 'completed')
    done = few.run('sccancel', 888888, '5.7', jobs[1], code=125)
    assert few.job(jobs[1])['state'] == 'cancelled' and done.stderr.count('\n') == 2
    done = few.run('sccancel', jobs[1], 'x', code=125)  # a typing error: nothing is done
    assert "'x' is not a job id" in done.stderr and done.stderr.count('\n') == 1


# ---- filters

def test_the_same_filters_everywhere(few):
    job = few.submit('-w', 'node02', '-J', 'filter-a', 'sleep', 600)
    other = few.submit('-w', 'node03', '-J', 'filter-b', 'sleep', 600)
    waiting = few.submit('--hold', '-J', 'filter-c', 'true')
    for each in (job, other):
        few.wait_job(each, 'running')
    user = few.run('id', '-un').stdout.strip()
    for words, wanted in ((['--name', 'filter-a'], [job]), (['--name', 'filter-a,filter-b'], [job, other]),
                          (['-u', user, '--name', 'filter-a'], [job]), (['--name', 'filter-c', '--state', 'pending'], [waiting]),
                          (['-w', 'node02', '--name', 'filter-a,filter-b'], [job]), (['--state', 'R', '--name', 'filter-c'], []),
                          (['-u', '4000000000', '--name', 'filter-a'], []), (['--account', 'none-such'], [])):
        assert ids(few.run('scq', '--no-header', '-o', 'job', *words).stdout) == wanted, words
    done = few.run('scq', '-u', 'no-such-user', code=125)
    assert 'no-such-user' in done.stderr
    assert "'runing'" in few.run('scq', '--state', 'runing', code=125).stderr
    few.run('sccancel', '--name', 'filter-a,filter-b', '--state', 'running', '-w', 'node03')
    assert (few.job(other)['state'], few.job(job)['state']) == ('cancelled', 'running')
    few.run('sccancel', '--name', 'filter-a')
    few.run('sccancel', '--state', 'pending', '--name', 'filter-c')
    assert few.job(waiting)['state'] == 'cancelled'
    assert 'no active job matches' in few.run('sccancel', '--name', 'filter-a').stderr
    for words, wanted in ((['--name', 'filter-a'], [job]), (['--state', 'cancelled', '--name', 'filter-a,filter-b'], {job, other}),
                          (['-j', f'{job},{other}', '--name', 'filter-b'], [other]), (['-w', 'node02', '--name', 'filter-a,filter-b'], [job]),
                          (['--state', 'completed', str(job)], [])):
        assert set(ids(few.run('scacct', '--no-header', '-o', 'job', *words).stdout)) == set(wanted), words
    for words, wanted in ((['node01', 'node[03-04]'], ['node01', 'node03', 'node04']), (['-w', 'node05'], ['node05']),
                          (['--state', 'up', 'node00'], ['node00']), (['--state', 'down', 'node00'], [])):
        assert few.run('scnodes', '--no-header', '-o', 'node', *words).stdout.split() == wanted, words


def test_scacct_shows_the_tasks_of_an_array(few):
    array = few.submit('-a', '1-3', 'true')
    wait_until(lambda: few.job(array)['final'])
    shown = few.run('scacct', '--no-header', '-o', 'job', array).stdout.split()
    assert {f'{array}_{task}' for task in (1, 2, 3)} <= set(shown)
    assert few.run('scacct', '--no-header', '-o', 'job', f'{array}_2').stdout.split() == [f'{array}_2']


# ---- what is shown

def test_ended_jobs_come_last_the_newest_at_the_end(few):
    first, second = ended(few, 'true'), ended(few, 'false')
    active = few.submit('sleep', 600)
    shown = ids(few.run('scq', '--no-header', '-o', 'job').stdout)
    assert shown.index(active) < shown.index(first) < shown.index(second) == len(shown) - 1
    time.sleep(1.1)
    shown = ids(few.run('scq', '--since', '1s', '--no-header', '-o', 'job').stdout)
    assert active in shown and first not in shown


def test_a_waiting_job_shows_the_nodes_that_it_asks_for(few):
    job = few.submit('--hold', '-N', 3, 'true')
    assert few.run('scq', '--no-header', '-o', 'nodes', job).stdout.split() == ['3']
    assert few.job(job)['nodes_wanted'] == 3


def test_counts_of_one_are_singular(few):
    job = few.submit('-N', 1, 'sleep', 600)
    few.wait_job(job, 'running')
    page = few.run('score', 'job', job).stdout
    assert '1 on 1 node\n' in page, page
    assert '1 task started' in few.run('score', 'job', '--events', job).stdout


def in_terminal(cluster, columns, *words):
    """Returns what the command prints to a terminal of so many columns."""
    script = f'stty cols {columns}; exec ' + ' '.join(f"'{word}'" for word in words)
    command = ['script', '-qec', f'sh -c "{script}"', '/dev/null']
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL,
                          env=dict(cluster.env, TERM='xterm'))
    return done.stdout.replace('\r', '')


@pytest.mark.skipif(shutil.which('script') is None, reason='no script(1)')
def test_a_long_name_leaves_the_state_on_a_narrow_terminal(few):
    job = few.submit('--hold', '-J', 'n' * 200, 'true')
    text = in_terminal(few, 80, str(BIN / 'scq'), str(job))
    assert 'STATE' in text and 'pending' in text and 'n…' in text, text
    assert 'n' * 200 in few.run('scq', job).stdout  # nothing is cut for a pipe


def test_colour_is_where_it_is_asked_for(few):
    job = ended(few, 'false')
    assert '\x1b[31mfailed\x1b[0m' in few.run('scq', '--color', 'always', job).stdout
    assert '\x1b[31mfailed' in few.run('scacct', '--color', 'always', job).stdout
    assert '\x1b[32mup' in few.run('scnodes', '--color=always').stdout
    for words in (['--color', 'never'], []):
        assert '\x1b' not in few.run('scq', *words, job).stdout
    assert '\x1b' not in few.run('scq', '--color', 'always', '--json', job).stdout


def test_names_are_whole_in_json_and_csv(few):
    names = {ended(few, '-J', name, 'true'): name for name in ('tab\there', 'a\nb', 'esc\x1b[31m', 'x,"y"', '\u202eevil', 'dédé')}
    assert {row['job']: row['name'] for row in few.json('scq', *names)['jobs']} == names
    rows = csv.DictReader(io.StringIO(few.run('scacct', '--csv', *names).stdout, newline=''))
    assert {int(row['job']): row['name'] for row in rows} == names
    table = few.run('scq', '-o', 'job,name', *names).stdout
    assert '\x1b' not in table and '\u202e' not in table and len(table.splitlines()) == len(names) + 1


def test_by_day_is_the_readers_day(few):
    job = ended(few, 'true')
    for zone in ('Pacific/Kiritimati', 'Pacific/Pago_Pago', 'XXX-14', 'XXX+12'):
        day = few.run('scacct', '--no-header', '-o', 'ended', job, extra_env={'TZ': zone}).stdout.split()[0]
        sums = few.run('scacct', '--no-header', '--by', 'day', job, extra_env={'TZ': zone}).stdout.split()[0]
        assert day == sums, zone


# ---- one line that says what is wrong

@pytest.mark.parametrize('words, said', [
    (['scq', '--nodse'], "unknown option '--nodse' (try scq --help)"), (['scrun', '--nodse', '2', 'true'], 'did you mean --nodes?'),
    (['scadm', 'drian', 'node01'], 'did you mean drain?'), (['score', 'inof'], 'did you mean info?'),
    (['scadm', 'drain', 'node01', '--reson', 'x'], 'did you mean --reason?'),
    (['scrun', '--ntasks'], '--ntasks needs a value'), (['scrun', '--weight', '0', 'true'], "--weight: '0' is not a number from 1 to"),
    (['scrun', '-n', 'x', 'true'], "--ntasks: 'x' is not a number from 1 to"), (['scrun', '--cpu-bind', 'x', 'true'], "--cpu-bind: 'x' is not one of none, core, socket"),
    (['scrun', '-np', 'x', 'true'], "-np: 'x' is not a number"), (['scrun', '--timeout', 'abc', 'true'], "--timeout: 'abc' is not a number of seconds"),
    (['scrun', '--wall-time', 'abc', 'true'], "--wall-time 'abc'"), (['scrun', '-x', 'FOO=1', 'true'], '-genv FOO VALUE'),
    (['scrun', '-x', 'n[3-1]', 'true'], 'the range 3-1 goes down; write 1-3'), (['scrun', '-w', 'a,,b', 'true'], 'a host name is missing'),
    (['score', 'top', '--json', '--rate', '0'], "--rate: '0' is not a number from 0.1 to 10"),
    (['score', 'top', '--json', '--job', '999999'], '--job: no job 999999'), (['score', 'top', '--json', '--job', 'x'], "'x' is not a job id"),
    (['score', 'top', '--json', '--count', '0'], "--count: '0' is not a number from 1 to"),
    (['scrun', '--scratch', '100T', 'true'], 'scratch'), (['scacct', '7.0'], 'is a step'), (['scacct', '--by', 'week'], "'week' is not user"),
    (['sccancel'], 'no job given'), (['sccancel', '--all', '7'], '--all and job ids'),
    (['sctop', '--rate', '0'], "--rate: '0' is not a number from 0.1 to 10"), (['sctop', '--foo'], "unknown option '--foo'"),
    (['sctop', '--columns'], '--columns needs a value'), (['sctop'], 'sctop: no terminal: use --once for scripts\n')])
def test_command_line_errors_are_one_line_and_exit_125(few, words, said):
    done = few.run(*words, code=125)
    assert said in done.stderr and done.stderr.count('\n') == 1, done.stderr
    assert 'UINT' not in done.stderr and 'malformed' not in done.stderr


def test_help_has_plain_types(few):
    for command in ('scrun', 'scbatch', 'scalloc', 'scout', 'scq', 'sccancel', 'scnodes', 'scattach', 'scacct', 'scshare', 'scadm', 'sctop'):
        text = few.run(command, '--help').stdout
        assert not re.search(r'\b(UINT|INT|FLOAT|REQUIRED)\b|:\{|Excludes:', text), text
    assert 'Tasks per node; from 1 to ' in few.run('scrun', '--help').stdout
    assert few.run('sctop', '--help').stdout and few.run('sctop', '--version').stdout.startswith('scored ')


def test_a_fault_in_a_script_names_its_line(few, tmp_path):
    script = tmp_path / 'typo.sh'
    script.write_text('#!/bin/sh\n#SCORE --nodse 2\ntrue\n')
    done = few.run('scbatch', script, code=125)
    assert "scbatch: typo.sh line 2: unknown option '--nodse'; did you mean --nodes?" in done.stderr, done.stderr


@pytest.mark.parametrize('words', [['scq'], ['scrun', 'true'], ['scbatch', '--wrap', 'true'], ['scnodes'], ['score', 'info']])
def test_without_a_cluster_the_line_says_how_to_get_one(words, tmp_path):
    env = {key: value for key, value in os.environ.items() if not key.startswith('SCORE')}
    if os.path.exists('/run/scored/head.sock') or os.path.exists('/etc/scored/scored.toml'):
        pytest.skip('a cluster is installed on this host')
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True, timeout=LIMIT, env=env)
    assert done.returncode == 125 and done.stderr.count('\n') == 1
    assert '/run/scored/head.sock' in done.stderr and 'score virtual -- bash' in done.stderr and 'SCORED_SERVER' in done.stderr, done.stderr


# ---- a cluster that has gone

def test_a_lost_head_is_reported_soon(fresh):
    cluster = fresh(2)
    job = cluster.submit('sleep', 600)
    script = cluster.directory / 'job.sh'
    script.write_text('#!/bin/sh\nsleep 600\n')
    waiting = [cluster.start('scbatch', '--wait', '-o', '/dev/null', script), cluster.start('score', 'top', '--json'), cluster.start('scq', '--watch', '1')]
    assert int(waiting[0].stdout.readline()) > job and waiting[1].stdout.readline() and waiting[2].stdout.readline()
    cluster.kill('head')
    begun = time.monotonic()
    for process in waiting:
        line = process.stderr.readline()
        assert 'lost connection to the head; retrying for' in line, line
    assert time.monotonic() - begun < 20  # a second where nothing else runs
    cluster.restart('head')
    assert 'reconnected to the head' in waiting[0].stderr.readline()
    for process in waiting:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT)
    cluster.wait_up()
    cluster.cancel_all()
