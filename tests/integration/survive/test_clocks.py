"""Wall clocks of all nodes that step. By hand: SCORE_CLOCK_STEPS=500."""
import os
import random

from cluster import wait_until
from figures import figure
from progress import start_progress
from test_wall_clock import HOUR, JumpingClocks

STEPS = int(os.environ.get('SCORE_CLOCK_STEPS', 10))


def test_clocks_of_all_nodes_step_again_and_again(fresh, tmp_path):
    cluster = fresh(3, '--cores', 1, '--slice', '20ms')
    chance = random.Random(11)
    clocks = []
    try:
        for number in range(3):  # a clock per node: they also differ from each other
            place = tmp_path / f'clock{number}'
            place.mkdir()
            clocks.append(JumpingClocks(cluster, place))
            clocks[-1].take_over(f'node{number:02}')
        cluster.wait_up()
        jobs = [start_progress(cluster, tmp_path, name, 3, '--time', '1h', '--wall-time', '1h') for name in ('one', 'other')]
        for _ in range(STEPS):
            chance.choice(clocks).jump(chance.choice((HOUR, -HOUR, 300, -300, 0)))
            before = [counters.counter(rank) for _, counters in jobs for rank in range(3)]
            wait_until(lambda: all(counters.counter(rank) > before[3 * index + rank] for index, (_, counters) in enumerate(jobs)
                                   for rank in range(3)))
        assert cluster.run('scrun', '-q', '-N', 3, 'echo', 'x').stdout == 'x\n' * 3
        for job, _ in jobs:
            status = cluster.job(job)
            assert (status['state'], status['restarts']) == ('running', 0), status
        assert cluster.nodes_up() == 3
        cluster.cancel_all()
        figure('F11', f'{STEPS} steps of up to an hour on 3 nodes: no job ended, no node was lost')
    finally:
        for clock in clocks:
            clock.stop()
