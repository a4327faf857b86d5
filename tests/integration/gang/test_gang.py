"""Gangs share the nodes in time: never two in a slot, shares as asked, changes at once, and all of
that also without a head."""
import time

from cluster import EXAMPLES, LIMIT, wait_until
from progress import Counters, advance, merge, overlaps, start_progress, wait_shares
from together import run_together

MS = 1_000_000


def test_two_jobs_never_run_in_the_same_slot(many, tmp_path):
    _, a = start_progress(many, tmp_path, 'a', 64)
    _, b = start_progress(many, tmp_path, 'b', 64)
    shares = []

    def share_edges_only():
        shares.append(share_of_overlaps(a, b))
        return shares[-1] < 0.15
    # Over all nodes: two slots of 100 ms share only their edges, unless a node is held up.
    wait_until(share_edges_only, what=lambda: shares)


def share_of_overlaps(a, b):
    """Of the next 3 s in which any rank of two jobs runs: in how much do ranks of both? On one node: never."""
    both_from = time.monotonic_ns()
    time.sleep(3)
    wait_until(lambda: all(c.last_ns(rank) > both_from for c in (a, b) for rank in range(64)))
    whole = [[], []]
    for rank in range(64):
        runs = [merge(i for i in c.intervals(rank) if i[0] > both_from) for c in (a, b)]
        # The freezer stops the one before the other goes on.
        shared = overlaps(*runs)
        assert all(end - start < 20 * MS for start, end in shared), shared
        whole[0] += runs[0]
        whole[1] += runs[1]
    shared = overlaps(merge(whole[0]), merge(whole[1]))
    running = sum(end - start for start, end in merge(whole[0] + whole[1]))
    return sum(end - start for start, end in shared) / running


def test_two_unmodified_mpi_jobs_share_all_nodes(many):
    running, outputs = run_together(many, lambda seconds: [
        ('scrun', '-q', '-N', 64, EXAMPLES / name, '--seconds', seconds) for name in ('ring', 'allreduce')])
    assert {len(job['nodes']) for job in running} == {64}
    assert len({job['slot'] for job in running}) == 2
    assert all('64' in out for out in outputs)


def test_third_job_gets_its_share_within_two_cycles(many, tmp_path):
    _, a = start_progress(many, tmp_path, 'a', 64)
    _, b = start_progress(many, tmp_path, 'b', 64)
    advance([a, b], 1)
    third, c = start_progress(many, tmp_path, 'c', 64)
    cycle_ns = 300 * MS
    # Counted from the start of the tasks: how long submission takes is the benchmark's matter.
    started = max(c.first_ns(rank) for rank in range(64))
    wait_until(lambda: all(c.last_ns(r) > started + 2 * cycle_ns for r in range(64)))
    wait_shares([a, b, c], lambda got: all(0.2 < share / sum(got) < 0.47 for share in got), 4)
    assert abs(many.job(third)['share'] - 1 / 3) < 0.02


def test_weights_are_shares(few, tmp_path):
    _, heavy = start_progress(few, tmp_path, 'heavy', 2, '-w', 'node[00-01]', '-c', 2, '--weight', 300)
    _, light = start_progress(few, tmp_path, 'light', 2, '-w', 'node[00-01]', '-c', 2, '--weight', 100)
    wait_shares([heavy, light], lambda got: 2 < got[0] / got[1] < 4.5)


def test_quantum_changes_at_the_next_boundary(few, tmp_path):
    jobs = [start_progress(few, tmp_path, name, 8, '-c', 2)[0] for name in ('a', 'b')]
    few.run('scadm', 'set', 'quantum', '50ms')
    try:
        assert few.json('score', 'info')['quantum_s'] == 0.05
        steps = {}

        def all_changed():  # a node that is held up for several slices skips their switches
            for node in few.json('scadm', 'trace', '--seconds', '1')['nodes']:
                due = [switch['due_ns'] for switch in node['switches']][-8:]
                steps[node['node']] = {round((y - x) / MS) for x, y in zip(due, due[1:])}
            return len(steps) == 8 and all(of_node and of_node <= {50, 100} for of_node in steps.values())
        wait_until(all_changed, what=lambda: steps)
        assert [few.job(job)['state'] for job in jobs] == ['running', 'running']
    finally:
        few.run('scadm', 'set', 'quantum', '20ms')


def test_jobs_alternate_without_a_head(fresh, tmp_path):
    cluster = fresh(8, '--slice', '50ms')
    jobs = [start_progress(cluster, tmp_path, name, 8) for name in ('a', 'b')]
    counters = [c for _, c in jobs]
    cluster.kill('head')
    time.sleep(0.5)
    killed_at = time.monotonic_ns()
    wait_shares(counters, lambda got: 0.3 < got[0] / sum(got) < 0.7)
    for rank in range(8):
        runs = [merge(i for i in c.intervals(rank) if i[0] > killed_at) for c in counters]
        assert len(runs[0]) > 5 and len(runs[1]) > 5, runs
        assert all(end - start < 20 * MS for start, end in overlaps(*runs))
    cluster.restart('head')
    cluster.wait_up()
    assert [cluster.job(job)['state'] for job, _ in jobs] == ['running', 'running']
    wait_shares(counters, lambda got: 0.3 < got[0] / sum(got) < 0.7, 2)
    cluster.cancel_all()


def test_a_suspended_job_leaves_the_timetable(few, tmp_path):
    front = few.start('scrun', '-q', '-N', 8, EXAMPLES / 'progress', '--counters', tmp_path / 'a',
                      '--seconds', 0)
    counters = Counters(tmp_path / 'a', 8)
    wait_until(counters.all_started)
    front.send_signal(20)  # SIGTSTP, as ^Z
    job = few.json('scq', '--active')['jobs'][0]['job']
    few.wait_job(job, 'suspended')
    wait_until(lambda: advance([counters], 0.3) == [0])  # the slice that was under way is over
    assert advance([counters], 0.5) == [0]
    front.send_signal(18)  # SIGCONT, as fg
    few.wait_job(job, 'running')
    wait_until(lambda: advance([counters], 0.1)[0] > 0)
    front.terminate()
    assert front.wait(LIMIT) == 128 + 15
    front.communicate()
