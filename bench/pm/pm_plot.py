#!/usr/bin/env python3
"""pm_plot.py FILE < JSON: draws the results of scbench pm; the JSON has a caption, and results: devices with lists of rows."""
import json
import os
import sys
import tempfile

os.environ.setdefault('MPLCONFIGDIR', tempfile.gettempdir())
import matplotlib  # noqa: E402

matplotlib.use('Agg')
from matplotlib import pyplot  # noqa: E402

COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7']  # Okabe and Ito: safe for colour-blind readers


def curves(device):
    """Returns (label, key of the latency, key of the bandwidth, style)."""
    return [(f'PM {device}', 'one_way_us', 'bandwidth_mb_s', '-o'),
            (f'raw {device}', 'raw_one_way_us', 'raw_mb_s', '--'),
            (f'TCP beside {device}', 'tcp_one_way_us', 'tcp_mb_s', ':')]


def draw(results, caption, path):
    figure, axes = pyplot.subplots(1, 2, figsize=(12, 5))
    for (device, rows), colour in zip(results.items(), COLOURS):
        sizes = [row['size'] for row in rows]
        for label, latency, bandwidth, style in curves(device):
            for axis, key in zip(axes, (latency, bandwidth)):
                axis.plot(sizes, [row[key] for row in rows], style, color=colour, label=label, markersize=3)
    for axis, title, unit in zip(axes, ('One-way latency', 'Bandwidth'), ('us', 'MB/s')):
        axis.set_xscale('log', base=2)
        axis.set(yscale='log', title=title, xlabel='message, bytes', ylabel=unit)
        axis.grid(True, alpha=0.3)
    axes[1].legend(fontsize='small')
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.text(0.01, 0.01, caption, fontsize='small')
    figure.savefig(path)


if __name__ == '__main__':
    draw(**json.load(sys.stdin), path=sys.argv[1])
