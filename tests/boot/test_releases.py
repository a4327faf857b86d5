"""Heads and nodes of two Debian releases in one cluster, each with the packages that were built on its release."""
import os
import pathlib

import base_system
import pytest
from booted_cluster import PACKAGES, BootedCluster, installed_files, packages

HERE = {'bookworm': PACKAGES,
        'trixie': pathlib.Path(os.environ.get('SCORE_PACKAGES_TRIXIE', PACKAGES.parent / 'elsewhere/trixie/packages'))}


@pytest.fixture(scope='module')
def layers(empty_bed, tmp_path_factory):
    """By release: what its machines are made of."""
    made = {}
    for suite, directory in HERE.items():
        if not packages(directory):
            pytest.skip(f'no packages in {directory}: ./try package, ./try elsewhere trixie package')
        installed = tmp_path_factory.mktemp(suite)
        installed_files(installed, packages(directory))
        try:
            made[suite] = [installed, base_system.base_system(suite)]
        except base_system.CannotMake as problem:
            pytest.skip(str(problem))
    return made


@pytest.mark.parametrize('of_head, of_nodes', [('trixie', 'trixie'), ('trixie', 'bookworm'), ('bookworm', 'trixie')])
def test_cluster_runs_jobs_across_releases(layers, of_head, of_nodes):
    installed, base = layers[of_head]
    cluster = BootedCluster(base, installed, layers[of_nodes])
    try:
        cluster.boot()
        cluster.set_up()
        command = ['sh', '-c', '. /etc/os-release; echo $VERSION_CODENAME']
        assert cluster.head.run(*command).stdout == f'{of_head}\n'
        assert cluster.head.run('scrun', '-N', 2, *command, user='alice').stdout == f'{of_nodes}\n' * 2
        job = cluster.submit('alice', '-N', 2, 'sleep', '600')
        cluster.wait_for(job, 'running')
        cluster.nodes[0].run('systemctl', 'restart', 'scored-node')
        cluster.wait_for_nodes()
        cluster.head.run('sccancel', job, user='alice')
        cluster.wait_for_end(job, 'cancelled')
    finally:
        cluster.close()
