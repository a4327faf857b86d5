"""Ordinary programs under shepherds of four nodes that lack an optional part: each works, or ends with a line that
names the part. No daemons take part: shepherd_run plays launcher, node daemons and head."""
import collections
import os
import pathlib
import re
import shutil
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get('SCORE_BUILD', 'build/release')).resolve()
EXAMPLES = pathlib.Path(os.environ.get('SCORE_EXAMPLES', BUILD / 'examples')).resolve()
WITHOUT_CALLS = pathlib.Path(os.environ.get('SCORE_WITHOUT_CALLS', BUILD / 'test/without_calls')).resolve()
RUN = BUILD / 'test/shepherd_run'
HIDE = pathlib.Path(__file__).resolve().parent / 'hide.sh'
PROGRAMS = ['scored-shepherd', 'scored-pmix']
LIMIT = 120  # seconds; only a fault takes that long
POOL = 'import multiprocessing as m\nwith m.Pool(2) as pool: print("pool", sum(pool.map(abs, range(-9, 1))))'
MPICH, OPEN_MPI = EXAMPLES / 'ring', EXAMPLES / 'openmpi/ring'

Job = collections.namedtuple('Job', 'words output lines code', defaults=[0])
JOBS = {
    'shell': Job(['sh', '-c', 'sleep 0.3; echo on $SCORE_NODENAME'], 'on node', 4),
    'exit code': Job(['sh', '-c', 'test $SCORE_RANK = 2 || exit 0; sleep 0.3; exit 7'], '', 0, 7),
    'python': Job(['python3', '-c', 'print("sum", sum(range(7)))'], 'sum 21', 4),
    'python pool': Job(['python3', '-c', POOL], 'pool 45', 4),
    'mpich': Job([MPICH], 'ring: 4 ranks', 1),
    'mpich in a shell': Job(['sh', '-c', f'{MPICH}; exit $?'], 'ring: 4 ranks', 1),
    'openmpi': Job([OPEN_MPI], 'ring: 4 ranks', 1),
    'openmpi in a shell': Job(['sh', '-c', f'{OPEN_MPI}; exit $?'], 'ring: 4 ranks', 1),
}
NO_PMIX = 'no PMIx.*: scored-pmix is not installed.*: install the package scored-node, or build with libpmix-dev'
# Without a part, jobs whose names match the first pattern end with a line that matches the second one.
NEEDED_BY = {
    'scored-pmix': ('openmpi', NO_PMIX),
    'mpich': ('mpich', r'libmpich\.so\.12: cannot open shared object file'),
    'openmpi': ('openmpi', r'libmpi\.so\.40: cannot open shared object file'),
    'python3': ('python', 'executable python3: not found in PATH'),
    'shm': ('mpich|python pool', '/dev/shm|_semlock'),
}
HIDDEN = ['mpich', 'openmpi', 'python3', 'shm', 'fuse', 'fusermount3', 'cgroup', 'systemd']
CALLS = ['pidfd', 'io_uring', 'ipv6']
NICE = ['setpriv', '--bounding-set', '-sys_nice', '--inh-caps', '-sys_nice']


def words_without(part):
    """Returns the words that start a program without the part."""
    if part in HIDDEN:
        return ['unshare', '-m', HIDE, part, '--']
    if part in CALLS:
        return [WITHOUT_CALLS, part, '--']
    return NICE if part == 'CAP_SYS_NICE' else []


@pytest.fixture(scope='module')
def trees(tmp_path_factory):
    """Directories 'whole' and 'lacking', where scored-pmix is not; 'mixed' is lacking for one node."""
    if os.geteuid() != 0 or subprocess.run(['unshare', '-m', 'true'], check=False).returncode != 0:
        pytest.skip('needs root and mount namespaces')
    for program in [RUN, WITHOUT_CALLS, MPICH, OPEN_MPI, *[BUILD / 'bin' / name for name in PROGRAMS]]:
        if not program.exists():
            pytest.skip(f'{program} is not built')
    base = tmp_path_factory.mktemp('trees')
    for tree, names in [('whole', PROGRAMS), ('lacking', PROGRAMS[:1])]:
        (base / tree).mkdir()
        for name in names:
            shutil.copy2(BUILD / 'bin' / name, base / tree / name)
    (base / 'mixed').mkdir()
    script = base / 'mixed/scored-shepherd'
    script.write_text(f'#!/bin/sh\ntree=whole\n[ "$1" != shepherd ] || ! rmdir {base}/turn 2>/dev/null || tree=lacking\n'
                      f'exec {base}/$tree/scored-shepherd "$@"\n')
    script.chmod(0o755)
    yield base
    shutil.rmtree(base)


def run(base, tree, before, job):
    if tree == 'mixed':
        (base / 'turn').mkdir(exist_ok=True)
    environment = dict(os.environ, SCORED_SHEPHERD=str(base / tree / 'scored-shepherd'),
                       PATH='/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin')
    return subprocess.run([*before, RUN, '4', '1', *job.words], env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=LIMIT, check=False)


def faults(base, tree, part, jobs=JOBS):
    """Yields a line for each job that ended as it should not."""
    needed_by, pattern = NEEDED_BY.get(part, ('nothing', ''))
    for name, job in jobs.items():
        done = run(base, tree, words_without(part), job)
        printed = sum(job.output in line for line in done.stdout.splitlines()) if job.output else 0
        has_worked = printed == job.lines and done.returncode == job.code
        is_explained = re.match(needed_by, name) and re.search(pattern, done.stdout + done.stderr)
        if not has_worked and not is_explained:
            yield f'{name}: {done}'


@pytest.mark.parametrize('part', ['nothing', *HIDDEN, *CALLS, 'CAP_SYS_NICE'])
def test_programs_work_or_name_the_part_that_all_nodes_lack(trees, part):
    assert not list(faults(trees, 'whole', part))


def test_programs_work_or_name_pmix_that_all_nodes_lack(trees):
    assert not list(faults(trees, 'lacking', 'scored-pmix'))


# shepherd_run gathers fences of PMI-1 and PMIx in one order, so a job may have but one of them here.
def test_programs_work_or_name_pmix_that_one_node_lacks(trees):
    assert not list(faults(trees, 'mixed', 'scored-pmix', {name: job for name, job in JOBS.items() if 'mpich' not in name}))
