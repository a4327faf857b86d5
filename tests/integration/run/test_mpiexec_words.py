"""Each row of the table "WORDS OF MPIEXEC" of scrun(1)."""
import pytest

SHOW = 'echo $SCORE_RANK/$SCORE_SIZE $SCORE_NODENAME ${SHADE:-none} $PWD'


def lines(few, *words, **more):
    return sorted(few.run('scrun', '-q', *words, **more).stdout.splitlines())


@pytest.mark.parametrize('words', [('-np', '3'), ('--np', '3'), ('-n', '3')])
def test_the_number_of_tasks(few, words):
    assert lines(few, *words, 'sh', '-c', 'echo $SCORE_SIZE') == ['3'] * 3


@pytest.mark.parametrize('word', ['-ppn', '--ppn', '-perhost', '-npernode', '--npernode'])
def test_tasks_per_node(few, word):
    assert lines(few, '-N', '2', word, '2', 'sh', '-c', 'echo $SCORE_NODEID') == ['0', '0', '1', '1']


@pytest.mark.parametrize('word', ['-host', '-hosts', '--host', '--hosts', '-H'])
def test_hosts_by_name(few, word):
    names = lines(few, '-N', '2', 'sh', '-c', 'echo $SCORE_NODENAME')
    shown = 'echo $SCORE_NODENAME'
    assert lines(few, word, names[1], 'sh', '-c', shown) == names[1:]
    assert lines(few, word, f'{names[0]}:2,{names[1]}:2', 'sh', '-c', shown) == sorted(names * 2)


@pytest.mark.parametrize('word', ['-f', '-hostfile', '--hostfile', '-machinefile', '--machinefile'])
@pytest.mark.parametrize('form', ['{}:2', '{} slots=2 max_slots=8'])
def test_hosts_of_a_file(few, tmp_path, word, form):
    names = lines(few, '-N', '2', 'sh', '-c', 'echo $SCORE_NODENAME')
    file = tmp_path / 'hosts'
    file.write_text('# these\n' + ''.join(form.format(name) + '\n' for name in names))
    assert lines(few, word, file, 'sh', '-c', 'echo $SCORE_NODENAME') == sorted(names * 2)


def test_variables(few, tmp_path):
    env = {'SHADE': 'grey', 'TONE': 'low'}
    shown = ['sh', '-c', 'echo ${SHADE:-none} ${TONE:-none}']
    for word in ('-genvall', '-envall'):
        assert lines(few, word, *shown, extra_env=env) == ['grey low']
    for word in ('-genvlist', '-envlist'):
        assert lines(few, word, 'TONE', *shown, extra_env=env) == ['none low']
    for word in ('-genvnone', '-envnone'):
        assert lines(few, word, *shown, extra_env=env) == ['none none']
    assert lines(few, '-env', 'SHADE', 'a, b', *shown, extra_env=env) == ['a, b low']
    two = ['-genv', 'TONE', 'high', '-env', 'SHADE', 'red', *shown, ':', '-env', 'SHADE', 'blue', '-np', '2', *shown]
    assert lines(few, *two, extra_env=env) == ['blue high', 'blue high', 'red high']
    assert '-genv' in few.run('scrun', *shown, ':', '-genv', 'A', '1', *shown, code=125).stderr


@pytest.mark.parametrize('word', ['-wdir', '--wdir', '-wd', '--wd'])
def test_the_directory(few, tmp_path, word):
    tmp_path.chmod(0o755)
    assert lines(few, word, tmp_path, 'pwd') == [str(tmp_path)]


@pytest.mark.parametrize('word', ['-l', '-prepend-rank', '-tag-output', '--tag-output'])
def test_labels(few, word):
    assert lines(few, '-np', '2', word, 'echo', 'x') == ['0: x', '1: x']


@pytest.mark.parametrize('word', ['-bind-to', '--bind-to'])
def test_binding(few, word):
    cores = lines(few, word, 'core', 'sh', '-c', 'taskset -pc $$ | sed "s/.*: //"')
    assert cores[0].isdigit(), cores
    lines(few, word, 'none', 'true')
    lines(few, word, 'socket', 'true')
    assert 'none, core or socket' in few.run('scrun', word, 'numa', 'true', code=125).stderr


@pytest.mark.parametrize('word', ['-oversubscribe', '--oversubscribe'])
def test_sharing_of_cores(few, word):
    assert few.run('scrun', '-N', '1', '-np', '64', word, 'true').stderr == ''


def test_a_file_of_programs(few, tmp_path):
    file = tmp_path / 'programs'
    file.write_text("# two\n-n 1 sh -c 'echo first $SCORE_RANK'\n-n 2 sh -c 'echo second $SCORE_RANK'\n")
    assert lines(few, '-configfile', file) == ['first 0', 'second 1', 'second 2']
    assert '-configfile' in few.run('scrun', '-configfile', file, 'true', code=125).stderr


def test_a_limit_of_time(few):
    few.run('scrun', '-q', 'sleep', '60', code=124, extra_env={'MPIEXEC_TIMEOUT': '1'})
    few.run('scrun', '-q', '--wall-time', '1m', 'sleep', '2', extra_env={'MPIEXEC_TIMEOUT': '1'})
    assert 'MPIEXEC_TIMEOUT' in few.run('scrun', 'true', code=125, extra_env={'MPIEXEC_TIMEOUT': '1m'}).stderr


def test_help_and_version(few):
    assert few.run('scrun', '-version').stdout == few.run('scrun', '--version').stdout
    assert few.run('scrun', '-help').stdout == few.run('scrun', '--help').stdout


def test_timeout_limits_the_elapsed_time(few):
    result = few.run('scrun', '--timeout', 1, 'sleep', 600, code=124)
    assert 'limit' in result.stderr
    assert few.run('scrun', '--timeout=60', 'echo', 'done').stdout == 'done\n'


@pytest.mark.parametrize('word, hint', [
    ('-map-by', '-m block'), ('--map-by', '-m block'), ('-rank-by', '-m block'), ('-mca', 'OMPI_MCA_'), ('--mca', 'OMPI_MCA_'),
    ('-disable-auto-cleanup', '--keep-going'), ('-outfile-pattern', '-o FILE'), ('-errfile-pattern', '-e FILE'),
    ('-output-filename', '-o FILE'), ('-prepend-pattern', '-l'), ('-stdin', '-i RANK'),
    ('-verbose', '-v'), ('-allow-run-as-root', '--allow-root'), ('-print-all-exitcodes', 'score job'),
    ('--report-bindings', 'score job'), ('-nolocal', '-x NODE'), ('-usize', '--spawn N'), ('-launcher', 'leave it out'),
    ('-rmk', 'leave it out'), ('-iface', 'leave it out'), ('--prefix', 'leave it out'), ('-membind', 'leave it out'),
    ('-profile', 'leave it out'), ('-info', 'leave it out')])
def test_other_words_are_refused_with_what_to_use(few, word, hint):
    stderr = few.run('scrun', word, 'x', 'true', code=125).stderr
    assert word in stderr and hint in stderr, stderr
