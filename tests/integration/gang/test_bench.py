"""scbench's own measurements come out whole; what they say about speed is not judged here."""
import csv
import json
import os
import subprocess
import xml.dom.minidom

import pytest

from cluster import BIN, EXAMPLES, LIMIT, Cluster

import measure  # noqa: E402


@pytest.fixture(scope='module')
def cluster():
    cluster = Cluster(2, '--slice', '20ms', '--switch-always')
    yield cluster
    cluster.stop()


@pytest.mark.parametrize('kernel', ['ep', 'cg', 'ft', 'is', 'mg', 'lu'])
def test_kernels_on_pm_verify_while_they_are_switched(cluster, kernel):
    out = cluster.run('scrun', '-N', 2, EXAMPLES / 'npb-pm', kernel, 'S', '--seconds', 0.5).stdout
    assert f'{kernel} S, 2 ranks: verified' in out


@pytest.mark.parametrize('ranks, size', [(1, 'Z'), (3, 'S')])
def test_a_kernel_that_cannot_be_divided_says_so(cluster, ranks, size):
    result = cluster.run('scrun', '-q', '-n', ranks, EXAMPLES / 'npb-pm', 'cg', size, code=125)
    assert result.stderr.count('not supported') == 1 and 'assert' not in result.stderr, result.stderr


@pytest.mark.long
def test_figure11_has_a_result_for_each_kernel_and_number_of_jobs(tmp_path):
    command = [BIN / 'scbench', 'gang', '--figure11', '--nodes', '2', '--kernels', 'cg,lu', '--seconds', '1', '--json',
               '--csv', tmp_path / 'figure.csv']
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(r['jobs'], r['kernel']) for r in report['results']] == [(1, 'cg'), (1, 'lu'), (2, 'cg'), (2, 'lu')]
    for result in report['results']:
        for low, high in (result['spread'], result['interval']):
            assert low <= result['slowdown_percent'] <= high
    assert 'windows alternate' in report['method']
    assert len((tmp_path / 'figure.csv').read_text().splitlines()) == 5


@pytest.mark.skipif(os.geteuid() != 0, reason='bare processes make cgroups')
@pytest.mark.long
def test_two_jobs_are_compared_with_the_bare_machine():
    done = subprocess.run([BIN / 'scbench', 'gang', '--figure11', '--nodes', '2', '--slice', '10ms', '--kernels', 'ft,cg', '--mode',
                           'bare', '--seconds', '1', '--json'], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)['results']
    assert [(r['mode'], r['jobs'], r['kernel']) for r in results] == [('bare', 2, 'ft'), ('bare', 2, 'cg')]
    assert all(r['switch_mean_us'] > 0 and r['spread'][0] <= r['slowdown_percent'] for r in results)


@pytest.mark.parametrize(('values', 'first', 'last'), [(5, 1, 5), (6, 1, 6), (9, 2, 8), (15, 4, 12), (25, 8, 18)])
def test_the_median_interval_omits_as_many_values_as_tables(values, first, last):
    assert measure.interval(list(range(values, 0, -1))) == (first, last)


@pytest.mark.long
def test_figure11_resumes_after_an_interruption(tmp_path):
    kept = tmp_path / 'kept.json'
    command = [BIN / 'scbench', 'gang', '--figure11', '--kernels', 'ep', '--seconds', '0.5', '--json', '--resume', kept]

    def run(nodes, code=0):
        done = subprocess.run([*command, '--nodes', nodes], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == code, done.stderr
        return done

    run('1')
    first = json.loads(kept.read_text())['results']
    assert [(r['nodes'], r['jobs']) for r in first] == [(1, 1), (1, 2)]
    both = json.loads(run('1,2').stdout)['results']
    assert both[:2] == first and [(r['nodes'], r['jobs']) for r in both[2:]] == [(2, 1), (2, 2)]
    assert json.loads(run('2').stdout)['results'] == both[2:]
    kept.write_text('{"results": [{}]}')
    assert 'not what --resume wrote' in run('1', code=125).stderr


@pytest.mark.skipif(not (EXAMPLES / 'cosmo-mpich').exists(), reason='examples were not built with MPICH')
@pytest.mark.long
def test_speed_ups_are_drawn_without_matplotlib(tmp_path):
    (tmp_path / 'matplotlib.py').write_text('raise ImportError("not here")')
    picture = tmp_path / 'speedup.svg'
    done = subprocess.run([BIN / 'scbench', 'cosmo', '--nodes', '1,2', '--cores', '1', '--programs', 'cg:S', '--repeats', '1',
                           '--plot', picture], capture_output=True, text=True, timeout=LIMIT,
                          env={**os.environ, 'PYTHONPATH': str(tmp_path)})
    assert done.returncode == 0, done.stderr
    drawn = xml.dom.minidom.parse(str(picture))
    words = {node.firstChild.data for node in drawn.getElementsByTagName('text')}
    assert any('1 pair or round, load' in word for word in words), words
    assert {'cg S', '1 x 1', '2 x 1', 'mpi'} <= words
    assert [len(line.getAttribute('points').split()) for line in drawn.getElementsByTagName('polyline')] == [2]


def test_options_that_do_not_fit_together_are_refused():
    for words in (['--nodes', '1,2'], ['--plot', 'x.svg'],
                  ['--idle', 'pm,lu'], ['--figure11', '--kernels', 'ua'],
                  ['--figure11', '--kernels', 'sp', '--nodes', '2'], ['--figure11', '--kernels', 'lu', '--nodes', '32'],
                  ['--figure11', '--kernels', 'cg', '--nodes', '3'], ['--figure11', '--mode', 'bear'], ['--sweep', '1s..1ms']):
        done = subprocess.run([BIN / 'scbench', 'gang', *words], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 125 and done.stderr.startswith('scbench gang: ') and done.stderr.count('\n') == 1, (words, done.stderr)


@pytest.mark.parametrize('words, said', [
    ([], 'required'), (['gangs'], 'gangs'), (['gang', '--seconds', '-1'], '--seconds'), (['gang', '--seconds', 'nan'], '--seconds'),
    (['gang', '--slice', '20s'], '1ms to 10s'), (['gang', '--slice', '10us'], '1ms to 10s'), (['gang', '--nodes', '5000'], '4096'),
    (['gang', '--jobs', '0'], '--jobs'), (['gang', '--nodse', '2'], '--nodse'), (['load', '--seconds', '0'], '--seconds'),
    (['load', '--starts', '-3'], '--starts'), (['control', '--nodes', '-1'], '--nodes'), (['control', '--parts', 'x'], "'x'"),
    (['control', '--barrier-nodes', 'a'], "'a'"), (['io', '--parts', 'x'], "'x'"), (['io', '--megabytes', '0'], '--megabytes'), (['api', '--followers', '0'], '--followers'),
    (['cosmo', '--repeats', '0'], '--repeats'), (['mpi', '--rounds', 'x'], '--rounds'), (['pm', '--size', '1X'], '1X'),
    (['gang', '--csv', '/nowhere/a.csv'], '/nowhere'), (['load', '--resume', '/nowhere/a'], '/nowhere'),
    (['replay'], '--swf'), (['replay', '--swf', '/etc/passwd'], 'no job'), (['replay', '--swf', '/nonexistent'], 'cannot open'),
    (['replay', '--swf', '/etc'], '/etc')])
def test_invalid_arguments_are_one_line_and_exit_125(words, said):
    done = subprocess.run([BIN / 'scbench', *words], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 125 and said in done.stderr and done.stderr.count('\n') == 1, done.stderr
    assert done.stderr.startswith('scbench'), done.stderr


@pytest.mark.parametrize('words, said', [
    ([], 'no workload'), (['--swf', '/etc/passwd'], 'no job'), (['--swf', '/nonexistent'], 'cannot open'), (['--nodse', '3'], "unknown option '--nodse'"),
    (['--lublin', 'x'], "--lublin: 'x'"), (['--lublin'], '--lublin needs a value'), (['--lublin', '10', '--policies', 'best'], 'best'),
    (['--lublin', '10', '--figures', 'x'], "x"), (['--lublin', '10', 'x'], "unexpected argument 'x'"), (['--lublin', '10', '--pass', '--figures'], 'either')])
def test_scsim_refuses_invalid_arguments_with_125(words, said):
    done = subprocess.run([BIN / 'scsim', *words], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 125 and said in done.stderr.splitlines()[-1] and done.stderr.startswith('scsim: '), done.stderr


@pytest.fixture(scope='module')
def gang_case(tmp_path_factory):
    """One short case that has bounds: its report, exit status, and files."""
    place = tmp_path_factory.mktemp('gang')
    command = [BIN / 'scbench', 'gang', '--nodes', '2', '--slice', '10ms', '--seconds', '2', '--pairs', '6', '--json',
               '--csv', place / 'a.csv', '--resume', place / 'kept.json']
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode in (0, 1, 2), done.stderr
    return json.loads(done.stdout), done.returncode, place, command


def test_gang_case_has_samples_and_how_they_were_measured(gang_case):
    figures, status, place, _ = gang_case
    run = figures['run']
    assert run['command'][1:4] == ['gang', '--nodes', '2'] and run['options']['pairs'] == 6 and run['seconds'] > 2
    assert run['processors'] == os.cpu_count() and run['kernel'] == os.uname().release and run['version'] and len(run['load_before']) == 3
    samples, (low, high) = figures['samples'], figures['work_lost_percent_interval']
    assert len(samples['work_lost_percent']) == len(samples['steps_per_second']) == 6
    assert [low, high] == [min(samples['work_lost_percent']), max(samples['work_lost_percent'])]
    assert len(samples['wake_us']) == len(samples['total_us']) == figures['switches']
    parts = sum(figures[f'overhead_{part}_percent'] for part in ('wake', 'stop', 'network', 'go'))
    assert figures['overhead_percent'] == pytest.approx(parts) and figures['overhead_percent'] > 0
    expected = 'ok' if high <= 1 else 'MISSED' if low > 1 else 'inconclusive'
    verdicts = figures['verdicts']['gang']
    assert verdicts['work_lost_percent'] == expected and set(verdicts) == set(figures['bounds'])
    assert status == (1 if 'MISSED' in verdicts.values() else 2 if 'inconclusive' in verdicts.values() else 0)
    rows = list(csv.DictReader((place / 'a.csv').open()))
    assert [row['verdict'] for row in rows if row['figure'] == 'work_lost_percent'] == [expected]


def test_gang_case_is_resumed_without_a_measurement(gang_case):
    figures, status, place, command = gang_case
    again = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert again.returncode == status and json.loads(again.stdout)['samples'] == figures['samples']
    other = subprocess.run([*command, '--slice', '20ms'], capture_output=True, text=True, timeout=LIMIT)
    assert other.returncode == 125 and 'measured with --slice 10000000' in other.stderr, other.stderr


def test_figures_include_a_baseline_of_bare_threads(gang_case):
    figures = gang_case[0]
    assert figures['switches'] > 0
    assert 0 <= figures['control_wake_p50_us'] <= figures['control_wake_p99_us']
    assert 0 <= figures['control_skew_p50_us'] <= figures['control_skew_p99_us']
    assert 0 <= figures['steal_percent'] <= 100
    if figures['method'] == 'cgroup.freeze':
        assert figures['bare_switch_us'] > 0 and 0 < figures['bare_cpu_percent'] < 100


# Both ways that a PM job is woken; how soon it leaves is the machine's matter.
@pytest.mark.long
def test_idle_pm_jobs_are_timed():
    done = subprocess.run([BIN / 'scbench', 'gang', '--idle', 'pm,pm_timer', '--times', '1', '--nodes', '2', '--json'],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    figures = told['results'][0]
    for kind in ('pm', 'pm_timer'):
        assert figures[f'{kind}_answer_ms'] > 0
        for name in ('return', 'last', 'leave'):
            assert 0 <= figures[f'{kind}_{name}_slices'] <= figures[f'{kind}_{name}_p90_slices']
            assert name == 'last' or f'{kind}_{name}_slices' in told['bounds']
    assert 'slowed_percent' not in figures


def test_bare_threads_count_every_time_they_wake():
    done = subprocess.run([BIN / 'scbench-sleeper', '10000000', '5000000', '1'], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)['wakes'] == 100 * len(os.sched_getaffinity(0))
    for words in ([], ['0', '0', '1'], ['-1', '0', '1'], ['1', '0', 'x'], ['1', '0', '1000']):
        done = subprocess.run([BIN / 'scbench-sleeper', *words], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 2 and 'usage' in done.stderr, words


def scbench_io(tmp_path, *words):
    if not (BIN / 'scbench-io').exists():
        pytest.skip('scbench-io is not built')
    done = subprocess.run([BIN / 'scbench', 'io', '--json', '--directory', tmp_path, '--rounds', '1', *words], capture_output=True,
                          text=True, timeout=LIMIT)
    assert done.returncode in (0, 1, 2), done.stderr
    return json.loads(done.stdout), done.stderr


def test_io_measures_data_and_growth(tmp_path):
    report, said = scbench_io(tmp_path, '--megabytes', '4', '--growth-megabytes', '1')
    assert report['read_vs_syscall'] > 0 and report['creates_per_second'] > 0
    if os.geteuid() == 0 and 'no growth over servers' not in said:
        assert report['growth_per_doubling'] > 0 and 0 < report['write_1_mb_s'] <= report['write_1_mb_s_spread'][1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_io_draws_the_experiment_of_pious(tmp_path):
    report, _ = scbench_io(tmp_path, '--figures')
    assert [row['bytes'] for row in report['microseconds']] == [8192 << i for i in range(11)]
    for row in report['microseconds']:
        assert all(row[f'{what}_{who}'] > 0 for what in ('write', 'read') for who in (1, 2, 4, 'system'))


@pytest.mark.long
def test_load_measures_each_part(tmp_path):
    words = ['--starts', '5', '--seconds', '0.3', '--connections', '20', '--queued', '40', '--finished', '50', '--rounds', '3', '--array', '500']
    done = subprocess.run([BIN / 'scbench', 'load', '--json', *words], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert (report['open'], report['half_open'], report['finished']) == (20, 20, 50)
    assert report['queued'] >= 40 and report['list_bytes'] > 0
    for name in report['bounds']:
        assert report[name] > 0, name


def test_api_measures_each_part():
    words = ['--seconds', '0.3', '--clients', '2', '--followers', '3', '--queued', '20', '--rounds', '3', '--pairs', '2']
    done = subprocess.run([BIN / 'scbench', 'api', '--json', *words], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode in (0, 1, 2), done.stderr
    found = json.loads(done.stdout)
    assert found['schema'] == 'scored.bench.api/1', found
    assert found['submissions_per_second'] > 0 and found['list_p99_ms'] > 0 and found['queued'] == 20
    assert len(found['samples']['list_ms']) == 3 and len(found['samples']['head_cpu_beside_percent']) == 2
