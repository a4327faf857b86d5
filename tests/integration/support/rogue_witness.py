"""A witness that is not one: it has a node's key, grants its lease to every head, and shows a mark of its own."""
import contextlib

from rogue import Rogue, values
from workers import Workers

TERM, WANTS, SENT = 2, 3, 6  # fields of LeaseRequest


class RogueWitness(Workers):
    """`with RogueWitness(cluster, 'node01', mark):` while the node's own daemon is away."""

    def __init__(self, cluster, node, mark):
        super().__init__(2)
        self.cluster, self.node, self.mark, self.answered = cluster, node, mark, [0, 0]
        self.host, port = cluster.description['address'].rsplit(':', 1)
        self.port = int(port)

    def run(self, number):
        while not self.is_over.wait(0.2):
            with Rogue(self.cluster, self.node) as peer, contextlib.suppress(AssertionError, OSError):
                peer.address = f'{self.host}:{self.port + number}'
                peer.connect()
                peer.send('WitnessHello', lowest_version=1, highest_version=1, name=self.node.encode())
                while not self.is_over.is_set():
                    asked = values(peer.receive('LeaseRequest', limit=5)[1])
                    peer.send('LeaseReply', granted=asked.get(WANTS, 0), is_free=1, term=asked.get(TERM, 0), mark=self.mark,
                              sent_ns=asked.get(SENT, 0), asked_term=asked.get(TERM, 0))
                    self.answered[number] += 1
