"""Makes rows of the papers' figures, and measures cases in turns."""
import collections
import math
import statistics
import sys
import time

from mpi_cases import Missing

# Bytes per size, class of the kernels, ranks of table 1: each is None without its option.
Plan = collections.namedtuple('Plan', 'rounds quick sizes kernel_class ranks')


def row(panel, curve, place, samples, unit):
    """Makes a row; `place`: name of the x axis, and the position on it."""
    return {'panel': panel, 'curve': curve, 'x_name': place[0], 'x': place[1], 'value': statistics.median(samples),
            'spread': [min(samples), max(samples)], 'samples': list(samples), 'unit': unit}


def in_turns(cases, rounds, end=math.inf):
    """Calls the functions of `cases` in turns, so that other load affects all alike: {key: samples}. A case that fails is
    reported and left out from then on. After `end` (time.monotonic()) no further round begins."""
    samples, failed = {key: [] for key in cases}, set()
    for number in range(rounds):
        if number > 0 and time.monotonic() > end:
            break
        for key, function in cases.items():
            if key in failed:
                continue
            try:
                samples[key].append(function())
            except Missing as error:
                failed.add(key)
                print(f'scbench: {key}: not measured: {error}', file=sys.stderr, flush=True)
    found = {key: values for key, values in samples.items() if values and key not in failed}
    if not found:
        raise Missing('every case failed')
    return found
