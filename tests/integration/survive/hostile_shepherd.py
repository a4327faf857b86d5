#!/usr/bin/env python3
"""In place of scored-shepherd: answers the node daemon with well-formed nonsense. `seed` beside it chooses what."""
import os
import pathlib
import random
import socket
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True  # the launcher leaves no variable that says so
sys.path[:0] = (HERE / 'path').read_text(encoding='utf-8').splitlines()
from frames import Schema, read_frame  # noqa: E402
from protobuf import fields  # noqa: E402


def converse(schema, peer, chance):
    attempt = dict(fields(read_frame(peer)[1])).get(1, 0)
    own = [0, 1 << 40, os.getpid()]  # of processes: never a stranger's
    hints = {'attempt': [attempt, attempt, attempt + 1, 1], 'group': own, 'shepherd_pid': own, 'pids': own, 'rank': [0, 1, 7],
             'node_index': [0, 0, 1], 'tasks_on_node': [1, 1], 'phase': [0, 1, 2, 3], 'signal': [0, 9, 11], 'code': [0, 1],
             'offset': [0, 0, 5], 'sequence': [1, 1, 2], 'stream': [1, 2], 'user': [0], 'count': [0, 1, 40]}
    for key in ('group', 'shepherd_pid', 'pids'):
        hints[key] = [chance.choice(own)]
    names = schema.sent_by('SHEPHERD')
    if chance.random() < 0.8:
        peer.sendall(schema.frame('ShepherdReady', group=os.getpid()))
        if chance.random() < 0.8:
            peer.settimeout(0.2)
            read_frame(peer)
            peer.sendall(schema.frame('ShepherdStarted', pids=[os.getpid()]))
    for _ in range(chance.randrange(1, 30)):
        data = schema.random_frame(names, chance, hints)[1]
        peer.sendall(data if chance.random() < 0.95 else data[:chance.randrange(len(data))])
        if chance.random() < 0.1:
            time.sleep(0.01)
    time.sleep(chance.choice((0, 0, 0.2, 600)))


def main():
    if sys.argv[1] == 'spawner':
        time.sleep(600)
    listener = socket.socket(fileno=3)
    peer = listener.accept()[0]
    peer.settimeout(5)
    number = HERE / 'seed'
    seed = int(number.read_text(encoding='utf-8'))
    number.write_text(str(seed + 1), encoding='utf-8')
    converse(Schema(), peer, random.Random(seed))


if __name__ == '__main__':
    main()
