"""Two heads of one cluster: the newer one runs on a copy of the older one's database."""
import contextlib
import json
import shutil
import sqlite3
import subprocess

from cluster import BIN, LIMIT, wait_until
from figures import figure
from forwarder import Forwarder
from load import Client
from own_head import Head, ask, has_nodes


def is_running(cluster, head, job):
    answer = ask(cluster, head, 'score', 'job', job)
    return answer is not None and answer['job']['state'] == 'running'


def test_the_older_of_two_heads_ends(fresh, tmp_path):
    """A node comes from the newer one to the older one, which ends. Jobs go on under the newer one."""
    cluster = fresh(2)
    host, port = cluster.description['address'].split(':')
    cluster.kill('head')
    source = cluster.directory / 'head'
    with contextlib.ExitStack() as ends:
        def start(source, name):
            head = Head(source, tmp_path / name)
            ends.callback(head.process.wait)
            ends.callback(head.process.kill)
            return head

        older = start(source, 'older')
        way = Forwarder((host, int(port)), older.port)
        ends.callback(way.close)
        wait_until(lambda: has_nodes(cluster, older))
        job = cluster.submit('-N', 2, 'sleep', 1000, extra_env=older.socket)
        wait_until(lambda: is_running(cluster, older, job) and older.has_stored_start(job))
        newer = start(tmp_path / 'older', 'newer')
        way.lead_to(newer.port)
        wait_until(lambda: has_nodes(cluster, newer))
        assert older.process.poll() is None
        way.lead_to(older.port)
        assert older.process.wait(LIMIT) == 3, older.log()
        assert 'Stopping: the cluster has a newer head' in older.log()
        way.lead_to(newer.port)
        wait_until(lambda: has_nodes(cluster, newer))
        assert newer.process.poll() is None and is_running(cluster, newer, job)
        cluster.run('sccancel', '--grace', '0', job, extra_env=newer.socket)


def test_an_older_copy_does_not_end_a_newer_job(fresh, tmp_path):
    """The copy is from before the job's submission. Its head does not welcome the job's node; the newer one goes on."""
    cluster = fresh(1)
    source = cluster.directory / 'head'
    copies = {'newer': tmp_path / 'newer', 'older': tmp_path / 'older'}

    def keep(copy):
        with contextlib.closing(sqlite3.connect(source / 'jobs.db')) as now:
            with contextlib.closing(sqlite3.connect(copy)) as then:
                now.backup(then)

    def has_stored_start():
        with contextlib.closing(sqlite3.connect(f'file:{source}/jobs.db?mode=ro', uri=True)) as store:
            return store.execute('SELECT started_ns FROM jobs WHERE id = ?', [job]).fetchone()[0] > 0

    def restart_on(copy):
        cluster.kill('head')
        for name in ('jobs.db', 'jobs.db-wal', 'jobs.db-shm'):
            (source / name).unlink(missing_ok=True)
        shutil.copy(copy, source / 'jobs.db')
        cluster.restart('head')

    keep(copies['older'])
    job = cluster.submit('sleep', 1000)
    cluster.wait_job(job, 'running')
    wait_until(has_stored_start)
    keep(copies['newer'])
    restart_on(copies['older'])
    log = cluster.directory / 'log/head'
    wait_until(lambda: 'runs a job that this database lacks' in log.read_text(), what=cluster.logs)
    restart_on(copies['newer'])
    cluster.wait_up()
    known = json.loads(cluster.run('score', 'job', job, '--json').stdout)['job']
    assert known['state'] == 'running' and known['restarts'] == 0, known
    cluster.run('sccancel', '--grace', '0', job)


def test_a_head_restored_from_an_old_copy_goes_on(fresh, tmp_path):
    """The copy is 100 jobs and 3 starts old: with --recover no job number is given again."""
    cluster = fresh(2)
    client = Client(cluster.description['socket'])
    before = client.submit('true')
    cluster.wait_job(before, 'completed')
    source = cluster.directory / 'head'
    cluster.kill('head')
    shutil.copytree(source, tmp_path / 'copy', ignore=shutil.ignore_patterns('*.sock'))
    for _ in range(3):
        cluster.restart('head')
        cluster.wait_up()
        client = Client(cluster.description['socket'])
        last = [client.submit('true') for _ in range(34)][-1]
        cluster.wait_job(last, 'completed')
        cluster.kill('head')
    for name in ('jobs.db', 'jobs.db-wal', 'jobs.db-shm'):
        (source / name).unlink(missing_ok=True)
        if (tmp_path / 'copy' / name).exists():
            shutil.copy(tmp_path / 'copy' / name, source)
    with open(tmp_path / 'log', 'w') as log:
        head = subprocess.Popen([str(BIN / 'scored'), '--role=head', '--config', str(source / 'scored.toml'), '--recover'],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
    try:
        cluster.wait_up()
        assert head.poll() is None, (tmp_path / 'log').read_text()
        again = Client(cluster.description['socket']).submit('true')
        assert again > last, f'job {again} after {last}'
        assert cluster.wait_job(again, 'completed')['exit_code'] == 0
        figure('F30', f'copy {last - before} jobs and 3 starts old: job {again} after {last}')
        figure('hole-13', 'starts with --recover; no job number given again')
    finally:
        head.kill()
        head.wait()
    cluster.restart('head')
    cluster.wait_up()
