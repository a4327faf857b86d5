"""copy_file_range(2): the servers move the bytes."""
import os
import pathlib
import random
import subprocess

import pytest
from mounts import REQUIRED, processes_of
from two_mounts import folder, mounts, other, volume  # noqa: F401
from volumes import BIN, Client, Servers, errno_of, make_temporary

pytestmark = REQUIRED
MIB = 1 << 20


def copy(source, target, length, from_offset=0, to_offset=0):
    """As many calls as it takes. Returns the bytes that were copied."""
    done = 0
    while done < length:
        got = os.copy_file_range(source, target, length - done, from_offset + done, to_offset + done)
        if got == 0:
            break
        done += got
    return done


def moved_by(mount):
    """The bytes that the mount has read and written, among them those of /dev/fuse."""
    total = 0
    for number in processes_of(mount):
        lines = dict(line.split(': ') for line in pathlib.Path(f'/proc/{number}/io').read_text().splitlines())
        total += int(lines['rchar']) + int(lines['wchar'])
    return total


@pytest.mark.skipif(os.geteuid() != 0, reason='only root reads the counters of a mount')
def test_bytes_do_not_pass_through_the_mount(folder, other, mounts):
    data = random.Random(1).randbytes(16 * MIB + 5)
    (folder / 'from').write_bytes(data)
    with open(folder / 'from', 'rb') as source, open(folder / 'to', 'w+b') as target:
        before = moved_by(mounts[0])
        assert copy(source.fileno(), target.fileno(), len(data) + 1) == len(data)
        assert moved_by(mounts[0]) - before < MIB
        assert os.fstat(target.fileno()).st_size == len(data)
    assert (folder / 'to').read_bytes() == data
    assert (other / 'to').read_bytes() == data


@pytest.mark.parametrize('seed', range(2))
def test_random_copies_are_as_on_a_local_directory(folder, other, tmp_path, seed):
    chance = random.Random(seed)
    names = ('a', 'b', 'c')
    for name in names:
        for place in (folder, tmp_path):
            (place / name).touch()
    for _ in range(120):
        source, target = chance.choice(names), chance.choice(names)
        if chance.random() < 0.3:
            data, offset = chance.randbytes(chance.choice((1, 100, 70_000, 300_000))), chance.randrange(500_000)
            for place in (folder, tmp_path):
                with open(place / target, 'r+b') as file:
                    os.pwrite(file.fileno(), data, offset)
        length = chance.choice((1, 4096, 65_536, 65_537, 400_000, 3 * MIB))
        places = [chance.choice((0, 1, 65_535, 65_536, chance.randrange(600_000))) for _ in range(2)]

        def run(place, source=source, target=target, length=length, places=places):
            with open(place / source, 'rb') as one, open(place / target, 'r+b') as two:
                return copy(one.fileno(), two.fileno(), length, *places)

        if source != target or abs(places[0] - places[1]) >= length:
            assert run(folder) == run(tmp_path)
    for name in names:
        assert (other / name).read_bytes() == (tmp_path / name).read_bytes()


def test_overlapping_ranges_of_one_file_are_refused(folder):
    with open(folder / 'f', 'w+b') as file:
        file.write(b'x' * 10_000)
        file.flush()
        assert errno_of(os.copy_file_range, file.fileno(), file.fileno(), 5_000, 0, 100) == 'EINVAL'


def test_hole_is_copied_as_zeros(folder):
    with open(folder / 'from', 'w+b') as source, open(folder / 'to', 'w+b') as target:
        os.pwrite(source.fileno(), b'end', 700_000)
        target.write(b'x' * 800_000)
        target.flush()
        assert copy(source.fileno(), target.fileno(), MIB) == 700_003
        assert os.pread(target.fileno(), MIB, 0) == bytes(700_000) + b'end' + b'x' * (800_000 - 700_003)


def test_copy_to_and_from_removed_files(folder, other):
    (folder / 'from').write_bytes(b'y' * 200_000)
    with open(folder / 'from', 'rb') as source, open(folder / 'to', 'w+b') as target:
        (other / 'from').unlink()
        (folder / 'to').unlink()
        assert copy(source.fileno(), target.fileno(), MIB) == 200_000
        assert os.pread(target.fileno(), MIB, 0) == b'y' * 200_000


def test_scio_copies_within_a_volume():
    with make_temporary() as root:
        servers = Servers(root, 3)
        try:
            client = Client(servers.file)
            data = random.Random(1).randbytes(3 * MIB)
            with client.open('/from') as file:
                file.pwrite(data, 0)

            def cp(*words):
                return subprocess.run([BIN / 'scio', '--volume', servers.file, 'cp', *words], capture_output=True, text=True, timeout=100)

            done = cp(':/from', ':/to')
            assert (done.returncode, done.stdout) == (0, f'{len(data)} bytes\n'), done.stderr
            assert client.contents('/to') == data
            for words, message in (((':/from', ':/from'), 'same file'), ((':/none', ':/x'), 'No such file'), ((':/', ':/x'), 'directory'),
                                   (('-r', ':/from', ':/x'), 'one name')):
                done = cp(*words)
                assert done.returncode == 125 and message in done.stderr
            assert client.contents('/from') == data
            client.close()
        finally:
            servers.stop()
