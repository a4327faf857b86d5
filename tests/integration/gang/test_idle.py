"""Idle jobs give their slices to others and come back when something wakes them."""
import json
import os
import signal
import socket
import subprocess
import time

from cluster import EXAMPLES, LIMIT, wait_until
from perfetto import job_bars

SPINNER = 'import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass\n'


def spin(cluster, seconds=600):
    return cluster.submit('-N', 2, 'python3', '-c', SPINNER.format(seconds))


def is_background(cluster, job):
    return lambda: cluster.job(job)['background']


def is_back(cluster, job):
    return lambda: not cluster.job(job)['background'] and cluster.job(job)['activity'] == 'busy'


def gets_no_slice(cluster, job):
    slices = cluster.job(job)['slices']
    time.sleep(0.5)
    return cluster.job(job)['slices'] == slices


def counters(cluster):
    return cluster.json('score', 'info')


def test_a_sleeping_job_gives_its_share_away_and_the_queue_says_so(pair):
    sleeper = pair.submit('-N', 2, 'sleep', '600')
    busy = spin(pair)
    # On a busy machine the program may begin late, and take its place again for that.
    wait_until(lambda: ' idle ' in pair.run('scq').stdout, what=lambda: pair.job(sleeper))

    def shares():
        job = pair.job(sleeper)
        return job['state'], job['activity'], job['share'], pair.job(busy)['share']
    wait_until(lambda: shares() == ('running', 'idle', 0, 1), what=shares)
    wait_until(lambda: gets_no_slice(pair, sleeper))  # its last one may still be under way


def test_the_idle_job_returns_when_the_busy_one_ends(pair):
    sleeper = pair.submit('-N', 2, 'sleep', '600')
    busy = spin(pair)
    wait_until(is_background(pair, sleeper))
    pair.cancel(busy)
    wait_until(lambda: not pair.job(sleeper)['background'])
    assert pair.job(sleeper)['share'] == 1


def test_a_timer_wakes_it(pair):
    # Again and again: where the machine is busy it may be longer than one nap until the test has seen it.
    script = "while :; do sleep 9; python3 -c '" + SPINNER.format(9) + "'; done"
    sleeper = pair.submit('-N', 2, 'sh', '-c', script)
    spin(pair)
    wait_until(is_background(pair, sleeper), what=lambda: pair.job(sleeper))
    wait_until(is_back(pair, sleeper))
    assert counters(pair)['idle_returned'] > 0


def test_an_idle_job_answers_input_and_returns_for_work(pair):
    program = ('import sys, time\n'
               'for line in sys.stdin:\n'
               '    print("got", line.strip(), flush=True)\n'
               '    if line.strip() == "work":\n'
               '        end = time.monotonic() + 600\n'
               '        while time.monotonic() < end: pass\n')
    process = pair.start('scrun', '-N', 2, 'python3', '-c', program, stdin=subprocess.PIPE)
    wait_until(lambda: pair.json('scq', '--active')['jobs'])
    reader = pair.json('scq', '--active')['jobs'][0]['job']
    spin(pair)
    wait_until(is_background(pair, reader))
    process.stdin.write('hello\n')
    process.stdin.flush()
    assert process.stdout.readline() == 'got hello\n'
    process.stdin.write('work\n')
    process.stdin.flush()
    wait_until(is_back(pair, reader))
    pair.cancel(reader)
    process.wait(LIMIT)


def test_a_signal_wakes_it(pair):
    script = "trap 'python3 -c \"" + SPINNER.format(600) + "\"' USR1; while :; do sleep 600 & wait $!; done"
    sleeper = pair.submit('-N', 2, 'sh', '-c', script)
    spin(pair)
    wait_until(is_background(pair, sleeper))
    pair.run('sccancel', '--signal', 'USR1', sleeper)
    wait_until(is_back(pair, sleeper))


def start_front(cluster, *words):
    """(process, job) of a scrun that reads nothing."""
    process = cluster.start('scrun', *words)
    wait_until(lambda: cluster.json('scq', '--active')['jobs'])
    return process, cluster.json('scq', '--active')['jobs'][0]['job']


def test_a_signal_that_scrun_forwards_wakes_it(pair):
    script = "trap 'python3 -c \"" + SPINNER.format(600) + "\"' USR1; while :; do sleep 600 & wait $!; done"
    front, sleeper = start_front(pair, '-N', 2, 'sh', '-c', script)
    spin(pair)
    wait_until(is_background(pair, sleeper), what=lambda: pair.job(sleeper))
    front.send_signal(signal.SIGUSR1)
    wait_until(is_back(pair, sleeper))
    pair.cancel(sleeper)
    front.communicate(timeout=LIMIT)


def test_a_signal_of_its_own_tasks_wakes_it(pair, tmp_path):
    path = tmp_path / 'task'
    script = (f"trap 'python3 -c \"{SPINNER.format(600)}\"' USR1; "
              f'if [ $SCORE_RANK = 0 ]; then echo $$ > {path}; fi; while :; do sleep 600 & wait $!; done')
    sleeper = pair.submit('-N', 2, 'sh', '-c', script)
    spin(pair)
    wait_until(is_background(pair, sleeper), what=lambda: pair.job(sleeper))
    os.kill(int(path.read_text()), signal.SIGUSR1)
    wait_until(is_back(pair, sleeper))


def test_a_message_from_outside_wakes_it(pair, tmp_path):
    path = tmp_path / 'socket'
    script = (f'import socket\nlistener = socket.socket(socket.AF_UNIX)\nlistener.bind("{path}")\nlistener.listen()\n'
              'listener.accept()\n' + SPINNER.format(600))
    waits = pair.submit('-N', 1, 'python3', '-c', script)
    spin(pair)
    wait_until(is_background(pair, waits), what=lambda: pair.job(waits))
    with socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(str(path))
        wait_until(is_back(pair, waits))


def test_a_slice_ends_early_when_no_job_is_left_in_it(pair):
    before = counters(pair)['early_yields']
    pair.run('scadm', 'set', 'quantum', '1s')  # so that a slice is long enough to be cut
    try:
        sleeper = pair.submit('-N', 2, 'sh', '-c', 'sleep 600')
        spin(pair)
        wait_until(is_background(pair, sleeper))
        assert counters(pair)['early_yields'] > before
    finally:
        pair.run('scadm', 'set', 'quantum', '50ms')


def test_operators_can_switch_it_off(pair):
    sleeper = pair.submit('-N', 2, 'sleep', '600')
    spin(pair)
    wait_until(is_background(pair, sleeper))
    pair.run('scadm', 'set', 'idle', 'off')
    try:
        wait_until(lambda: not pair.job(sleeper)['background'])
        assert pair.job(sleeper)['share'] == 0.5
    finally:
        pair.run('scadm', 'set', 'idle', 'on')
    wait_until(is_background(pair, sleeper))


def test_a_busy_job_stays_in_the_timetable(pair):
    first, second = spin(pair), spin(pair)
    for job in (first, second):  # a program that is being loaded waits for its file
        wait_until(lambda: pair.job(job)['scheduled_s'] > 1)
    left = counters(pair)['idle_left']
    time.sleep(2)
    assert pair.job(first)['share'] == pair.job(second)['share'] == 0.5
    assert counters(pair)['idle_left'] == left


PATIENT = EXAMPLES / 'pm_patient'


def test_a_job_that_waits_for_a_message_to_come_leaves_and_returns(pair):
    waits = pair.start('scrun', '-N', 2, PATIENT, 4)
    wait_until(lambda: pair.json('scq', '--active')['jobs'])
    job = pair.json('scq', '--active')['jobs'][0]['job']
    spin(pair)
    wait_until(is_background(pair, job))
    out, err = waits.communicate(timeout=LIMIT)
    assert waits.returncode == 0, (out, err)


def test_a_deadlock_is_reported_and_left_alone(pair):
    job = pair.submit('-N', 2, PATIENT)
    wait_until(lambda: pair.job(job)['activity'] == 'deadlocked')
    assert pair.job(job)['state'] == 'running'
    assert ' deadlocked ' in pair.run('scq').stdout
    assert 'deadlock: ' in pair.run('scq', '--why', job).stdout
    assert 'deadlocked' in pair.run('score', 'job', '--events', job).stdout


def test_scrun_says_once_that_its_job_is_deadlocked(pair):
    front, job = start_front(pair, '-N', 2, PATIENT)
    wait_until(lambda: pair.job(job)['activity'] == 'deadlocked')
    time.sleep(1.5)  # activity is reported once per second
    pair.cancel(job)
    out, err = front.communicate(timeout=LIMIT)
    assert err.count('is deadlocked: deadlock: ') == 1, (out, err)


def test_a_deadlocked_job_is_ended_if_asked_for(pair):
    result = pair.run('scrun', '-N', 2, '--kill-deadlock', PATIENT, code=125)
    assert 'deadlock' in result.stderr


def test_a_rank_that_sleeps_is_no_deadlock(pair):
    result = pair.run('scrun', '-N', 2, '--kill-deadlock', PATIENT, 6)
    assert 'deadlock' not in result.stderr


def test_a_rank_that_reads_a_file_is_no_deadlock(pair, tmp_path):
    path = tmp_path / 'pipe'
    os.mkfifo(path)
    script = f'[ $SCORE_RANK = 0 ] && read line < {path}; exec {PATIENT} 0'
    front, job = start_front(pair, '-N', 2, '--kill-deadlock', 'sh', '-c', script)
    wait_until(lambda: pair.job(job)['activity'] == 'idle')
    time.sleep(6)  # a deadlock is reported after five
    assert pair.job(job)['activity'] == 'idle'
    path.write_text('go on\n')
    out, err = front.communicate(timeout=LIMIT)
    assert front.returncode == 0 and 'deadlock' not in err, (out, err)


def test_the_record_of_switches_can_be_drawn(pair, tmp_path):
    first, second = spin(pair), spin(pair)
    path = tmp_path / 'switch.json'
    bars = {}

    def drawn():
        pair.run('scadm', 'trace', '--seconds', 2, '-o', path)
        bars.clear()
        for event in json.loads(path.read_text())['traceEvents']:
            if event['ph'] == 'X' and event['cat'] == 'job':
                bars.setdefault(event['pid'], []).append((event['ts'], event['ts'] + event['dur'], event['tid']))
        return len(bars) == 2 and all(len(node) > 10 and {job for _, _, job in node} == {first, second}
                                      for node in bars.values()) and in_step()

    def in_step():  # cluster time: both nodes draw most slices at the same place; a busy machine delays some
        left, right = [[begin for begin, _, _ in node] for node in bars.values()]
        near = [begin for begin in left if min(abs(begin - other) for other in right) < 20_000]
        return len(near) > len(left) / 2
    wait_until(drawn, what=lambda: bars)
    for node in bars.values():
        for (_, end, _), (begin, _, _) in zip(sorted(node), sorted(node)[1:]):
            assert begin >= end - 0.01, 'two jobs at once on one core'


def test_perfetto_reads_that_slices_of_a_node_do_not_overlap(pair, tmp_path):
    jobs = [spin(pair), spin(pair)]
    path = tmp_path / 'switch.pftrace'
    bars = {}

    def drawn():
        pair.run('scadm', 'trace', '--seconds', 2, '-o', path)
        bars.clear()
        bars.update(job_bars(path.read_bytes()))
        return len(bars) == 2 and all(len(node) > 10 and {job for _, _, job in node} == {f'job {job}' for job in jobs}
                                      for node in bars.values())
    wait_until(drawn, what=lambda: bars)
    for node in bars.values():
        for (_, end, left), (begin, _, entered) in zip(sorted(node), sorted(node)[1:]):
            assert begin >= end and left != entered, (left, end, entered, begin)
