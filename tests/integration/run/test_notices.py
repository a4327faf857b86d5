"""Mail and webhooks about jobs: through a real SMTP server and a real web server, and with bad ones."""
import getpass
import json
import os
import shutil
import signal
import time

import pytest
from cluster import wait_until
from head_config import MARK, configure
from mail_server import MailServer, WebService, make_certificate, script
from web import Web, value

def webhook(service, *lines, events=('begin', 'end')):
    return '\n'.join(['[[notify.webhook]]', f'url = "{service.url}"', f'events = {json.dumps(events)}', *lines]) + '\n'


def count(cluster, channel, result):
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    answer = web.ask('/metrics')
    while answer.status != 200:  # the number of requests in a time is limited
        assert answer.status == 429, (answer.status, answer.body)
        time.sleep(0.5)
        answer = web.ask('/metrics')
    return value(answer.body.decode(), 'scored_notices_total', f'{{channel="{channel}",result="{result}"}}')


@pytest.fixture
def mail(tmp_path):
    server = MailServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def service():
    made = WebService()
    yield made
    made.close()


@pytest.fixture
def plain(pair):
    yield pair
    pair.cancel_all()
    configure(pair, '')


# ---- mail


def test_mail_arrives(plain, mail, tmp_path):
    configure(plain, f'[notify]\nsendmail = "{mail.sendmail}"\nfrom = "scored@test.example"\n')
    good = plain.submit('--mail-type', 'ALL', '--mail-user', 'alice@test.example', '-J', 'relax\nBcc: eve@test.example', 'true')
    wait_until(lambda: len(mail.messages()) == 2)
    begin, end = mail.messages()
    assert mail.events() == [(good, 'begin'), (good, 'end')]
    assert (begin['To'], begin['From'], begin['X-RcptTo']) == ('alice@test.example', 'scored@test.example', 'alice@test.example')
    assert end['Subject'].endswith(f'job {good} (relax\\nBcc: eve@test.example) has ended: completed') and end['Bcc'] is None
    body = end.get_payload()
    assert '\n  state       completed\n' in body and f'`score job {good}` shows more.' in body
    assert all(len(line) <= 100 for line in body.splitlines())
    path = tmp_path / 'job.sh'
    path.write_text('#!/bin/sh\n#SBATCH --mail-type=FAIL,STAGE_OUT --mail-user=bob\n#SCORE --mail-type end,fail\nexit 3\n')
    result = plain.run('scbatch', path, cwd=tmp_path)
    wait_until(lambda: len(mail.messages()) == 3)
    last = mail.messages()[-1]
    assert (mail.events()[-1], last['To'], result.stderr) == ((int(result.stdout), 'fail'), 'bob', '')
    assert 'exit code 3' in last['Subject']
    assert plain.run('scrun', '--mail-type=END', 'true').stderr == ''
    wait_until(lambda: len(mail.messages()) == 4)
    assert mail.messages()[-1]['To'] == getpass.getuser()
    wait_until(lambda: count(plain, 'mail', 'sent') >= 4)


def test_an_array_makes_one_mail_or_one_for_each_task(plain, mail):
    configure(plain, f'[notify]\nsendmail = "{mail.sendmail}"\n')
    whole = plain.submit('--mail-type', 'BEGIN,END', '--array', '0-4', 'true')
    plain.wait_job(whole, 'completed')
    wait_until(lambda: len(mail.messages()) == 2)
    assert mail.events() == [(whole, 'begin'), (whole, 'end')]
    each = plain.submit('--mail-type', 'END,ARRAY_TASKS', '--array', '0-2', 'true')
    plain.wait_job(each, 'completed')
    wait_until(lambda: len(mail.messages()) == 5)
    subjects = ' '.join(message['Subject'] for message in mail.messages()[2:])
    assert all(f'job {each}_{task} ' in subjects for task in range(3)), subjects


def test_parts_of_a_limit_and_the_limit(plain, mail):
    configure(plain, f'[notify]\nsendmail = "{mail.sendmail}"\n')
    job = plain.submit('--mail-type', 'TIME_LIMIT,TIME_LIMIT_50,TIME_LIMIT_80,FAIL', '--wall-time', '4s', 'sleep', 600)
    plain.wait_job(job, 'timed-out')
    wait_until(lambda: (job, 'time_limit') in mail.events())
    # A busy machine may notice two parts at once, and then only the greater one is sent.
    assert [event for _, event in mail.events()] in (['time_limit_50', 'time_limit_80', 'time_limit'], ['time_limit_80', 'time_limit'])
    assert 'has reached its time limit' in mail.messages()[-1]['Subject']


def test_a_command_gets_json(plain, tmp_path):
    told = script(tmp_path / 'tell', f'#!/bin/sh\nexec cat >> {tmp_path}/told\n')
    configure(plain, f'[notify]\ncommand = "{told}"\n')
    job = plain.submit('--mail-type', 'END', '--mail-user', 'a@b', 'false')
    wait_until((tmp_path / 'told').exists)
    wait_until(lambda: (tmp_path / 'told').read_text().endswith('\n'))
    document = json.loads((tmp_path / 'told').read_text())
    assert (document['schema'], document['event'], document['mail_address']) == ('scored.notice/1', 'end', 'a@b')
    assert (document['job']['id'], document['job']['state'], document['job']['exit_code']) == (job, 'failed', 1)


def test_bad_addresses_and_types_are_refused_in_one_line(plain):
    for arguments, text in [
            (('--mail-user', '-oQ/tmp/x'), 'cannot begin with -'),
            (('--mail-user', 'a\nBcc: b'), 'give one address'),
            (('--mail-user', 'a\x07b'), 'give one address'),
            (('--mail-user', 'a' * 255), 'at most 254'),
            (('--mail-type', 'BEGINNING'), "'BEGINNING' is not one of BEGIN, END"),
            (('--mail-type', ''), '--mail-type needs a value')]:
        result = plain.run('scrun', '--detach', '--mail-type=END', *[f'{arguments[0]}={arguments[1]}'], 'true', code=125)
        assert text in result.stderr and result.stderr.count('\n') == 1, result.stderr
    assert plain.json('scq', '--active')['jobs'] == []


def test_a_cluster_without_mail_says_so(plain, tmp_path):
    (tmp_path / 'job.sh').write_text('#!/bin/sh\n#SBATCH --mail-type=ALL\ntrue\n')
    said = 'ignoring --mail-type: this cluster sends no mail; an administrator can set [notify] sendmail\n'
    assert plain.run('scbatch', 'job.sh', cwd=tmp_path).stderr == f'scbatch: {said}'
    assert plain.run('scbatch', '-q', 'job.sh', cwd=tmp_path).stderr == ''
    assert plain.run('scrun', '--mail-type=END', 'true').stderr == f'scrun: {said}'


def test_programs_that_hang_or_fail_delay_no_job(plain, tmp_path):
    program = script(tmp_path / 'program', f'''#!/bin/sh
[ -e {tmp_path}/over ] && echo no such user >&2 && exit 67
echo $$ >> {tmp_path}/runs
exec sleep 1000
''')
    configure(plain, f'[notify]\nsendmail = "{program}"\ntimeout = "300s"\n')
    before = count(plain, 'mail', 'failed')
    for _ in range(6):
        plain.run('scrun', '--mail-type=ALL', 'true')  # it would last for minutes if it waited for the mail
    wait_until(lambda: (tmp_path / 'runs').exists() and len((tmp_path / 'runs').read_text().split()) == 2)
    (tmp_path / 'over').touch()
    for pid in (tmp_path / 'runs').read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    wait_until(lambda: count(plain, 'mail', 'failed') == before + 12)  # the two that were killed are tried again
    assert 'program exited with code 67: no such user' in (plain.directory / 'log/head').read_text()


def test_a_killed_head_sends_nothing_twice(fresh, mail):
    cluster = fresh(2, '--slice', '20ms')
    configure(cluster, f'[notify]\nsendmail = "{mail.sendmail}"\n')
    jobs = [cluster.submit('--mail-type', 'ALL', 'sleep', '600') for _ in range(3)]
    wait_until(lambda: len(mail.messages()) == 3)
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    wait_until(lambda: all(cluster.job(job)['state'] == 'running' for job in jobs))
    cluster.cancel(*jobs)
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()
    last = cluster.submit('--mail-type', 'END', 'true')
    wait_until(lambda: (last, 'end') in mail.events())
    events = [event for event in mail.events() if event[0] != last]
    assert sorted(event for event in events if event[1] == 'begin') == [(job, 'begin') for job in sorted(jobs)]
    ends = [event for event in events if event[1] == 'end']  # those that were not sent when the head was killed are lost
    assert len(ends) == len(set(ends)) and len(events) == len(ends) + 3, events


# ---- webhooks


def test_a_service_gets_each_event_once(plain, service, tmp_path):
    (tmp_path / 'token').write_text('0123456789abcdef0123\n')
    (tmp_path / 'token').chmod(0o600)
    configure(plain, webhook(service, f'token_file = "{tmp_path}/token"', events=('begin', 'fail', 'end')))
    service.behaviour = 500
    job = plain.submit('-J', 'hook "x"', 'false')
    wait_until(lambda: service.asked > 0)
    service.behaviour = 'accept'
    wait_until(lambda: len(service.events(job)) == 2)
    assert sorted(service.events(job)) == ['begin', 'fail']
    document = next(found for found in service.documents if found['event'] == 'fail')
    assert (document['job']['name'], document['job']['exit_code'], document['job']['nodes']) == ('hook "x"', 1, 'node00')
    assert service.headers[0]['Authorization'] == 'Bearer 0123456789abcdef0123'
    assert service.headers[0]['Idempotency-Key'] == service.documents[0]['id']
    assert len({found['id'] for found in service.documents}) == len(service.documents)


@pytest.mark.parametrize('behaviour', ['silent', 'close', 'flood', 503])
def test_a_bad_service_delays_no_job(plain, service, behaviour):
    configure(plain, '[notify]\ntimeout = "1s"\n' + webhook(service))
    service.behaviour = behaviour
    for _ in range(3):
        plain.run('scrun', 'true')
    wait_until(lambda: service.asked >= 2)  # it was tried again
    service.behaviour = 'accept'
    last = plain.submit('true')
    wait_until(lambda: len(service.events(last)) == 2)


def test_a_service_that_refuses_is_not_asked_again(plain, service):
    configure(plain, webhook(service, events=('end',)))
    before = count(plain, 'webhook', 'failed')
    service.behaviour = 404
    plain.run('scrun', 'true')
    wait_until(lambda: count(plain, 'webhook', 'failed') == before + 1)
    assert service.asked == 1


def test_certificates_are_verified(plain, tmp_path):
    if shutil.which('openssl') is None:
        pytest.skip('no openssl')
    good, other = (WebService(make_certificate(tmp_path, name)) for name in ('localhost', 'other.example'))
    try:
        own = f'ca_file = "{tmp_path}/localhost.crt"'
        configure(plain, webhook(good, own) + webhook(other, f'ca_file = "{tmp_path}/other.example.crt"'))
        job = plain.submit('true')
        wait_until(lambda: len(good.events(job)) == 2)
        log = plain.directory / 'log/head'
        wait_until(lambda: 'the certificate of localhost is not accepted' in log.read_text())
        assert other.documents == [] and other.asked == 0
    finally:
        good.close()
        other.close()


def test_a_lost_node_is_an_event(fresh, service):
    cluster = fresh(2, '--slice', '20ms')
    configure(cluster, webhook(service, events=('node_down', 'node_up')))
    cluster.kill('node01')
    wait_until(lambda: service.documents)
    assert (service.documents[0]['event'], service.documents[0]['node']['name']) == ('node_down', 'node01')
    cluster.restart('node01')
    wait_until(lambda: len(service.documents) == 2)
    assert service.documents[1]['event'] == 'node_up'


# ---- configuration


def test_check_config_warns_of_missing_files(plain, tmp_path):
    config = tmp_path / 'scored.toml'
    text = (plain.directory / 'head/scored.toml').read_text().split(MARK)[0]
    (tmp_path / 'token').write_text('0123456789abcdef0123\n')
    (tmp_path / 'token').chmod(0o644)
    config.write_text(text + f'[notify]\nsendmail = "/no/sendmail"\n[[notify.webhook]]\nurl = "https://a.example/"\n'
                             f'token_file = "{tmp_path}/token"\n')
    result = plain.run('scored', '--role=head', '--check-config', '--config', config)
    assert result.stderr.splitlines() == [
        'scored: head: warning: [notify] sendmail: /no/sendmail: No such file or directory; no mail can be sent',
        f'scored: head: warning: [[notify.webhook]] https://a.example/: token_file: {tmp_path}/token is open to others: chmod 600; '
        'it gets no notices'], result
