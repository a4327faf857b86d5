"""A second daemon with a node's key, and recorded connections that are sent again."""
import re
import socket
import subprocess
import threading
import time

from cluster import BIN, is_alive, wait_until
from figures import figure
from forwarder import Forwarder, pump, shut


def log_of_head(cluster):
    return '\n'.join(path.read_text(errors='replace') for path in sorted((cluster.directory / 'log').glob('head*')))


def second_daemon(cluster, node, place):
    """With the name and the key of the node, on the same host."""
    source = cluster.directory / node
    (place / 'shepherds').mkdir(parents=True)
    place.chmod(0o700)
    text = (source / 'scored.toml').read_text()
    text = re.sub(r'(?m)^(run_dir|launcher_dir) = .*$', rf'\1 = "{place}"', text)
    text = re.sub(r'(?m)^cgroup_root = .*$', 'cgroup_root = "none"', text)
    (place / 'scored.toml').write_text(text)
    (place / 'scored.toml').chmod(0o600)
    with open(place / 'log', 'w') as log:
        return subprocess.Popen([str(BIN / 'scored'), '--role=node', '--config', str(place / 'scored.toml')],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)


def test_a_second_daemon_with_a_nodes_key_is_refused(fresh, tmp_path):
    cluster = fresh(2)
    job = cluster.submit('-N', 2, 'sleep', 3600)
    cluster.wait_job(job, 'running')
    first = cluster.daemon('node00')['pid']
    own = tmp_path / 'second'
    began = time.monotonic()
    second = second_daemon(cluster, 'node00', own)
    try:
        refused = lambda: [line for line in log_of_head(cluster).splitlines() if 'second daemon' in line]
        wait_until(refused)
        tries = lambda: len(re.findall('(?i)lost|cannot connect|refuses|closed', (own / 'log').read_text()))
        wait_until(lambda: tries() >= 5 or time.monotonic() > began + 20)
        refusals = tries()
        minutes = (time.monotonic() - began) / 60
        lines = refused()
        assert second.poll() is None, 'it tries again'
        assert is_alive(first) and cluster.nodes_up() == 2
        assert cluster.job(job)['state'] == 'running'
        assert cluster.run('scrun', '-q', '-N', 2, 'echo', 'x').stdout == 'x\n' * 2
        assert len(lines) <= 1 + minutes, lines
        cluster.cancel(job)
        admitted = log_of_head(cluster).count('Connected node')
        cluster.kill('node00')
        wait_until(lambda: log_of_head(cluster).count('Connected node') > admitted)  # now the second one is the node
        figure('hole-5', f'refused {refusals} times in {minutes * 60:.0f} s: {len(lines)} log line, job and node undisturbed; '
                         'admitted when the first was gone')
    finally:
        second.kill()
        second.wait()
    cluster.restart('node00')
    cluster.wait_up()


class Recorder(Forwarder):
    """Keeps what each client sent. `target`: (host, port)"""

    def __init__(self, target):
        self.sent = []
        super().__init__(('127.0.0.1', 0), target)

    def join(self, near):
        try:
            far = socket.create_connection(self.target)
        except OSError:  # the head is away
            return near.close()
        sent = bytearray()
        with self.lock:
            self.ends += [near, far]
            self.sent.append(sent)
        threading.Thread(target=self.record, args=(near, far, sent), daemon=True).start()
        threading.Thread(target=pump, args=(far, near), daemon=True).start()

    @staticmethod
    def record(near, far, sent):
        try:
            while data := near.recv(65536):
                sent += data
                far.sendall(data)
        except OSError:
            pass
        shut(near)
        shut(far)


def answered(address, data):
    """How many bytes the head answers, until it closes the connection."""
    count = 0
    with socket.create_connection(address) as peer:
        peer.settimeout(60)
        try:
            peer.sendall(data)
            while more := peer.recv(65536):
                count += len(more)
        except ConnectionError:
            pass
    return count


def test_a_recorded_connection_of_a_node_admits_no_one(fresh, tmp_path):
    """At once, and after a restart of the head."""
    cluster = fresh(2)
    host, port = cluster.description['address'].split(':')
    path = cluster.directory / 'node00' / 'scored.toml'
    head = (host, int(port))
    recorder = Recorder(head)
    way = recorder.listener.getsockname()[1]
    try:
        before = path.read_text()
        path.write_text(re.sub(r'(?m)^head = .*$', f'head = "127.0.0.1:{way}"', before))
        cluster.kill('node00')
        cluster.restart('node00')
        cluster.wait_up()
        job = cluster.submit('-N', 2, 'sleep', 3600)
        cluster.wait_job(job, 'running')
        said = bytes(recorder.sent[-1])
        assert len(said) > 500, 'a whole handshake and a hello'
        pid = cluster.daemon('node00')['pid']
        rounds = 0
        for restart in (False, True):
            if restart:
                cluster.kill('head')
                cluster.restart('head')
                cluster.wait_up()
            for _ in range(5):
                answered(head, said)
                rounds += 1
            assert is_alive(pid) and cluster.nodes_up() == 2
            assert cluster.job(job)['state'] == 'running'
        cluster.cancel(job)
        figure('S05', f'{rounds} replays of {len(said)} recorded bytes of a node, before and after a restart: node and job undisturbed')
    finally:
        path.write_text(before)
        cluster.kill('node00')
        recorder.close()
    cluster.restart('node00')
    cluster.wait_up()
