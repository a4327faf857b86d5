"""scbench checkpoint: saves a job of Python ranks again and again, and restarts it.

stop_s: how long its tasks stood still; complete_s: from the request until the set is complete; write_ratio: complete_s relative to the time
in which one process writes as many bytes to the same disk; restore_s: from `score restart` until every rank has counted on;
other_gang_loss_percent: work that a second job on the same nodes lost in the seconds of a save, against the seconds before; stacks_64_s: time
of `score stacks`. migrate_stop_s is null, since jobs cannot be moved yet."""
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import tempfile
import time

import arguments
import bench_report as report
import measure
from cluster import Cluster, wait_until
from kernels import note

BOUNDS = {'stop_s': 2.0, 'complete_s': 5.0, 'write_ratio': 1.3, 'other_gang_loss_percent': 1.0, 'stacks_64_s': 1.0}
RANK = '''
import mmap, os, sys, time
folder, megabytes, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
memory = os.urandom(megabytes << 20)
fd = os.open(f'{folder}/{os.environ["SCORE_RANK"]}', os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 8)
with mmap.mmap(fd, 8) as counter:
    while True:
        counter[:8] = (int.from_bytes(counter[:8], 'little') + 1).to_bytes(8, 'little')
        time.sleep(pause)
'''


def criu():
    return os.environ.get('SCORED_CRIU', '/usr/sbin/criu')


class Ranks:
    """A job whose ranks count in files of their own."""

    def __init__(self, cluster, folder, name, nodes, ranks, megabytes, pause, *words):
        self.cluster, self.folder, self.ranks = cluster, folder / name, ranks
        self.folder.mkdir()
        (folder / 'rank.py').write_text(RANK)
        self.job = cluster.submit('-N', nodes, '-n', ranks, '-o', folder / 'out', *words, 'python3', folder / 'rank.py', self.folder, megabytes, pause)
        wait_until(lambda: all(self.counts()))

    def counts(self):
        paths = [self.folder / str(rank) for rank in range(self.ranks)]
        return [struct.unpack('<Q', text)[0] if len(text := path.read_bytes() if path.exists() else b'') == 8 else 0 for path in paths]

    def wait_for_all(self):
        before = self.counts()
        wait_until(lambda: all(now > then for now, then in zip(self.counts(), before)))


def rate(ranks, seconds=None, until=None):
    """Counts per second, for so many seconds or until the function has returned; with that also the function's result."""
    before, begun = sum(ranks.counts()), time.monotonic()
    result = until() if until else time.sleep(seconds)
    return (sum(ranks.counts()) - before) / (time.monotonic() - begun), result


def write_seconds(folder, size):
    """The time in which one process writes so many bytes to the disk."""
    piece, path = os.urandom(1 << 20), folder / 'written'
    begun = time.monotonic()
    with open(path, 'wb') as file:
        for _ in range(max(size >> 20, 1)):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    took = time.monotonic() - begun
    path.unlink()
    return took


def one_save(cluster, saved, other, folder):
    before, _ = rate(other, seconds=1)
    during, answer = rate(other, until=lambda: cluster.json('score', 'checkpoint', saved.job))
    if answer['error']:
        raise SystemExit(f'scbench: the job was not saved: {answer["error"]}')
    begun = time.monotonic()
    cluster.run('score', 'stacks', saved.job)
    stacks = time.monotonic() - begun
    saved.wait_for_all()
    return {'stop_s': answer['stop_s'], 'complete_s': answer['complete_s'], 'stacks_64_s': stacks, 'image_bytes': answer['image_bytes'],
            'write_ratio': answer['complete_s'] / write_seconds(folder, answer['image_bytes']),
            'other_gang_loss_percent': 100 * (1 - during / before) if before else float('nan')}


def restart(cluster, saved):
    answer = cluster.json('score', 'checkpoint', saved.job, '--stop')
    wait_until(lambda: cluster.job(saved.job)['final'])
    begun = time.monotonic()
    saved.job = int(cluster.run('score', 'restart', answer['set']).stdout)
    saved.wait_for_all()
    return time.monotonic() - begun


def save(options):
    note(f'{options.ranks} ranks on {options.nodes} nodes, {options.megabytes} MB each, {options.times} times')
    cluster = Cluster(options.nodes, '--slice', '100ms', '--cores', str(-(-options.ranks // options.nodes)))
    folder = pathlib.Path(tempfile.mkdtemp(prefix='scbench-checkpoint-', dir=options.directory))
    try:
        saved = Ranks(cluster, folder, 'saved', options.nodes, options.ranks, options.megabytes, 0.02, '--checkpoint-dir', folder / 'images')
        other = Ranks(cluster, folder, 'other', options.nodes, options.nodes, 1, 0.001)
        found = [one_save(cluster, saved, other, folder) for _ in range(options.times)]
        restores = [restart(cluster, saved) for _ in range(options.times)]
        cluster.cancel_all()
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    samples = {key: [one[key] for one in found] for key in found[0]} | {'restore_s': restores}
    figures = {key: statistics.median(values) for key, values in samples.items()} | {'migrate_stop_s': None}
    figures |= {f'{key}_spread': list(measure.interval(values)) for key, values in samples.items()}
    return figures | {'ranks': options.ranks, 'nodes': options.nodes, 'samples': samples}


def add_options(parser):
    parser.add_argument('--nodes', type=arguments.whole(1, 256), default=8, metavar='N', help='nodes (8)')
    parser.add_argument('--ranks', type=arguments.whole(1, 4096), default=64, metavar='N', help='ranks of the job that is saved (64)')
    parser.add_argument('--megabytes', type=arguments.whole(1, 65_536), default=10, metavar='N', help='memory of each rank (10)')
    parser.add_argument('--times', type=arguments.whole(), default=6, metavar='N', help='saves, and restarts (6)')
    parser.add_argument('--directory', metavar='DIR', help='where images are written (a temporary directory)')
    report.add_options(parser)


def run(options):
    if os.geteuid() != 0 or subprocess.run([criu(), '--version'], capture_output=True).returncode != 0:
        raise SystemExit(f'scbench: checkpoint needs root and criu 4.1 ({criu()}; SCORED_CRIU names another)')
    figures = report.Kept(options).part('checkpoint', save, options)
    bounds = report.at_most(BOUNDS)

    def show():
        for key, value in figures.items():
            if isinstance(value, (int, float)):
                print(report.line(key, figures, bounds))
    return report.finish(options, 'scored.bench.checkpoint/1', {**figures, 'bounds': BOUNDS}, [('checkpoint', figures, bounds)], show)
