"""scbench io: one server of a volume on this host against system calls, and the rate of names."""
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ.get('SCORE_BIN', pathlib.Path(sys.argv[0]).resolve().parent))
# Figure -> at least.
BOUNDS = {'read_vs_syscall': 0.95, 'write_vs_syscall': 0.95, 'fuse_read_vs_syscall': 0.8, 'fuse_write_vs_syscall': 0.8,
          'creates_per_second': 20_000, 'stats_per_second': 20_000, 'unlinks_per_second': 20_000}


def add_options(parser):
    parser.add_argument('--directory', metavar='DIR', default='.', help='where data is kept: decides which disk is measured (.)')
    parser.add_argument('--megabytes', type=int, default=256, metavar='N', help='size of the file (256)')
    parser.add_argument('--rounds', type=int, default=5, metavar='N', help='interleaved rounds; the median counts (5)')
    parser.add_argument('--threads', type=int, default=8, metavar='N', help='clients of the names, in one process (8)')
    parser.add_argument('--json', action='store_true')


def program(name):
    """Where it is in this build, or in an installation; None."""
    for folder in (os.environ.get('SCBENCH_PROGRAMS', BIN), BIN, BIN / '../sbin'):
        path = pathlib.Path(folder) / name
        if path.exists():
            return path.resolve()
    return None


class Server:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        with socket.socket() as one:
            one.bind(('127.0.0.1', 0))
            port = one.getsockname()[1]
        self.file = self.root / 'volume'
        made = subprocess.run([program('scio'), 'create', 'bench', '--server', f'127.0.0.1:{port}'], capture_output=True, check=True)
        self.file.write_bytes(made.stdout)
        self.file.chmod(0o600)
        self.directory = self.root / 'server'
        self.directory.mkdir()
        (self.root / 'plain').mkdir()
        self.process = subprocess.Popen([program('scored-pario'), '--volume', self.file, '--index', '0', '--directory', self.directory,
                                         '--capacity', '1T'], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while subprocess.run([program('scio'), '--volume', self.file, 'df'], capture_output=True).returncode:
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit('scbench io: the server does not start')
            time.sleep(0.05)
        self.mount = self.root / 'mount'
        self.mount.mkdir()
        mounter = program('scored-pario-mount')
        self.is_mounted = mounter is not None and subprocess.run([mounter, '--volume', self.file, self.mount]).returncode == 0

    def stop(self):
        if self.is_mounted:
            subprocess.run(['fusermount3', '-u', self.mount], check=False)
        self.process.terminate()
        self.process.wait()


def measure(options):
    if not all(map(program, ('scbench-io', 'scio', 'scored-pario'))):
        sys.exit('scbench io: its programs are not there: build with liburing-dev, liblmdb-dev and libfuse3-dev')
    with tempfile.TemporaryDirectory(prefix='scbench-io-', dir=options.directory) as root:
        server = Server(root)
        try:
            mount = server.mount if server.is_mounted else '-'
            data = run('data', server.file, server.root / 'plain', server.directory, mount, options.megabytes, options.rounds)
            names = [run('names', server.file, options.threads, 20_000 // options.threads)[0] for _ in range(options.rounds)]
        finally:
            server.stop()
    return figures_of(data, names)


def run(*words):
    done = subprocess.run([program('scbench-io'), *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'scbench io: {done.stderr.strip()}')
    return [json.loads(line) for line in done.stdout.splitlines()]


def figures_of(data, names):
    """Medians, and the lowest and highest of the rounds."""
    values = {}
    for round_ in data:
        what = round_['what']
        for way, prefix in (('library', ''), ('mount', 'fuse_')):
            if way in round_:
                values.setdefault(f'{prefix}{what}_vs_syscall', []).append(round_[way] / round_['system'])
        values.setdefault(f'{what}_syscall_mb_s', []).append(round_['system'])
        values.setdefault(f'{what}_mb_s', []).append(round_['library'])
    for round_ in names:
        for what, rate in round_.items():
            values.setdefault(f'{what}_per_second', []).append(rate)
    figures = {}
    for key, rates in values.items():
        figures[key] = statistics.median(rates)
        figures[f'{key}_spread'] = [min(rates), max(rates)]
    return figures


def run_io(options):
    figures = measure(options)
    if options.json:
        print(json.dumps({'schema': 'scored.bench.io/1', 'cores': os.cpu_count(), **figures, 'bounds': BOUNDS}, indent=1))
    else:
        for key in [key for key in figures if not key.endswith('_spread')]:
            low, high = figures[f'{key}_spread']
            bound = BOUNDS.get(key)
            verdict = '' if bound is None else f'>= {bound:g} {"ok" if figures[key] >= bound else "MISSED"}'
            print(f'  {key:<28} {figures[key]:>10.2f}  ({low:.2f} to {high:.2f})  {verdict}')
        print(f'{os.cpu_count()} cores: client and server share them')
    return 1 if any(figures[key] < bound for key, bound in BOUNDS.items() if key in figures) else 0
