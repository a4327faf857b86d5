"""The papers' figures on PM come out whole; what they say about speed is not judged here."""
import json
import math
import os
import subprocess
import xml.dom.minidom

import pytest

from cluster import BIN, EXAMPLES, LIMIT
from tiers import others_long

# Figure -> its panels.
PANELS = {'writes': {'shmem'}, 'mpi': {'two nodes', 'one node'}, 'scaling': {'is S'},
          'bisection': {'PM udp', 'TCP', 'PM udp, seconds', 'TCP, seconds'},
          'kernels': {'4 ranks'}, 'gigae': {'round trip', 'bandwidth', 'is S'}, 'cosmo': {'bandwidth'}, 'mttl': {'operations'}}
OWN = {'PM', 'MTTL', 'message', 'write', 'in a node, PM'}  # how the curves of what is measured begin
NEEDS_ROOT = {'mpi', 'bisection', 'gigae', 'cosmo'}
NEEDS_MPI = {'mpi', 'scaling', 'bisection', 'kernels', 'gigae', 'cosmo'}


def figures(*words, code=0):
    done = subprocess.run([BIN / 'scbench', 'pm', '--figures', *words], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize('name', others_long(['writes', 'mttl', *sorted(PANELS.keys() - {'writes', 'mttl'})], 2))
def test_a_figure_has_all_its_curves(name, tmp_path):
    if name in NEEDS_ROOT and os.geteuid() != 0:
        pytest.skip('namespaces need root')
    if name in NEEDS_MPI and not (EXAMPLES / 'npb-openmpi').exists():
        pytest.skip('examples were not built with Open MPI')
    picture = tmp_path / 'figure.svg'
    done = figures(name, '--quick', '--json', '--plot', picture)
    report = json.loads(done.stdout)
    assert report['missing'] == {} and 'not measured' not in done.stderr, done.stderr
    figure, = report['figures']
    assert figure['name'] == name and figure['paper'] and 0 <= figure['busy_percent'] <= 100
    assert {row['panel'] for row in figure['rows']} == PANELS[name]
    for row in figure['rows']:
        low, high = row['spread']
        assert all(math.isfinite(value) for value in (low, row['value'], high)), row
        assert 0 < low <= row['value'] <= high, row
    for panel in PANELS[name]:
        curves = {row['curve'] for row in figure['rows'] if row['panel'] == panel}
        assert any(curve.startswith(tuple(OWN)) for curve in curves) or name == 'bisection', curves
    drawn = xml.dom.minidom.parse(str(picture)).getElementsByTagName('polyline')
    assert len(drawn) == len({(row['panel'], row['curve']) for row in figure['rows']})


def test_invalid_arguments_are_refused_in_one_line():
    for words, said in ((['nine'], "no figure 'nine'"), (['writes', '--size', '5M'], '5M'), (['writes', '--size', '1X'], '1X'),
                        (['writes', '--size', '0'], '--size'), (['writes', '--rounds', '0'], '--rounds'),
                        (['writes', '--rounds', 'x'], '--rounds'), (['kernels', '--class', 'C'], '--class'),
                        (['kernels', '--ranks', '65'], '--ranks'), (['kernels', '--ranks', 'x'], '--ranks'), (['writes', '--loss', '1'], '--loss')):
        error = figures(*words, code=125).stderr
        assert said in error and error.count('\n') == 1, error
