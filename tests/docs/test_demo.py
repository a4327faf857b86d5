"""`./try demo`: both of its jobs share the nodes, and what it prints says so."""
import re
import subprocess

import pytest
from cluster import BIN, EXAMPLES, LIMIT
from page import ROOT

NODES = 64


def test_two_jobs_share_all_nodes():
    if not (EXAMPLES / 'pi').exists():
        pytest.skip('MPICH is not installed, so its examples are not built')
    done = subprocess.run([BIN / 'score', 'virtual', '--nodes', str(NODES), '--slice', '100ms', '--', 'sh', ROOT / 'examples/demo.sh'],
                          env={'PATH': '/usr/bin:/bin', 'SCORED_EXAMPLES': str(EXAMPLES)}, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, f'{done.stdout}\n{done.stderr}'
    sections = dict(part.split('\n', 1) for part in done.stdout.split('\n== ')[1:])
    rows = [line.split() for line in sections['scq'].splitlines()[1:] if line]
    shares = [re.findall(r'\d+%', ' '.join(row)) for row in rows]
    assert [row[2] for row in rows] == ['running', 'running'] and shares == [['50%'], ['50%']], sections['scq']
    output = next(text for title, text in sections.items() if title.startswith('their output'))
    assert output.count('correct') == 2, output
