"""The Python package in clients/python drives a virtual cluster."""
import asyncio
import concurrent.futures
import doctest
import math
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

PACKAGE = pathlib.Path(__file__).parents[3] / 'clients/python'
sys.path.insert(0, str(PACKAGE))

import scored  # noqa: E402


@pytest.fixture
def cluster(pair, monkeypatch, tmp_path):
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('SCORED_SERVER', pair.env['SCORED_SERVER'])
    monkeypatch.setenv('PATH', pair.env['PATH'])
    monkeypatch.setenv('PYTHONPATH', str(PACKAGE))
    return scored.Cluster()


def test_a_job_is_submitted_and_waited_for(cluster):
    job = cluster.submit(['sh', '-c', 'echo hello; exit 4'], name='four')
    assert job.wait(600).state == 'failed'
    assert (job.exit_code, job.name, job.output()) == (4, 'four', b'hello\n')
    assert cluster.job(job.number).fields == job.fields
    assert job in cluster.jobs(state='failed')


def test_a_script_an_array_and_a_dependency(cluster):
    batch = cluster.submit(script='#!/bin/sh\nscrun echo step\n', nodes=2, output='batch-%j')
    array = cluster.map(['sh', '-c', 'echo $SCORE_ARRAY_TASK_ID > part-$SCORE_ARRAY_TASK_ID'], '0-3')
    last = cluster.submit(['sh', '-c', 'cat part-*'], after=f'afterok:{batch.number}:{array.number}',
                          kill_on_invalid_dep=True)
    assert last.wait(600).state == 'completed'
    assert last.output() == b'0\n1\n2\n3\n'
    assert pathlib.Path(f'batch-{batch.number}').read_text() == 'step\nstep\n'


def test_a_head_that_restarts_in_good_order_is_waited_for(pair, cluster):
    """It removes its socket."""
    with pytest.raises(scored.ScoredError, match='No such file'):
        list(scored.Cluster('/nonexistent/api.sock').jobs())
    before = list(cluster.jobs())
    place = pair.directory / 'head/api.sock'
    away = place.rename(place.with_name('api.away'))
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(lambda: list(cluster.jobs()))
            concurrent.futures.wait([asked], 1)
            away.rename(place)
            assert asked.result(600) == before
    finally:
        if away.exists():
            away.rename(place)


def test_a_job_is_followed_and_cancelled(cluster):
    job = cluster.submit(['sh', '-c', 'echo begun; sleep 600'])
    output = job.follow()
    assert next(output) == b'begun\n'
    job.cancel()
    assert b''.join(output) == b''
    assert job.wait(600).state == 'cancelled'


def test_waiting_ends_at_its_time_limit_and_in_asyncio(cluster):
    job = cluster.submit(['sleep', '600'])
    with pytest.raises(TimeoutError):
        job.wait(0.2)
    job.cancel()
    assert asyncio.run(job.wait_async(600)).is_final


def test_a_job_is_changed(cluster):
    job = cluster.submit(['sleep', '600'], hold=True, time='1h')
    assert job.change(time='2h').fields['scheduled_limit_s'] == 7200
    assert job.change(time=None).fields['scheduled_limit_s'] == 0
    with pytest.raises(scored.ScoredError) as raised:
        job.requeue()
    assert raised.value.status == 409
    job.cancel()


def test_errors_name_the_member(cluster):
    with pytest.raises(scored.ScoredError) as raised:
        cluster.submit(['true'], nodse=2)
    assert (raised.value.status, raised.value.field) == (422, 'nodse')
    with pytest.raises(scored.ScoredError) as raised:
        cluster.job(999_999)
    assert raised.value.status == 404
    with pytest.raises(scored.ScoredError) as raised:
        scored.Cluster('/nonexistent/api.sock').info()
    assert raised.value.status == 0


def test_an_executor_runs_calls_as_jobs(cluster):
    with scored.Executor(cluster) as executor:
        assert list(executor.map(math.factorial, range(5))) == [1, 1, 2, 6, 24]
        with pytest.raises(ValueError):
            executor.submit(math.sqrt, -1).result(600)
        lost = executor.submit(os._exit, 7)
        with pytest.raises(scored.JobFailed) as raised:
            lost.result(600)
    assert raised.value.job.exit_code == 7
    assert not list(pathlib.Path.cwd().glob('scored-*'))


def test_an_executor_calls_functions_of_the_main_script(cluster):
    pathlib.Path('main.py').write_text(textwrap.dedent('''
        import scored
        def double(x):
            return 2 * x
        if __name__ == '__main__':
            with scored.Executor() as executor:
                print(executor.submit(double, 21).result())
    '''))
    done = subprocess.run([sys.executable, 'main.py'], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, '42\n'), done.stderr


def test_examples_of_the_package_hold(cluster):
    assert doctest.testmod(scored).attempted > 3
    assert doctest.testmod(scored).failed == 0


def test_a_token_reaches_the_web_server(pair, cluster):
    token = pair.run('score', 'token', 'new', 'python').stdout.strip()
    url = pair.json('score', 'info')['dashboard_url']
    remote = scored.Cluster(url.rstrip('/'), token)
    assert remote.info()['cluster'] == 'virtual'
    assert remote.submit(['true']).wait(600).state == 'completed'
