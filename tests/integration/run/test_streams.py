"""scrun's streams and terminal: output, input, lines of many ranks, interrupts, readers that go away."""
import os
import pty
import re
import signal
import subprocess
import time

import pytest
from cluster import LIMIT, wait_until


def test_errors_are_printed_though_quiet(few):
    result = few.run('scrun', '-q', '-n', 2, 'sh', '-c', 'exit 3', code=3)
    assert 'exited with 3' in result.stderr


def test_output_files(few, tmp_path):
    few.run('scrun', '-n', 3, '-o', tmp_path / 'out-%t', '-e', tmp_path / 'err-%j', 'sh', '-c',
            'echo out $SCORE_RANK; echo err >&2')
    assert [(tmp_path / f'out-{i}').read_text() for i in range(3)] == [f'out {i}\n' for i in range(3)]


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


def test_input_for_a_missing_rank_is_refused(few):
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


def test_interrupts_are_forwarded_on_request(few):
    process = few.start('scrun', '--forward-interrupt', 'sh', '-c', 'trap "echo got; exit 4" INT; echo on; while :; do sleep 0.05; done')
    assert process.stdout.readline() == 'on\n'
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LIMIT)
    assert (out, process.returncode) == ('got\n', 4)


def test_the_end_is_reported_after_the_last_output(few):
    result = few.run('scrun', 'sh', '-c', 'echo out; exit 3', code=3, stderr=subprocess.STDOUT)
    assert result.stdout.splitlines()[0] == 'out' and 'exited with 3' in result.stdout.splitlines()[1]


def test_a_full_disk_ends_the_job(few):
    with open('/dev/full', 'w') as full:
        result = few.run('scrun', 'sh', '-c', 'echo $SCORE_JOBID >&2; echo x; sleep 60', code=125, stdout=full)
        assert 'No space left' in result.stderr
        listed = few.run('scq', code=125, stdout=full)
    assert listed.stderr == 'cannot write to standard output: No space left on device\n'
    job = next(word for word in result.stderr.split() if word.isdigit())
    assert few.job(job)['state'] == 'cancelled'
