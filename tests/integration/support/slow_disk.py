"""A directory on a disk that is slow or does not answer: tests/support/slow_fs.cpp, over FUSE. Needs root."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from cluster import BIN, wait_until

PROGRAM = BIN.parent / 'test' / 'slow_fs'


class SlowDisk:
    """The directory `behind`, seen at `place`, which is made. No process of the test may hold a file of it open."""

    def __init__(self, behind, place, control):
        if not PROGRAM.exists() or not pathlib.Path('/dev/fuse').exists():
            pytest.skip('needs /dev/fuse and the target slow_fs')
        self.place, self.control = place, control
        place.mkdir(mode=behind.stat().st_mode & 0o777, exist_ok=True)
        self.set('0')
        before = os.stat(place).st_dev
        self.process = subprocess.Popen([PROGRAM, behind, place, control], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.process.poll() is not None or os.stat(place).st_dev != before)
        if self.process.poll() is not None:
            pytest.skip('FUSE cannot be mounted here')

    def set(self, word):
        """See slow_fs.cpp."""
        new = self.control.with_suffix('.new')
        new.write_text(word)
        new.rename(self.control)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        self.set('0')

    def close(self):
        self.process.kill()
        self.process.wait()
        subprocess.run(['umount', '-l', str(self.place)], check=True)


@contextlib.contextmanager
def slow_directory(behind, place, control):
    disk = SlowDisk(behind, place, control)
    try:
        yield disk
    finally:
        disk.close()


@contextlib.contextmanager
def slow_head(cluster, control):
    """The head's directory is on a slow disk."""
    directory = cluster.directory / 'head'
    behind = cluster.directory / 'behind'
    cluster.kill('head')
    shutil.copytree(directory, behind, ignore=shutil.ignore_patterns('*.sock'))
    behind.chmod(directory.stat().st_mode & 0o777)
    with slow_directory(behind, directory, control) as disk:
        cluster.restart('head')
        cluster.wait_up()
        try:
            yield disk
        finally:
            disk.go_on()
            cluster.kill('head')
    shutil.copytree(behind, directory, dirs_exist_ok=True, ignore=shutil.ignore_patterns('*.sock'))
    shutil.rmtree(behind)
    cluster.restart('head')
    cluster.wait_up()
