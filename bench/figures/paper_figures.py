"""scbench pm --figures: measures the figures of the papers on PM on this machine, compared with the usual alternatives. A figure is
a list of rows: a panel, a curve in it, a place along x, and the median of the rounds with the lowest and the highest."""
import argparse
import os
import sys

import kernel_figures
import mttl_figure
import plot
import bench_report as report
import stream_figures
from kernels import note
from measure import busy_percent
from mpi_cases import Missing
from rows import Plan
from units import size

# Name -> (function that measures it, the papers' figure, title).
FIGURES = {
    'writes': (stream_figures.writes, 'PC Cluster II, figure 7', 'PM: messages and remote writes by hits of memory registration'),
    'mpi': (stream_figures.mpi, 'PC Cluster II, figure 8', 'MPI: bandwidth with buffers used again and buffers used once'),
    'scaling': (kernel_figures.scaling, 'PC Cluster II, figure 9', 'NAS kernels over ranks'),
    'bisection': (kernel_figures.bisection, 'PC Cluster II, figure 10', 'NAS kernels with links between two halves taken away'),
    'kernels': (kernel_figures.table, 'PC Cluster II, table 1', 'NAS kernels on many ranks'),
    'gigae': (kernel_figures.gigae, 'GigaE PM, figures 2 to 5', 'PM on Ethernet: round trip, bandwidth, CG and IS over nodes'),
    'cosmo': (stream_figures.cosmo, 'COSMO, table 1', 'Bandwidth between threads, in a node, between nodes'),
    'mttl': (mttl_figure.operations, 'MPC++ on PC Cluster II', 'MTTL: remote functions, threads and memory'),
}
SCHEMA = 'scored.bench.figures/2'
MOST_RANKS = 64


def add_options(parser):
    parser.add_argument('--figures', nargs='*', metavar='NAME',
                        help='measure the figures of the papers on PM instead; all without a NAME: ' + ', '.join(FIGURES))
    parser.add_argument('--quick', action='store_true', help='with --figures: one round, few and small cases; only to try the figures out')
    parser.add_argument('--class', dest='kernel_class', metavar='C', help='class of the kernels of scaling and kernels: S, W or A (S)')
    parser.add_argument('--ranks', metavar='N', help=f'ranks of the figure kernels, 1 to {MOST_RANKS} ({kernel_figures.TABLE_RANKS})')


def fail(text):
    sys.exit(f'scbench pm: {text}')


def positive(text, name, least=1):
    if not text.isdigit() or not least <= int(text) <= 10_000_000:
        fail(f"{name}: '{text}' is not a number from {least}")
    return int(text)


def sizes_of(text):
    found = []
    for word in text.split(','):
        try:
            found.append(size(word))
        except argparse.ArgumentTypeError as error:
            fail(f'--size: {error}')
        if not 1 <= found[-1] <= 4 << 20:
            fail(f"--size: '{word}' is not a size from 1 to 4M, such as 8, 64K or 1MB")
    return found


def plan_of(options):
    """Checks the options and returns the plan."""
    unknown = [name for name in options.figures if name not in FIGURES]
    if unknown:
        fail(f"no figure '{unknown[0]}'; figures are {', '.join(FIGURES)}")
    for name in ('device', 'loss', 'garbage', 'auth', 'cut', 'hits', 'memory', 'count'):
        if getattr(options, name):
            fail(f'--{name} does not go with --figures')
    if options.kernel_class not in (None, 'S', 'W', 'A'):
        fail(f"--class: '{options.kernel_class}' is not S, W or A")
    rounds = positive(options.rounds, '--rounds') if options.rounds else 1 if options.quick else 3
    ranks = positive(options.ranks, '--ranks') if options.ranks else None
    if ranks and ranks > MOST_RANKS:
        fail(f"--ranks: '{options.ranks}': at most {MOST_RANKS}")
    return Plan(rounds, options.quick, sizes_of(options.size) if options.size else None, options.kernel_class, ranks)


def measured(plan, name):
    function, paper, title = FIGURES[name]
    note(f'{name}: {title} ({paper})')
    busy = busy_percent()
    rows = function(plan)
    return {'name': name, 'paper': paper, 'title': title, 'busy_percent': round(busy, 1), 'rows': rows}


def print_figure(figure):
    print(f'{figure["name"]}: {figure["title"]} ({figure["paper"]}); other programs took {figure["busy_percent"]:.0f} % before')
    panel = None
    for row in figure['rows']:
        if row['panel'] != panel:
            panel = row['panel']
            print(f'  {panel}, {row["unit"]}')
        low, high = row['spread']
        print(f'    {row["curve"]:<28}{row["x"]!s:>12}{row["value"]:>12.4g}  [{low:.4g}, {high:.4g}]')
    print(flush=True)


def panels_of(figures):
    """Returns panels for plot.draw_panels()."""
    found = {}
    for figure in figures:
        for row in figure['rows']:
            panel = found.setdefault((figure['name'], row['panel']), {
                'title': f'{figure["name"]}: {row["panel"]}', 'x': row['x_name'], 'y': row['unit'], 'places': [], 'curves': {},
                'log': row['unit'] in ('us', 'MB/s')})
            if str(row['x']) not in panel['places']:
                panel['places'].append(str(row['x']))
            panel['curves'].setdefault(row['curve'], []).append((panel['places'].index(str(row['x'])), row['value']))
    return [{**panel, 'lines': list(panel['curves'].items())} for panel in found.values()]


def run(options):
    """Returns 0, or 77 if no figure can be measured here."""
    plan = plan_of(options)
    if options.plot and not plot.is_own(options.plot):
        plot.check()
    figures, missing, kept = [], {}, report.Kept(options)
    for name in options.figures or FIGURES:
        try:
            figures.append(kept.part(name, measured, plan, name))
        except Missing as error:
            missing[name] = str(error)
            print(f'scbench: {name}: not measured: {error}', file=sys.stderr, flush=True)
            continue
        if not options.json:
            print_figure(figures[-1])
    if options.plot and figures:
        plot.draw_panels(panels_of(figures), options.plot, report.caption([], plan.rounds))
    cases = [(f'{figure["name"]}, {row["panel"]}, {row["curve"]}, {row["x_name"]} {row["x"]}', as_figure(row), {})
             for figure in figures for row in figure['rows']]
    body = {'load': os.getloadavg()[0], 'rounds': plan.rounds, 'quick': plan.quick, 'figures': figures, 'missing': missing}
    report.finish(options, SCHEMA, body, cases, lambda: None)
    return 0 if figures else 77


def as_figure(row):
    """Returns a row in the form of report.write_csv()."""
    return {row['unit']: row['value'], f'{row["unit"]}_spread': row['spread'], 'samples': {row['unit']: row['samples']}}
