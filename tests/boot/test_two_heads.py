"""A second head for an installed cluster, by the lines of the administrator guide: what users see when a head is lost."""
import contextlib
import json
import pathlib
import re
import threading
import time

import pytest
from bed import LIMIT, Bed, wait_until
from booted_cluster import NODES, OF_HEAD, OF_NODE, add_users, install, node_lines, packages
from figures import figure

GUIDE = pathlib.Path(__file__).resolve().parents[2] / 'docs/guide/admin.md'
HEADS = ('head-a', 'head-b')
OF_NODES = ('node00', 'node01', 'login')  # a job may run on each


def steps(machine, part=0):
    """What the guide's section says to type on this machine, in its part-th block of commands."""
    section = GUIDE.read_text(encoding='utf-8').split('\n## Two heads\n')[1].split('\n## ')[0]
    fenced = re.findall(r'^```(\w*)\n(.*?)^```$', section, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fenced if not language]
    lines = re.findall(rf'^{machine}# (.*)$', blocks[part], re.MULTILINE)
    assert lines, f'{GUIDE} has no step for {machine}'
    return lines


@pytest.fixture(scope='module')
def machines(empty_bed, base, installed):
    """A cluster with one head, and a host with the users that is to become the second one."""
    bed = Bed([installed, base])
    try:
        for name in (*HEADS, *OF_NODES):
            bed.machine(name)
        for machine in bed.machines.values():
            machine.boot()
            add_users(machine)
            if machine.name != 'head-b' or not packages():
                install(machine, OF_HEAD if machine.name in HEADS else OF_NODE)
        done = bed.machines['head-a'].run('scored-setup', 'head', '--nodes', NODES, '--login-nodes', 'login')
        for name, line in node_lines(done.stdout).items():
            bed.machines[name].run('sh', '-c', line + (' --login' if name == 'login' else ''))
        yield bed.machines
    finally:
        bed.close()


def other(name):
    return HEADS[1 - HEADS.index(name)]


def ask(machine, *words):
    """The JSON of a user's command: root of a login node is not root of the cluster."""
    return json.loads(machine.run(*words, '--json', user='alice').stdout)


def heads(machine):
    """The state of each head, as users of this machine see it; empty: no answer."""
    asked = machine.run('score', 'info', '--json', user='alice', code=None)
    listed = json.loads(asked.stdout)['heads'] if asked.returncode == 0 else []
    return {head['name'].split(':')[0]: head['state'] for head in listed}


def wait_for_leader(machine, name, follows='current'):
    """Until this head is in charge, and the other one is in this state if one is given."""
    wait_until(lambda: heads(machine).get(name) == 'in charge', f'{name} is in charge for {machine.name}')
    if follows:
        wait_until(lambda: heads(machine).get(other(name)) == follows, f'{other(name)} is {follows} for {machine.name}')


def in_charge(machine):
    wait_until(lambda: sorted(heads(machine).values()) == ['current', 'in charge'], f'both heads work for {machine.name}')
    return next(name for name, state in heads(machine).items() if state == 'in charge')


def wait_for_nodes(machine):
    wait_until(lambda: {node['state'] for node in ask(machine, 'scnodes')['nodes']} == {'up'}, 'all nodes are up')


def test_the_steps_of_the_guide_make_a_second_head(machines):
    first, second, login = (machines[name] for name in (*HEADS, 'login'))
    wait_for_nodes(first)
    before = int(first.run('scrun', '--detach', '-J', 'before', 'sleep', '100000', user='alice').stdout)
    get, start = steps('head-b')
    edit, copy, restart = steps('head-a')
    assert get.startswith('cd /packages && apt-get install ')
    if packages():
        second.run('sh', '-c', get)
    first.run('sh', '-c', edit)
    # The machines have no ssh: the files arrive as scp -p would bring them, with their modes and root as their owner.
    assert copy == 'scp -p /etc/scored/scored.toml /etc/scored/key head-b:/etc/scored/'
    for path in copy.split()[2:4]:
        second.write(path, first.read(path), mode=first.run('stat', '-c', '%a', path).stdout.strip())
    first.run('sh', '-c', restart)
    said = second.run('sh', '-c', start).stdout
    assert 'head-a:7421 and head-b:7421' in said, said
    for name in OF_NODES:
        for line in steps('node00'):
            machines[name].run('sh', '-c', line)
    for machine in (first, second, login):
        wait_for_leader(machine, 'head-a')
    wait_for_nodes(login)
    assert ask(login, 'score', 'job', before)['job']['state'] == 'running', 'it ran on through all of this'


def get_page(machine):
    """Of the head's web server on this machine, as a browser there gets it."""
    port = machine.read('/var/lib/scored/dashboard.port').strip()
    return machine.run('curl', '-s', '-i', f'http://127.0.0.1:{port}/').stdout


def test_users_of_all_hosts_go_on_when_a_head_is_lost(machines):
    first, second, login = (machines[name] for name in (*HEADS, 'login'))
    front = login.start('scrun', '-n', '1', 'sh', '-c', 'while [ ! -e end ]; do sleep 0.2; done; exit 3', user='alice')
    wait_until(lambda: len(ask(login, 'scq', '--active', '-a')['jobs']) == 2, 'the job of scrun runs')
    first.kill()
    for machine in (login, second):
        wait_for_leader(machine, 'head-b', follows=None)
        assert machine.run('scrun', '-N', '2', 'hostname', user='alice').stdout.split() != []
    assert front.poll() is None
    for name in OF_NODES:
        machines[name].run('touch', '/home/alice/end')
    out, err = front.communicate(timeout=120)
    assert front.returncode == 3 and 'reconnected to the head' in err, (out, err)
    first.boot()
    for machine in (first, second, login):
        wait_for_leader(machine, 'head-b')
    # Its dashboard is not for other hosts here, so browsers on the host of the follower are told where it is.
    page = get_page(first)
    assert page.startswith('HTTP/1.1 503 ') and 'the head at head-b:7421 is in charge' in page, page


class Asker(threading.Thread):
    """Runs a command of a user again and again, and notes how long each took."""

    def __init__(self, machine, *words):
        super().__init__()
        self.machine, self.words = machine, words
        self.took, self.failures, self.stop = [], [], threading.Event()

    def run(self):
        while not self.stop.is_set():
            begun = time.monotonic()
            asked = self.machine.run(*self.words, user='alice', code=None)
            self.took.append(time.monotonic() - begun)
            if asked.returncode != 0:
                self.failures.append(asked)

    def end(self):
        self.stop.set()
        self.join()
        assert not self.failures, self.failures


def timed_lines(file, into):
    """Reads lines until the end, each with the time of its arrival."""
    reader = threading.Thread(target=lambda: into.extend((time.monotonic(), line) for line in iter(file.readline, '')))
    reader.start()
    return reader


def test_users_of_a_login_node_go_on_when_the_host_of_a_head_loses_power(machines):
    """From one moment on nothing comes from that host: no connection to it is closed."""
    login = machines['login']
    nodes = [machines[name] for name in OF_NODES]
    lost = in_charge(login)
    script = 'i=0; while [ ! -e quit ]; do i=$((i+1)); echo $i; sleep 0.1; done; exit 3'
    front = login.start('scrun', '-n', '1', 'sh', '-c', script, user='alice')
    login.write('/home/alice/script', '#!/bin/sh\nwhile [ ! -e quit ]; do sleep 0.1; done; exit 7\n')
    batch = login.start('scbatch', '--wait', '-o', '/dev/null', '/home/alice/script', user='alice')
    lines, messages = [], []
    readers = [timed_lines(front.stdout, lines), timed_lines(front.stderr, messages)]
    wait_until(lambda: len(lines) > 5, messages)
    wait_until(lambda: batch.stdout.readline() != '', 'the script is submitted')
    with contextlib.ExitStack() as threads:
        askers = [Asker(login, *words) for words in (['scq'], ['scnodes'], ['scrun', '--detach', 'true'])]
        for asker in askers:
            asker.start()
            threads.callback(asker.stop.set)
        for asker in askers:
            wait_until(lambda asker=asker: asker.took, 'commands are answered')
        cut = time.monotonic()
        machines[lost].cut()
        machines[lost].kill()
        wait_for_leader(login, other(lost), follows=None)
        wait_until(lambda: any('reconnected to the head' in line for _, line in messages), messages)
        again = next(at for at, line in messages if 'reconnected to the head' in line) - cut
        seen = len(lines)
        wait_until(lambda: len(lines) > seen + 5, messages)
        for asker in askers:
            wait_until(lambda asker=asker, count=len(asker.took): len(asker.took) > count + 1, 'commands are answered again')
            asker.end()
    assert batch.poll() is None, batch.stderr.read()
    for node in nodes:
        node.run('touch', '/home/alice/quit')
    quit_at = time.monotonic()
    assert batch.wait(LIMIT) == 7 and front.wait(LIMIT) == 3, messages
    ended = time.monotonic() - quit_at
    for reader in readers:
        reader.join()
    assert [int(line) for _, line in lines] == list(range(1, len(lines) + 1)), 'output is lost or repeated'
    gap = max(later - earlier for (earlier, _), (later, _) in zip(lines, lines[1:]))
    worst = {asker.words[0]: max(asker.took) for asker in askers}
    figure('two-heads-power', f'host of a head cut off silently: scrun is connected to the other head after {again:.1f} s, its output '
           f'stands still for {gap:.1f} s at most; commands take at most ' + ', '.join(f'{name} {took:.1f} s' for name, took in worst.items()) +
           f'; scbatch --wait and scrun end {ended:.1f} s after their jobs (bound 10 s)')
    machines[lost].heal()
    machines[lost].boot()
    for node in nodes:
        node.run('rm', '/home/alice/quit')
    wait_for_leader(login, other(lost))


def test_a_stopped_head_leaves_its_hosts_users_a_line(machines):
    login = machines['login']
    stopped = in_charge(login)
    machine = machines[stopped]
    machine.run('systemctl', 'stop', 'scored-head')
    wait_for_leader(login, other(stopped), follows=None)
    said = machine.run('scq', user='alice', code=125).stderr
    assert said.count('\n') == 1 and 'no head answers: /run/scored/head.sock: ' in said, said
    assert 'the heads of this cluster are head-a:7421 and head-b:7421' in said, said
    machine.run('systemctl', 'start', 'scored-head')
    for one in (*HEADS, 'login'):
        wait_for_leader(machines[one], other(stopped))
    report = login.run('score', 'doctor', '--quick', user='alice', code=None).stdout
    line = rf'^ok +heads +{other(stopped)}:7421 is in charge, {stopped}:7421 can take over$'
    assert re.search(line, report, re.MULTILINE), report


def test_the_follower_sends_a_new_node_to_the_head_in_charge(machines):
    """The follower gives no keys. It says where they are given, not that the token is bad."""
    node, login = machines['node01'], machines['login']
    leader = in_charge(login)
    node.run('systemctl', 'stop', 'scored-node')
    node.run('rm', '/etc/scored/node.key')
    node.run('sed', '-i', '/^heads = /d', '/etc/scored/scored.toml')
    # It is made on the host of the follower: both heads have the key of the cluster.
    printed = machines[other(leader)].run('scored-setup', 'token', 'node01').stdout
    line = node_lines(printed)['node01']
    assert f' --head {other(leader)} ' in line, printed
    refused = node.run('sh', '-c', line, code=125).stderr
    assert f'scored-setup node: the head refuses: it follows the head at {leader}:7421; give --head {leader}:7421\n' in refused, refused
    assert node.run('test', '-e', '/etc/scored/node.key', code=None).returncode != 0
    node.run('sh', '-c', line.replace(other(leader), leader))
    for words in steps('node00'):
        node.run('sh', '-c', words)
    wait_for_nodes(login)
    # Used up at both: the head that takes over knows it.
    machines[leader].run('systemctl', 'restart', 'scored-head')
    wait_for_leader(login, other(leader))
    node.run('mv', '/etc/scored/node.key', '/etc/scored/node.key.kept')
    assert 'refuses the token' in node.run('sh', '-c', line, code=125).stderr
    node.run('mv', '/etc/scored/node.key.kept', '/etc/scored/node.key')
    wait_for_nodes(login)


def test_the_guide_recovers_from_a_permanently_lost_head(machines):
    login = machines['login']
    lost = in_charge(login)
    rest = machines[other(lost)]
    rest.kill()
    wait_for_leader(login, lost, follows=None)
    int(login.run('scrun', '--detach', 'true', user='alice').stdout)  # only `lost` knows it
    machines[lost].kill()
    rest.boot()
    wait_until(lambda: 'it lacks changes' in rest.journal('-u', 'scored-head', '-b'), 'it waits')
    assert heads(login) == {}
    stop, once, again = steps('head-b', part=1)
    rest.run('sh', '-c', stop)
    forced = rest.start('sh', '-c', once)
    try:
        wait_for_leader(login, rest.name, follows=None)
    finally:
        rest.run('sh', '-c', 'kill -INT $(pgrep -f -- [-]-recover)')  # ^C
    forced.wait(LIMIT)
    assert 'stop head' in forced.stderr.read()
    rest.run('sh', '-c', again)
    wait_for_leader(login, rest.name, follows=None)
    wait_for_nodes(login)
    machines[lost].boot()  # it was not lost for good
    wait_for_leader(login, rest.name)
