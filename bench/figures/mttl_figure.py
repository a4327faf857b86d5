"""Measures operations of MTTL between two ranks of this machine, and the same operations without it."""
import json
import pathlib
import subprocess
import sys

import local_job
from cluster import PROGRAMS
from mpi_cases import Missing
from rows import in_turns, row
from stream_figures import doubled, scbench_pm

WITHOUT_MTTL = {'kernel\'s thread': 'own thread', 'own new 1 MB': 'new 1 MB'}  # the operation next to which each is drawn


def run_program(device, count):
    """{operation: microseconds}"""
    program = pathlib.Path(PROGRAMS) / 'scbench-mttl'
    if not program.exists():
        raise Missing('scbench-mttl is not installed')
    done = subprocess.run([sys.executable, local_job.__file__, '2', device, program, str(count)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f'scbench-mttl: {done.stderr.strip()[-200:]}')
    return {line['what']: line['us'] for line in map(json.loads, done.stdout.splitlines())}


def operations(plan):
    count = 50 if plan.quick else 2000
    devices = ['shmem', 'udp']
    samples = in_turns({device: lambda d=device: run_program(d, count) for device in devices}, plan.rounds)
    rows = []
    for device, found in samples.items():
        rows += [row('operations', f'MTTL over {device}', ('operation', what), [each[what] for each in found], 'us')
                 for what in found[0] if what not in WITHOUT_MTTL]
    for what, beside in WITHOUT_MTTL.items():
        rows.append(row('operations', 'this process alone', ('operation', beside), [each[what] for found in samples.values() for each in found],
                        'us'))
    for line in scbench_pm('--device', 'shmem', '--size', 64, '--rounds', plan.rounds, *(['--count', 50] if plan.quick else [])):
        rows += [row('operations', 'TCP, round trip', ('operation', what), doubled(line, 'tcp_one_way_us'), 'us')
                 for what in ('call', 'thread', 'read')]
    return rows
