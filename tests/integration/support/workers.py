"""Threads that work while a `with` block runs."""
import threading


class Workers:
    """Runs self.run(number) in `count` threads until the block ends; run() returns soon after is_over is set."""

    def __init__(self, count):
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
