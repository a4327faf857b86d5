"""Clients that misbehave, and one that measures how others fare. Run as a program, under another uid:

    crowd.py flood SOCKET SECONDS CONNECTIONS JOB   asks as fast as it can and reads the answers
    crowd.py mute SOCKET SECONDS CONNECTIONS JOB    asks as long as it is taken and reads nothing
    crowd.py probe SOCKET SECONDS                   asks every 20 ms and prints what each answer took

Each prints one line of JSON.
"""
import contextlib
import json
import os
import pathlib
import resource
import select
import socket
import struct
import subprocess
import sys
import time

HELLO, LIST_JOBS, GET_INFO, GET_ACCOUNTING = 1, 40, 44, 48


def frame(kind, payload=b''):
    return b'SCRD' + struct.pack('<HHII', 1, kind, len(payload), 0) + payload


def varint(number):
    out = b''
    while number >= 0x80:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


def list_jobs(job, count):
    packed = varint(job) * count
    return frame(LIST_JOBS, b'\x22' + varint(len(packed)) + packed)


def greeted(path):
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(60)
    peer.connect(path)
    peer.sendall(frame(HELLO, b'\x08\x01\x10\x01'))
    read_frame(peer)
    return peer


def read_exactly(peer, count):
    data = b''
    while len(data) < count:
        more = peer.recv(min(count - len(data), 1 << 20))
        if not more:
            raise ConnectionError('closed')
        data += more
    return data


def read_frame(peer):
    header = read_exactly(peer, 16)
    return read_exactly(peer, struct.unpack('<I', header[8:12])[0])


def probe(path, seconds):
    peer, took = greeted(path), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for question in (frame(GET_INFO), frame(LIST_JOBS)):
            begun = time.monotonic()
            peer.sendall(question)
            read_frame(peer)
            took.append(time.monotonic() - begun)
        time.sleep(0.02)
    took.sort()
    print(json.dumps({'count': len(took), 'median_ms': took[len(took) // 2] * 1e3,
                      'p99_ms': took[len(took) * 99 // 100] * 1e3, 'worst_ms': took[-1] * 1e3}))


class Crowd:
    def __init__(self, path, job):
        self.path = path
        # All that is cheap to ask and costs the head much; 60,000 is beyond what it takes.
        self.questions = [list_jobs(job, 60_000), list_jobs(job, 1_000), frame(LIST_JOBS, b'\x10\x01\x18\x01'),
                          frame(GET_ACCOUNTING, b'\x10\x01')] if job else [frame(GET_INFO)]
        self.poll = select.poll()
        self.peers, self.left = {}, {}
        self.asked = self.bytes = self.closed = 0

    def join(self):
        with contextlib.suppress(OSError):
            peer = greeted(self.path)
            peer.setblocking(False)
            self.peers[peer.fileno()] = peer
            self.left[peer.fileno()] = b''
            self.poll.register(peer, select.POLLIN | select.POLLOUT)

    def leave(self, number):
        self.poll.unregister(number)
        self.peers.pop(number).close()
        self.closed += 1

    def write(self, number):
        if not self.left[number]:
            self.left[number] = self.questions[self.asked % len(self.questions)]
            self.asked += 1
        sent = self.peers[number].send(self.left[number])
        self.left[number] = self.left[number][sent:]

    def run(self, seconds, reads, comes_again):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for number, events in self.poll.poll(100):
                try:
                    if events & select.POLLIN and reads:
                        got = len(self.peers[number].recv(1 << 20))
                        self.bytes += got
                        if got == 0:
                            raise ConnectionError('closed')
                    if events & (select.POLLHUP | select.POLLERR):
                        raise ConnectionError('closed')
                    if events & select.POLLOUT:
                        self.write(number)
                except BlockingIOError:
                    pass
                except OSError:
                    self.leave(number)
                    if comes_again:
                        self.join()
            if not reads:
                time.sleep(0.05)  # what it has sent is to be answered, not its polling


def crowd(path, seconds, connections, job, reads):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard > 0 else 4096, hard))
    people = Crowd(path, job)
    for _ in range(connections):
        people.join()
    joined = len(people.peers)
    print(json.dumps({'joined': joined}), flush=True)
    people.run(seconds, reads, comes_again=reads)
    print(json.dumps({'joined': joined, 'asked': people.asked, 'bytes': people.bytes, 'closed': people.closed}))


class Other:
    """One of the programs above, as another user."""

    def __init__(self, cluster, uid, *words):
        name, *rest = map(str, words)
        program = pathlib.Path(__file__).read_text()
        # Others reach the head's socket, as under /run: by a descriptor, for its directories are private. Debian's
        # Python: another user may not be able to run the one that runs this.
        end = os.open(cluster.description['socket'], os.O_PATH)
        self.process = subprocess.Popen(['/usr/bin/python3', '-c', program, name, f'/proc/self/fd/{end}', *rest],
                                        stdout=subprocess.PIPE, text=True, user=uid, group=uid, extra_groups=[],
                                        cwd='/', pass_fds=[end])
        os.close(end)

    def line(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        """What it measured."""
        out, _ = self.process.communicate(timeout=600)
        assert self.process.returncode == 0, out
        return json.loads(out.splitlines()[-1])


if __name__ == '__main__':
    what, where, *numbers = sys.argv[1:]
    if what == 'probe':
        probe(where, float(numbers[0]))
    else:
        crowd(where, float(numbers[0]), int(numbers[1]), int(numbers[2]), what == 'flood')
