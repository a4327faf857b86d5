"""Runs the jobs of Snakemake on a Scored cluster, through the head's HTTP API."""
import os
import typing

import scored
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=1,
)
_WORDS = {'nodes': 'nodes', 'tasks': 'tasks', 'scored_queue': 'queue', 'scored_partition': 'partition', 'scored_account': 'account'}


def options_of(job: JobExecutorInterface) -> typing.Dict[str, typing.Any]:
    """Returns what the rule requests, as options of scored.Cluster.submit()."""
    resources = job.resources
    options = {word: resources[name] for name, word in _WORDS.items() if resources.get(name)}
    options['cpus_per_task'] = int(resources.get('cpus_per_task') or job.threads)
    if resources.get('mem_mb'):
        options['memory'] = f'{int(resources["mem_mb"])}M'
    if resources.get('runtime'):
        options['wall_time'] = f'{int(resources["runtime"])}m'
    return options


class Executor(RemoteExecutor):
    def __post_init__(self) -> None:
        self.cluster = scored.Cluster()

    def run_job(self, job: JobExecutorInterface) -> None:
        log = os.path.abspath(os.path.join('.snakemake', 'scored_logs', f'{job.name}-{job.jobid}.log'))
        os.makedirs(os.path.dirname(log), exist_ok=True)
        # Snakemake in the job must not read the profile that chose this executor.
        environment = {name: value for name, value in os.environ.items() if name != 'SNAKEMAKE_PROFILE'}
        try:
            submitted = self.cluster.submit(['/bin/sh', '-c', self.format_job_exec(job)], name=f'{job.name}-{job.jobid}', output=log,
                                            environment=environment, **{'tasks': 1, **options_of(job)})
        except scored.ScoredError as error:
            self.report_job_error(SubmittedJobInfo(job), msg=f'cannot submit: {error}')
            return
        self.logger.info(f'Job {job.jobid} is job {submitted.number} of the cluster, output: {log}')
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=str(submitted.number), aux={'log': log}))

    async def check_active_jobs(self, active_jobs: typing.List[SubmittedJobInfo]) -> typing.AsyncGenerator[SubmittedJobInfo, None]:
        for active in active_jobs:
            async with self.status_rate_limiter:
                found = self.cluster.job(int(active.external_jobid))
            if not found.is_final:
                yield active
            elif found.state == 'completed':
                self.report_job_success(active)
            else:
                why = '; '.join(found.reasons)
                self.report_job_error(active, msg=f'job {found.number} {found.state}, exit code {found.exit_code}: {why}. ',
                                      aux_logs=[active.aux['log']])

    def cancel_jobs(self, active_jobs: typing.List[SubmittedJobInfo]) -> None:
        for active in active_jobs:
            try:
                self.cluster.job(int(active.external_jobid)).cancel()
            except scored.ScoredError as error:
                self.logger.info(f'Cannot cancel job {active.external_jobid}: {error}')
