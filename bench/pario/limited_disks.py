"""Makes disks of a stated speed: loop devices whose reads and writes a cgroup limits. Needs root and the blkio controller (cgroup 1)."""
import contextlib
import os
import pathlib
import subprocess
import time

MIB = 2**20


def blkio():
    """Returns its hierarchy, or None."""
    for line in pathlib.Path('/proc/self/mounts').read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == 'cgroup' and 'blkio' in options.split(','):
            return pathlib.Path(place)
    return None


def why_not():
    """Returns why limited disks are not possible here; empty if they are."""
    if os.geteuid() != 0:
        return 'only root can make loop devices'
    if blkio() is None or not (blkio() / 'blkio.throttle.read_bps_device').exists():
        return 'the blkio controller of cgroup version 1 is missing'
    if not os.path.exists('/dev/loop-control'):
        return 'there are no loop devices'
    return ''


def call(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def limited_disk(root, bytes_per_second, megabytes):
    """Yields a file system of this speed: (directory, cgroup.procs for the processes that use it)."""
    root.mkdir()
    with contextlib.ExitStack() as undo:
        image = root / 'image'
        with image.open('wb') as file:
            file.truncate(megabytes * MIB)
        device = call('losetup', '--find', '--show', image)
        undo.callback(call, 'losetup', '--detach', device)
        call('mkfs.ext4', '-q', '-O', '^has_journal', device)
        directory = root / 'disk'
        directory.mkdir()
        call('mount', device, directory)
        undo.callback(call, 'umount', directory)
        group = blkio() / f'scbench-io-{os.getpid()}-{root.name}'
        group.mkdir()
        undo.callback(remove_group, group)
        number = pathlib.Path('/sys/block', pathlib.Path(device).name, 'dev').read_text().strip()
        for way in ('read', 'write'):
            (group / f'blkio.throttle.{way}_bps_device').write_text(f'{number} {bytes_per_second}')
        yield directory, group / 'cgroup.procs'


def remove_group(group):
    for _ in range(100):
        with contextlib.suppress(OSError):
            return group.rmdir()
        time.sleep(0.05)
    raise TimeoutError(f'{group} is still in use')
