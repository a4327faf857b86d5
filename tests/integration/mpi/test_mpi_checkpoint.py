"""Programs of MPI and PM that are saved, killed and restarted: their results must be those of an undisturbed run."""
import json
import os
import pathlib
import random

import mpis
import pytest
from cluster import EXAMPLES, Cluster, wait_until
from criu import skip_without_criu

SOURCE = (pathlib.Path(__file__).parent / 'checked_rounds.c').read_text()
ENDED = ('failed', 'cancelled', 'completed', 'launch-failed')


@pytest.fixture(scope='module')
def saving():
    skip_without_criu()
    cluster = Cluster(4, '--slice', '50ms', '--cores', '4')
    yield cluster
    cluster.stop()


class Rounds:
    """A job of checked rounds; `words` are options of scrun, `far` keeps MPICH from its own shared memory."""

    def __init__(self, cluster, directory, mpi, count, words, far=True):
        self.cluster, self.progress, self.out = cluster, directory / 'progress', directory / 'out'
        program = mpis.build(mpi, SOURCE, directory)
        self.environment = {'MPIR_CVAR_NOLOCAL': '1'} if far else {}
        self.command = [*words, program, count]
        self.expected = cluster.run('scrun', *self.command, directory / 'undisturbed', extra_env=self.environment).stdout
        assert f'{count} rounds, result ' in self.expected
        self.job = cluster.submit('--checkpoint-dir', directory / 'images', '-o', self.out, *self.command, self.progress,
                                  extra_env=self.environment)

    def notes(self):
        return self.progress.read_text().split() if self.progress.exists() else []

    def is_over(self):
        return self.cluster.job(self.job)['final']

    def wait_for_more(self, more=2):
        before = len(self.notes())
        wait_until(lambda: len(self.notes()) > before + more or self.is_over(), what=self.cluster.logs)

    def save(self, *words):
        """Returns the set; nothing if the job has ended before."""
        answer = {'error': 'try again'}
        while 'try again' in answer['error']:
            result = self.cluster.run('score', 'checkpoint', self.job, *words, '--json', code=None)
            if not result.stdout:
                assert self.is_over(), result
                return None
            answer = json.loads(result.stdout)
        assert answer['error'] == '' or self.is_over(), (answer, self.cluster.logs())
        return answer['set'] or None

    def restart(self, saved):
        self.job = int(self.cluster.run('score', 'restart', saved).stdout)

    def check_result(self):
        self.cluster.wait_job(self.job, *ENDED)
        assert self.cluster.job(self.job)['state'] == 'completed', (self.cluster.job(self.job), self.cluster.logs())
        # What was printed after the last save is printed again after a restart.
        assert set(self.out.read_text().splitlines(True)) == {self.expected}


@pytest.mark.parametrize('mpi, nodes, tasks, far', [('mpich5', 1, 2, True), ('mpich5', 1, 3, False), ('mpich5', 2, 4, True),
                                                    ('mpich5', 4, 4, False)])
def test_mpi_on_pm_continues_after_a_restart(saving, tmp_path, mpi, nodes, tasks, far):
    job = Rounds(saving, tmp_path, mpi, 1500, ['-N', nodes, '-n', tasks, '--net=pm'], far)
    job.wait_for_more()
    saved = job.save('--stop')
    assert saved, saving.logs()
    saving.wait_job(job.job, *ENDED)
    job.restart(saved)
    job.wait_for_more()
    saved = job.save('--stop')
    assert saved, saving.logs()
    saving.wait_job(job.job, *ENDED)
    job.restart(saved)
    job.check_result()


def test_mpi_over_ucx_is_refused_and_goes_on(saving, tmp_path):
    job = Rounds(saving, tmp_path, 'mpich4', 1500, ['-n', 2], far=False)
    job.wait_for_more()
    result = saving.run('score', 'checkpoint', job.job, code=None)
    assert result.returncode != 0 and 'is not saved and goes on: node0' in result.stderr, result
    job.check_result()


@pytest.mark.parametrize('seed', range(int(os.environ.get('SCORE_CHECKPOINT_KILLS', '6')) // 3))
def test_jobs_killed_at_random_moments_continue_from_the_last_set(saving, tmp_path, seed):
    """Each job is saved and killed three times before it may end."""
    dice = random.Random(seed)
    nodes = dice.choice([1, 2, 4])
    job = Rounds(saving, tmp_path, 'mpich5', 4000, ['-N', nodes, '-n', 2 * nodes, '--net=pm'])
    saved, kills = None, 0
    while kills < 3 and not job.is_over():
        for _ in range(dice.randrange(1, 3)):
            job.wait_for_more(dice.randrange(4))
            saved = job.save() or saved
        job.wait_for_more(dice.randrange(6))
        if saved is None or job.is_over():
            break
        saving.cancel(job.job)
        job.restart(saved)
        kills += 1
    print(f'{kills} kills')
    job.check_result()
