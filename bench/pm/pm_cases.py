"""scbench pm: runs scbench-pm for one device, for all cases that have bounds, or for a plot."""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PLOT_SIZES = [4 ** k for k in range(1, 12)]  # 4 B to 4 MB
PLOT_DEVICES = ['shmem', 'udp', 'ethernet']

# (what, options of scbench-pm, size, [(figure, 'at most' or 'at least', bound)])
CASES = [
    ('shmem, 8 B one way', ['--device', 'shmem', '--size', '8'], 8, [('vs_raw', '<=', 2.0)]),
    ('ethernet, 8 B one way', ['--device', 'ethernet', '--size', '8'], 8,
     [('vs_raw', '<=', 1.15), ('vs_tcp', '<=', 0.6)]),
    ('udp, 8 B one way', ['--device', 'udp', '--size', '8'], 8, [('vs_raw', '<=', 1.15), ('vs_tcp', '<', 1.0)]),
    ('udp, 1 MB messages', ['--device', 'udp', '--size', '1048576'], 1048576,
     [('bandwidth_vs_raw', '>=', 0.85), ('bandwidth_vs_tcp', '>=', 1.5)]),
    ('shmem, 1 MB remote write', ['--device', 'shmem', '--size', '1048576'], 1048576,
     [('bandwidth_vs_raw', '>=', 0.9)]),
    ('shmem, remote write by registration hits', ['--device', 'shmem', '--hits'], None,
     [('write_vs_message', '>=', 1.0)]),
    ('udp, remote write by registration hits', ['--device', 'udp', '--hits'], None,
     [('write_vs_message', '>=', 1.0)]),
    ('memory per node, 1,000 peers', ['--memory'], None, [('total_kb', '<=', 512 + 64 * 1000 / 1024),
                                                        ('bytes_a_peer', '<=', 64)]),
    ('udp, 0.1 % of the bursts lost', ['--device', 'udp', '--loss', '0.1'], None,
     [('bandwidth_vs_lossless', '>=', 0.9)]),
    ('udp, 1 % of the bursts lost', ['--device', 'udp', '--loss', '1'], None, [('bandwidth_vs_lossless', '>=', 0.5)]),
    ('udp, 0.1 % of single frames lost', ['--device', 'udp', '--loss', '0.1', '--cut'], None,
     [('bandwidth_vs_lossless', '>=', 0.9)]),
    ('udp, 1 % of single frames lost', ['--device', 'udp', '--loss', '1', '--cut'], None,
     [('bandwidth_vs_lossless', '>=', 0.5)]),
    ('ethernet, 0.1 % of the frames lost', ['--device', 'ethernet', '--loss', '0.1'], None,
     [('bandwidth_vs_lossless', '>=', 0.9)]),
    ('ethernet, 1 % of the frames lost', ['--device', 'ethernet', '--loss', '1'], None,
     [('bandwidth_vs_lossless', '>=', 0.5)]),
    # The generator's own use of two processors is not a cost of PM: see scbench(1).
    ('udp, 100,000 garbage frames per second', ['--device', 'udp', '--garbage', '100000'], None,
     [('goodput_vs_elsewhere', '>=', 0.8)]),
    ('ethernet, 100,000 garbage frames per second', ['--device', 'ethernet', '--garbage', '100000'], None,
     [('goodput_vs_elsewhere', '>=', 0.8)]),
    ('udp, frames with a tag instead of key and checksum',
     ['--device', 'udp', '--auth', 'compare', '--size', '8,1048576'], None, []),
]


def add_options(parser):
    parser.add_argument('--device', metavar='D', help='shmem, udp, ethernet or ofi:PROVIDER; default: all cases, with bounds')
    parser.add_argument('--size', metavar='N[,N]', help='message sizes up to 4M: bytes, or with K or M (powers of 1024), such as 8,64K,1MB')
    parser.add_argument('--rounds', metavar='N', help='interleaved rounds; the median counts (5)')
    parser.add_argument('--count', metavar='N', help='exchanges per round')
    parser.add_argument('--auth', metavar='A', help='key, tag, or compare: both in turns')
    parser.add_argument('--loss', metavar='P', help='lose P percent of the frames of the link')
    parser.add_argument('--cut', action='store_true', help='with --loss: cut bursts first and lose single frames')
    parser.add_argument('--garbage', metavar='N', help='send the receiver N foreign frames per second')
    parser.add_argument('--hits', action='store_true', help='remote write with 100, 50 and 0 %% of the registrations cached')
    parser.add_argument('--memory', action='store_true', help='memory per node for 1,000 peers')
    parser.add_argument('--plot', metavar='FILE', help='draw latency and bandwidth, 4 B to 4 MB (.svg), or the figures')
    parser.add_argument('--json', action='store_true', help='one JSON object per line')


def program():
    return str(pathlib.Path(os.environ['SCBENCH_PROGRAMS']) / 'scbench-pm')


def words_of(options, names):
    """Returns the options in the form of scbench-pm."""
    words = []
    for name in names:
        value = getattr(options, name)
        if value is True:
            words.append(f'--{name}')
        elif value:
            words += [f'--{name}', value]
    return words


def measure(words):
    """Returns the objects of scbench-pm, or nothing and the reason."""
    run = subprocess.run([program(), *words, '--json'], capture_output=True, text=True)
    if run.returncode != 0:
        return [], run.stderr.strip()
    return [json.loads(line) for line in run.stdout.splitlines()], ''


def report_missing(what, reason):
    print(f'scbench: {what}: not measured: {reason}', file=sys.stderr, flush=True)


# ---- all cases

def holds(value, relation, bound):
    return {'<=': value <= bound, '<': value < bound, '>=': value >= bound}[relation]


def verdicts(figures, bounds):
    for key, relation, bound in bounds:
        yield key, figures[key], relation, bound, holds(figures[key], relation, bound)


def print_case(what, figures, bounds):
    size = f', {figures["size"]} B' if 'size' in figures and what.endswith('hits') else ''
    print(what + size)
    bounded = {key for key, *_ in bounds}
    for key, value, relation, bound, good in verdicts(figures, bounds):
        print(f'  {key:<26}{value:>12.3f}  {relation} {bound:<8g} {"ok" if good else "MISSED"}')
    for key, value in figures.items():
        if isinstance(value, float) and key not in bounded:
            low_high = figures.get(f'{key}_spread')
            spread = f'  [{low_high[0]:g} {low_high[1]:g}]' if low_high else ''
            print(f'  {key:<26}{value:>12.3f}{spread}')
    print(flush=True)


def run_cases(options):
    """Runs every case of the table. Returns 1 if a bound was missed."""
    rounds = ['--rounds', options.rounds] if options.rounds else []
    missed, cases = False, []
    for what, words, _, bounds in CASES:
        results, reason = measure(words + rounds)
        if not results:
            report_missing(what, reason)
        for figures in results:
            missed |= not all(good for *_, good in verdicts(figures, bounds))
            cases.append({'case': what, **figures, 'bounds': [list(b) for b in bounds]})
            if not options.json:
                print_case(what, figures, bounds)
    if options.json:
        print(json.dumps({'schema': 'scored.bench.pm/1', 'cores': os.cpu_count(), 'load': os.getloadavg()[0],
                          'cases': cases}, indent=1))
    else:
        print(f'{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}')
    return 1 if missed else 0


# ---- plot

def python_with_matplotlib():
    """Returns the Python in use, or the system's, for which Debian's package is made."""
    for python in (sys.executable, '/usr/bin/python3'):
        if subprocess.run([python, '-c', 'import matplotlib'], capture_output=True).returncode == 0:
            return python
    return None


def plot(options):
    python = python_with_matplotlib()
    if not python:
        print('scbench: --plot needs matplotlib: install python3-matplotlib', file=sys.stderr)
        return 77
    sizes = options.size or ','.join(map(str, PLOT_SIZES))
    results = {}
    for device in [options.device] if options.device else PLOT_DEVICES:
        rows, reason = measure(['--device', device, '--size', sizes, '--rounds', options.rounds or '3',
                                *words_of(options, ['count', 'auth'])])
        if rows:
            results[device] = rows
        else:
            report_missing(device, reason)
    if not results:
        return 1
    subprocess.run([python, str(HERE / 'pm_plot.py'), options.plot], input=json.dumps(results), text=True, check=True)
    if options.json:
        for rows in results.values():
            for row in rows:
                print(json.dumps(row))
    return 0


def run(options):
    if options.plot:
        return plot(options)
    one = options.device or options.hits or options.memory or options.size or options.loss or options.garbage
    if not one:
        return run_cases(options)
    words = words_of(options, ['device', 'size', 'rounds', 'count', 'auth', 'loss', 'cut', 'garbage', 'hits', 'memory',
                               'json'])
    os.execv(program(), [program(), *words])
