"""A small log, replayed by real daemons beside scsim's prediction. How near they are is not judged here."""
import json
import subprocess
import xml.dom.minidom

import pytest

from cluster import BIN, LIMIT

import comparison  # noqa: E402

HEADER = '; MaxProcs: 8\n'
JOB = '{number} {submit} -1 {run} {nodes} -1 -1 -1 -1 -1 1 {user} 1 -1 -1 -1 -1 -1\n'


def log_of(path, jobs, text=''):
    lines = [JOB.format(number=i + 1, submit=submit, run=run, nodes=nodes, user=1 + i % 3)
             for i, (submit, run, nodes) in enumerate(jobs)]
    path.write_text(HEADER + ''.join(lines) + text)
    return path


def replay(*words):
    return subprocess.run([BIN / 'scbench', 'replay', *map(str, words)], capture_output=True, text=True, timeout=LIMIT)


# Jobs that share the nodes, some of them on all, in rows of their own (limits of 5 x 600 s) and beside them.
def test_every_job_of_a_log_runs_once_and_is_compared_with_the_prediction(tmp_path):
    jobs = [(40 * i, 600 if i % 4 == 0 else 60 + 30 * i, 8 if i % 3 == 0 else 2 * (i % 4) + 1) for i in range(10)]
    log = log_of(tmp_path / 'log.swf', jobs, 'nonsense\n')
    done = replay('--swf', log, '--hours', 1, '--compress', 600, '--nodes', 4, '--slice', '20ms', '--json',
                  '--plot', tmp_path / 'replay.svg')
    assert done.returncode == 0, done.stderr
    assert 'log.swf:12: a field is not a number; line skipped' in done.stderr
    report = json.loads(done.stdout)
    assert (report['jobs'], report['ran_once'], report['malformed']) == (10, 10, 1)
    assert sum(report['states'].values()) == 10
    assert report['start_cost_ms'] >= 0 and report['run_cost_ms'] >= 0
    assert len(report['records']) == 10 and report['scheduled_vs_run'] > 0 and len(report['worst']) == 5
    for pair in (report['all'], report['as_scheduled'], *report['by_size'], *report['by_run_time']):
        assert set(pair['measured']) == set(pair['predicted']) == set(pair['ratio']) == set(comparison.MEASURES)
        assert pair['measured']['response_mean_s'] > 0 and pair['predicted']['response_mean_s'] > 0
        assert set(pair['differs']) <= set(comparison.MEASURES)
    assert report['all']['jobs'] == sum(one['jobs'] for one in report['by_size']) == sum(one['jobs'] for one in report['by_run_time'])
    assert report['predicted_without_costs']['response_mean_s'] > 0
    drawn = xml.dom.minidom.parse(str(tmp_path / 'replay.svg'))
    assert {'measured', 'predicted'} <= {node.firstChild.data for node in drawn.getElementsByTagName('text')}


def test_an_unreplayable_log_is_refused_in_one_line(tmp_path):
    log = log_of(tmp_path / 'log.swf', [(0, 60, 1)])
    empty = tmp_path / 'empty.swf'
    empty.write_text(HEADER)
    for words, said in ((['--swf', tmp_path / 'none.swf'], 'cannot open'), (['--swf', empty], 'has no job'),
                        (['--swf', log, '--from', '100', '--hours', '1'], 'no job was submitted')):
        done = replay(*words)
        assert done.returncode == 125 and said in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith('scbench replay: '), done.stderr


@pytest.mark.parametrize('words', [['--nodes', '0'], ['--nodes', '257'], ['--hours', 'x'], ['--hours', '0'], ['--compress', '-1'],
                                   ['--slice', '3'], ['--from', '-1'], ['--long-limit', '-2'], ['--placement', 'fcfs'], ['--plot', 'x.png']])
def test_options_out_of_range_are_refused(words, tmp_path):
    done = replay('--swf', log_of(tmp_path / 'log.swf', [(0, 60, 1)]), *words)
    assert done.returncode == 125 and done.stderr.count('\n') == 1 and words[0] in done.stderr, done.stderr


def test_a_task_counts_the_time_for_which_it_is_scheduled():
    assert subprocess.run([BIN / 'scbench-scheduled', '0.05', '0.1'], timeout=LIMIT).returncode == 0
    for words in ([], ['1'], ['0', '0.1'], ['-1', '0.1'], ['1', 'x'], ['nan', '0.1'], ['1', '1e9']):
        done = subprocess.run([BIN / 'scbench-scheduled', *words], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 2 and 'usage' in done.stderr, words


# ---- the comparison alone

def records(*jobs):
    return {'nodes': 8, 'jobs': [{'job': n + 1, 'nodes': nodes, 'run_s': run, 'submit_s': submit, 'start_s': start, 'end_s': end}
                                 for n, (nodes, run, submit, start, end) in enumerate(jobs)]}


def test_ratios_are_of_the_measured_to_the_predicted():
    predicted = records((1, 10, 0, 0, 10), (8, 10, 0, 10, 20))
    report = comparison.compare(predicted, {1: (0, 1, 10), 2: (1, 12, 24)}, 1)
    assert report['all']['ratio']['response_mean_s'] == pytest.approx(33 / 30)
    assert report['all']['ratio']['bounded_slowdown_mean'] == pytest.approx((1 + 2.3) / (1 + 2))
    assert 'response_mean_s' in report['all']['differs']
    assert [(one['class'], one['jobs']) for one in report['by_size']] == [('1 node', 1), ('to all', 1)]
    assert report['by_size'][0]['differs'] == ['wait_mean_s', 'wait_p95_s'], 'no ratio to a wait of 0'
    assert report['by_size'][0]['ratio']['wait_mean_s'] is None
    assert '  differs' in comparison.as_text(report)


def test_classes_are_of_the_log_s_time():
    report = comparison.compare(records((1, 1, 0, 0, 1), (2, 20, 0, 0, 20)), {1: (0, 0, 1), 2: (0, 0, 20)}, 240)
    assert [one['class'] for one in report['by_run_time']] == ['to 10 min', 'over 1 h']
    assert report['all']['measured']['bounded_slowdown_mean'] == 1
