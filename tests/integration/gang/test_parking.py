"""[memory] share: the memory of jobs that are held leaves their nodes and comes back, whatever is killed meanwhile."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from cluster import BIN, LIMIT, wait_until

MIB = 1 << 20
HELD = 96  # MiB of a job on each node

# A job with memory of its own, whose content it checks again and again. It writes its number of rounds to a file of
# the rank, and ends with 0 when the file `go` is there.
HOLDER = r'''
import ctypes, os, pathlib, sys, time, zlib
directory, size, locks = pathlib.Path(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3
rank = os.environ['SCORE_RANK']
memory = bytearray(b''.join(os.urandom(1 << 20) for _ in range(size)))
if locks and ctypes.CDLL(None).mlockall(1) != 0:
    sys.exit(77)
sum_of_all = zlib.crc32(memory)
rounds = 0
while not (directory / 'go').exists():
    assert zlib.crc32(memory) == sum_of_all, 'memory has changed'
    rounds += 1
    (directory / f'new.{rank}').write_text(f'{os.getpid()} {rounds}')
    (directory / f'new.{rank}').rename(directory / f'rank.{rank}')
assert zlib.crc32(memory) == sum_of_all, 'memory has changed'
'''


class Holder:
    """A job of one task per node that holds memory."""

    def __init__(self, cluster, directory, *options, nodes=2, size=HELD, locks=False, is_script=False):
        directory.mkdir()
        self.cluster, self.directory, self.nodes = cluster, directory, nodes
        program = directory / 'holder.py'
        program.write_text(HOLDER)
        if is_script:
            script = directory / 'job.sh'
            script.write_text(f'#!/bin/sh\nexport SCORE_RANK=0\nexec {sys.executable} {program} {directory} {size}\n')
            self.job = int(cluster.run('scbatch', '-N', nodes, *options, script, cwd=directory).stdout)
            return
        self.job = cluster.submit('-N', nodes, '-n', nodes, *options, sys.executable, program, directory, size,
                                  *(['lock'] if locks else []))

    def rounds(self):
        return [int((self.directory / f'rank.{rank}').read_text().split()[1]) for rank in range(self.nodes)]

    def has_begun(self):
        return all((self.directory / f'rank.{rank}').exists() for rank in range(self.nodes))

    def in_swap(self):
        """Bytes of each rank that are in swap."""
        out = []
        for rank in range(self.nodes):
            pid = (self.directory / f'rank.{rank}').read_text().split()[0]
            status = pathlib.Path(f'/proc/{pid}/status').read_text()
            out.append(int(status.split('VmSwap:')[1].split()[0]) * 1024)
        return out

    def residence(self):
        return self.cluster.job(self.job)['residence']

    def wait(self, residence):
        wait_until(lambda: self.residence() == residence, what=lambda: self.cluster.job(self.job))

    def goes_on(self):
        before = self.rounds()
        wait_until(lambda: all(now > then + 1 for now, then in zip(self.rounds(), before)),
                   what=lambda: self.cluster.job(self.job))

    def end(self):
        (self.directory / 'go').touch()
        self.cluster.wait_job(self.job, 'completed')


@pytest.fixture
def swap(as_root, tmp_path):
    """A swap file of this test."""
    with swap_of(640, tmp_path) as path:
        yield path


@contextlib.contextmanager
def swap_of(mebibytes, tmp_path):
    path = tmp_path / 'swap'
    made = subprocess.run(['fallocate', '-l', str(mebibytes * MIB), path], check=False)
    path.chmod(0o600) if path.exists() else None
    for command in (['mkswap', path], ['swapon', path]):
        if made.returncode == 0:
            made = subprocess.run(command, check=False, capture_output=True)
    if made.returncode != 0:
        pytest.skip(f'no swap file can be used here: {made.stderr}')
    try:
        yield path
    finally:
        subprocess.run(['swapoff', path], check=True)
        path.unlink()


def boot(fresh, tmp_path, *lines, nodes=2):
    """Nodes of 256 MiB, with this table [memory]. Unless it says otherwise no swap is too slow, however busy the host."""
    if not any(line.startswith('least_rate') for line in lines):
        lines = *lines, 'least_rate = "1K"'
    config = tmp_path / 'memory.toml'
    config.write_text('\n'.join(['[memory]', *lines, '']))
    cluster = fresh(nodes, '--slice', '50ms', '--memory', '256M', '--hooks', config)
    if not cluster.description.get('cgroup', True) or not pathlib.Path('/sys/fs/cgroup').exists():
        pytest.skip('needs a cgroup of version 2')
    return cluster


def test_a_suspended_job_is_parked_and_returns(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"')
    holder = Holder(cluster, tmp_path / 'a', '--mem', '160M')
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    holder.wait('parked')
    assert all(bytes_ > HELD * MIB * 0.9 for bytes_ in holder.in_swap()), holder.in_swap()
    shown = cluster.job(holder.job)
    assert shown['state'] == 'suspended' and shown['parked_bytes'] > 2 * HELD * MIB * 0.9, shown
    assert 'parked: ' in shown['reasons'][0], shown
    assert 'parked' in cluster.run('scq').stdout
    assert 'written to swap' in cluster.run('score', 'job', holder.job).stdout
    cluster.run('score', 'resume', holder.job)
    wait_until(lambda: holder.residence() == 'in-memory')
    holder.goes_on()
    shown = cluster.job(holder.job)
    assert 0.99 * shown['paged_out_bytes'] < shown['paged_in_bytes'] <= shown['paged_out_bytes'] and shown['parked_bytes'] == 0, shown
    for node in cluster.json('scadm', 'trace', '--seconds', 600)['nodes']:
        moves = [(move['attempt'] >> 8, move['out'], move['bytes'] > HELD * MIB * 0.9) for move in node['moves']]
        assert moves == [(holder.job, True, True), (holder.job, False, True)], moves
        assert all(move['took_ns'] > 0 for move in node['moves'])
    holder.end()
    row = next(row for row in cluster.json('scacct')['jobs'] if row['job'] == holder.job)
    for key in ('paged_out_bytes', 'paged_in_bytes'):
        assert row[key] == shown[key], (row, shown)
    assert row['parked_s'] == shown['parked_s'] > 0, (row, shown)
    assert 'without its memory' in cluster.run('score', 'job', holder.job).stdout


def test_an_urgent_job_gets_the_memory_of_the_youngest(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"')
    older = Holder(cluster, tmp_path / 'older', '--mem', '40M', size=8)
    wait_until(older.has_begun)
    younger = Holder(cluster, tmp_path / 'younger', '--mem', '160M')
    wait_until(younger.has_begun)
    urgent = Holder(cluster, tmp_path / 'urgent', '--mem', '180M', '--queue', 'urgent', size=32)
    wait_until(urgent.has_begun, what=lambda: (cluster.job(urgent.job), cluster.job(younger.job)))
    assert (younger.residence(), older.residence()) == ('parked', 'in-memory')
    assert f'for job {urgent.job}' in cluster.job(younger.job)['reasons'][0]
    waits = cluster.submit('-N', 2, '--mem', '60M', 'true')
    assert cluster.job(waits)['state'] == 'pending', 'the memory is lent to urgent jobs only'
    cluster.cancel(waits)
    urgent.end()
    wait_until(lambda: younger.residence() == 'in-memory')
    younger.goes_on()
    younger.end()
    older.end()


def test_other_jobs_get_the_memory_of_a_suspended_one_with_always(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "always"')
    holder = Holder(cluster, tmp_path / 'a', '--mem', '200M')
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    other = Holder(cluster, tmp_path / 'b', '--mem', '200M', size=16)
    wait_until(other.has_begun, what=lambda: cluster.job(other.job))
    refused = cluster.run('score', 'resume', holder.job, code=None)
    assert refused.returncode != 0 and 'other jobs have its memory' in refused.stderr, refused
    other.end()
    cluster.run('score', 'resume', holder.job)
    holder.goes_on()
    holder.end()


def test_jobs_that_do_not_fit_together_take_turns(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "always"', 'turn_max = "2s"')
    first = Holder(cluster, tmp_path / 'a', '--mem', '160M')
    wait_until(first.has_begun)
    second = Holder(cluster, tmp_path / 'b', '--mem', '160M')
    wait_until(lambda: second.has_begun() or 'memory: ' in cluster.run('scq', '--why', second.job).stdout)
    wait_until(second.has_begun, what=lambda: (cluster.job(first.job), cluster.job(second.job)))
    for _ in range(2):
        for holder, other in ((first, second), (second, first)):
            holder.wait('in-memory')
            holder.goes_on()
            other.wait('parked')
    for holder in (first, second):
        shown = cluster.job(holder.job)
        assert shown['paged_out_bytes'] > 2 * HELD * MIB * 0.9 and shown['paged_in_bytes'] > 0, shown
    first.end()
    wait_until(lambda: second.residence() == 'in-memory')
    second.goes_on()
    second.end()


def switcher_faults(cluster):
    """Major faults of the threads that switch jobs, node by node."""
    out = []
    for node in range(cluster.nodes):
        pid = cluster.daemon(f'node{node:02}')['pid']
        for thread in pathlib.Path(f'/proc/{pid}/task').iterdir():
            if (thread / 'comm').read_text() == 'switcher\n':
                out.append(int((thread / 'stat').read_text().rsplit(')', 1)[1].split()[9]))
    return out


def test_the_switcher_never_waits_for_swap(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"')
    holder = Holder(cluster, tmp_path / 'a', '--mem', '160M')
    other = Holder(cluster, tmp_path / 'b', '--mem', '40M', size=8)
    wait_until(lambda: holder.has_begun() and other.has_begun())
    before = switcher_faults(cluster)
    assert len(before) == 2, before
    for _ in range(2):
        cluster.run('score', 'suspend', holder.job)
        holder.wait('parked')
        cluster.run('score', 'resume', holder.job)
        holder.wait('in-memory')
        other.goes_on()
    assert switcher_faults(cluster) == before
    holder.end()
    other.end()


def test_a_node_short_of_memory_parks_its_youngest_job(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"', 'keep_free = "100%"', nodes=1)
    older = Holder(cluster, tmp_path / 'older', '--mem', '40M', nodes=1, size=8)
    wait_until(older.has_begun)
    older.goes_on()
    assert older.residence() == 'in-memory', 'the last job of a node stays'
    younger = Holder(cluster, tmp_path / 'younger', '--mem', '160M', nodes=1)
    younger.wait('parked')
    assert 'because node00 is short of memory' in cluster.job(younger.job)['reasons'][0]
    assert 'Node is short of memory' in cluster.logs(200)
    older.goes_on()
    assert older.residence() == 'in-memory'
    older.end()
    younger.wait('in-memory')
    wait_until(younger.has_begun)
    younger.goes_on()
    younger.end()


def test_a_parked_job_survives_swapoff(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"')
    holder = Holder(cluster, tmp_path / 'a', '--mem', '160M')
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    holder.wait('parked')
    subprocess.run(['swapoff', swap], check=True)
    try:
        cluster.run('score', 'resume', holder.job)
        holder.wait('in-memory')
        holder.goes_on()
        if not has_swap():
            cluster.run('score', 'suspend', holder.job)
            wait_until(lambda: any('cannot be parked: ' in reason for reason in cluster.job(holder.job)['reasons']),
                       what=lambda: cluster.job(holder.job))
            cluster.run('score', 'resume', holder.job)
            holder.goes_on()
    finally:
        subprocess.run(['swapon', swap], check=True)
    holder.end()


def has_swap():
    """The host has swap, also of others."""
    return pathlib.Path('/proc/swaps').read_text().count('\n') > 1


def test_a_swap_that_fills_up_takes_a_part(as_root, fresh, tmp_path):
    if has_swap():
        pytest.skip('the host has swap')
    with swap_of(144, tmp_path):
        cluster = boot(fresh, tmp_path, 'share = "urgent"')
        holder = Holder(cluster, tmp_path / 'a', '--mem', '220M')
        wait_until(holder.has_begun)
        cluster.run('score', 'suspend', holder.job)
        wait_until(lambda: holder.residence() == 'parked' or any('cannot be parked' in reason for reason in cluster.job(holder.job)['reasons']),
                   what=lambda: cluster.job(holder.job))
        assert sum(holder.in_swap()) < 144 * MIB
        urgent = cluster.submit('-N', 2, '--mem', '230M', '--queue', 'urgent', 'true')
        assert cluster.job(urgent)['state'] == 'pending', 'what did not leave is not lent'
        cluster.cancel(urgent)
        cluster.run('score', 'resume', holder.job)
        holder.wait('in-memory')
        holder.goes_on()
        holder.end()


def test_a_step_does_not_disturb_a_parked_job(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"', nodes=1)
    holder = Holder(cluster, tmp_path / 'a', '--mem', '200M', nodes=1, is_script=True)
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    holder.wait('parked')
    step = cluster.start('scrun', '-q', '--job', holder.job, 'sh', '-c', 'head -c 20000000 /dev/urandom | wc -c')
    wait_until(lambda: cluster.job(holder.job)['steps'], what=lambda: cluster.job(holder.job))
    assert holder.residence() == 'parked', cluster.job(holder.job)
    cluster.run('score', 'resume', holder.job)
    out, err = step.communicate(timeout=LIMIT)
    assert out == '20000000\n', err
    holder.wait('in-memory')
    holder.goes_on()
    holder.end()


def test_jobs_that_refuse_or_lock_their_memory_stay(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"')
    refuses = Holder(cluster, tmp_path / 'a', '--no-park', '--mem', '60M', size=16)
    locks = Holder(cluster, tmp_path / 'b', '--mem', '120M', size=48, locks=True)
    wait_until(lambda: refuses.has_begun() and locks.has_begun())
    cluster.run('score', 'suspend', refuses.job, locks.job)
    wait_until(lambda: any('cannot be parked: ' in reason for reason in cluster.job(locks.job)['reasons']),
               what=lambda: cluster.job(locks.job))
    assert 'locked, shared or huge pages' in cluster.job(locks.job)['reasons'][0]
    assert refuses.residence() == 'in-memory' and refuses.in_swap() == [0, 0]
    cluster.run('score', 'resume', refuses.job, locks.job)
    for holder in (refuses, locks):
        holder.goes_on()
        holder.end()


def test_nothing_leaves_memory_by_default(swap, fresh, tmp_path):
    cluster = fresh(1, '--slice', '50ms', '--memory', '256M')
    holder = Holder(cluster, tmp_path / 'a', '--mem', '160M', nodes=1)
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    before = holder.in_swap()  # the kernel may have written some, at the job's limit
    time.sleep(1)
    # Its pages may come back meanwhile, and the kernel may write a few more.
    assert holder.in_swap()[0] < before[0] + (1 << 20) and holder.residence() == 'in-memory' and not helpers()
    cluster.run('score', 'resume', holder.job)
    holder.end()


def helpers():
    """Processes of scored-park."""
    out = []
    for entry in pathlib.Path('/proc').glob('[0-9]*/comm'):
        try:
            if entry.read_text() == 'scored-park\n':
                out.append(int(entry.parent.name))
        except OSError:
            continue
    return out


def helpers_of(cluster):
    """Those whose parent is a daemon of the cluster."""
    daemons = {cluster.daemon(f'node{node:02}')['pid'] for node in range(cluster.nodes)}
    parent = lambda pid: int(pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[1])
    return [pid for pid in helpers() if parent(pid) in daemons]


@pytest.mark.parametrize('way', ['suspend', 'resume'])
@pytest.mark.parametrize('victim', ['helper', 'node00'])
def test_kill_9_while_memory_moves(victim, way, swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"')
    holder = Holder(cluster, tmp_path / 'a', '--mem', '240M', size=110)
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    if way == 'suspend':
        wait_until(lambda: helpers_of(cluster) or holder.residence() == 'parked')
    else:
        holder.wait('parked')
        cluster.run('score', 'resume', holder.job)
    if victim == 'helper':
        for pid in helpers_of(cluster):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        cluster.kill(victim)
        cluster.restart(victim)
        cluster.wait_up()
    if way == 'suspend':
        wait_until(lambda: holder.residence() == 'parked' or any('cannot be parked' in reason for reason in cluster.job(holder.job)['reasons']),
                   what=lambda: cluster.job(holder.job))
        cluster.run('score', 'resume', holder.job)
    holder.wait('in-memory')
    holder.goes_on()
    holder.end()


@pytest.mark.parametrize('victim', ['helper', 'stuck', 'node00', 'head'])
def test_a_parked_job_survives_kill_9(victim, swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"')
    holder = Holder(cluster, tmp_path / 'a', '--mem', '160M')
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    holder.wait('parked')
    if victim in ('helper', 'stuck'):
        killed = helpers_of(cluster)
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL if victim == 'helper' else signal.SIGSTOP)
    else:
        cluster.kill(victim)
        cluster.restart(victim)
        cluster.wait_up()
    holder.wait('parked')
    cluster.run('score', 'resume', holder.job)
    wait_until(lambda: holder.residence() == 'in-memory')
    holder.goes_on()
    holder.end()


def test_bad_configuration_is_one_line_each(as_root, fresh, tmp_path):
    config = tmp_path / 'scored.toml'
    config.write_text('[head]\nnodes = "a"\n[memory]\nshare = "often"\n')
    config.chmod(0o600)
    for role in ('head', 'node'):
        refused = subprocess.run([BIN / 'scored', f'--role={role}', '--check-config', '--config', config],
                                 text=True, capture_output=True, check=False)
        assert refused.returncode != 0 and 'share: use one of never, urgent, always' in refused.stderr, refused
    if has_swap():
        pytest.skip('the host has swap')
    cluster = boot(fresh, tmp_path, 'share = "urgent"', nodes=1)
    assert 'the host has no swap' in cluster.logs(200)
    holder = Holder(cluster, tmp_path / 'a', nodes=1, size=8)
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    time.sleep(0.5)
    assert holder.residence() == 'in-memory'
    cluster.run('score', 'resume', holder.job)
    holder.end()


def test_a_slow_swap_is_not_used(swap, fresh, tmp_path):
    cluster = boot(fresh, tmp_path, 'share = "urgent"', 'least_rate = "100G"')
    holder = Holder(cluster, tmp_path / 'a', '--mem', '160M')
    wait_until(holder.has_begun)
    cluster.run('score', 'suspend', holder.job)
    wait_until(lambda: any('least_rate asks for' in reason for reason in cluster.job(holder.job)['reasons']),
               what=lambda: cluster.job(holder.job))
    assert holder.residence() == 'in-memory'
    cluster.run('score', 'resume', holder.job)
    holder.goes_on()
    holder.end()


@pytest.mark.parametrize('kind', ['file', 'zram'])
@pytest.mark.long
def test_the_bench_measures_turns_in_memory(kind, swap, tmp_path):
    if kind == 'zram' and not pathlib.Path('/sys/class/zram-control').exists():
        pytest.skip('the kernel module zram is not loaded')
    done = subprocess.run([BIN / 'scbench', 'gang', '--memory', '--bytes', '32M', '--times', '2', '--seconds', '3', '--swap', kind, '--json'],
                          capture_output=True, text=True, timeout=LIMIT, check=False)
    report = json.loads(done.stdout)
    for key in ('memory_work_ratio', 'urgent_start_s', 'suspend_free_s', 'resume_s', 'other_gang_loss_percent'):
        assert len(report[f'{key}_samples']) == 2, (key, done.stderr)
    assert 0 < report['memory_work_ratio'] < 1.2 and report['memory_paged_bytes'] > 0, report
    assert report['switcher_major_faults'] == 0, report
