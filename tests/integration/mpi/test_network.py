"""Jobs get PM networks: by shared memory within a node and by a packet network between nodes."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import time

import pytest

from cluster import BIN, EXAMPLES, LIMIT, users_of, wait_until
from frozen import FrozenWatch
from web import Web, faults
from tiers import others_long

QUEENS = EXAMPLES / 'pm_queens'
PINGPONG = EXAMPLES / 'pm_pingpong'
TALK = EXAMPLES / 'pm_talk'
JOBS = int(os.environ.get('SCORE_TALK_JOBS', 4))
SECONDS = float(os.environ.get('SCORE_TALK_SECONDS', 3))
OF_DAEMON = ['/memfd:pm-context (deleted)', 'socket', 'socket']  # one socket of its own network, for two threads
KILLS = int(os.environ.get('SCORE_KILLS', 4))


def network_of(pid):
    """What a process holds for PM: contexts and sockets for UDP or raw packets."""
    sockets = set()
    for table, inode in (('udp', 9), ('udp6', 9), ('packet', 8)):
        lines = pathlib.Path(f'/proc/{pid}/net/{table}').read_text().splitlines()[1:]
        sockets |= {f'socket:[{line.split()[inode]}]' for line in lines}
    held = []
    for descriptor in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(OSError):  # closed since
            name = os.readlink(f'/proc/{pid}/fd/{descriptor}')
            if name.startswith('/memfd:pm-context') or name in sockets:
                held.append(name)
    return held


def test_pm_program_runs_inside_and_between_nodes(few):
    assert '92 solutions' in few.run('scrun', '-N', 4, '--ntasks-per-node', 2, QUEENS, 8).stdout
    assert '92 solutions' in few.run('scrun', '-N', 1, '-n', 2, QUEENS, 8).stdout
    assert 'round trip' in few.run('scrun', '-N', 2, '-n', 2, PINGPONG, 2000).stdout


def test_two_pm_jobs_share_their_nodes(few):
    jobs = [few.start('scrun', '-q', '-N', 4, '--ntasks-per-node', 2, QUEENS, 10) for _ in range(2)]
    for job in jobs:
        out, err = job.communicate(timeout=LIMIT)
        assert job.returncode == 0 and '724 solutions' in out, (out, err)


def test_jobs_without_pm_open_nothing(few):
    daemon = few.daemon('node00')['pid']
    held = lambda: sorted(name.split(':[')[0] for name in network_of(daemon))
    wait_until(lambda: held() == OF_DAEMON, what=held)  # what ran before is gone
    job = few.submit('-w', 'node00', 'sleep', 600)
    few.wait_job(job, 'running')
    assert held() == OF_DAEMON
    few.cancel(job)
    pm = few.submit('-w', 'node00', '-n', 1, 'sh', '-c', f'{QUEENS} 4; sleep 60')
    few.wait_job(pm, 'running')
    # One context more and no socket: the job is alone on its node.
    wait_until(lambda: held() == OF_DAEMON[:1] + OF_DAEMON, what=held)
    few.cancel(pm)
    wait_until(lambda: held() == OF_DAEMON, what=held)


def test_network_goes_on_after_restarts(few):
    job = few.start('scrun', '-q', '-N', 2, '-n', 2, 'sh', '-c',
                    f'{QUEENS} 4 && sleep 2 && {PINGPONG} 500')
    wait_until(lambda: any(j['state'] == 'running' for j in few.json('scq', '--active')['jobs']))
    few.restart('node00')
    few.restart('head')
    few.wait_up()
    out, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 0 and 'round trip' in out, (out, err, few.logs())


def test_without_a_device_pm_says_why(fresh):
    cluster = fresh(1)
    config = cluster.directory / 'node00' / 'scored.toml'
    configs = [p for p in cluster.directory.rglob('*.toml')]
    for path in configs:
        path.write_text(path.read_text().replace('devices = ["shmem", "udp"]', 'devices = []'))
    assert configs, config
    cluster.restart('node00')
    cluster.wait_up()
    result = cluster.run('scrun', '-n', 1, QUEENS, 4, code=None)
    assert result.returncode != 0
    assert 'no PM network' in result.stderr and 'node00' in result.stderr


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def udp_ports(cluster):
    """Of all UDP sockets that processes of this cluster and of its jobs hold."""
    lines = [line.split() for line in pathlib.Path('/proc/net/udp').read_text().splitlines()[1:]]
    ports = {f'socket:[{words[9]}]': int(words[1].rpartition(':')[2], 16) for words in lines}
    found = set()
    for pid, _ in users_of(cluster.directory):
        with contextlib.suppress(OSError):  # it has ended
            for descriptor in pathlib.Path(f'/proc/{pid}/fd').iterdir():
                with contextlib.suppress(OSError):  # closed since
                    found.add(ports.get(os.readlink(descriptor)))
    return found - {None}


def frames_of(cluster, count):
    """PM's messages to jobs of this cluster that pass on loopback: [(address, port, bytes)]."""
    wait_until(lambda: len(udp_ports(cluster)) >= 2)
    found, ports = [], udp_ports(cluster)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)) as tap:
        tap.bind(('lo', 0))
        tap.settimeout(LIMIT)
        while len(found) < count:
            packet = tap.recv(1 << 16)
            start = packet[0] % 16 * 4 + 8
            if packet[9] != socket.IPPROTO_UDP or packet[start:start + 3] != b'P\x02\x01':  # magic, version, Message
                continue
            length = 48 + int.from_bytes(packet[start + 6:start + 8], 'little')
            port = int.from_bytes(packet[start - 6:start - 4], 'big')
            if port in ports:
                found.append((socket.inet_ntoa(packet[16:20]), port, packet[start:start + length]))
    return found


def forged(frame, auth):
    """As if it belonged to another job; the checksum needs no key."""
    if auth == 'tag':
        return frame[:-1] + bytes([frame[-1] ^ 1])
    head = frame[:8] + bytes(byte ^ 0x5a for byte in frame[8:16]) + frame[16:44]
    return head + crc32c(frame[48:] + head).to_bytes(4, 'little') + frame[48:]


@pytest.mark.parametrize('auth', ['key', 'tag'])
def test_forged_frames_are_refused_and_counted(fresh, as_root, auth):
    cluster = fresh(2, '--device', 'udp', '--cores', 1, '--control', 'tls')  # no frames but the job's
    for path in cluster.directory.rglob('*.toml'):
        path.write_text(path.read_text().replace('switch_mode', f'pm_auth = "{auth}"\nswitch_mode'))
    for name in ('head', 'node00', 'node01'):
        cluster.restart(name)
    cluster.wait_up()
    job = cluster.start('scrun', '-q', '-N', 2, TALK, 12)
    seen = frames_of(cluster, 20)
    # Of two ranks' frames: with keys all carry the job's, with tags each its own.
    marks = {frame[8:16] for _, _, frame in seen}
    assert (len(marks) == 1) == (auth == 'key'), marks
    assert all((frame[44:48] == bytes(4)) == (auth == 'tag') for _, _, frame in seen)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for number in range(400):
            address, port, frame = seen[number % len(seen)]
            stranger.sendto(forged(frame, auth), (address, port))
            time.sleep(0.002)
    out, err = job.communicate(timeout=LIMIT)
    print(out)
    assert job.returncode == 0 and out.count(': correct') == 2, (out, err, cluster.logs())
    # A socket has the kernel drop what carries another key.
    counter = 'forged' if auth == 'tag' else 'by the kernel'
    refused = sum(int(text) for text in re.findall(counter + r' (\d+)', out))
    assert refused >= 300, out


@pytest.mark.parametrize('device', ['udp', 'ethernet'])
def test_between_network_namespaces(fresh, as_root, device):
    if shutil.which('ip') is None:
        pytest.skip('needs iproute2')
    cluster = fresh(2, '--netns', '--cores', 2, '--device', device)
    assert '92 solutions' in cluster.run('scrun', '-N', 2, '--ntasks-per-node', 2, QUEENS, 8).stdout
    assert 'round trip' in cluster.run('scrun', '-N', 2, '-n', 2, PINGPONG, 500).stdout


def test_rings_serve_one_program_after_another_and_outlive_daemons(fresh, as_root, tmp_path):
    if shutil.which('ip') is None:
        pytest.skip('needs iproute2')
    cluster = fresh(2, '--netns', '--cores', 2, '--device', 'ethernet')
    job = cluster.start('scrun', '-q', '-N', 2, '-n', 2, 'sh', '-c', f'{QUEENS} 4 && touch {tmp_path}/$PMI_RANK && sleep 2 && {PINGPONG} 500')
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)  # the network is there
    for name in ('node00', 'head'):
        cluster.restart(name)
    cluster.wait_up()
    out, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 0 and 'round trip' in out, (out, err, cluster.logs())


@pytest.mark.parametrize('device, links', others_long([('udp', 2), ('ofi', 1), ('ofi', 2)], 2))
def test_pm_programs_over_libfabric_and_several_links(fresh, device, links):
    cluster = fresh(2, '--cores', 2, '--device', device, '--links', links)
    assert 'round trip' in cluster.run('scrun', '-N', 2, '-n', 2, PINGPONG, 500).stdout
    assert '92 solutions' in cluster.run('scrun', '-N', 2, '--ntasks-per-node', 2, QUEENS, 8).stdout
    job = cluster.run('scrun', '-q', '-N', 2, TALK, 2)
    assert job.stdout.count(': correct') == 2, job.stdout


def test_two_libfabric_jobs_share_their_nodes(fresh):
    cluster = fresh(2, '--slice', '20ms', '--channels', 1, '--device', 'ofi')
    jobs = [cluster.start('scrun', '-q', '-N', 2, TALK, SECONDS) for _ in range(2)]
    for job in jobs:
        out, err = job.communicate(timeout=LIMIT)
        assert job.returncode == 0 and out.count(': correct') == 2, (out, err, cluster.logs())


@pytest.mark.parametrize('device, extra, lacks', [
    ('udp', 'interface = "absent0"', 'no network: no interface absent0'),
    ('ofi', 'provider = "cxi"', 'no network: libfabric has no provider cxi')])
def test_nodes_without_the_device_are_shown(fresh, device, extra, lacks):
    cluster = fresh(2, '--device', device)
    path = cluster.directory / 'node01' / 'scored.toml'
    text = path.read_text()
    path.write_text(text.replace('provider = "tcp"', extra) if device == 'ofi' else text.replace('channels =', extra + '\nchannels ='))
    cluster.restart('node01')
    wait_until(lambda: lacks in cluster.run('scnodes').stdout)
    result = cluster.run('scrun', '-N', 2, PINGPONG, 5, code=None)
    assert result.returncode != 0 and f'node01: {lacks}' in result.stderr, result.stderr


def test_nodes_with_other_links_than_the_head_are_reported(fresh):
    cluster = fresh(2)
    path = cluster.directory / 'node01' / 'scored.toml'
    path.write_text(path.read_text().replace('channels =', 'links = ["udp"]\nchannels ='))
    cluster.restart('node01')
    cluster.wait_up()
    result = cluster.run('scrun', '-N', 2, PINGPONG, 5, code=None)
    assert result.returncode != 0
    assert "node01: it reported wrong addresses; its [network] differs from the head's" in result.stderr


@pytest.mark.parametrize('device', ['udp', 'ethernet'])
def test_large_frames_where_the_links_carry_them(fresh, as_root, device):
    if shutil.which('ip') is None:
        pytest.skip('needs iproute2')
    for payload in (1424, 8000):
        cluster = fresh(2, '--netns', '--device', device, '--payload', payload)
        fits = cluster.run('scrun', '-N', 2, PINGPONG, 50, payload, code=None)
        assert fits.returncode == 0 and 'round trip' in fits.stdout, fits.stderr
        larger = cluster.run('scrun', '-N', 2, PINGPONG, 50, payload + 8, code=None)
        assert larger.returncode != 0 and 'round trip' not in larger.stdout
        cluster.stop()


def channel_figures(cluster):
    nodes = cluster.json('scadm', 'trace', '--seconds', 1)['nodes']
    return {key: sum(int(node['channels'][key]) for node in nodes) for key in nodes[0]['channels']}


# By hand with eight jobs: SCORE_TALK_JOBS=8 SCORE_TALK_SECONDS=120 makes some 10,000 handovers a node.
@pytest.mark.parametrize('channels, mode', others_long([(1, 'clock'), (1, 'barrier'), (16, 'clock'), (16, 'barrier')], 2))
def test_talkative_jobs_take_turns_on_their_channels(fresh, channels, mode):
    cluster = fresh(2, '--slice', '10ms' if mode == 'clock' else '20ms', '--channels', channels, '--switch-mode', mode)
    jobs = [cluster.start('scrun', '-q', '-N', 2, TALK, SECONDS) for _ in range(JOBS)]
    wait_until(lambda: channel_figures(cluster)['frames_sent'] > 0)
    handovers = 0
    while any(job.poll() is None for job in jobs):
        handovers = channel_figures(cluster)['handovers']
        time.sleep(0.3)
    for job in jobs:
        out, err = job.communicate()
        assert job.returncode == 0 and out.count(': correct') == 2, (out, err, cluster.logs())
    figures = channel_figures(cluster)
    print(figures)
    if channels == 1:
        assert handovers > (20 if mode == 'clock' else 5) * JOBS
        assert figures['saved_bursts'] > 0
        assert figures['restored_bursts'] > 0
    else:
        assert figures['handovers'] <= 2 * JOBS  # each takes its own once, on each node


def test_viewers_see_how_channels_change_hands(fresh):
    """Guard, save and restore are phases of a switch in which a channel does; of others there are none."""
    cluster = fresh(2, '--slice', '20ms', '--channels', 1, '--cores', 1)
    web = Web(cluster.json('score', 'info')['dashboard_url'])
    jobs = [cluster.submit('-N', 2, TALK, 60) for _ in range(2)]
    for job in jobs:
        cluster.wait_job(job, 'running')
    for document in web.stream('?rate=10&parts=switches,traffic'):
        assert faults(document) == [], faults(document)[:5]
        phases = document['switches']['phases']
        if all(phases[name] for name in ('guard', 'save', 'restore')) and any(document['traffic']):
            break
    for phase in phases.values():
        assert 0 <= phase['p50_s'] <= phase['p95_s'] <= phase['max_s']
    assert phases['guard']['max_s'] > 0, phases
    assert phases['total']['max_s'] >= max(phases[name]['p50_s'] for name in ('guard', 'save', 'restore'))
    for job in jobs:
        cluster.cancel(job)
    # Without a network nothing changes hands.
    plain = [cluster.submit('-N', 2, '-n', 2, 'sh', '-c', 'while :; do :; done') for _ in range(2)]
    for job in plain:
        cluster.wait_job(job, 'running')
    for document in web.stream('?rate=10&parts=switches'):
        phases = document['switches']['phases']
        if phases['total'] and not any(phases[name] for name in ('guard', 'save', 'restore')):
            break
    for job in plain:
        cluster.cancel(job)


# By hand: SCORE_KILLS=500.
def test_a_node_daemon_killed_among_switches_hurts_no_job(fresh):
    cluster = fresh(2, '--slice', '10ms', '--channels', 1)
    chance = random.Random(4)
    jobs = [cluster.start('scrun', '-q', '-N', 2, TALK, 5 + KILLS / 15) for _ in range(2)]
    wait_until(lambda: channel_figures(cluster)['handovers'] > 10)
    with FrozenWatch(cluster) as watch:
        for _ in range(KILLS):
            time.sleep(chance.uniform(0, 0.04))  # some point of some switch
            cluster.restart('node00')
            cluster.wait_up()
        for job in jobs:
            out, err = job.communicate(timeout=LIMIT + KILLS)
            assert job.returncode == 0 and out.count(': correct') == 2, (out, err, cluster.logs())
    print(f'frozen for {watch.longest:.2f} s at most, {watch.checks} checks')
    assert watch.longest < 30  # the lease lasts seconds; a forgotten task stays frozen for ever
    assert watch.checks > 0 or not cluster.description['cgroup']


def test_an_overwritten_context_ends_its_own_job_alone(fresh):
    cluster = fresh(1, '--slice', '20ms')
    talker = cluster.start('scrun', '-q', '-n', 1, TALK, 3)
    script = ('import ctypes, mmap, os, re, sys, time; pm = ctypes.CDLL(sys.argv[1]); p = ctypes.c_void_p(); '
              'assert pm.pm_open(ctypes.byref(p)) == 0; '
              'area = next(l for l in open("/proc/self/maps") if "pm-context" in l); '
              'a, b = (int(x, 16) for x in area.split()[0].split("-")); '
              'end = time.time() + 1.5\n'
              'while time.time() < end: ctypes.memmove(a, os.urandom(b - a), b - a)\n'
              'pm.pm_wait(p, 1000); pm.pm_close(p)\n'
              'sys.exit(9)')
    library = BIN.parent / 'lib' / 'libpm.so.1'
    broken = cluster.run('scrun', '-q', '-n', 1, 'python3', '-c', script, library, code=None)
    assert broken.returncode != 0
    out, err = talker.communicate(timeout=LIMIT)
    assert talker.returncode == 0 and 'correct' in out, (out, err)
    assert cluster.nodes_up() == 1
