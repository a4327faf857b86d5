"""Hostile text in every place where a user may write some."""
import csv
import io
import json
import pathlib

import pytest
from cluster import wait_until
from figures import figure
from web import Web

HOSTILE = ['../../etc/cron.d/x', '%s%n%s%n', '$(touch {place}/made)', '`touch {place}/made`', ';touch {place}/made;', 'x' * 200,
           'schön \U0001f600', '\x1b[2J\x1b]0;evil\x07', 'two\nlines', "'); DROP TABLE jobs; --", '" OR ""="', "Robert'); DELETE FROM jobs;",
           '\\', '{{7*7}}', '<script>alert(1)</script>', '&lt;', '\u202egnp.exe', '\u2066a\u2069\u200b\u2028b\ufeff', 'می\u200cخواهم', ' leading and trailing ', '-rf', '--help', '%', '\x7f', '\x01',
           'a"b\\c', '}', '{', 'job="x"} 1\nscored_forged 1']


def jobs_by_id(cluster):
    return {job['job']: job for job in cluster.json('scq', '-a')['jobs']}


@pytest.mark.parametrize('place_of_text', ['name', 'argument', 'environment'])
def test_hostile_names_are_data(few, tmp_path, place_of_text):
    taken, refused = {}, 0
    for text in (text.replace('{place}', str(tmp_path)) for text in HOSTILE):
        show = 'import json, os, sys; print(json.dumps([sys.argv[1:], os.environ.get("HOSTILE")]))'
        words = {'name': ['-J' + text, 'true'], 'argument': ['python3', '-c', show, text],
                 'environment': ['python3', '-c', show]}[place_of_text]
        if place_of_text == 'name':
            result = few.run('scrun', '--detach', *words, code=None)
            if result.returncode == 0:
                taken[int(result.stdout)] = text
            else:
                refused += 1
                assert result.returncode == 125 and len(result.stderr.splitlines()) == 1, result
                assert '\x1b' not in result.stderr and '\x07' not in result.stderr
        else:
            result = few.run('scrun', '-q', '-n', 1, *words, extra_env={'HOSTILE': text})
            assert json.loads(result.stdout) == [[text] if place_of_text == 'argument' else [], text]
            taken[text] = text
    if place_of_text == 'name':
        wait_until(lambda: all(job['final'] for number, job in jobs_by_id(few).items() if number in taken))
        shown = {number: few.job(number)['name'] for number in taken}
        assert shown == taken, [(shown[number], text) for number, text in taken.items() if shown[number] != text]
        records = {row['job']: row['name'] for row in few.json('scacct')['jobs'] if row['job'] in taken}
        assert records == taken
        table = csv.DictReader(io.StringIO(few.run('scacct', '--csv').stdout, newline=''))
        assert {int(row['job']): row['name'] for row in table if row['job'].isdigit() and int(row['job']) in taken} == taken
        for words in (['scq', '-a'], ['scacct'], ['score', 'job', next(iter(taken))]):
            out = few.run(*words).stdout
            assert not {c for c in out if ord(c) < 32 and c != '\n' or c in '\x7f\u200b\u2028\u202e\u2066\u2069\ufeff'}, words
        metrics = Web(few.json('score', 'info')['dashboard_url']).ask('/metrics').body.decode()
        assert 'scored_forged' not in metrics and 'DROP TABLE' not in metrics
    assert not (tmp_path / 'made').exists() and not pathlib.Path('/etc/cron.d/x').exists()
    assert few.nodes_up() == few.nodes
    for row in ('S15', 'S33'):
        figure(row, f'{place_of_text}: {len(taken)} texts came back unchanged, {refused} refused, 0 executed')


def series(cluster):
    text = Web(cluster.json('score', 'info')['dashboard_url']).ask('/metrics').body.decode()
    return {line.rsplit(' ', 1)[0] for line in text.splitlines() if line and not line.startswith('#')}


def test_series_do_not_grow_with_jobs(few):
    few.run('scrun', '-q', '-n', 1, '-J', 'first', 'true')
    series(few)  # the first request makes those of requests
    before = series(few)
    jobs = [few.submit('--hold', '-J', f'name-{number}"\\\n', 'true') for number in range(100)]
    after = series(few)
    assert len(after - before) <= 2, after - before
    assert not [line for line in after if 'name-' in line]
    few.cancel(*jobs)
    figure('S31', f'{len(after)} series with 100 more jobs, {len(before)} before')
