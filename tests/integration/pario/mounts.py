"""Mounts of a volume on this host."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import time

import pytest
from volumes import BIN

REQUIRED = [pytest.mark.skipif(not (BIN / 'scored-pario-mount').exists(), reason='scored-pario-mount is not built: no libfuse3'),
            pytest.mark.skipif(not os.access('/dev/fuse', os.R_OK | os.W_OK) or not shutil.which('fusermount3'),
                               reason='no access to /dev/fuse, or no fusermount3 (package fuse3)')]


def needs_mount(test):
    """For a test in a file whose other tests need no mount."""
    for mark in REQUIRED:
        test = mark(test)
    return test


LIMIT = 600
END_LIMIT = 40  # less than tests tell clients to wait for a dead server


def processes_of(mount):
    """The numbers of the programs that serve a mount."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        with contextlib.suppress(OSError):
            words = (entry / 'cmdline').read_bytes().split(b'\0') if entry.name.isdigit() else []
            if len(words) > 1 and words[0].endswith(b'scored-pario-mount') and os.fsencode(mount) in words:
                found.append(int(entry.name))
    return found


def wait_until_ended(processes, limit=LIMIT):
    """Fails if one of them stays: it would use servers that are stopped next."""
    end = time.monotonic() + limit
    while any(pathlib.Path(f'/proc/{number}').exists() for number in processes):
        assert time.monotonic() < end, 'the mount has not ended'
        time.sleep(0.02)


class Mount:
    def __init__(self, file, directory, transport='', options=()):
        directory.mkdir()
        self.directory = directory
        self.messages = subprocess.run([BIN / 'scored-pario-mount', '--volume', file, *options, directory], check=True, timeout=90,
                                       stderr=subprocess.PIPE, text=True, env=os.environ | {'PARIO_TRANSPORT': transport}).stderr

    def stop(self, limit=LIMIT):
        processes = processes_of(self.directory)
        if subprocess.run(['fusermount3', '-u', self.directory]).returncode:
            subprocess.run(['fusermount3', '-uz', self.directory], check=True)
            raise AssertionError('the mount was busy at the end of the test')
        wait_until_ended(processes, limit)
