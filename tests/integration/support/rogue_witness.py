"""A witness that is not one: it has a node's key, grants its lease to every head, and shows a mark of its own."""
import contextlib
import threading

from rogue import SCHEMA, Rogue, values

TERM, WANTS, SENT = 2, 3, 6  # fields of LeaseRequest


class RogueWitness:
    """`with RogueWitness(cluster, 'node01', mark):` while the node's own daemon is away."""

    def __init__(self, cluster, node, mark):
        host, port = cluster.description['address'].rsplit(':', 1)
        self.mark, self.is_over, self.answered = mark, threading.Event(), [0, 0]
        self.threads = [threading.Thread(target=self.serve, args=(cluster, node, index, f'{host}:{int(port) + index}'), daemon=True)
                        for index in range(2)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def serve(self, cluster, node, index, address):
        while not self.is_over.wait(0.2):
            with Rogue(cluster, node) as peer, contextlib.suppress(AssertionError, OSError):
                peer.address = address
                peer.connect()
                peer.send('WitnessHello', lowest_version=1, highest_version=1, name=node.encode())
                while not self.is_over.is_set():
                    asked = values(peer.receive('LeaseRequest', limit=5)[1])
                    peer.send('LeaseReply', granted=asked.get(WANTS, 0), is_free=1, term=asked.get(TERM, 0), mark=self.mark,
                              sent_ns=asked.get(SENT, 0), asked_term=asked.get(TERM, 0))
                    self.answered[index] += 1
