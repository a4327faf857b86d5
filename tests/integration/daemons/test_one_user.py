"""One user cannot slow the others, however much he asks and however little he reads."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from cluster import BIN, wait_until
from crowd import Other
from figures import figure

ATTACKER, OTHER = 65533, 65532  # any user but root
SECONDS = float(os.environ.get('SCORE_ATTACK_SECONDS', '10'))


def rss_mb(cluster):
    status = pathlib.Path(f"/proc/{cluster.daemon('head')['pid']}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith('VmRSS')) / 1024


def suspects(cluster):
    """What the head said about nodes that were not heard."""
    log = '\n'.join(path.read_text(errors='replace') for path in (cluster.directory / 'log').glob('head*'))
    return [line for line in log.splitlines() if 'suspect' in line.lower() or 'node is down' in line.lower()]


def set_write_timeout(cluster, seconds):
    text = cluster.directory / 'head/scored.toml'
    text.write_text(text.read_text().replace('[head]\n', f'[head]\nwrite_timeout = "{seconds}s"\n', 1))
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up()


@pytest.fixture
def busy(fresh, as_root):
    """4 nodes, a running job, and some that wait."""
    cluster = fresh(4, '--slice', '50ms', '--cores', '1')
    cluster.submit('-N', 4, 'sleep', '3600')
    yield cluster
    assert suspects(cluster) == [], suspects(cluster)
    assert cluster.nodes_up() == 4


def test_a_flood_of_costly_requests_delays_nobody_else(busy):
    for _ in range(200):
        busy.submit('--hold', '-N', 4, 'sleep', '1')
    alone = Other(busy, OTHER, 'probe', min(SECONDS, 10)).end()
    flood = Other(busy, ATTACKER, 'flood', SECONDS + 1, 150, 1)
    assert flood.line()['joined'] == 150
    beside = Other(busy, OTHER, 'probe', SECONDS).end()
    done = flood.end()
    figure('hole-1', f"{beside['p99_ms']:.1f} ms p99, worst {beside['worst_ms']:.0f} ms, beside 150 connections "
                     f"({alone['p99_ms']:.1f} ms alone; {done['asked']} requests and {done['bytes'] >> 20} MiB of "
                     f'answers in {SECONDS:.0f} s), {len(suspects(busy))} nodes suspect')
    figure('S12', f"{beside['p99_ms']:.1f} ms p99 beside a flood, {alone['p99_ms']:.1f} ms alone")
    assert beside['p99_ms'] < 1000
    assert busy.job(1)['state'] == 'running'


def test_clients_that_never_read_are_closed_and_cost_little(busy):
    deadline = 5 if SECONDS < 60 else 30
    set_write_timeout(busy, deadline)
    for _ in range(200):
        busy.submit('--hold', '-N', 4, 'sleep', '1')
    before = rss_mb(busy)
    mute = Other(busy, ATTACKER, 'mute', max(SECONDS, 2 * deadline), 1000, 1)
    joined = mute.line()['joined']
    most, end = 0.0, time.monotonic() + max(SECONDS, 2 * deadline)
    while time.monotonic() < end:
        most = max(most, rss_mb(busy) - before)
        time.sleep(0.1)
    done = mute.end()
    figure('hole-2', f"+{most:.0f} MiB of the head with {joined} clients that never read; {done['closed']} closed "
                     f'at {deadline} s')
    figure('S11', f'+{most:.0f} MiB, {done["closed"]} of {joined} closed')
    assert most < 64  # 1.9 GB without the budget
    assert done['closed'] > 0


def test_a_stopped_scrun_is_not_closed_and_loses_nothing(fresh, tmp_path):
    cluster = fresh(2)
    set_write_timeout(cluster, 1)
    lines = 400_000  # more than all buffers hold
    out = tmp_path / 'out'
    with out.open('w') as file:
        scrun = cluster.start('scrun', '-N', 2, 'sh', '-c', f'echo 1; sleep 2; seq 2 {lines}', stdout=file)
    wait_until(lambda: out.stat().st_size > 0)
    scrun.send_signal(signal.SIGSTOP)
    time.sleep(6)
    head = rss_mb(cluster)
    scrun.send_signal(signal.SIGCONT)
    _, err = scrun.communicate(timeout=600)
    assert scrun.returncode == 0, err
    assert sorted(map(int, out.read_text().split())) == sorted(2 * list(range(1, lines + 1)))
    figure('F22', f'stopped for 6 s beyond a write timeout of 1 s: 0 of {2 * lines} lines lost, head at {head:.0f} MiB')


HANGING_DIRECTORY = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

/* While the file is there, for 24 s; each call adds a byte to the file. */
static void hang(void) {
  const int file = open(getenv("HANGS"), O_WRONLY | O_APPEND);
  if (file < 0) return;
  if (write(file, "x", 1) < 0) _exit(1);
  close(file);
  for (int i = 0; i < 2400 && access(getenv("HANGS"), F_OK) == 0; ++i) usleep(10000);
}

int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **found) {
  int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **) = dlsym(RTLD_NEXT, "getpwuid_r");
  hang();
  return real(uid, entry, buffer, size, found);
}

int getgrouplist(const char *name, gid_t group, gid_t *groups, int *count) {
  int (*real)(const char *, gid_t, gid_t *, int *) = dlsym(RTLD_NEXT, "getgrouplist");
  hang();
  return real(name, group, groups, count);
}
'''


@contextlib.contextmanager
def head_with(cluster, **environment):
    """A head of the test's own: `score virtual` gives its daemons no environment."""
    cluster.kill('head')
    with open(cluster.directory / 'log' / 'head-of-test.log', 'w') as log:
        head = subprocess.Popen([BIN / 'scored', '--role=head', '--config', cluster.directory / 'head/scored.toml'],
                                env=environment, stderr=log)
    try:
        cluster.wait_up()
        yield
    finally:
        head.kill()
        head.wait()
        cluster.restart('head')
        cluster.wait_up()


def test_a_directory_of_users_that_hangs_stops_only_strangers(fresh, as_root, tmp_path):
    if shutil.which('gcc') is None:
        pytest.skip('no gcc')
    source, stub, hangs = tmp_path / 'hang.c', tmp_path / 'hang.so', tmp_path / 'hangs'
    source.write_text(HANGING_DIRECTORY)
    subprocess.run(['gcc', '-shared', '-fPIC', '-o', stub, source, '-ldl'], check=True)
    cluster = fresh(2)
    with head_with(cluster, LD_PRELOAD=str(stub), HANGS=str(hangs)):
        Other(cluster, OTHER, 'probe', 1).end()
        hangs.touch()
        strangers = [Other(cluster, ATTACKER - 10 - i, 'probe', 1) for i in range(6)]  # more than threads ask
        beside = Other(cluster, OTHER, 'probe', 5).end()
        began = time.monotonic()
        assert cluster.nodes_up() == 2
        of_root = time.monotonic() - began
        waited = [stranger.end() for stranger in strangers]
        assert hangs.stat().st_size > 0, 'nothing was asked of the directory of users'
        hangs.unlink()
    figure('hole-10', f"{beside['worst_ms']:.0f} ms at most for a known user, {of_root * 1e3:.0f} ms for score info of "
                      f'root, {len(waited)} strangers served as numbers')
    figure('F25', f"{beside['worst_ms']:.0f} ms at most while the directory hangs")
    assert beside['worst_ms'] < 2000
