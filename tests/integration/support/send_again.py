"""send_again.py PERCENT: of the UDP datagrams that leave by eth0, sends some once more, up to 3 ms later. Ends by a signal."""
import random
import socket
import sys
import time

ETH_P_ALL, UDP = 3, 17


def main():
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    link.bind(('eth0', ETH_P_ALL))
    again = set()  # of which this program sees its own copies
    while True:
        frame, (_, _, kind, _, _) = link.recvfrom(65536)
        if kind != socket.PACKET_OUTGOING or len(frame) < 42 or frame[12:14] != b'\x08\x00' or frame[23] != UDP:
            continue
        if frame in again:
            again.discard(frame)
        elif random.random() * 100 < float(sys.argv[1]):
            time.sleep(random.uniform(0, 0.003))
            again.add(frame)
            link.send(frame)


main()
