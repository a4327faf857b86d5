"""score start by ssh: real sshds in namespaces, an ordinary user."""
import json
import os
import shutil
import signal
import subprocess

import lan
import pytest
from cluster import BIN, LIMIT, wait_until

pytestmark = pytest.mark.skipif(lan.missing() != '', reason=lan.missing())


@pytest.fixture(scope='module')
def four():
    """4 hosts, shared by the tests that break none."""
    made = lan.Lan(4)
    yield made
    made.close()


@pytest.fixture
def hosts():
    """Makes networks that a test may break."""
    made = []

    def make(*arguments, **options):
        made.append(lan.Lan(*arguments, **options))
        return made[-1]

    yield make
    for network in made:
        network.close()


@pytest.fixture(autouse=True)
def nothing_left(request):
    yield
    if 'four' in request.fixturenames:
        request.getfixturevalue('four').check_clean()


def boot(network, *options, hosts=None, **more):
    """Up, running a `cat` that ends with its input; gives the process and the description."""
    process = network.popen(*network.start_words('--print-json', *options, '--', 'cat', hosts=hosts),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    text = ''
    for line in process.stdout:
        text += line
        if line == '}\n':
            return process, json.loads(text)
    raise AssertionError(process.communicate()[1] + network.logs())


def finish(process):
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, err
    return err


def use(network, description, *words, **options):
    env = {'SCORED_SERVER': description['socket']}
    return network.run(BIN / words[0], *words[1:], env=env, **options)


def test_command_runs_on_every_host(four):
    result = four.start('--', 'scrun', '-N', 4, 'hostname')
    assert sorted(result.stdout.split()) == four.names
    assert result.stderr == ''


def test_exit_code_is_the_commands(four):
    assert four.start('--', 'sh', '-c', 'exit 9', code=None).returncode == 9


def test_programs_are_sent_to_hosts_that_have_none(four):
    process, description = boot(four, '--push', 'always')
    sent = [name for name, path in four.left_files() if path.startswith('scored-push-') and path.endswith('/bin/scored')]
    assert sent == four.names
    result = use(four, description, 'scrun', '-N', '4', 'hostname')
    assert sorted(result.stdout.split()) == four.names
    finish(process)


def test_jobs_share_the_hosts(four):
    script = 'scrun --detach -N 4 sleep 60 && scrun --detach -N 4 sleep 60 && scrun -N 4 true && scq --active --no-header -o state'
    result = four.start('--', 'sh', '-ec', script)
    assert result.stdout.split()[-2:] == ['running', 'running'], result.stdout


def test_a_cluster_without_a_command_runs_until_it_is_stopped(four):
    started = four.start()
    assert 'score stop' in started.stderr
    directory = four.run(BIN / 'score', 'stop', '--list').stdout.strip()
    result = four.run(BIN / 'scrun', '-N', 4, 'hostname', env={'SCORED_SERVER': f'{directory}/head/head.sock'})
    assert sorted(result.stdout.split()) == four.names
    four.run(BIN / 'score', 'stop')
    assert four.left_files() == []
    assert 'no running cluster' in four.run(BIN / 'score', 'stop', code=125).stderr


def test_a_cluster_ends_when_its_directory_is_removed(four):
    """As systemd does with XDG_RUNTIME_DIR when the user's last session ends."""
    four.start()
    directory = four.run(BIN / 'score', 'stop', '--list').stdout.strip()
    four.run('rm', '-rf', directory)
    four.check_clean()


@pytest.mark.parametrize('victim', ['starter', 'supervisor', 'both', 'TERM'])
def test_nothing_is_left_when_it_is_killed(four, victim):
    process, description = boot(four)
    use(four, description, 'scrun', '--detach', '-N', '4', 'sh', '-c', 'trap "" TERM HUP; setsid sleep 600')
    if victim == 'TERM':
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=LIMIT)
        return
    supervisor = description['supervisor_pid']
    for pid in {'starter': [process.pid], 'supervisor': [supervisor], 'both': [process.pid, supervisor]}[victim]:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=LIMIT)
    if victim == 'both':
        wait_until(lambda: not [name for name, _ in four.left_files() if name != 'login'], 60)
        four.start('--', 'true')  # removes what is left on the login host


def test_a_broken_connection_leaves_nothing_on_the_host(four):
    process, description = boot(four)
    link = description['hosts'][1]['link_pid']
    os.kill(link, signal.SIGKILL)
    wait_until(lambda: not [name for name, _ in four.left_files() if name == 'h01'], 60)
    result = use(four, description, 'scrun', '-N', '3', 'hostname')
    assert sorted(result.stdout.split()) == ['h00', 'h02', 'h03']
    assert 'h01: ' in finish(process)


def test_a_silent_connection_leaves_nothing_on_the_host(hosts):
    network = hosts(2)
    process, description = boot(network)
    # The cable is cut: neither side hears anything of the other, not even that the other has ended.
    subprocess.run([*network.inside('login', root=True), 'ip', 'link', 'set', 'vh01', 'down'], check=True)
    wait_until(lambda: not [name for name, _ in network.left_files() if name == 'h01'], 120)
    assert process.stderr.readline().startswith('score start: h01: ')
    finish(process)


def test_the_cluster_goes_on_without_a_host_that_vanishes(hosts):
    network = hosts(3)
    process, description = boot(network)
    network.lose('h02')
    result = use(network, description, 'scrun', '-N', '2', 'hostname')
    assert sorted(result.stdout.split()) == ['h00', 'h01']
    process.communicate(timeout=LIMIT)
    network.check_clean()


def test_a_host_that_cannot_be_reached_is_named(four):
    result = four.start('--', 'true', hosts=['h00', 'nowhere', 'h01'], code=125)
    lines = result.stderr.splitlines()
    assert lines[0].startswith('score start: nowhere: ') and 'check the name nowhere' in lines[0], lines
    assert lines[1] == 'score start: 2 of 3 hosts can be used; --min-hosts 2 starts the cluster without the rest'
    assert len(lines) == 2


def test_the_rest_goes_on_if_there_are_enough(four):
    result = four.start('--min-hosts', 2, '--', 'scrun', '-N', 2, 'hostname', hosts=['h00', 'nowhere', 'h01'])
    assert sorted(result.stdout.split()) == ['h00', 'h01']
    assert result.stderr.startswith('score start: nowhere: ')


def test_a_port_that_is_taken_is_named(four):
    taken = four.popen('python3', '-c', 'import socket, time; s = socket.create_server(("0.0.0.0", 7999)); time.sleep(600)')
    wait_until(lambda: '7999' in four.run('ss', '-ltn').stdout)
    result = four.start('--port', 7999, '--', 'true', code=125)
    taken.kill()
    taken.wait()
    assert '7999' in result.stderr and 'use another --port' in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_user_of_another_number_is_named(hosts):
    def other_user(network):
        text = (network.base / 'etc/passwd').read_text()
        (network.base / 'etc/passwd').write_text(text + text.splitlines()[-1].replace('tester', 'other').replace(
            str(lan.UID), str(lan.UID + 1), 1) + '\n')
        shadow = network.base / 'etc/shadow'
        shadow.write_text(shadow.read_text() + 'other:*:19000:0:99999:7:::\n')
        (network.base / 'sshd_config').write_text((network.base / 'sshd_config').read_text().replace(
            'AllowUsers tester', 'AllowUsers tester other'))

    network = hosts(1, other_user)
    result = network.start('--', 'true', hosts=['other@h00'], code=125)
    assert f'h00: user id {lan.UID + 1} here, {lan.UID} at the head' in result.stderr
    assert 'the same number on every host' in result.stderr


def test_an_old_version_is_replaced_or_named(hosts):
    network = hosts(2)
    old = network.base / 'old'
    old.mkdir()
    (old / 'score-start').write_text('#!/bin/sh\necho 0.0.9\n')
    (old / 'score-start').chmod(0o755)
    (old / 'scored-launcher').symlink_to('score-start')
    subprocess.run([*network.inside('h01', root=True), 'mount', '--bind', str(old), str(BIN)], check=True)
    result = network.start('--push', 'never', '--', 'true', code=125)
    assert 'h01: Scored ' in result.stderr and 'is not installed there (found 0.0.9)' in result.stderr, result.stderr
    result = network.start('--', 'scrun', '-N', 2, 'hostname')
    assert sorted(result.stdout.split()) == network.names
    network.check_clean()


def test_the_host_where_it_starts_can_take_part_under_a_loopback_name(four):
    result = four.start('--', 'scrun', '-N', 2, 'hostname', hosts=['me', 'h01'], on='h00')
    assert sorted(result.stdout.split()) == ['h00', 'h01']


@pytest.mark.skipif(not all(map(shutil.which, ['dbus-daemon', 'systemctl'])), reason='needs dbus-daemon and systemd')
@pytest.mark.skipif(lan.cgroup2_mount() is None, reason='needs cgroup2')
def test_a_user_manager_gives_the_jobs_cgroups(hosts, four):
    def methods(network):
        return set(network.start('--', 'scnodes', '--no-header', '-o', 'switch').stdout.split())

    network = hosts(2, user_manager=True)
    assert methods(network) == {'cgroup.freeze'}
    for path in network.cgroups.values():
        wait_until(lambda path=path: not list(path.glob('app.slice/scored-start-*')))
    assert methods(four) == {'signals'}


def test_hostfile_and_pbs_give_the_hosts(four):
    path = four.base / 'nodes'
    path.write_text('h00\nh00\nh02\n')
    env = {'PBS_NODEFILE': str(path), 'PBS_JOBID': '3.login'}
    words = [BIN / 'score', 'start', '--ssh', f'ssh -F {four.base}/ssh_config']
    command = ['--', 'scnodes', '--no-header', '-o', 'node,cores']
    for more, variables in [(['--hostfile', path], {}), ([], env)]:
        result = four.run(*words, *more, *command, env=variables)
        assert result.stdout.split() == ['h00', '2', 'h02', '1'], result.stdout


FLUX = """#!/bin/sh
if [ "$1" = getattr ]; then echo "h0[0-1]"; exit; fi
rank=${{2#--rank=}}
exec ssh -F {base}/ssh_config h0$rank "exec sh -c '$5'"
"""


def test_flux_gives_the_hosts_and_reaches_them(four):
    """By a pretended flux that knows the two commands which score start uses."""
    (four.base / 'flux').write_text(FLUX.format(base=four.base))
    (four.base / 'flux').chmod(0o755)
    env = {'FLUX_URI': 'local:///run/flux/local'}
    script = f'PATH={four.base}:$PATH exec {BIN}/score start -- scrun -N 2 hostname'
    result = four.run('sh', '-c', script, env=env)
    assert sorted(result.stdout.split()) == ['h00', 'h01']


def test_no_hosts_are_an_error_with_the_remedy(four):
    assert 'use --hosts or --hostfile' in four.run(BIN / 'score', 'start', code=125).stderr


def test_sixty_four_hosts(hosts):
    network = hosts(64)
    result = network.start('--', 'scrun', '-N', 64, 'hostname')
    assert sorted(result.stdout.split()) == network.names
    network.check_clean()
