"""A head and nodes of different releases: one version apart they work together, else a line names both."""
import contextlib
import re

import pytest
from cluster import BIN, wait_until
from own_head import Head, has_nodes

OTHERS = BIN.parent / 'test'


def other_release(name):
    program = OTHERS / name
    if not program.exists():
        pytest.skip(f'{program} is not built: ninja {name}')
    return program


def test_a_head_one_version_newer_works_with_older_nodes(fresh, tmp_path):
    program = other_release('scored-next')
    cluster = fresh(2)
    job = cluster.submit('-N', 2, 'sleep', 1000)
    cluster.wait_job(job, 'running')
    cluster.kill('head')
    head = Head(cluster.directory / 'head', tmp_path / 'next', program, cluster.description['address'])
    with contextlib.closing(head):
        wait_until(lambda: has_nodes(cluster, head))
        assert cluster.run('scrun', '-N', 2, 'echo', 'ran', extra_env=head.socket).stdout == 'ran\nran\n'
        assert cluster.run('scq', job, '-o', 'state', '--no-header', extra_env=head.socket).stdout in ('running\n', 'idle\n')
        cluster.run('sccancel', '--grace', '0', job, extra_env=head.socket)


def test_a_line_names_both_releases_that_have_no_version_in_common(fresh, tmp_path):
    program = other_release('scored-later')
    cluster = fresh(1)
    cluster.kill('head')
    head = Head(cluster.directory / 'head', tmp_path / 'later', program, cluster.description['address'])
    line = r'node0* \(release [0-9.]+\) speaks versions 1\.\.1, this program 3\.\.3; install release [0-9.]+ on node0*'
    with contextlib.closing(head):
        wait_until(lambda: re.search('Refused node.*' + line, head.log()))
        wait_until(lambda: re.search('the head refuses: ' + line, cluster.logs(50)))
        refused = cluster.run('scrun', 'true', code=None, extra_env=head.socket)
        assert refused.returncode != 0
        assert re.search(r'speaks versions 1\.\.1, this program 3\.\.3; the head is of release', refused.stderr)
