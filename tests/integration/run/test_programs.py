"""Several programs in one job."""
import json


SHOWN = 'echo $SCORE_RANK of $SCORE_SIZE is $SCORE_APPNUM: $0'


def test_ranks_of_several_programs_are_numbered_through(few, tmp_path):
    tmp_path.chmod(0o755)
    result = few.run('scrun', '-N', 3, '-n', 2, 'sh', '-c', SHOWN, 'first', ':', '-n', 3, '-D', tmp_path, '--export=COLOR=red',
                     'sh', '-c', SHOWN + ' $PWD $COLOR', 'second', ':', 'sh', '-c', SHOWN, 'third')
    assert sorted(result.stdout.splitlines()) == [
        '0 of 6 is 0: first', '1 of 6 is 0: first', *(f'{rank} of 6 is 1: second {tmp_path} red' for rank in (2, 3, 4)),
        '5 of 6 is 2: third']


def test_several_programs_are_one_job_for_all_commands(few):
    job = few.submit('-n', 1, 'sleep', '60', ':', '-n', 2, 'sh', '-c', 'sleep 60')
    few.wait_job(job, 'running')
    shown = few.job(job)
    assert shown['command'] == 'sleep 60 : sh -c sleep 60' and shown['tasks'] == 3
    assert shown['name'] == 'sleep'
    few.cancel(job)
    plan = json.loads(few.run('scrun', '--dry-run', '--json', '-n', 2, 'true', ':', '-n', 3, 'true').stdout)
    assert plan['tasks'] == 5
    refused = few.run('scrun', '--dry-run', 'true', ':', 'no-such-program', code=127)
    assert 'no-such-program' in refused.stderr


def test_each_program_is_checked_where_it_runs(few):
    result = few.run('scrun', '-N', 2, '-n', 1, 'true', ':', 'no-such-program', code=127)
    assert 'no-such-program' in result.stderr and 'node01' in result.stderr
    result = few.run('scrun', '-n', 1, 'true', ':', '-D', '/no/such', 'true', code=126)
    assert '/no/such' in result.stderr
    assert "after ':'" in few.run('scrun', 'true', ':', '--label', 'true', code=125).stderr


def test_a_file_names_the_programs_of_the_ranks(few, tmp_path):
    file = tmp_path / 'programs'
    file.write_text('# rank 0 leads\n0 sh -c "echo leader"\n1-2 echo worker %t %o\n* echo rest\n')
    lines = few.run('scrun', '-n', 4, '--multi-prog', file).stdout.splitlines()
    assert sorted(lines) == ['leader', 'rest', 'worker 1 0', 'worker 2 1']
    file.write_text('0 true\n2 true\n')
    assert 'rank 1 has no program' in few.run('scrun', '--multi-prog', file, code=125).stderr
