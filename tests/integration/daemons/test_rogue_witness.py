"""One of three witnesses lies to two heads: it neither stops a take-over nor makes a head lead that lacks changes (ADR 111)."""
import time

from cluster import wait_until
from figures import figure
from rogue_witness import RogueWitness
from test_two_heads import HEADS, at_node, boot, in_charge, info, is_ready, jobs, other

ROGUE = 'node01'
FAR = 1 << 59
NOBODY = {'term': FAR, 'version': 1, 'heads': 0, 'position': {'term': 0, 'sequence': 0}, 'seal': {'high': 1, 'low': 2}}
BOTH = {**NOBODY, 'heads': 3}


def boot_with_witnesses(fresh):
    cluster = boot(fresh)
    for head in HEADS:
        cluster.kill(head)
        config = cluster.directory / head / 'scored.toml'
        config.write_text(config.read_text().replace('[head]\n', '[head]\nwitnesses = "node[00-02]"\n', 1))
    for head in HEADS:
        cluster.restart(head)
    wait_until(lambda: is_ready(cluster), what=cluster.logs)
    cluster.kill(ROGUE)
    wait_until(lambda: leader(cluster) is not None, what=cluster.logs)
    return cluster


def leader(cluster):
    """The head in charge while a node is away."""
    answer = info(cluster)
    leads = [head['in_charge'] for head in answer['heads']] if answer else []
    return HEADS[leads.index(True)] if True in leads else None


def test_mark_of_nobody_stops_no_take_over(fresh):
    cluster = boot_with_witnesses(fresh)
    for mark in (NOBODY, BOTH):
        with RogueWitness(cluster, ROGUE, mark) as rogue:
            wait_until(lambda rogue=rogue: min(rogue.answered) > 3, what=cluster.logs)
            first = leader(cluster)
            wait_until(lambda: any(head['state'] == 'current' for head in info(cluster)['heads']), what=cluster.logs)
            job = cluster.submit('-J', 'before', 'true', extra_env=at_node(cluster))
            began = time.monotonic()
            cluster.kill(first)
            wait_until(lambda first=first: leader(cluster) == other(first), what=cluster.logs)
            figure('two-heads-old-disk', f'mark of term 2^59, heads {mark["heads"]}: take-over after {time.monotonic() - began:.1f} s')
            assert jobs(cluster)[job] == 'before'
            cluster.restart(first)


def test_mark_of_both_makes_no_head_lead_that_lacks_changes(fresh):
    cluster = boot_with_witnesses(fresh)
    first = leader(cluster)
    second = other(first)
    cluster.kill(second)
    late = [cluster.submit('-J', f'late{number}', 'true', extra_env=at_node(cluster)) for number in range(39)]
    with RogueWitness(cluster, ROGUE, BOTH) as rogue:
        cluster.kill(first)
        cluster.restart(second)
        log = cluster.directory / 'log' / second
        wait_until(lambda: 'it lacks changes' in log.read_text().split('Started as one')[-1], what=cluster.logs)
        count = rogue.answered[HEADS.index(second)]
        wait_until(lambda: rogue.answered[HEADS.index(second)] > count + 20, what=cluster.logs)  # several leases
        assert leader(cluster) is None
        cluster.restart(first)
        wait_until(lambda: leader(cluster) == first, what=cluster.logs)
        known = jobs(cluster)
        assert [known.get(job) for job in late] == [f'late{number}' for number in range(39)]
