"""Clients of the head that know the protocol and misuse it."""
import contextlib
import os
import pathlib
import resource
import secrets
import socket
import time

from cluster import is_alive, wait_until
from figures import figure
from frames import Schema, frame, read_frame
from protobuf import fields
from test_control_network import udp_sockets, use_pm

SCHEMA = Schema()


def connect(cluster):
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(30)
    peer.connect(cluster.description['socket'])
    return peer


@contextlib.contextmanager
def client(cluster, lowest=1, highest=1):
    """A connection after its hello; gives it and the head's answer."""
    with connect(cluster) as peer:
        peer.sendall(SCHEMA.frame('ClientHello', lowest_version=lowest, highest_version=highest))
        yield peer, read_frame(peer)


def submission(request, tag):
    program = {'argv': [b'true']}
    return SCHEMA.frame('Submit', tag=tag, request_id=request, resources={'nodes': 1, 'tasks': 1, 'tasks_per_node': 1},
                        spec={'programs': [program], 'env': [b'PATH=/bin:/usr/bin'], 'directory': b'/tmp', 'job_name': b'again'},
                        detached=1, allow_root=1)


def test_a_submission_that_is_sent_again_is_one_job(fresh):
    """Its answer was lost: with the connection, or with the head."""
    cluster = fresh(1)
    requests = [secrets.token_bytes(16) for _ in range(10)]
    answers = {request: set() for request in requests}
    for turn in range(4):
        for request in requests:
            with client(cluster) as (peer, hello):
                assert hello[0] == SCHEMA.frames['ServerHello'][0]
                peer.sendall(submission(request, turn))
                if turn == 0:
                    continue  # closed before the answer comes
                kind, payload = read_frame(peer)
                assert kind == SCHEMA.frames['Submitted'][0], (kind, payload)
                answers[request].add(dict(fields(payload))[2])
        if turn == 1:
            cluster.kill('head')
            cluster.restart('head')
            cluster.wait_up()
    assert all(len(jobs) == 1 for jobs in answers.values()), answers
    known = {job['job'] for job in cluster.json('scq', '-a')['jobs'] if job['name'] == 'again'}
    assert known == {job for jobs in answers.values() for job in jobs}
    wait_until(lambda: not cluster.json('scq', '--active')['jobs'])
    for row in ('S36', 'call-repeated'):
        figure(row, f'{len(requests)} requests sent 4 times, over a restart of the head: {len(known)} jobs')


def test_hostile_lengths_cost_nothing(few):
    head = few.daemon('head')['pid']

    def rss():
        return int(pathlib.Path(f'/proc/{head}/statm').read_text().split()[1]) * resource.getpagesize()

    frames = [(kind, limit) for kind, limit in SCHEMA.frames.values()]
    with client(few) as (peer, _):  # what any client costs
        pass
    before, slowest, count = rss(), 0.0, 0
    for kind, limit in frames:
        for length in (limit + 1, 2**31 - 1, 2**32 - 1):
            with client(few) as (peer, _):
                began = time.monotonic()
                peer.sendall(frame(kind, b'', length))
                with contextlib.suppress(OSError):
                    while peer.recv(65536):
                        pass
                slowest, count = max(slowest, time.monotonic() - began), count + 1
    nested = b''
    for _ in range(10000):
        nested = b'\x1a' + SCHEMA.field(0, 'bytes', nested)[1:]  # field 3: resources of resources ...
        if len(nested) > 60000:
            break
    hostile = [nested, b'\x1a\0' * 1000000, b'\x0a' + b'\xff' * 9 + b'\x01', SCHEMA.encode('Submit', request_id=b'x' * 4000000)]
    for payload in hostile:
        with client(few) as (peer, _):
            with contextlib.suppress(OSError):
                peer.sendall(frame(SCHEMA.frames['Submit'][0], payload))
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
    assert is_alive(head) and few.run('scrun', '-q', '-N', 1, 'echo', 'x').stdout == 'x\n'
    assert slowest < 5
    grown = rss() - before
    assert grown <= 16 << 20  # the buffer of one frame of 4 MiB is kept for the next
    figure('S10', f'{count} lengths refused, slowest {slowest * 1000:.1f} ms; head {grown / 1024:+.0f} KiB')


def cpu_seconds(pid):
    words = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK')


def test_a_head_with_few_descriptors(fresh):
    cluster = fresh(1)
    job = cluster.submit('sleep', 600)
    cluster.wait_job(job, 'running')
    head = cluster.daemon('head')['pid']
    held = len(os.listdir(f'/proc/{head}/fd'))
    resource.prlimit(head, resource.RLIMIT_NOFILE, (held + 20, held + 20))
    with contextlib.ExitStack() as crowd:
        for _ in range(200):
            peer = crowd.enter_context(socket.socket(socket.AF_UNIX))
            peer.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                peer.connect(cluster.description['socket'])
        wait_until(lambda: len(os.listdir(f'/proc/{head}/fd')) >= held + 18)
        before = cpu_seconds(head)
        time.sleep(3)
        share = (cpu_seconds(head) - before) / 3
        assert cluster.nodes_up() is not None and is_alive(head)
    cluster.wait_up()
    cluster.cancel(job)
    assert cluster.run('scrun', '-q', 'echo', 'x').stdout == 'x\n'
    assert share < 0.5
    for row in ('S13', 'F21'):
        figure(row, f'{share:.1%} of a processor without descriptors; served again afterwards')


def test_no_datagram_of_a_stranger_is_answered(fresh):
    cluster = fresh(2, '--control', 'pm', '--switch-mode', 'barrier')
    use_pm(cluster)
    bound = [address for name in ('head', 'node00', 'node01') for address in udp_sockets(cluster, name)]
    assert bound
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(('127.0.0.1', 0))
        stranger.settimeout(1)
        sent = 0
        for size in (0, 1, 16, 64, 500, 1400):
            for address in bound:
                for _ in range(20):
                    stranger.sendto(os.urandom(size), address)
                    sent += 1
        with contextlib.suppress(TimeoutError):
            raise AssertionError(f'answered: {stranger.recvfrom(65536)}')
    assert cluster.nodes_up() == 2
    figure('S28', f'{sent} datagrams to {len(bound)} ports, 0 answers')
