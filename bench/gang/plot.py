"""Draws results with matplotlib (Debian: python3-matplotlib), which is only loaded when it is needed. Speed-ups can be drawn as SVG
without it."""
import collections
import sys

import bench_report as report
import svg_chart

PAPER_PERCENT = 3.3  # SCore-D, 64 nodes, 100 ms (RWC PC Cluster II)
STYLES = {1: '-', 2: '--'}
COLOURS = {'ep': 'tab:green', 'cg': 'tab:blue', 'ft': 'tab:orange', 'is': 'tab:red'}


def pyplot():
    try:
        import matplotlib
    except ImportError:
        print('scbench: --plot needs matplotlib (python3-matplotlib)', file=sys.stderr)
        sys.exit(77)
    matplotlib.use('Agg')
    import matplotlib.pyplot
    return matplotlib.pyplot


def check():
    """Ends the program at once, not after the measurements, if nothing can be drawn."""
    pyplot()


def lines(axes, results, key):
    groups = collections.defaultdict(list)
    for result in results:
        groups[result['kernel'], result['jobs'], result['mode'], result['channels']].append(result)
    several = len({key[2:] for key in groups}) > 1
    for (kernel, jobs, mode, channels), group in groups.items():
        x = [result[key] for result in group]
        y = [result['slowdown_percent'] for result in group]
        below = [max(0, result['slowdown_percent'] - result['interval'][0]) for result in group]
        above = [max(0, result['interval'][1] - result['slowdown_percent']) for result in group]
        axes.errorbar(x, y, yerr=[below, above], linestyle=STYLES.get(jobs, ':'), color=COLOURS.get(kernel),
                      marker='o', markersize=4, capsize=2, elinewidth=0.6,
                      label=f'{kernel.upper()}, ' + ('one job' if jobs == 1 else f'{jobs} jobs') +
                      (f', {mode}, {channels} ch.' if several else ''))


def draw(results, path, key, label, decorate):
    figure, axes = pyplot().subplots(figsize=(7, 4.5))
    lines(axes, results, key)
    axes.set_xlabel(label)
    axes.set_ylabel('slowdown by switching, %')
    axes.axhline(0, color='black', linewidth=0.5)
    decorate(axes)
    axes.legend(fontsize='small', ncol=2)
    axes.grid(alpha=0.3)
    sign(figure, report.caption(results))
    figure.savefig(path)


def sign(figure, caption):
    """Writes the caption below the panels."""
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.text(0.01, 0.01, caption, fontsize='small')


def over_nodes(results, path):
    def decorate(axes):
        axes.set_xscale('log', base=2)
        axes.set_xticks(sorted({result['nodes'] for result in results}))
        axes.get_xaxis().set_major_formatter(lambda value, _: f'{value:g}')
        axes.axhline(PAPER_PERCENT, color='grey', linestyle=':', label='SCore-D, 64 nodes')
        axes.set_title(f'NPB class {results[0]["class"]} on PM, slices of {results[0]["slice_ms"]:g} ms')
    draw(results, path, 'nodes', 'nodes', decorate)


def over_slice(results, path):
    def decorate(axes):
        axes.set_xscale('log')
        axes.set_title(f'NPB class {results[0]["class"]} on PM, {results[0]["nodes"]} nodes, one job')
    draw(results, path, 'slice_ms', 'slice, ms', decorate)


def speedup_panels(results):
    """Draws one picture per program: speed-up over nodes x cores, with one line per version."""
    places = sorted({(r['nodes'], r['cores']) for r in results}, key=lambda place: (place[0] * place[1], place))
    panels = []
    for program in sorted({result['program'] for result in results}):
        lines = []
        for version in sorted({r['version'] for r in results}):
            points = {(r['nodes'], r['cores']): r for r in results
                      if r['program'] == program and r['version'] in (version, 'mpi' if r['cores'] == 1 else version)}
            lines.append((version, [(index, points[place]['speedup']) for index, place in enumerate(places) if place in points]))
        panels.append({'title': program.replace(':', ' '), 'x': 'nodes x cores', 'y': 'speed-up', 'lines': lines,
                       'places': [f'{nodes} x {cores}' for nodes, cores in places]})
    return panels


def is_own(path):
    """Returns true if draw_panels() draws this itself."""
    return path.endswith('.svg')


def speedups(results, path, repeats):
    draw_panels(speedup_panels(results), path, report.caption(results, repeats))


def draw_panels(panels, path, caption):
    """Draws panels in the format of svg_chart.draw(); as .svg without matplotlib."""
    if is_own(path):
        svg_chart.draw(panels, path, caption)
        return
    columns = min(len(panels), svg_chart.COLUMNS)
    lines = -(-len(panels) // columns)
    figure, all_axes = pyplot().subplots(lines, columns, figsize=(5.5 * columns, 4.5 * lines), squeeze=False)
    for axes in all_axes.flat[len(panels):]:
        axes.set_visible(False)
    for axes, panel in zip(all_axes.flat, panels):
        for name, points in panel['lines']:
            axes.plot([x for x, _ in points], [y for _, y in points], marker='o', markersize=4, label=name)
        axes.set_xticks(range(len(panel['places'])), panel['places'])
        axes.set(title=panel['title'], xlabel=panel['x'], ylabel=panel['y'], yscale='log' if panel.get('log') else 'linear')
        axes.grid(alpha=0.3)
        axes.legend(fontsize='small')
    sign(figure, caption)
    figure.savefig(path)
