"""Submits and follows jobs of a Scored cluster over its HTTP API.

>>> from scored import Cluster
>>> cluster = Cluster()
>>> job = cluster.submit(['echo', 'hello'])
>>> job.wait().state
'completed'
>>> job.output()
b'hello\\n'
"""
from ._connection import ScoredError
from .cluster import Cluster
from .executor import Executor, JobFailed
from .job import Job

__version__ = '0.1.0'
__all__ = ['Cluster', 'Executor', 'Job', 'JobFailed', 'ScoredError', '__version__']
