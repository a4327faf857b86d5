"""One user does all at once that the shares and budgets allow (docs/reference/limits.md, ADR 107, 108, 122); others go on.

`SCORE_HOSTILE_SECONDS=60` is the long form."""
import contextlib
import os
import pathlib
import socket
import subprocess
import time

import pytest
from cluster import LIMIT, wait_until
from crowd import Other
from figures import figure
from frames import Schema, read_frame
from login_users import other_user
from test_fences import lost_links, memory_mb
from test_places import Hostile, launches, running

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to be two users')

SCHEMA = Schema()
NODES = 8
SECONDS = float(os.environ.get('SCORE_HOSTILE_SECONDS', 5))
MOST_MB = 128
UNREAD_JOBS, UNREAD_BYTES = 12, 400_000
VIEWERS = 20


def start_as(user, *words):
    """A command of the hostile user whose output no one reads."""
    return user.cluster.start(*words, extra_env={'SCORED_SERVER': user.socket}, user=user.uid, group=user.account.pw_gid,
                              extra_groups=[], cwd='/')


class Viewers:
    """Watch the cluster at the highest rate and read nothing."""

    def __init__(self, user):
        self.user, self.pid = user, 0

    def __enter__(self):
        self.pid = os.fork()
        if self.pid:
            return self
        try:
            os.setgroups([])
            os.setresgid(*[self.user.account.pw_gid] * 3)
            os.setresuid(*[self.user.uid] * 3)
            peers = []
            for _ in range(VIEWERS):
                peer = socket.socket(socket.AF_UNIX)
                peer.settimeout(LIMIT)
                peer.connect(self.user.socket)
                peer.sendall(SCHEMA.frame('ClientHello', lowest_version=1, highest_version=1))
                read_frame(peer)
                peer.sendall(SCHEMA.frame('WatchCluster', tag=1, query=b'rate=10', follow=1))
                peers.append(peer)
            time.sleep(3600)
        finally:
            os._exit(1)

    def __exit__(self, *_):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def puts(user):
    """Jobs, one after the other, each of whose tasks puts as much through PMI as it may."""
    source = pathlib.Path(__file__).with_name('pmi_put.c')
    program = pathlib.Path(user.place, 'pmi_put')
    subprocess.run(['cc', '-O2', '-o', program, source], check=True)
    program.chmod(0o755)
    job = f'scrun -q -N {NODES} -n {2 * NODES} --mpi pmi1 --overcommit {program} 250000 1 0'
    return start_as(user, 'sh', '-c', f'while :; do {job} >/dev/null 2>&1 || sleep 0.2; done')


def overlapping_steps(user, hostile):
    script = pathlib.Path(user.place, 'script')
    script.write_text('#!/bin/sh\nexec sleep 3000\n')
    job = int(user.run('scbatch', '-N', 2, '-o', '/dev/null', script).stdout)
    user.cluster.wait_job(job, 'running')
    hostile.flood([b'sleep', b'3000'], count=40, nodes=2, inside=job, overlap=1)


def events(cluster):
    return (cluster.directory / 'log' / 'head').read_text(errors='replace')


def test_a_user_who_tries_everything_at_once_keeps_no_one_out(fresh):
    cluster = fresh(NODES, '--cores', 4)
    with other_user(cluster) as user, contextlib.ExitStack() as attacks:
        kept = cluster.submit('-N', NODES, 'sleep', 3000)
        cluster.wait_job(kept, 'running')
        quiet = launches(cluster)
        head = cluster.daemon('head')['pid']
        pathlib.Path(f'/proc/{head}/clear_refs').write_text('5')  # the peak begins here
        before, log = memory_mb(cluster, 'VmRSS'), len(events(cluster))
        hostile = Hostile(user)
        hostile.flood([b'sh', b'-c', b'while :; do :; done'], count=3, nodes=NODES, overlay=1)
        overlapping_steps(user, hostile)
        loops = [puts(user)]
        attacks.enter_context(Viewers(user))
        unread = [start_as(user, 'scrun', '-q', '-N', NODES, 'sh', '-c', f'yes | head -c {UNREAD_BYTES}') for _ in range(UNREAD_JOBS)]
        crowd = Other(cluster, user.uid, 'flood', SECONDS, 8, kept)
        wait_until(lambda: len(running(cluster, user.uid)) >= 5)
        end, attacked = time.monotonic() + SECONDS, []
        while time.monotonic() < end or not attacked:
            attacked.append(launches(cluster))
        crowd.end()
        grown = memory_mb(cluster, 'VmHWM') - before
        new = events(cluster)[log:]
        figure('hostile-user', f'scrun -N 2 true p99 {quiet * 1e3:.0f} ms alone, {max(attacked) * 1e3:.0f} ms beside a user who tries '
               f'everything ({max(attacked) / quiet:.1f} times); the head grows by {grown:.0f} MB')
        assert grown < MOST_MB
        assert cluster.job(kept)['state'] == 'running'
        assert cluster.nodes_up() == NODES
        assert 'suspect' not in new and lost_links(cluster) == 0, new[-4000:]
        for process in loops + unread:
            process.kill()
            process.communicate()
        cluster.cancel(kept)
        hostile.leave()
