"""A node daemon whose standard error is a journal: systemd's own, in a mount namespace of the test's."""
import json
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from cluster import LIMIT, is_alive, wait_until

JOURNALD = pathlib.Path('/lib/systemd/systemd-journald')
PREPARE = '''set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/journald.conf.d /run/log/journal
[ ! -d /var/log/journal ] || mount -t tmpfs none /var/log/journal
printf '[Journal]\\nStorage=volatile\\nReadKMsg=no\\nAudit=no\\n' > /run/systemd/journald.conf.d/test.conf
cp "$1" /run/machine-id
mount --bind /run/machine-id /etc/machine-id
exec /lib/systemd/systemd-journald
'''
# As the service manager does for a unit; systemd-cat of Debian 12 leaves the variable out.
AS_UNIT = 'export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2); exec "$@"'
LATE = 'late switch'


class Journal:
    """A journald of the test's own; `command` runs a program that logs to it."""

    def __init__(self, directory):
        machine_id = directory / 'machine-id'
        machine_id.write_text('0123456789abcdef0123456789abcdef\n')
        self.process = subprocess.Popen(['unshare', '--mount', 'sh', '-c', PREPARE, 'sh', str(machine_id)],
                                        stderr=subprocess.PIPE, text=True)
        socket = pathlib.Path(f'/proc/{self.process.pid}/root/run/systemd/journal/socket')
        wait_until(lambda: socket.exists() or self.process.poll() is not None)
        if self.process.poll() is not None:
            pytest.skip(f'systemd-journald does not run here: {self.process.stderr.read()}')

    def command(self, *words):
        return ['nsenter', f'--mount=/proc/{self.process.pid}/ns/mnt', *map(str, words)]

    def entries(self, *matches):
        out = subprocess.run(self.command('journalctl', '--quiet', '-o', 'json', *matches),
                             capture_output=True, text=True, check=True).stdout
        return [json.loads(line) for line in out.splitlines()]

    def of(self, verb):
        return [entry for entry in self.entries('SYSLOG_IDENTIFIER=scored')
                if 'MESSAGE_ID' in entry and entry['MESSAGE'].startswith(verb + ' ')]

    def stop(self):
        self.process.terminate()
        self.process.wait(LIMIT)


@pytest.fixture
def journal(as_root, tmp_path):
    for program in (JOURNALD, 'unshare', 'nsenter', 'journalctl', 'systemd-cat'):
        if not shutil.which(program):
            pytest.skip(f'needs {program}')
    made = Journal(tmp_path)
    yield made
    made.stop()


def start_again(cluster, name, journal):
    """The node daemon as systemd would run it: standard error is the journal."""
    pid = cluster.daemon(name)['pid']
    folder = pathlib.Path(f'/proc/{pid}')
    words = (folder / 'cmdline').read_text().rstrip('\0').split('\0')
    words[0] = str((folder / 'exe').readlink())
    environment = dict(pair.split(b'=', 1) for pair in (folder / 'environ').read_bytes().split(b'\0') if b'=' in pair)
    cluster.kill(name)
    wait_until(lambda: not is_alive(pid))
    return subprocess.Popen([*journal.command('systemd-cat', '--identifier=scored', 'sh', '-c', AS_UNIT, 'sh'), *words],
                            env=environment, stdin=subprocess.DEVNULL)


def late_count(cluster):
    return cluster.json('scnodes')['nodes'][1]['late_switches']


def test_late_switches_are_entries_of_a_nodes_journal(fresh, journal):
    cluster = fresh(2, '--slice', '20ms')
    daemon = start_again(cluster, 'node01', journal)
    try:
        wait_until(lambda: journal.of('join'), what=cluster.logs)
        begin = time.monotonic()
        jobs = [cluster.submit('-N', 2, 'sh', '-c', 'while :; do :; done') for _ in range(2)]
        for job in jobs:
            cluster.wait_job(job, 'running')
        while late_count(cluster) < 5:
            daemon.send_signal(signal.SIGSTOP)  # no switch for a slice and a half
            time.sleep(0.03)
            daemon.send_signal(signal.SIGCONT)
            time.sleep(0.2)
        wait_until(lambda: journal.of(LATE))
        time.sleep(3)  # the first is reported at once, the rest after a minute
        reported = journal.of(LATE)
        assert len(reported) <= 1 + (time.monotonic() - begin) / 60, reported
        late = reported[0]
        assert late['NODE'] == 'node01' and int(late['JOB_ID']) in jobs and late['PRIORITY'] == '4', late
        assert int(late['LATE_US']) > 1000 and 0 <= int(late['HELD_BACK']) < late_count(cluster), late
        assert journal.entries(f'JOB_ID={late["JOB_ID"]}', f'MESSAGE_ID={late["MESSAGE_ID"]}')[0] == late
        cluster.cancel(*jobs)
    finally:
        daemon.terminate()
        daemon.wait(LIMIT)
    wait_until(lambda: journal.of('stop node'))
    started, stopped = [journal.of(verb) for verb in ('start node', 'stop node')]
    assert [entry['NODE'] for entry in started + stopped] == ['node01'] * 2
