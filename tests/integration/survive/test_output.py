"""Output while daemons restart, and output that no one reads. By hand: SCORE_KILLS=200."""
import os
import pathlib
import random
import time

import pytest

from cluster import LIMIT, wait_until
from figures import figure
from login_users import other_user
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


UNREAD_JOBS, UNREAD_BYTES, UNREAD_NODES = 56, 300_000, 4  # a shepherd and its task's pipe hold as much
MOST_MB = 32  # a user's room is 16 MiB


def memory_mb(cluster, what):
    lines = pathlib.Path(f'/proc/{cluster.daemon("head")["pid"]}/status').read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(what))) / 1024


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to be two users')
def test_output_that_one_user_does_not_read_takes_little_memory(fresh):
    """It waits in the shepherds, other users' output goes on, and all of it comes when it is read."""
    cluster = fresh(UNREAD_NODES, '--cores', 16)
    with other_user(cluster) as user:
        place = pathlib.Path(user.place, 'printed')
        place.mkdir()
        place.chmod(0o777)
        script = f'yes | head -c {UNREAD_BYTES}; touch {place}/$SCORE_JOBID-$SCORE_RANK'
        words = ['scrun', '-q', '-N', UNREAD_NODES, 'sh', '-c', script]
        head = cluster.daemon('head')['pid']
        pathlib.Path(f'/proc/{head}/clear_refs').write_text('5')  # the peak begins here
        before = memory_mb(cluster, 'VmRSS')
        jobs = [cluster.start(*words, extra_env={'SCORED_SERVER': user.socket}, user=user.uid, group=user.account.pw_gid,
                              extra_groups=[], cwd='/') for _ in range(UNREAD_JOBS)]
        wait_until(lambda: len(list(place.iterdir())) == UNREAD_JOBS * UNREAD_NODES, what=cluster.logs)
        other = cluster.run('scrun', '-q', '-N', UNREAD_NODES, 'sh', '-c', f'yes | head -c {UNREAD_BYTES}')
        assert len(other.stdout) == UNREAD_NODES * UNREAD_BYTES
        grown = memory_mb(cluster, 'VmHWM') - before
        figure('unread-output', f'{UNREAD_JOBS} jobs on {UNREAD_NODES} nodes whose output no one reads: the head grows by {grown:.0f} MB')
        assert grown < MOST_MB
        for job in jobs:
            out, err = job.communicate(timeout=LIMIT)
            assert (job.returncode, len(out)) == (0, UNREAD_NODES * UNREAD_BYTES), (err, cluster.logs())
