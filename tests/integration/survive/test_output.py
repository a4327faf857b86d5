"""Output while daemons restart. By hand: SCORE_KILLS=200."""
import os
import random
import time

from figures import figure
from workers import Workers

KILLS = int(os.environ.get('SCORE_KILLS', 12))


class Work(Workers):
    """Short jobs, one after the other; counts those that ended well without all of their output."""

    def __init__(self, cluster):
        super().__init__(2)
        self.cluster, self.count, self.lost = cluster, 0, []

    def run(self, _):
        while not self.is_over.is_set():
            result = self.cluster.run('scrun', '-q', '-N', 3, '--no-requeue', 'sh', '-c', 'sleep 0.2; echo x', code=None)
            self.count += 1
            if result.returncode == 0 and result.stdout != 'x\n' * 3:
                self.lost.append(result)


def kill_among_jobs(cluster, names):
    chance = random.Random(5)
    with Work(cluster) as work:
        for _ in range(KILLS):
            time.sleep(chance.uniform(0, 0.5))
            cluster.restart(chance.choice(names))
    cluster.wait_up()
    return work


def test_output_of_jobs_that_end_while_their_node_daemon_restarts(fresh):
    """A shepherd that is found again repeats what was not taken, and ends when it was taken."""
    cluster = fresh(3, '--slice', '10ms', '--cores', 2)
    work = kill_among_jobs(cluster, [f'node{number:02}' for number in range(3)])
    assert not work.lost, (len(work.lost), work.count, work.lost[:2])
    figure('F04', f'{KILLS} kills of node daemons, {work.count} jobs, no output lost')


def test_output_of_jobs_that_end_while_the_head_restarts(fresh):
    """What the head had got from a job that had just ended, and the front end had not, is lost with that head."""
    cluster = fresh(3, '--slice', '10ms', '--cores', 2)
    work = kill_among_jobs(cluster, ['head'])
    assert len(work.lost) <= KILLS / 4, (len(work.lost), work.count, work.lost[:2])
    figure('head-killed-output', f'{KILLS} kills of the head, {work.count} jobs, output of {len(work.lost)} lost')
