"""Mounts of a volume on this host."""
import os
import shutil
import subprocess

import pytest
from volumes import BIN

REQUIRED = [pytest.mark.skipif(not (BIN / 'scored-pario-mount').exists(), reason='scored-pario-mount is not built: no libfuse3'),
            pytest.mark.skipif(not os.access('/dev/fuse', os.R_OK | os.W_OK) or not shutil.which('fusermount3'),
                               reason='no access to /dev/fuse, or no fusermount3 (package fuse3)')]


class Mount:
    def __init__(self, file, directory, transport='', options=()):
        directory.mkdir()
        self.directory = directory
        self.messages = subprocess.run([BIN / 'scored-pario-mount', '--volume', file, *options, directory], check=True, timeout=90,
                                       stderr=subprocess.PIPE, text=True, env=os.environ | {'PARIO_TRANSPORT': transport}).stderr

    def stop(self):
        if subprocess.run(['fusermount3', '-u', self.directory]).returncode:
            subprocess.run(['fusermount3', '-uz', self.directory], check=True)
            raise AssertionError('the mount was busy at the end of the test')
