"""What the key of one node cannot do to the rest of the cluster. The rogue has node01's key; the rest is honest."""
import hashlib
import struct
import time

import pytest

from cluster import wait_until
from figures import figure
from progress import start_progress
from rogue import HEAD, SCHEMA, Rogue

NODE00 = 1  # rank
LAST_EPOCH = (1 << 64) - 1


@pytest.fixture
def robbed(fresh):
    """Two nodes. The daemon of node01 is gone, and its key is stolen."""
    cluster = fresh(2, '--control', 'pm')
    wait_until(lambda: {node['control'] for node in cluster.json('scnodes')['nodes']} == {'pm'})
    cluster.kill('node01')
    wait_until(lambda: cluster.nodes_up() == 1)
    return cluster


def freezing(job):
    """A timetable in which the job's attempts never run."""
    second = 10**9
    return SCHEMA.encode('SetTimetable', epoch=LAST_EPOCH, start_ns=1, cycle_ns=second,
                         segments=[{'length_ns': second}], managed=[job << 8 | number for number in range(8)])


def bundle(rogue, timetable, number, is_tagged):
    """ControlTimetables for the position of node00, which is its rank."""
    order = struct.pack('<HH', SCHEMA.frames['SetTimetable'][0], 1) + hashlib.sha256(timetable).digest()
    part = {'to': [NODE00, 1], 'timetable': timetable, **({'tags': [rogue.tag(order)]} if is_tagged else {})}
    return SCHEMA.encode('ControlTimetables', id=number, parts=[part])


def test_forged_timetable_freezes_no_job_of_another_node(robbed, tmp_path):
    job, counters = start_progress(robbed, tmp_path, 'a', 1)
    with Rogue(robbed, 'node01') as rogue:
        rogue.join()
        assert robbed.job(job)['nodes'] == ['node00']
        timetable = freezing(job)
        for number in range(1, 21):
            for is_tagged in (False, True):
                payload = bundle(rogue, timetable, 2 * number + is_tagged, is_tagged)
                rogue.throw(HEAD, NODE00, 'ControlTimetables', payload, is_tagged)
            time.sleep(0.02)
        for _ in range(5):  # it goes on, and not only until its next boundary
            before = counters.counter(0)
            wait_until(lambda before=before: counters.counter(0) > before + 100)
            time.sleep(0.2)
        wait_until(lambda: 'untagged=' in log_of(robbed, 'node00'))
        # The head can still tell node00 what it decides.
        other = robbed.submit('-w', 'node00', 'sleep', 1)
        robbed.wait_job(other, 'completed')
    figure('stolen-key', 'with the key of one node a job of another one could not be frozen (40 forged timetables)')
    robbed.cancel_all()


def log_of(cluster, name):
    return '\n'.join(path.read_text(errors='replace') for path in (cluster.directory / 'log').glob(f'{name}*'))


def test_hellos_of_a_node_move_no_job_numbers(robbed):
    before = robbed.submit('true')
    with Rogue(robbed, 'node01') as rogue:
        for number in range(1, 13):
            rogue.hello(last_job=before + number * 10**8, last_job_proof=bytes(32))
    after = robbed.submit('true')
    assert after == before + 1
    assert 'Ignored an unproven job number' in log_of(robbed, 'head')


def test_hellos_of_a_node_use_up_no_epochs(robbed):
    """Today's nodes are welcomed by the next head, whatever a node says that it has seen."""
    with Rogue(robbed, 'node01') as rogue:
        rogue.hello(epoch=(1 << 63) - 1)
        robbed.run('scrun', '-q', '-w', 'node00', 'true')
        robbed.run('scrun', '-q', '-w', 'node00', 'true')
    robbed.kill('head')
    robbed.restart('head')
    wait_until(lambda: robbed.nodes_up() == 1)
    robbed.run('scrun', '-q', '-w', 'node00', 'true')
