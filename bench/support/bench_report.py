"""What all measurements of scbench print alike: the envelope of their JSON, verdicts, CSV, and results that are kept for --resume."""
import copy
import csv
import datetime
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import time

OK, MISSED, INCONCLUSIVE = 'ok', 'MISSED', 'inconclusive'
STATUS = {OK: 0, MISSED: 1, INCONCLUSIVE: 2}  # exit status; a bound that is certainly missed counts more than one that may be
KEPT = 'scored.bench.kept/1'
# Options that choose what is printed, or which parts are measured. All others change the results of a part.
NOT_OF_A_RESULT = {'json', 'csv', 'plot', 'resume', 'parts', 'idle', 'fill', 'memory', 'figures'}
ADVICE = 'inconclusive: the interval includes the bound; measure more on a quiet machine: docs/guide/measuring.md'
HERE = pathlib.Path(__file__).resolve().parent


# ---- the envelope

class Run:
    """What is known when a measurement begins."""

    def __init__(self, command):
        self.command = list(command)
        self.date = datetime.datetime.now(datetime.timezone.utc)
        self.begin = time.monotonic()
        self.load = os.getloadavg()

    def described(self, options):
        return {'version': os.environ.get('SCBENCH_VERSION') or None, 'commit': commit(), 'date': self.date.isoformat(timespec='seconds'),
                'command': self.command, 'options': plain(vars(options)), 'seed': getattr(options, 'seed', None),
                'seconds': round(time.monotonic() - self.begin, 3), 'load_before': [round(part, 2) for part in self.load],
                'load_after': [round(part, 2) for part in os.getloadavg()], 'processors': os.cpu_count(),
                'usable_processors': len(os.sched_getaffinity(0)), 'processor': processor(),
                'memory_bytes': os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES'), 'kernel': platform.release(),
                'machine': platform.machine()}


RUN = Run(sys.argv)


def begin(command):
    """Must be called before anything is measured."""
    global RUN
    RUN = Run(command)


def plain(options):
    """Returns the options as JSON values."""
    return {name: value if isinstance(value, (bool, int, float, str, list, tuple, type(None))) else str(value)
            for name, value in options.items()}


def processor():
    try:
        lines = pathlib.Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        return None
    return next((line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')), None)


def commit():
    """Returns the commit of the scripts, with `+` if files differ from it. None if they are installed, or there is no git."""
    try:
        words = ['git', '-C', HERE, 'describe', '--always', '--abbrev=40', '--dirty=+', '--exclude=*']
        done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def envelope(schema, options, body):
    """Returns the JSON of a measurement: its schema, how it was made, and its own members."""
    return {'schema': schema, 'run': RUN.described(options), 'cores': os.cpu_count(), **body}


# ---- verdicts

def holds(value, relation, bound):
    return {'<=': value <= bound, '<': value < bound, '>=': value >= bound}[relation]


def verdict(value, relation, bound, interval=None):
    """Returns ok or MISSED if the whole interval is on that side of the bound. Otherwise the true value may be on either side,
    whatever the median is. A figure without an interval is judged by its value."""
    ends = [value, *(interval or ())]
    if any(math.isnan(end) for end in ends):
        return INCONCLUSIVE
    held = {holds(end, relation, bound) for end in ends}
    return INCONCLUSIVE if len(held) > 1 else OK if held == {True} else MISSED


def interval_of(figures, key):
    return figures.get(f'{key}_interval') or figures.get(f'{key}_spread')


def verdicts(figures, bounds):
    """Returns the verdict of each figure that has a bound; bounds: {key: (relation, bound)}."""
    return {key: verdict(figures[key], relation, bound, interval_of(figures, key))
            for key, (relation, bound) in bounds.items() if figures.get(key) is not None}


def at_most(bounds, at_least=()):
    """Returns bounds in the form of verdicts()."""
    return {key: ('>=' if key in at_least else '<=', bound) for key, bound in bounds.items()}


def status(found):
    """Returns the exit status of these verdicts."""
    words = set(found)
    return next((STATUS[word] for word in (MISSED, INCONCLUSIVE) if word in words), 0)


# ---- output

CSV_COLUMNS = ('case', 'figure', 'value', 'low', 'high', 'samples', 'relation', 'bound', 'verdict', 'load_before', 'date', 'version', 'commit')
HIDDEN_ENDS = ('_interval', '_spread', '_samples', '_pairs')


def csv_rows(case, figures, bounds):
    """Yields a row per figure."""
    found = verdicts(figures, bounds)
    samples = figures.get('samples', {})
    for key, value in figures.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or key.endswith(HIDDEN_ENDS):
            continue
        low, high = interval_of(figures, key) or ('', '')
        relation, bound = bounds.get(key, ('', ''))
        yield [case, key, value, low, high, len(samples.get(key, ())) or '', relation, bound, found.get(key, '')]


def write_csv(path, cases):
    """Writes all figures, a line each; cases: [(name, figures, bounds)]."""
    ends = [round(RUN.load[0], 2), RUN.date.isoformat(timespec='seconds'), os.environ.get('SCBENCH_VERSION', ''), commit() or '']
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(CSV_COLUMNS)
        for case in cases:
            writer.writerows([*row, *ends] for row in csv_rows(*case))


def finish(options, schema, body, cases, show):
    """Prints the results as JSON, or calls show(); writes the CSV. Returns the exit status. cases: as for write_csv()."""
    found = {name: verdicts(figures, bounds) for name, figures, bounds in cases}
    if options.csv:
        write_csv(options.csv, cases)
    if options.json:
        print(json.dumps(envelope(schema, options, {**body, 'verdicts': found}), indent=1))
    else:
        show()
    code = status(word for of_case in found.values() for word in of_case.values())
    if code == STATUS[INCONCLUSIVE]:
        print(f'scbench: {ADVICE}', file=sys.stderr)
    return code


def line(key, figures, bounds, width=26):
    """Returns a line of text for a figure: value, interval, bound and verdict."""
    interval = interval_of(figures, key)
    text = f'  {key:<{width}} {figures[key]:>10.3f}'
    if interval:
        text += f'  [{interval[0]:.4g}, {interval[1]:.4g}]'
    if key in bounds:
        relation, bound = bounds[key]
        text += f'  {relation} {bound:g}: {verdict(figures[key], relation, bound, interval)}'
    return text


def caption(results, pairs=None):
    """Returns what a picture says about its measurement: pairs, load, processors and date."""
    loads = [result['load'] for result in results if result.get('load') is not None] or [RUN.load[0], os.getloadavg()[0]]
    counts = sorted({result['pairs'] for result in results if isinstance(result.get('pairs'), int)} or ({pairs} if pairs else set()))
    many = f'{"-".join(map(str, counts[:1] + counts[1:][-1:]))} {"pair or round" if counts == [1] else "pairs or rounds"}, ' if counts else ''
    return (f'{many}load {min(loads):.1f} to {max(loads):.1f}, {os.cpu_count()} processors, '
            f'{RUN.date.date().isoformat()}')


def check_files(options):
    """Refuses files that could not be written at the end, before anything is measured."""
    for name in ('csv', 'resume', 'plot'):
        path = getattr(options, name, None)
        folder = pathlib.Path(path).absolute().parent if path else None
        if folder and not os.access(folder, os.W_OK | os.X_OK):
            raise SystemExit(f'scbench: --{name} {path}: cannot write in {folder}; name a file in a directory of yours')


# ---- results that are kept

class Kept:
    """Keeps the result of each part in a file as soon as it is measured, so that an interrupted run can continue. Without a path
    nothing is kept."""

    def __init__(self, options):
        self.path = pathlib.Path(options.resume) if options.resume else None
        self.options = {name: value for name, value in json.loads(json.dumps(plain(vars(options)))).items() if name not in NOT_OF_A_RESULT}
        self.results = {}
        if self.path and self.path.exists():
            self.results = self.read()

    def read(self):
        try:
            found = json.loads(self.path.read_text())
            if found['schema'] != KEPT:
                raise ValueError(f'schema {found["schema"]}')
            options, results = dict(found['options']), dict(found['results'])
        except (ValueError, KeyError, TypeError) as error:
            raise SystemExit(f'scbench: {self.path}: not what --resume wrote: {error!r}') from error
        differ = sorted(name for name in self.options.keys() | options.keys() if self.options.get(name) != options.get(name))
        if differ:
            was = ', '.join(f'--{name.replace("_", "-")} {options.get(name)}' for name in differ)
            raise SystemExit(f'scbench: {self.path}: its results were measured with {was}; use the same options or another file')
        return results

    def has(self, *parts):
        return all(part in self.results for part in parts)

    def part(self, name, measure, *words):
        """Returns the kept result of this part, or that of measure(), which is kept."""
        if name not in self.results:
            self.results[name] = json.loads(json.dumps(measure(*words)))
            self.save()
        return copy.deepcopy(self.results[name])

    def save(self):
        if not self.path:
            return
        new = self.path.with_name(self.path.name + '.new')
        new.write_text(json.dumps({'schema': KEPT, 'options': self.options, 'results': self.results}, indent=1))
        new.replace(self.path)


def add_options(parser):
    """Adds the options that all measurements have."""
    parser.add_argument('--json', action='store_true', help='print JSON with all samples, and how they were measured')
    parser.add_argument('--csv', metavar='FILE', help='write one line per figure or result')
    parser.add_argument('--resume', metavar='FILE', help='keep the results in FILE, and skip those that it already has')
