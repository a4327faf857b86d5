import os

import pytest
from cluster import Cluster


@pytest.fixture(scope='module')
def many():
    """64 nodes at 100 ms, shared by a file's tests; each leaves no job behind."""
    cluster = Cluster(64, '--slice', '100ms')
    yield cluster
    cluster.stop()


@pytest.fixture(scope='module')
def few():
    """8 nodes at 20 ms, shared by a file's tests; each leaves no job behind."""
    cluster = Cluster(8, '--slice', '20ms', '--cores', '2')
    yield cluster
    cluster.stop()


@pytest.fixture(scope='module')
def pair():
    """2 nodes of one core at 50 ms, shared by a file's tests; each leaves no job behind."""
    cluster = Cluster(2, '--slice', '50ms', '--cores', '1')
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def no_jobs_left(request):
    yield
    for name in ('many', 'few', 'pair', 'saving'):
        if name in request.fixturenames:
            request.getfixturevalue(name).cancel_all()


@pytest.fixture
def fresh():
    """Makes clusters that a test may break; checks at the end that nothing of them is left."""
    made = []

    def make(*arguments, **options):
        made.append(Cluster(*arguments, **options))
        return made[-1]

    yield make
    for cluster in made:
        if cluster.process.poll() is None:
            cluster.stop()


@pytest.fixture
def as_root():
    if os.geteuid() != 0:
        pytest.skip('needs root')
