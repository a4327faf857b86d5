"""Three machines without anything of ours, the packages at hand: what an administrator types until the first job."""
import time

import pytest
from bed import Bed
from booted_cluster import OF_HEAD, OF_NODE, USERS, node_lines, packages
from transcript import Transcript

LINES, SECONDS = 5, 180


@pytest.fixture
def machines(empty_bed, base, installed):
    if not packages():
        pytest.skip('no packages: ./try package builds them')
    bed = Bed([installed, base])
    try:
        for name in ('head', 'node00', 'node01'):
            bed.machine(name)
        for machine in bed.machines.values():
            machine.boot()
            for name, uid in USERS.items():
                machine.run('useradd', '--create-home', '--shell', '/bin/bash', '--uid', uid, name)
        yield list(bed.machines.values())
    finally:
        bed.close()


def installation(names):
    return 'cd /packages && apt-get install -q -y ' + ' '.join(f'./{name}_*.deb' for name in names)


def test_three_machines_are_installed_by_five_lines(machines):
    head, *nodes = machines
    typed = Transcript()
    start = time.monotonic()
    typed.type(head, installation(OF_HEAD), shown='^Setting up scored')
    joins = node_lines(typed.type(head, 'scored-setup head --nodes node[00-01]'))
    for node in nodes:
        typed.type(node, f'{installation(OF_NODE)} && {joins[node.name]}', shown='^Setting up scored')
    first = typed.type(head, 'scrun -N 2 hostname | sort', user='alice')
    took = time.monotonic() - start
    assert first == 'node00\nnode01\n'
    print(f'{typed.lines} lines, {took:.0f} s to the first job on three machines')
    assert typed.lines <= LINES and took <= SECONDS
    typed.check()
