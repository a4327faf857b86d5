"""Accounts, limits of what runs, and fair shares."""
import csv
import grp
import io
import os
import pathlib
import pwd
import tempfile
import time

import pytest
from cluster import wait_until
from head_config import config_of, configure
from login_users import other_user
from web import Web, value

ACCOUNTS = '''
[accounts.physics]
users = ["root", "nobody"]
shares = 3
max_running_jobs = 1
[accounts.art]
max_jobs = 2
max_nodes = 2
[fair_share]
default_account = "art"
half_life = "24h"
'''


@pytest.fixture
def accounts(few):
    configure(few, ACCOUNTS)
    yield few
    few.cancel_all()
    configure(few, '')


def why(cluster, job):
    return cluster.run('scq', '--why', job).stdout


def shares(cluster):
    return {(row['account'], row.get('user')): row for row in cluster.json('scshare')['shares']}


def until(tmp_path, name='go'):
    return 'sh', '-c', f'while [ ! -e {tmp_path}/{name} ]; do sleep 0.05; done'


def test_a_job_waits_for_a_limit_and_starts_when_the_other_ends(accounts, tmp_path):
    first = accounts.submit('-A', 'physics', *until(tmp_path))
    accounts.wait_job(first, 'running')
    second = accounts.submit('--account', 'physics', 'true')
    other = accounts.submit('true')
    accounts.wait_job(other, 'completed')  # of the default account
    assert why(accounts, second) == 'accounts.physics.max_running_jobs is 1: account physics has 1 running\nexpected start: unknown\n'
    assert 'max_running_jobs' in accounts.run('scrun', '--dry-run', '-A', 'physics', 'true').stdout
    assert accounts.job(second)['account'] == 'physics'
    row = shares(accounts)['physics', None]
    assert (row['jobs'], row['running_jobs'], row['nodes'], row['limits']) == (2, 1, 1, ['running_jobs 1'])
    (tmp_path / 'go').touch()
    accounts.wait_job(second, 'completed')


def test_a_front_end_says_what_limit_its_job_waits_for(accounts, tmp_path):
    first = accounts.submit('-A', 'physics', *until(tmp_path))
    accounts.wait_job(first, 'running')
    front = accounts.start('scrun', '-v', '-A', 'physics', 'echo', 'here')
    wait_until(lambda: len(accounts.json('scq', '--active')['jobs']) == 2)
    (tmp_path / 'go').touch()
    out, err = front.communicate(timeout=60)
    assert (out, front.returncode) == ('here\n', 0)
    assert 'accounts.physics.max_running_jobs is 1' in err, err


def test_submissions_beyond_a_limit_are_refused_in_one_line(accounts, tmp_path):
    for words, text in [
            (('-A', 'none'), 'no account none'),
            (('-A', '../x'), "'../x' is not an account"),
            (('-N', 3), 'accounts.art.max_nodes of the head is 2')]:
        result = accounts.run('scrun', '--detach', *words, 'true', code=125)
        assert text in result.stderr and result.stderr.count('\n') == 1, result.stderr
    jobs = [accounts.submit(*until(tmp_path)) for _ in range(2)]
    result = accounts.run('scrun', '--detach', 'true', code=125)
    assert 'accounts.art.max_jobs' in result.stderr and result.stderr.count('\n') == 1, result.stderr
    (tmp_path / 'go').touch()
    for job in jobs:
        accounts.wait_job(job, 'completed')


def test_the_limit_of_nodes_holds_for_arrays_and_not_for_steps(accounts, tmp_path):
    script = tmp_path / 'job.sh'
    script.write_text('#!/bin/sh\n#SBATCH -A art\n#SBATCH -N 2\n#SCORE -t 1h\nscrun -n 1 true && scrun -N 2 true\n')
    tmp_path.chmod(0o777)
    job = int(accounts.run('scbatch', 'job.sh', cwd=tmp_path).stdout)
    done = accounts.wait_job(job, 'completed')
    assert (done['account'], done['exit_code']) == ('art', 0)
    array = accounts.submit('-A', 'art', '--array', '0-3', *until(tmp_path))
    wait_until(lambda: shares(accounts)['art', None]['nodes'] == 2)
    wait_until(lambda: 'accounts.art.max_nodes is 2' in why(accounts, array))
    (tmp_path / 'go').touch()
    accounts.wait_job(array, 'completed')


def test_use_survives_a_killed_head(fresh, tmp_path):
    cluster = fresh(2, '--slice', '20ms')
    configure(cluster, ACCOUNTS)
    cluster.run('scrun', '-N', 2, '-A', 'physics', 'sleep', 2)
    wait_until(lambda: shares(cluster)['physics', None]['core_hours'] > 0)
    before = shares(cluster)['physics', None]['core_hours']
    assert 3 / 3600 < before < 30 / 3600
    cluster.kill('head')
    cluster.restart('head')
    wait_until(lambda: cluster.run('scq', code=None).returncode == 0)
    after = shares(cluster)
    assert abs(after['physics', None]['core_hours'] - before) < 0.01 * before
    assert after['physics', 'root']['factor'] < after['physics', 'nobody']['factor'] < after['art', None]['factor'] == 1
    assert 'COREHOURS' in cluster.run('scshare').stdout
    row, = cluster.json('scacct', '--by', 'account,user')['sums']
    assert (row['account'], row['user'], row['jobs']) == ('physics', 'root', 1)
    assert row['core_hours'] == pytest.approx(before, rel=0.05)
    table = list(csv.DictReader(io.StringIO(cluster.run('scacct', '--by', 'day', '--format', 'csv').stdout)))
    assert [line['jobs'] for line in table] == ['1'] and table[0]['day'] == time.strftime('%Y-%m-%d')
    assert cluster.json('scacct')['jobs'][0]['account'] == 'physics'
    assert '--by' in cluster.run('scacct', '--by', 'week', code=125).stderr


@pytest.fixture
def public():
    """A directory that every user reaches."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield pathlib.Path(place)


def test_the_user_with_less_usage_runs_next(as_root, fresh, tmp_path, public):
    cluster = fresh(1, '--slice', '20ms', '--cores', '1')
    cluster.run('scadm', 'set', 'slots', 1)
    with other_user(cluster) as nobody:
        configure(cluster, '[fair_share]\nhalf_life = "24h"\n')
        nobody.run('scrun', 'sleep', 2)
        blocker = cluster.submit(*until(tmp_path))
        cluster.wait_job(blocker, 'running')
        log = public / 'log'
        log.touch()
        log.chmod(0o666)
        jobs = [nobody.submit('sh', '-c', f'echo nobody >> {log}'), cluster.submit('sh', '-c', f'echo root >> {log}')]
        assert shares(cluster)['', 'nobody']['factor'] < shares(cluster)['', 'root']['factor']
        (tmp_path / 'go').touch()
        for job in jobs:
            cluster.wait_job(job, 'completed')
        assert log.read_text().split() == ['root', 'nobody']


def test_an_account_is_for_its_users(as_root, fresh):
    cluster = fresh(1, '--slice', '20ms')
    with other_user(cluster) as nobody:
        configure(cluster, '[accounts.physics]\nusers = ["root"]\n[accounts.art]\nusers = ["nobody"]\n[limits]\nmax_running_jobs = 1\n')
        result = nobody.run('scrun', '--detach', '-A', 'physics', 'true', code=125)
        assert 'user nobody is not in account physics; yours: art' in result.stderr, result.stderr
        first = nobody.submit('sleep', '600')
        second = nobody.submit('sleep', '600')
        cluster.wait_job(first, 'running')
        assert why(cluster, second) == 'limits.max_running_jobs is 1: its user has 1 running\nexpected start: unknown\n'
        configure(cluster, '[accounts.art]\nusers = ["nobody"]\n')  # also the limit is gone
        cluster.wait_job(second, 'running')


def test_an_account_is_for_the_members_of_its_group(as_root, fresh):
    cluster = fresh(1, '--slice', '20ms')
    group = grp.getgrgid(pwd.getpwnam('nobody').pw_gid).gr_name
    with other_user(cluster) as nobody:
        configure(cluster, '[accounts.course]\nusers = ["@no-such-group"]\n[accounts.art]\nusers = ["root"]\n')
        result = nobody.run('scrun', '--detach', 'true', code=125)
        assert 'user nobody is in no account' in result.stderr and result.stderr.count('\n') == 1, result.stderr
        configure(cluster, f'[accounts.course]\nusers = ["@{group}"]\n[accounts.art]\nusers = ["root"]\n')
        cluster.wait_job(nobody.submit('true'), 'completed')
        assert nobody.run('scrun', '-A', 'course', 'echo', 'here').stdout == 'here\n'
        result = nobody.run('scrun', '-A', 'art', 'true', code=125)
        assert 'user nobody is not in account art; yours: course' in result.stderr, result.stderr
        assert ('course', 'nobody') in shares(cluster)
        assert ('course', f'@{group}') not in shares(cluster)


def test_metrics_show_accounts_and_their_limits(accounts, tmp_path):
    job = accounts.submit('-A', 'physics', *until(tmp_path))
    accounts.wait_job(job, 'running')
    web = Web(accounts.json('score', 'info')['dashboard_url'])

    def is_shown(figure, labels, wanted):
        answer = web.ask('/metrics')
        return answer.status == 200 and value(answer.body.decode(), figure, labels) == wanted
    for figure, labels, wanted in [
            ('scored_account_has', '{account="physics",kind="running_jobs"}', 1),
            ('scored_account_has', '{account="art",kind="jobs"}', 0),
            ('scored_account_limit', '{account="art",kind="nodes"}', 2),
            ('scored_account_share_ratio', '{account="physics"}', 0.75)]:
        wait_until(lambda: is_shown(figure, labels, wanted), what=lambda: web.ask('/metrics').body.decode())
    (tmp_path / 'go').touch()


def test_a_bad_configuration_is_one_line_and_changes_nothing(few):
    text = config_of(few).read_text()
    for bad, word in [('[accounts.a]\nshares = 0\n', 'shares'), ('[accounts."a b"]\n', 'letters'),
                      ('[fair_share]\nhalf_life = "x"\n', 'half_life'), ('[accounts.a]\nmax_node = 1\n', 'max_node')]:
        config_of(few).write_text(text + '\n' + bad)
        result = few.run('scadm', 'reload', code=125)
        assert word in result.stderr and 'scored.toml:' in result.stderr and result.stderr.count('\n') == 1, result.stderr
    config_of(few).write_text(text)
    few.run('scadm', 'reload')
    assert few.run('scrun', 'echo', 'works').stdout == 'works\n'
