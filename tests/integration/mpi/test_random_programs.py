"""Random MPI programs: none that can proceed is called deadlocked, and every deadlock is found.

SCORE_RANDOM_PROGRAMS is the number of programs, SCORE_RANDOM_SEED the first seed.
"""
import os
import pathlib
import random

import mpis
import pytest

COUNT = int(os.environ.get('SCORE_RANDOM_PROGRAMS', 8))
FIRST = int(os.environ.get('SCORE_RANDOM_SEED', 1000))
AT_ONCE = 4
LONG_SLEEP = 8  # seconds; a deadlock is suspected after 5
LIMIT = 300
DEADLOCKED = 125  # exit code with --kill-deadlock


def start(cluster, program, seed):
    chance = random.Random(seed)
    ranks = chance.randint(1, 8)
    nodes = chance.randint(1, min(ranks, 3))
    how = ('-N', nodes, '-n', ranks, '--overcommit')
    return seed, how, cluster.start('scrun', '--net=pm', '--kill-deadlock', *how, program, seed, LONG_SLEEP)


def problem_of(seed, how, job):
    out, err = job.communicate(timeout=LIMIT)
    expected = DEADLOCKED if seed % 2 == 1 else 0
    is_right = job.returncode == expected and (expected != 0 or out == 'done\n')
    return None if is_right else f'seed {seed} {how}: exit {job.returncode}, {out}{err}'


@pytest.mark.parametrize('mpi', mpis.ON_OFI)
def test_exactly_the_deadlocks_of_random_programs_are_found(few, mpi, tmp_path):
    mpis.need_watched_calls()
    source = (pathlib.Path(__file__).parent / 'random_program.c').read_text()
    program = mpis.build(mpi, source, tmp_path)
    seeds = range(FIRST, FIRST + COUNT)
    problems = []
    for first in range(0, COUNT, AT_ONCE):
        jobs = [start(few, program, seed) for seed in seeds[first:first + AT_ONCE]]
        problems += [problem_of(*job) for job in jobs]
    assert not [problem for problem in problems if problem]
