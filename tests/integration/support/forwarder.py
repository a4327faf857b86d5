"""A TCP address that forwards to a port, which can change; the clients reconnect."""
import contextlib
import socket
import threading


class Forwarder:
    def __init__(self, address, port, host='127.0.0.1'):
        self.host = host
        self.target = port
        self.lock = threading.Lock()
        self.ends = []
        self.listener = socket.create_server(address)
        self.thread = threading.Thread(target=self.accept)
        self.thread.start()

    def lead_to(self, port):
        with self.lock:
            self.target = port
        self.cut()

    def cut(self):
        with self.lock:
            ends, self.ends = self.ends, []
        for end in ends:
            shut(end)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                self.join(near)

    def join(self, near):
        with self.lock:
            try:
                far = socket.create_connection((self.host, self.target))
            except OSError:
                near.close()
                return
            self.ends += [near, far]
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pump, args=pair, daemon=True).start()

    def close(self):
        shut(self.listener)
        self.thread.join()
        self.listener.close()
        self.cut()


def shut(end):
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    shut(source)
    shut(sink)
