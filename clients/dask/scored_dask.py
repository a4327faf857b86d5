"""Dask workers as jobs of a Scored cluster, by dask-jobqueue."""
import math
import typing

import dask
from dask_jobqueue.core import Job, JobQueueCluster

_SETTINGS = ('queue', 'account', 'partition', 'walltime')
_defaults = dict(dask.config.get('jobqueue.slurm', {}))
_defaults.update({'name': 'dask-worker', 'queue': None, 'account': None, 'partition': None, 'walltime': '1h'})
dask.config.update_defaults({'jobqueue': {'scored': _defaults}})


class ScoredJob(Job):
    """A worker of a ScoredCluster."""

    submit_command = 'scbatch'
    cancel_command = 'sccancel'
    config_name = 'scored'

    def __init__(self, scheduler: typing.Any = None, name: 'str | None' = None, queue: 'str | None' = None, account: 'str | None' = None,
                 partition: 'str | None' = None, walltime: 'str | None' = None, config_name: 'str | None' = None, **settings: typing.Any) -> None:
        super().__init__(scheduler=scheduler, name=name, config_name=config_name, **settings)
        given = {'queue': queue, 'account': account, 'partition': partition, 'walltime': walltime}
        given = {key: dask.config.get(f'jobqueue.{self.config_name}.{key}', None) if given[key] is None else given[key] for key in _SETTINGS}
        words = [f'--job-name={self.job_name}', '--ntasks=1', f'--cpus-per-task={self.worker_cores}',
                 f'--mem={math.ceil(self.worker_memory / 2**20)}M']
        options = {'queue': '--queue', 'account': '--account', 'partition': '--partition', 'walltime': '--wall-time'}
        words += [f'{options[key]}={value}' for key, value in given.items() if value]
        if self.log_directory is not None:
            words.append(f'--output={self.log_directory}/{self.job_name}-%j.log')
        words += list(self.job_extra_directives)
        self.job_header = '\n'.join(f'#SCORE {word}' for word in words
                                    if not any(skip in word for skip in self.job_directives_skip))


class ScoredCluster(JobQueueCluster):
    """A Dask cluster whose workers are jobs. Parameters are those of dask_jobqueue.JobQueueCluster and of ScoredJob."""

    job_cls = ScoredJob
