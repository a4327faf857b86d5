"""Licenses: resources of the whole cluster that jobs hold while they have their nodes."""
import pytest
from cluster import wait_until
from head_config import configure, write
from web import Web, value

LICENSES = '''
[licenses]
matlab = 3
ansys = 1
'''


@pytest.fixture
def licensed(few):
    configure(few, LICENSES)
    yield few
    few.cancel_all()
    configure(few, '')


def until(tmp_path, name='go'):
    return 'sh', '-c', f'while [ ! -e {tmp_path}/{name} ]; do sleep 0.05; done'


def why(cluster, job):
    return cluster.run('scq', '--why', job).stdout


def used(cluster):
    return {row['license']: (row['used'], row['total']) for row in cluster.json('score', 'licenses')['licenses']}


def test_a_job_waits_for_licenses_and_starts_when_they_are_back(licensed, tmp_path):
    first = licensed.submit('-L', 'matlab:2,ansys', *until(tmp_path))
    licensed.wait_job(first, 'running')
    second = licensed.submit('--licenses', 'matlab:2', 'true')
    assert why(licensed, second) == 'license matlab: needs 2, 1 of 3 free\nexpected start: unknown\n'
    assert 'license matlab: needs 2, 1 of 3 free' in licensed.run('scrun', '--dry-run', '-L', 'matlab:2', 'true').stdout
    licensed.wait_job(licensed.submit('true'), 'completed')
    assert used(licensed) == {'ansys': (1, 1), 'matlab': (2, 3)}
    assert 'matlab: 2 of 3 used' in licensed.run('score', 'info').stdout
    assert licensed.job(first)['licenses'] == 'matlab:2,ansys:1'
    table = licensed.run('score', 'licenses', '--no-header').stdout.split()
    assert table == ['ansys', '1', '1', '0', '0', 'matlab', '3', '2', '1', '1'], table
    (tmp_path / 'go').touch()
    licensed.wait_job(second, 'completed')
    wait_until(lambda: used(licensed) == {'ansys': (0, 1), 'matlab': (0, 3)})
    row, = licensed.json('scacct', second)['jobs']
    assert row['licenses'] == 'matlab:2'


def test_what_can_never_be_granted_is_refused(licensed, few):
    for words, line in [(('-L', 'matlab:4'), 'requested 4 of license matlab; the cluster has 3'),
                        (('-L', 'octave'), "no license 'octave': there are ansys, matlab"),
                        (('-L', 'matlab:0'), "--licenses: 'matlab:0': the count is not between 1 and 1000000"),
                        (('-L', 'matlab:x:y'), "--licenses: 'matlab:x:y' is not NAME[:COUNT]")]:
        assert licensed.run('scrun', *words, 'true', code=125).stderr == f'scrun: {line}\n'
    licensed.run('scrun', '-L', 'none', 'true')


def test_scripts_hold_licenses_for_their_steps(licensed):
    (licensed.directory / 'job.sh').write_text(
        '#!/bin/sh\n#SBATCH -L matlab:3\n#SBATCH -n 2\nscrun -n 2 score licenses --json\nscrun -L matlab true\n')
    job = int(licensed.run('scbatch', '-o', 'out', 'job.sh', cwd=licensed.directory).stdout)
    licensed.wait_job(job, 'failed')
    out = (licensed.directory / 'out').read_text()
    assert '"used": 3' in out and 'a step uses the licenses of its job; ask for them there' in out, out


def test_a_restarted_head_counts_what_jobs_hold(licensed, tmp_path):
    first = licensed.submit('-L', 'matlab:2', *until(tmp_path))
    licensed.wait_job(first, 'running')
    second = licensed.submit('-L', 'matlab:2', 'true')
    licensed.kill('head')
    licensed.restart('head')
    licensed.wait_up()
    assert used(licensed)['matlab'] == (2, 3)
    assert licensed.job(second)['state'] == 'pending'
    (tmp_path / 'go').touch()
    licensed.wait_job(second, 'completed')
    wait_until(lambda: used(licensed)['matlab'] == (0, 3))


def test_a_suspended_job_keeps_or_releases_its_licenses(licensed, tmp_path):
    first = licensed.submit('-L', 'matlab:3', *until(tmp_path))
    licensed.wait_job(first, 'running')
    second = licensed.submit('-L', 'matlab', *until(tmp_path, 'second'))
    licensed.run('score', 'suspend', first)
    assert used(licensed)['matlab'] == (3, 3) and licensed.job(second)['state'] == 'pending'
    configure(licensed, LICENSES + 'release_suspended = true\n')
    licensed.wait_job(second, 'running')
    refused = licensed.run('score', 'resume', first, code=125).stderr
    assert 'needs 3 of matlab, and 2 are free; try again later' in refused and refused.count('\n') == 1, refused
    assert licensed.job(first)['state'] == 'suspended'
    (tmp_path / 'second').touch()
    licensed.wait_job(second, 'completed')
    licensed.run('score', 'resume', first)
    assert used(licensed)['matlab'] == (3, 3)
    (tmp_path / 'go').touch()
    licensed.wait_job(first, 'completed')


def test_metrics_count_licenses(licensed, tmp_path):
    job = licensed.submit('-L', 'matlab:2', *until(tmp_path))
    licensed.wait_job(job, 'running')
    web = Web(licensed.json('score', 'info')['dashboard_url'])

    def is_shown(figure, wanted):
        answer = web.ask('/metrics')
        return answer.status == 200 and value(answer.body.decode(), figure, '{license="matlab"}') == wanted
    wait_until(lambda: is_shown('scored_license_used', 2) and is_shown('scored_license_total', 3))
    (tmp_path / 'go').touch()


def test_a_bad_table_is_one_line(few):
    for bad, word in [('matlab = 0', 'not between'), ('matlab = "5"', 'integer'), ('"a b" = 1', 'letters'), ('release_suspended = 3', 'true or false')]:
        write(few, f'[licenses]\n{bad}\n')
        result = few.run('scadm', 'reload', code=125)
        assert word in result.stderr and 'scored.toml:' in result.stderr and result.stderr.count('\n') == 1, result.stderr
    configure(few, '')
