"""The PSI/J executor for Scored clusters. It calls scbatch, scq and sccancel."""
import json
import pathlib
import typing
from datetime import timedelta

from psij import Job, JobState, JobStatus, SubmitException
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig, check_status_exit_code
from psij.executors.batch.script_generator import TemplatedScriptGenerator

_STATES = {'pending': JobState.QUEUED, 'completed': JobState.COMPLETED, 'cancelled': JobState.CANCELED}


class ScoredExecutorConfig(BatchSchedulerExecutorConfig):
    """Settings of the executor."""


class ScoredJobExecutor(BatchSchedulerExecutor):
    """A psij.JobExecutor for Scored clusters."""

    def __init__(self, url: 'str | None' = None, config: 'ScoredExecutorConfig | None' = None) -> None:
        config = config or ScoredExecutorConfig()
        super().__init__(config=config)
        self.generator = TemplatedScriptGenerator(config, pathlib.Path(__file__).parent / 'scored.mustache')

    def generate_submit_script(self, job: Job, context: typing.Dict[str, object], submit_file: typing.IO[str]) -> None:
        self.generator.generate_submit_script(job, context, submit_file)

    def get_submit_command(self, job: Job, submit_file_path: pathlib.Path) -> typing.List[str]:
        return ['scbatch', str(submit_file_path.absolute())]

    def job_id_from_submit_output(self, out: str) -> str:
        return out.split()[-1]

    def get_cancel_command(self, native_id: str) -> typing.List[str]:
        return ['sccancel', native_id]

    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        raise SubmitException(f'cannot cancel the job: {out}')

    def get_status_command(self, native_ids: typing.Collection[str]) -> typing.List[str]:
        return ['scq', '--json', *native_ids]

    def parse_status_output(self, exit_code: int, out: str) -> typing.Dict[str, JobStatus]:
        try:
            jobs = json.loads(out)['jobs']
        except ValueError:
            check_status_exit_code('scq', exit_code or 1, out)
            raise
        return {str(job['job']): self._status(job) for job in jobs}

    @staticmethod
    def _status(job: typing.Mapping[str, typing.Any]) -> JobStatus:
        state = _STATES.get(job['state'], JobState.FAILED if job['final'] else JobState.ACTIVE)
        why = '; '.join(job['reasons']) or job['state']
        return JobStatus(state, message=why if state == JobState.FAILED else None)

    def get_list_command(self) -> typing.List[str]:
        return ['scq', '--no-header', '-o', 'job']

    def _format_duration(self, d: timedelta) -> str:
        return f'{max(int(d.total_seconds()), 1)}s'
