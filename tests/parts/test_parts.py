"""Ordinary jobs on a cluster whose nodes lack an optional part: each works, or ends with a line that names the part
and the remedy. One cluster of four nodes serves all cases: its daemons are restarted with what they are to lack."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess

import cluster as virtual
import jobs
import pytest
import tree

BUILD = pathlib.Path(os.environ.get('SCORE_BUILD', virtual.BIN.parent))
WITHOUT_CALLS = pathlib.Path(os.environ.get('SCORE_WITHOUT_CALLS', BUILD / 'test/without_calls'))
NODES = [f'node{index:02}' for index in range(jobs.NODES)]
LIMIT = 120  # seconds that a job may take; only one that hangs takes that long
AT_ONCE = 6

# Without a part, jobs whose names match the first pattern may fail with a line that matches the second one.
MAY_FAIL = {
    'scored-pmix': ('openmpi', 'scored-pmix is not installed.*: install the package scored-node, or build with libpmix-dev'),
    'scored-pario': ('scratch', 'scored-pario is not installed on this node: install the package scored-pario'),
    'scored-pario-mount': ('scratch', 'scored-pario-mount is not installed on this node: install the package scored-pario'),
    'scored-scratch-directory': ('scratch', 'scored-scratch-directory is not installed on this node: install the package scored-node'),
    'libpm-fi': ('on PM', 'no libpm-fi.so on this node: install the package libpm-fi1'),
    'fuse': ('scratch', 'no access to /dev/fuse on this node: load the kernel module fuse'),
    'fusermount3': ('scratch', 'fusermount3 is missing on this node: install the package fuse3'),
    'mpich': ('mpich', r'libmpich\.so\.12: cannot open shared object file'),
    'openmpi': ('openmpi', r'libmpi\.so\.40'),
    'python3': ('python', 'executable python3: not found in PATH'),
    'shm': ('mpich|python pool', '/dev/shm|_semlock'),
}
PARTS = [part for part in tree.PARTS if part != 'cgroup']  # a cluster's own cgroup must be there: see test_virtual.py
CASES = [((part,), where) for part in PARTS for where in ('all', 'one')] + [(tuple(PARTS), 'all')]


class Parts:
    """The cluster, and what its nodes lack."""

    def __init__(self, base):
        self.tree = tree.Tree(base, BUILD, WITHOUT_CALLS)
        (base / 'work').mkdir()
        self.jobs = jobs.jobs(base / 'work')
        self.before, virtual.BIN = virtual.BIN, self.tree.bin
        path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
        self.cluster = virtual.Cluster(jobs.NODES, '--slice', '20ms', '--cores', 2, '--memory', '2G', '--scratch', '256M',
                                       environment=dict(os.environ, PATH=path))
        self.cluster.env['PATH'] = f'{self.tree.bin}:{path}'
        self.lacking = []

    def stop(self):
        try:
            self.cluster.stop()
        finally:
            virtual.BIN = self.before

    def take_away(self, parts, names):
        """Restarts these daemons ('head' or nodes) without the parts, and those that lacked any with all."""
        for name in {*self.lacking, *names}:
            self.tree.take_away(name, parts if name in names else ())
            for daemon in [name] if name == 'head' else ['launcher-' + name, name]:
                self.cluster.restart(daemon)
        self.lacking = list(names)
        self.cluster.wait_up(limit=60)

    def run(self, name, before=()):
        """(code, out, err) of a job; the code is 'hangs' if it does. before: words before the command."""
        job = self.jobs[name]
        process = subprocess.Popen([*before, self.tree.bin / job.words[0], *job.words[1:]], env=self.cluster.env, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.tree.base / 'work', start_new_session=True)
        try:
            out, err = process.communicate(job.input, timeout=LIMIT)
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return ('hangs', *process.communicate())

    def run_all(self, before=()):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            done = threads.map(lambda name: self.run(name, before), self.jobs)
            return dict(zip(self.jobs, done))


@pytest.fixture(scope='module')
def parts(tmp_path_factory):
    if os.geteuid() != 0 or subprocess.run(['unshare', '-m', 'true'], check=False).returncode != 0:
        pytest.skip('needs root and mount namespaces')
    if not WITHOUT_CALLS.exists():
        pytest.skip(f'{WITHOUT_CALLS} is not built')
    base = tmp_path_factory.mktemp('parts')
    base.chmod(0o755)
    made = Parts(base)
    yield made
    made.stop()
    shutil.rmtree(base)


def allowed(lacking, name):
    """Patterns of lines with which the job may end."""
    return [MAY_FAIL[part][1] for part in lacking if part in MAY_FAIL and re.search(MAY_FAIL[part][0], name)]


def faults(results, lacking, all_jobs):
    """Yields a line for each job that ended as it should not."""
    for name, (code, out, err) in results.items():
        if jobs.worked(all_jobs[name], code, out):
            continue
        patterns = allowed(lacking, name)
        if code == 'hangs' or code == 0 or not any(re.search(pattern, err) for pattern in patterns):
            yield f'{name}: {code}, expected one of {patterns}\n  out: {out[-300:]!r}\n  err: {err[-900:]!r}'


def test_all_jobs_work_where_nothing_is_missing(parts):
    assert not list(faults(parts.run_all(), (), parts.jobs))


@pytest.mark.parametrize('lacking,where', CASES, ids=lambda value: value if isinstance(value, str) else
                         (value[0] if len(value) == 1 else 'everything'))
def test_jobs_work_or_name_the_missing_part(parts, lacking, where):
    parts.take_away(lacking, ['head', *NODES] if where == 'all' else [NODES[1]])
    results = parts.run_all(parts.tree.words_without(lacking) if where == 'all' else ())
    assert not list(faults(results, lacking, parts.jobs))
    assert not parts.cluster.json('scq', '--active')['jobs']
