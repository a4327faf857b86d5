"""sctop in a real terminal: tmux draws it and presses its keys."""
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from cluster import BIN, EXAMPLES, LIMIT, wait_until
from web import Web

pytestmark = pytest.mark.skipif(shutil.which('tmux') is None, reason='no tmux')


class Terminal:
    """A tmux server of its own with one window, in which sctop runs."""

    def __init__(self, cluster, socket, *words, columns=110, lines=40):
        self.socket = socket
        self.env = dict(cluster.env, LANG='C.UTF-8', TERM='xterm-256color')
        self.env.pop('TMUX', None)
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-s', 'test', '-x', columns, '-y', lines,
                  f'{BIN}/sctop {" ".join(words)}; echo "left with $?"; cat')

    def tmux(self, *words):
        command = ['tmux', '-S', str(self.socket), *map(str, words)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT, env=self.env).stdout

    def text(self):
        return self.tmux('capture-pane', '-p', '-t', 'test')

    def press(self, *keys):
        self.tmux('send-keys', '-t', 'test', *keys)

    def shows(self, pattern):
        wait_until(lambda: re.search(pattern, self.text(), re.MULTILINE), what=self.text)

    def shows_no(self, pattern):
        wait_until(lambda: not re.search(pattern, self.text(), re.MULTILINE), what=self.text)

    def close(self):
        subprocess.run(['tmux', '-S', str(self.socket), 'kill-server'], capture_output=True, timeout=LIMIT)


@pytest.fixture
def terminal(few, tmp_path):
    made = []

    def open_terminal(*words, **options):
        made.append(Terminal(few, tmp_path / f'tmux{len(made)}', *words, **options))
        return made[-1]

    yield open_terminal
    for one in made:
        one.close()


def start(few, name, nodes=8):
    job = few.submit('-n', nodes, '-J', name, 'sleep', 600)
    few.wait_job(job, 'running')
    return job


def test_it_shows_jobs_as_they_come_and_go(few, terminal):
    screen = terminal('--rate', '10')
    screen.shows(r'8/8|8 up|nodes')
    job = start(few, 'first-one')
    screen.shows(rf'\b{job}\b.*first-one')
    few.cancel(job)
    screen.shows(rf'{job}.*cancelled|\A(?!.*first-one)')


def test_keys_of_htop_filter_help_and_leave(few, terminal):
    start(few, 'apples', 2)
    start(few, 'pears', 2)
    screen = terminal('--rate', '10')
    screen.shows('apples')
    screen.shows('pears')
    screen.press('F3')
    screen.press('pea')
    screen.press('Enter')
    screen.shows_no('apples')
    screen.shows('pears')
    screen.press('/')
    screen.press('BSpace', 'BSpace', 'BSpace')
    screen.press('Enter')
    screen.shows('apples')
    screen.press('F1')
    screen.shows(r'(?i)sort')
    screen.press('q')
    screen.press('F10')
    screen.shows('left with 0')


def test_the_chosen_job_is_cancelled_after_a_yes(few, terminal):
    job = start(few, 'victim')
    screen = terminal('--rate', '10')
    screen.shows('victim')
    screen.press('/')
    screen.press('victim')
    screen.press('Enter')
    screen.press('F9')
    screen.shows(rf'Cancel job {job}\?')
    screen.press('n')
    screen.shows_no(r'Cancel job \d+\?')
    screen.press('k')
    screen.shows(rf'Cancel job {job}\?')
    assert few.job(job)['state'] == 'running'
    screen.press('y')
    few.wait_job(job, 'cancelled')
    screen.press('q')
    screen.shows('left with 0')


def test_pause_holds_the_picture(few, terminal):
    screen = terminal('--rate', '10')
    screen.shows('node')
    screen.press('p')
    screen.shows(r'(?i)paused')
    job = start(few, 'unseen')
    few.wait_job(job, 'running')
    assert 'unseen' not in screen.text()
    screen.press('p')
    screen.shows('unseen')


@pytest.mark.parametrize('columns, lines', [(200, 60), (40, 12), (20, 5)])
def test_sctop_works_in_any_size(few, terminal, columns, lines):
    start(few, 'sized')
    screen = terminal('--rate', '10', columns=columns, lines=lines)
    screen.shows(r'\S')
    assert len(screen.text().splitlines()) <= lines
    screen.press('q')
    screen.shows('left with 0')


@pytest.mark.parametrize('words, state', [(('sleep', 600), 'idle'), ((EXAMPLES / 'pm_patient',), 'deadlocked')])
def test_once_shows_an_idle_and_a_deadlocked_job(few, words, state):
    job = few.submit('-N', 2, '-J', f'now-{state}', *words)
    wait_until(lambda: few.job(job)['activity'] == state)
    line, = [line for line in few.run('sctop', '--once').stdout.splitlines() if f'now-{state}' in line]
    assert state in line.split() and 'running' not in line.split(), line
    document = json.loads(few.run('score', 'top', '--json', '--once').stdout)
    row, = [row for row in document['jobs'] if row['job'] == job]
    assert (row['state'], row['activity']) == ('running', state)
    waits = [f'rank {rank} in pm_wait' for rank in range(2)] if state == 'deadlocked' else []
    assert row['waits'] == few.job(job)['waits'] == waits


def test_once_prints_a_picture_for_scripts(few):
    job = start(few, 'printed')
    text = few.run('sctop', '--once', '--columns', '100').stdout
    assert 'printed' in text and str(job) in text and '\x1b' not in text
    assert max(map(len, text.splitlines())) <= 100


def few_with_no_samples(few):
    """Waits until nodes send none: earlier viewers must not help."""
    web = Web(few.json('score', 'info')['dashboard_url'])
    wait_until(lambda: web.snapshot()['cluster']['sample_period_s'] is None)
    return few


def nodes_with_bars(text):
    return re.findall(r'^(node0\d) .*\[', text, re.MULTILINE)


def test_once_waits_for_the_loads_of_all_nodes(few):
    job = few.submit('-N', 8, '-n', 8, 'sh', '-c', 'while :; do :; done')
    few.wait_job(job, 'running')
    few_with_no_samples(few)
    # One look is enough, but where a node is held up for seconds: the next one has its samples.
    wait_until(lambda: len(nodes_with_bars(few.run('sctop', '--once').stdout)) == 8)
    few_with_no_samples(few)
    document = {}

    def measured():
        document.update(few.json('score', 'top', '--once'))
        column = document['processes']['columns'].index('user')
        return [row for row in document['processes']['rows'] if row[column] > 0]
    wait_until(lambda: len(measured()) == 8, what=lambda: document['processes'])


def test_once_has_matrix_bars_and_switch_times(few):
    busy = ['sh', '-c', 'while :; do :; done']
    jobs = [few.submit('-N', 8, '-n', 16, '-J', name, *busy) for name in ('first', 'second')]
    for job in jobs:
        few.wait_job(job, 'running')
    texts = []

    def is_whole():
        texts.append(few.run('sctop', '--once', '--columns', '100').stdout)
        return (re.search(r'^switch p50.*skew p50', texts[-1], re.MULTILINE) and
                re.search(r'^node00 .*\[\|+', texts[-1], re.MULTILINE) and len(nodes_with_bars(texts[-1])) == 8)
    wait_until(is_whole, what=lambda: texts[-1])
    text = texts[-1]
    for slot, job in enumerate(jobs):
        assert re.search(rf'^[> ] slot {slot} +({job} +){{7}}{job}\s*$', text, re.MULTILINE), text
        assert re.search(rf'^ +{job} .*running', text, re.MULTILINE), text


def test_a_head_that_stops_answering_is_reported(fresh, tmp_path):
    cluster = fresh(2)
    screen = Terminal(cluster, tmp_path / 'tmux')
    try:
        screen.shows('nodes 2/2')
        head = cluster.daemon('head')['pid']
        os.kill(head, signal.SIGSTOP)
        try:
            screen.shows(r'NO ANSWER FOR \d+ s')
        finally:
            os.kill(head, signal.SIGCONT)
        screen.shows_no('NO ANSWER')
    finally:
        screen.close()
