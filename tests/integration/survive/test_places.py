"""One user takes all places of the nodes that the shares allow; others go on (docs/reference/limits.md)."""
import os
import pathlib
import secrets
import socket
import time

import pytest
from cluster import LIMIT, wait_until
from figures import figure
from frames import Schema, read_frame
from login_users import other_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to be two users')

SCHEMA = Schema()
NODES, FLOOD = 8, 270  # more than a node has places
SCOUTS_OF_USER = 32
NORMAL = 2  # the queue
LAUNCHES = int(os.environ.get('SCORE_LAUNCHES', 30))


class Hostile:
    """Submits jobs through the login socket, as the other user and without waiting for them."""

    def __init__(self, user):
        self.user, self.taken = user, 0

    def leave(self):
        """Ends all jobs, and waits until their processes are gone from the nodes."""
        self.user.run('sccancel', '--all', '--grace', '0', code=None)  # steps may end with their job
        tree = pathlib.Path(self.user.cluster.description['cgroup'] or '/none')
        wait_until(lambda: not list(tree.glob('*/job_*')))

    def ask(self, peer, *frame, **values):
        peer.sendall(SCHEMA.frame(*frame, **values))
        return read_frame(peer)

    def flood(self, argv, count=FLOOD, **resources):
        """Until one is refused, which is the limit of steps per job or of jobs per user."""
        pid = os.fork()
        if pid:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            return
        try:
            os.setgroups([])
            os.setresgid(self.user.account.pw_gid, self.user.account.pw_gid, self.user.account.pw_gid)
            os.setresuid(self.user.uid, self.user.uid, self.user.uid)
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(LIMIT)
                peer.connect(self.user.socket)
                self.ask(peer, 'ClientHello', lowest_version=1, highest_version=1)
                for _ in range(count):
                    kind, answer = self.ask(peer, 'Submit', tag=2, request_id=secrets.token_bytes(16), detached=1,
                                       resources={'tasks_per_node': 1, 'queue': NORMAL, **resources},
                                       spec={'programs': [{'argv': argv}], 'env': [b'PATH=/bin:/usr/bin'], 'directory': b'/'})
                    assert kind == SCHEMA.frames['Submitted'][0], answer
            os._exit(0)
        except BaseException as error:
            print('the hostile user:', error, flush=True)
        finally:
            os._exit(1)


def running(cluster, uid):
    return [job for job in cluster.json('scq', '-a', '--steps')['jobs'] if job['state'] == 'running' and job['uid'] == uid]


def launches(cluster):
    """The p99 of the times of `scrun -N 2 true`, in seconds."""
    times = []
    for _ in range(LAUNCHES):
        began = time.monotonic()
        cluster.run('scrun', '-N', 2, 'true')
        times.append(time.monotonic() - began)
    return sorted(times)[len(times) * 99 // 100]


def test_a_user_with_all_places_keeps_no_one_out(fresh):
    cluster = fresh(NODES)
    with other_user(cluster) as user:
        quiet = launches(cluster)
        hostile = Hostile(user)
        hostile.flood([b'sleep', b'3000'], nodes=NODES, overlay=1)
        wait_until(lambda: len(running(cluster, user.uid)) >= SCOUTS_OF_USER)
        job = user.submit('-N', 2, 'sleep', 3000)
        cluster.wait_job(job, 'running')
        attacked = launches(cluster)
        assert len(running(cluster, user.uid)) == SCOUTS_OF_USER + 1
        assert cluster.run('scout', 'echo here').stdout.count('here') == 1
        figure('rule-11', f'scrun -N 2 true p99 {quiet * 1e3:.0f} ms alone, {attacked * 1e3:.0f} ms beside one user with all places of {NODES} nodes')
        reasons = user.run('scq', '--why', max(one['job'] for one in cluster.json('scq', '-a')['jobs'] if one['state'] == 'pending')).stdout
        assert 'the limit per user is 32 scout commands and overlapping steps on a node' in reasons, reasons
        hostile.leave()


def test_overlapping_steps_of_one_user_keep_no_one_out(fresh):
    cluster = fresh(2)
    with other_user(cluster) as user:
        script = pathlib.Path(user.place, 'script')
        script.write_text('#!/bin/sh\nexec sleep 3000\n')
        job = int(user.run('scbatch', '-N', 2, '-o', '/dev/null', script).stdout)
        cluster.wait_job(job, 'running')
        hostile = Hostile(user)
        hostile.flood([b'sleep', b'3000'], count=200, nodes=2, inside=job, overlap=1)
        wait_until(lambda: len(running(cluster, user.uid)) > SCOUTS_OF_USER)
        cluster.run('scrun', '-N', 2, 'true')
        cluster.run('scout', 'true')
        assert len(running(cluster, user.uid)) == SCOUTS_OF_USER + 1
        hostile.leave()


def test_loops_of_scout_take_little_from_gangs(fresh):
    """The share is printed; what decides is that the loops are at idle priority (NodeFlow.JobWithoutCores*) and end when they are cancelled."""
    cluster = fresh(1, '--cores', 1)
    with other_user(cluster) as user:
        hostile = Hostile(user)
        hostile.flood([b'sh', b'-c', b'while :; do :; done'], count=8, nodes=1, overlay=1)
        wait_until(lambda: len(running(cluster, user.uid)) == 8)
        script = 'import time; began = time.monotonic()\nwhile time.process_time() < 1: pass\nprint(1 / (time.monotonic() - began))'
        share = float(cluster.run('scrun', '-n', 1, 'python3', '-c', script).stdout)
        figure('rule-11', f'a gang task has {share:.0%} of its core beside 8 loops of scout')
        hostile.leave()
