"""scbench pm: runs scbench-pm for one device, for all cases that have bounds, or for a plot."""
import json
import os
import pathlib
import subprocess
import sys

import arguments
import bench_report as report
from measure import interval

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = 'scored.bench.pm/2'
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
    report.add_options(parser)


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


class NotMeasured(Exception):
    """scbench-pm cannot measure this here; the text is its message."""


def measured(words):
    """Returns the objects of scbench-pm."""
    run = subprocess.run([program(), *words, '--json'], capture_output=True, text=True)
    if run.returncode != 0:
        raise NotMeasured(run.stderr.strip())
    return [with_intervals(json.loads(line)) for line in run.stdout.splitlines()]


def report_missing(what, reason):
    print(f'scbench: {what}: not measured: {reason}', file=sys.stderr, flush=True)


# ---- all cases

def print_case(name, figures, bounds):
    print(name)
    for key in [*bounds, *(key for key, value in figures.items() if isinstance(value, float) and key not in bounds)]:
        print(report.line(key, figures, bounds, 26))
    print(flush=True)


def with_intervals(figures):
    """Adds where the median of the samples of each figure lies; the samples are the rounds."""
    samples = {key.removesuffix('_samples'): figures.pop(key) for key in list(figures) if key.endswith('_samples')}
    intervals = {f'{key}_interval': list(interval(values)) for key, values in samples.items()}
    return {**figures, **intervals, 'samples': samples}


def run_cases(options):
    """Runs every case of the table."""
    rounds = ['--rounds', options.rounds] if options.rounds else []
    kept, cases = report.Kept(options), []
    for what, words, _, bounds in CASES:
        try:
            results = kept.part(what, measured, words + rounds)
        except NotMeasured as error:
            report_missing(what, error)
            continue
        for figures in results:
            name = what + (f', {figures["size"]} B' if len(results) > 1 else '')
            cases.append((name, figures, {key: (relation, bound) for key, relation, bound in bounds}))
            if not options.json:
                print_case(*cases[-1])
    body = {'load': os.getloadavg()[0], 'cases': [{'case': name, **figures, 'bounds': [[key, *bound] for key, bound in bounds.items()]}
                                                  for name, figures, bounds in cases]}
    return report.finish(options, SCHEMA, body, cases, lambda: print(f'{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}'))


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
    results, kept, rounds = {}, report.Kept(options), options.rounds or '3'
    for device in [options.device] if options.device else PLOT_DEVICES:
        words = ['--device', device, '--size', sizes, '--rounds', rounds, *words_of(options, ['count', 'auth'])]
        try:
            results[device] = kept.part(device, measured, words)
        except NotMeasured as error:
            report_missing(device, error)
    if not results:
        return 1
    picture = {'results': results, 'caption': report.caption([], int(rounds) if rounds.isdigit() else None)}
    subprocess.run([python, str(HERE / 'pm_plot.py'), options.plot], input=json.dumps(picture), text=True, check=True)
    return finish(options, [row for rows in results.values() for row in rows], lambda: None)


def finish(options, rows, show):
    """Prints an object per line, as before there were envelopes, each with its own."""
    cases = [(f'{row.get("device", "memory")} {row.get("size", "")}'.strip(), row, {}) for row in rows]
    if options.csv:
        report.write_csv(options.csv, cases)
    if options.json:
        for row in rows:
            print(json.dumps(report.envelope(SCHEMA, options, row)))
    else:
        show()
    return 0


def run(options):
    if options.plot:
        return plot(options)
    one = options.device or options.hits or options.memory or options.size or options.loss or options.garbage
    if not one:
        return run_cases(options)
    words = words_of(options, ['device', 'size', 'rounds', 'count', 'auth', 'loss', 'cut', 'garbage', 'hits', 'memory'])
    if not (options.json or options.csv or options.resume):
        os.execv(program(), [program(), *words])
    try:
        rows = report.Kept(options).part('case', measured, words)
    except NotMeasured as error:
        print(error, file=sys.stderr)
        return arguments.ERROR
    return finish(options, rows, lambda: [print_case(*case, {}) for case in ((row.get('device', 'memory'), row) for row in rows)])
