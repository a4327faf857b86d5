"""The ordinary jobs that each case of the tests runs: what a user would type, and what shows that it worked."""
import collections

from cluster import EXAMPLES

NODES = 4
POOL = 'import multiprocessing as m\nif __name__ == "__main__":\n  with m.Pool(2) as pool: print(sum(pool.map(abs, range(-9, 1))))'
SCRATCH = 'echo $SCORE_RANK > $SCORE_SCRATCH/$SCORE_RANK; until test $(ls $SCORE_SCRATCH | wc -l) = 4; do sleep 0.1; done; echo shared'
BATCH = '#!/bin/sh\n#SBATCH -N 4 -o %j.out\nscrun -n 4 echo step; scrun -N 4 sh -c "exit 0" && scrun -n 2 echo step > second; cat second\n'

Job = collections.namedtuple('Job', 'words output code lines input', defaults=[0, 0, None])


def job(*words, output='', code=0, lines=0, input=None):
    """output: a text that is in what the job prints; lines: in so many of its lines, 0: any number above 0."""
    return Job(list(map(str, words)), output, code, lines, input)


def jobs(directory):
    """By name. Files that they need or make are in `directory`."""
    mpich, open_mpi = EXAMPLES / 'ring', EXAMPLES / 'openmpi/ring'
    (directory / 'script.sh').write_text('#!/bin/bash\nfor word in a b; do echo $word$SCORE_RANK; done\n')
    (directory / 'script.sh').chmod(0o755)
    (directory / 'batch.sh').write_text(BATCH)
    (directory / 'pool.py').write_text(POOL)
    four = ['scrun', '-q', '-N', NODES]
    return {
        'program': job(*four, '/bin/echo', 'hello', output='hello', lines=4),
        'shell': job(*four, 'sh', '-c', 'sleep 1; echo on $SCORE_NODENAME', output='on node0', lines=4),
        'exit code': job(*four, 'sh', '-c', 'sleep 0.3; exit 3', code=3),
        'one rank fails': job(*four, 'sh', '-c', 'test $SCORE_RANK != 2 || exit 7; sleep 30', code=7),
        'script': job(*four, directory / 'script.sh', output='b', lines=4),
        'input': job('scrun', '-q', '-n', 2, '--input', 'all', 'cat', output='typed', lines=2, input='typed\n'),
        'output file': job(*four, '-o', directory / 'out-%t', 'sh', '-c', 'echo written'),
        'two programs': job('scrun', '-q', '-n', 2, 'echo', 'one', ':', '-n', 2, 'sh', '-c', 'echo one', output='one', lines=4),
        'python': job(*four, 'python3', '-c', 'import sys; sys.stdout.write("sum 21\\n")', output='sum 21', lines=4),
        'python pool': job('scrun', '-q', '-N', 2, 'python3', directory / 'pool.py', output='45', lines=2),
        'mpich': job(*four, mpich, output='correct', lines=1),
        'mpich in a shell': job(*four, 'sh', '-c', f'{mpich}; exit $?', output='4 ranks', lines=1),
        'openmpi': job(*four, open_mpi, output='correct', lines=1),
        'openmpi in a shell': job(*four, 'sh', '-c', f'{open_mpi}; exit $?', output='4 ranks', lines=1),
        'openmpi on PM': job(*four, '--net=pm', open_mpi, output='correct', lines=1),
        'batch': job('scbatch', '--wait', 'batch.sh'),
        'array': job('scbatch', '--wait', '--array', '0-3', '--wrap', 'sleep 0.1'),
        'allocation': job('scalloc', '-N', NODES, 'scrun', '-q', '-n', NODES, 'echo', 'inside', output='inside', lines=4),
        'terminal': job('scrun', '-q', '--pty', 'sh', '-c', 'test -t 0 && echo terminal', output='terminal', lines=1),
        'scratch': job(*four, '--scratch', '16M', 'sh', '-c', SCRATCH, output='shared', lines=4),
        'doctor': job('score', 'doctor', '--quick', output='nodes'),
        'info': job('score', 'info', output='4 up of 4'),
    }


def worked(job, code, out):
    lines = [line for line in out.splitlines() if job.output and job.output in line]
    return code == job.code and (not job.output or (len(lines) == job.lines if job.lines else bool(lines)))
