"""score checkpoint and score restart: jobs whose tasks criu saves and restores."""
import json
import os
import pathlib
import shutil
import signal

import pytest
from cluster import Cluster, wait_until
from criu import skip_without_criu

# Counts in its memory, and appends each number to a file of its own.
COUNTER = '''
import os, sys, time
place = sys.argv[1] + '.' + os.environ['SCORE_RANK']
os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
number = 0
while not os.path.exists(sys.argv[1] + '.end'):
    number += 1
    with open(place, 'a') as out:
        out.write(f'{number}\\n')
    time.sleep(0.02)
print('rank', os.environ['SCORE_RANK'], 'ends', flush=True)
'''


@pytest.fixture(scope='module')
def saving():
    skip_without_criu()
    cluster = Cluster(2, '--slice', '50ms', '--cores', '4')
    yield cluster
    cluster.stop()


class Counters:
    """A job whose tasks count."""

    def __init__(self, cluster, directory, *words):
        self.cluster, self.place, self.directory = cluster, directory / 'count', directory
        (directory / 'counter.py').write_text(COUNTER)
        self.job = cluster.submit('--checkpoint-dir', directory / 'images', '-o', directory / 'out', *words,
                                  'python3', directory / 'counter.py', self.place)

    def numbers(self, rank):
        path = pathlib.Path(f'{self.place}.{rank}')
        return [int(word) for word in path.read_text().split()] if path.exists() else []

    def wait_for_more(self, ranks, more=10):
        before = {rank: len(self.numbers(rank)) for rank in ranks}
        wait_until(lambda: all(len(self.numbers(rank)) > before[rank] + more for rank in ranks),
                   what=lambda: self.cluster.logs())

    def save(self, *words):
        answer = self.cluster.json('score', 'checkpoint', self.job, *words)
        assert answer['error'] == '' and answer['image_bytes'] > 0, answer
        return pathlib.Path(answer['set'])

    def end(self):
        pathlib.Path(f'{self.place}.end').touch()


def goes_on_without_gap(numbers):
    return numbers == list(range(1, len(numbers) + 1))


def test_tasks_of_two_nodes_are_saved_stopped_and_restored(saving, tmp_path):
    job = Counters(saving, tmp_path, '-N', 2, '-n', 4)
    job.wait_for_more(range(4))
    saved = job.save('--stop')
    assert saving.wait_job(job.job, 'failed', 'cancelled', 'completed')['final']
    assert (saved / 'complete').exists() and {p.name for p in saved.iterdir()} == {'complete', 'job', 'node_0', 'node_1'}
    assert saved.stat().st_mode & 0o077 == 0
    last = {rank: len(job.numbers(rank)) for rank in range(4)}
    again = int(saving.run('score', 'restart', saved).stdout)
    assert again != job.job
    job.wait_for_more(range(4))
    assert all(goes_on_without_gap(job.numbers(rank)) for rank in range(4)), {rank: job.numbers(rank)[last[rank] - 2:] for rank in range(4)}
    assert saving.job(again)['state'] == 'running'
    job.end()
    saving.wait_job(again, 'completed')
    assert sorted((tmp_path / 'out').read_text().split('\n')[:4]) == [f'rank {rank} ends' for rank in range(4)]


def test_a_saved_job_goes_on_and_the_next_set_replaces_the_first(saving, tmp_path):
    job = Counters(saving, tmp_path, '-n', 1)
    job.wait_for_more([0])
    first = job.save()
    job.wait_for_more([0])
    second = job.save()
    assert not first.exists() and [p.name for p in second.parent.iterdir()] == [second.name]
    job.wait_for_more([0])
    job.end()
    saving.wait_job(job.job, 'completed')
    assert goes_on_without_gap(job.numbers(0))


def test_a_restored_job_is_saved_and_restored_again(saving, tmp_path):
    job = Counters(saving, tmp_path, '-N', 2, '-n', 2)
    for _ in range(3):
        job.wait_for_more([0, 1])
        saved = job.save('--stop')
        saving.wait_job(job.job, 'failed', 'cancelled', 'completed')
        job.job = int(saving.run('score', 'restart', saved).stdout)
    job.wait_for_more([0, 1])
    job.end()
    saving.wait_job(job.job, 'completed')
    assert all(goes_on_without_gap(job.numbers(rank)) for rank in [0, 1])


def test_a_batch_script_continues_in_its_files(saving, tmp_path):
    script = tmp_path / 'script'
    script.write_text('#!/bin/bash\necho begins\nfor i in $(seq 1 100000); do echo $i >> numbers; '
                      'test -e end && break; sleep 0.02; done\necho ends\n')
    job = int(saving.run('scbatch', '--checkpoint', '-o', 'out', script, cwd=tmp_path).stdout)
    numbers = tmp_path / 'numbers'
    wait_until(lambda: numbers.exists() and len(numbers.read_text().split()) > 10, what=saving.logs)
    saving.run('score', 'checkpoint', '--stop', job)
    saving.wait_job(job, 'failed', 'cancelled', 'completed')
    count = len(numbers.read_text().split())
    again = int(saving.run('score', 'restart', job, cwd=tmp_path).stdout)
    wait_until(lambda: len(numbers.read_text().split()) > count + 5, what=saving.logs)
    (tmp_path / 'end').touch()
    saving.wait_job(again, 'completed')
    found = [int(word) for word in numbers.read_text().split()]
    assert found == list(range(1, len(found) + 1))
    assert (tmp_path / 'out').read_text() == 'begins\nends\n'


def test_output_of_a_pipe_is_neither_lost_nor_repeated(saving, tmp_path):
    program = 'import os, time\nn = 0\nwhile not os.path.exists("end"):\n    n += 1\n    print(n, flush=True)\n    time.sleep(0.01)\n'
    first = saving.start('scrun', '--checkpoint', '-n', 1, 'python3', '-c', program, cwd=tmp_path)
    lines = [first.stdout.readline() for _ in range(20)]
    job = saving.json('scq', '--active')['jobs'][0]['job']
    saving.run('score', 'checkpoint', '--stop', job)
    lines += first.stdout.readlines()
    first.communicate()
    second = saving.start('score', 'restart', job, cwd=tmp_path)
    lines += [second.stdout.readline() for _ in range(20)]
    (tmp_path / 'end').touch()
    lines += second.stdout.readlines()
    second.communicate()
    assert second.returncode == 0
    assert lines == [f'{number}\n' for number in range(1, len(lines) + 1)]


def test_exit_codes_of_tasks_arrive(saving, tmp_path):
    assert saving.run('scrun', '--checkpoint', '-n', 2, 'sh', '-c', 'exit $((SCORE_RANK + 3))', cwd=tmp_path,
                      code=None).returncode in (3, 4)  # the first rank to fail may end the other
    assert saving.run('scrun', '--checkpoint', 'sh', '-c', 'kill -9 $$', cwd=tmp_path, code=None).returncode == 137
    assert saving.run('scrun', '--checkpoint', 'sh', '-c', 'echo $$', cwd=tmp_path).stdout.strip().startswith('40')


def refused(cluster, *words, **options):
    result = cluster.run(*words, code=None, **options)
    assert result.returncode != 0, result
    return result.stderr


def test_what_cannot_be_saved_is_said(saving, tmp_path):
    plain = saving.submit('sleep', 1000)
    saving.wait_job(plain, 'running')
    assert 'was not started with --checkpoint' in refused(saving, 'score', 'checkpoint', plain)
    assert 'a terminal (--pty) cannot be saved' in refused(saving, 'scrun', '--checkpoint', '--pty', 'true', cwd=tmp_path)
    assert 'PMIx' in refused(saving, 'scrun', '--checkpoint', '--mpi=pmix', 'true', cwd=tmp_path)
    assert 'no complete set' in refused(saving, 'score', 'restart', tmp_path)
    full = tmp_path / 'file'
    full.touch()
    job = saving.submit('--checkpoint-dir', full, 'sleep', 1000)
    saving.wait_job(job, 'running')
    assert 'is not saved and goes on: ' in refused(saving, 'score', 'checkpoint', job)
    assert saving.job(job)['state'] == 'running'
    saving.run('score', 'suspend', job)
    assert 'is suspended; resume it first' in refused(saving, 'score', 'checkpoint', job)


@pytest.mark.parametrize('damage', ['image', 'list', 'mark', 'nodes'])
def test_damaged_sets_are_refused_and_left_alone(saving, tmp_path, damage):
    job = Counters(saving, tmp_path, '-n', 1)
    job.wait_for_more([0])
    saved = job.save('--stop')
    saving.wait_job(job.job, 'failed', 'cancelled', 'completed')
    if damage == 'image':
        image = next((saved / 'node_0').glob('pages-*.img'))
        data = bytearray(image.read_bytes())
        data[len(data) // 2] ^= 1
        image.write_bytes(data)
    elif damage == 'list':
        (saved / 'node_0/list').write_text('')
    elif damage == 'mark':
        (saved / 'complete').rename(saved / 'incomplete')
    else:
        shutil.rmtree(saved / 'node_0')
    before = sorted(path.name for path in saved.rglob('*'))
    result = saving.run('score', 'restart', saved, code=None)
    if result.returncode == 0:
        ended = int(result.stdout)
        wait_until(lambda: saving.job(ended)['final'])
        assert saving.job(ended)['state'] == 'launch-failed', saving.job(ended)
        assert any('cannot restore' in reason for reason in saving.job(ended)['reasons']), saving.job(ended)
    assert sorted(path.name for path in saved.rglob('*')) == before


def test_a_killed_criu_costs_only_the_set(saving, tmp_path):
    job = Counters(saving, tmp_path, '-n', 2)
    job.wait_for_more(range(2))
    command = saving.start('score', 'checkpoint', job.job)
    found = []

    def is_there():
        for entry in pathlib.Path('/proc').iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / 'cmdline').read_bytes().split(b'\0')
                except OSError:
                    continue
                if b'dump' in words and b'--leave-running' in words:
                    found.append(int(entry.name))
                    return True
        return command.poll() is not None

    wait_until(is_there)
    for process in found:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    command.communicate()
    job.wait_for_more(range(2))
    assert all(goes_on_without_gap(job.numbers(rank)) for rank in range(2))
    assert json.loads(saving.run('score', 'job', job.job, '--json').stdout)['job']['state'] == 'running'


def test_without_criu_the_job_is_refused_in_one_line(fresh, tmp_path):
    if os.geteuid() != 0:
        pytest.skip('needs root')
    cluster = fresh(1, environment=dict(os.environ, SCORED_CRIU='/nonexistent/criu'))
    result = cluster.run('scrun', '--checkpoint', 'true', cwd=tmp_path, code=None)
    assert result.returncode == 125 and 'criu 4.1 or later' in result.stderr, result


def sets_of(job):
    return sorted(path.parent.name for path in (job.directory / 'images' / f'job_{job.job}').glob('*/complete'))


def test_a_job_is_saved_again_and_again(saving, tmp_path):
    job = Counters(saving, tmp_path, '-N', 2, '-n', 2, '--checkpoint-every', '1s')
    found = set()

    def has_three():
        found.update(sets_of(job))
        return len(found) >= 3

    wait_until(has_three, what=saving.logs)
    job.end()
    saving.wait_job(job.job, 'completed')
    assert len(sets_of(job)) == 1
    assert all(goes_on_without_gap(job.numbers(rank)) for rank in [0, 1])
    refusal = saving.run('scrun', '--checkpoint-every', '0', 'true', code=None, cwd=tmp_path)
    assert refusal.returncode != 0 and '--checkpoint-every' in refusal.stderr


def continues_from_a_set(numbers):
    """Numbers after the last save may be counted again, and the count never begins anew."""
    return numbers.count(1) == 1 and all(number <= before + 1 for before, number in zip(numbers, numbers[1:]))


def test_a_requeued_job_continues_from_its_last_set(saving, tmp_path):
    job = Counters(saving, tmp_path, '-N', 2, '-n', 2, '--requeue')
    job.wait_for_more([0, 1])
    job.save()
    job.wait_for_more([0, 1])
    for count in [1, 2]:
        saving.run('score', 'requeue', job.job)
        wait_until(lambda: saving.job(job.job)['restarts'] == count, what=lambda: str(saving.job(job.job)))
        job.wait_for_more([0, 1])
    job.end()
    saving.wait_job(job.job, 'completed')
    assert all(continues_from_a_set(job.numbers(rank)) for rank in [0, 1]), job.numbers(0)


def test_a_job_that_lost_a_node_continues_from_its_last_set(fresh, tmp_path):
    skip_without_criu()
    cluster = fresh(3, '--slice', '50ms', '--cores', '4')
    job = Counters(cluster, tmp_path, '-N', 2, '-n', 2, '--requeue')
    job.wait_for_more([0, 1])
    job.save()
    job.wait_for_more([0, 1])
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    cluster.kill(cluster.job(job.job)['nodes'][1])
    wait_until(lambda: cluster.job(job.job)['restarts'] == 1, what=cluster.logs)
    job.wait_for_more([0])
    job.end()
    cluster.wait_job(job.job, 'completed')
    assert continues_from_a_set(job.numbers(0)), job.numbers(0)  # tasks of the lost node may count for a while
