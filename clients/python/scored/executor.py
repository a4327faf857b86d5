"""A concurrent.futures.Executor whose calls are jobs."""
from __future__ import annotations

import concurrent.futures
import pathlib
import pickle
import shutil
import sys
import tempfile
import threading
import time
import typing
from multiprocessing import spawn

from ._connection import ScoredError
from .cluster import Cluster
from .job import Job

_PAUSE = 0.1  # seconds between two questions about the running jobs
_Return = typing.TypeVar('_Return')


class JobFailed(Exception):
    """The job of a call ended without a result; `job` is the job."""

    def __init__(self, job: Job) -> None:
        reason = '; '.join(job.reasons) or f'exit code {job.exit_code}'
        super().__init__(f'job {job.number} is {job.state}: {reason}')
        self.job = job


class Executor(concurrent.futures.Executor):
    """Runs each call as a job of its own. Functions, arguments and results travel by pickle in `directory`, which all
    nodes must see at the same path; it is removed at the end. Options are those of Cluster.submit()."""

    def __init__(self, cluster: Cluster | None = None, directory: str | None = None, **options: typing.Any) -> None:
        self._cluster = cluster or Cluster()
        self._directory = pathlib.Path(tempfile.mkdtemp(prefix='scored-', dir=directory or str(pathlib.Path.cwd())))
        self._options = options
        self._lock = threading.Lock()
        self._calls: typing.Dict[Job, typing.Tuple[concurrent.futures.Future[typing.Any], pathlib.Path]] = {}
        self._count = 0
        self._is_shut = False
        self._watcher = threading.Thread(target=self._watch, name='scored jobs', daemon=True)
        self._watcher.start()

    def submit(self, fn: typing.Callable[..., _Return], /, *args: typing.Any,
               **kwargs: typing.Any) -> concurrent.futures.Future[_Return]:
        future: concurrent.futures.Future[_Return] = concurrent.futures.Future()
        with self._lock:
            if self._is_shut:
                raise RuntimeError('the executor is shut down')
            self._count += 1
            call = self._directory / f'{self._count}.call'
        preparation = spawn.get_preparation_data('scored')
        preparation.pop('authkey', None)
        call.write_bytes(pickle.dumps((preparation, pickle.dumps((fn, args, kwargs)))))
        job = self._cluster.submit([sys.executable, '-m', 'scored.worker', str(call)],
                                   **{'name': getattr(fn, '__name__', 'call'), 'mpi': 'none', **self._options})
        future.set_running_or_notify_cancel()
        setattr(future, 'job', job)
        with self._lock:
            self._calls[job] = future, call.with_suffix('.result')
        return future

    def _watch(self) -> None:
        while True:
            with self._lock:
                calls = dict(self._calls)
                if self._is_shut and not calls:
                    return
            for job, (future, result) in calls.items():
                if self._has_ended(job):
                    self._finish(job, future, result)
                    with self._lock:
                        del self._calls[job]
            time.sleep(_PAUSE)

    @staticmethod
    def _has_ended(job: Job) -> bool:
        try:
            return job.refresh().is_final
        except ScoredError as error:
            return error.status == 404  # its record has been removed since

    @staticmethod
    def _finish(job: Job, future: concurrent.futures.Future[typing.Any], result: pathlib.Path) -> None:
        try:
            has_returned, value = pickle.loads(result.read_bytes())
        except Exception:  # the job ended before it wrote a result, or the result cannot be read here
            future.set_exception(JobFailed(job))
            return
        if has_returned:
            future.set_result(value)
        else:
            future.set_exception(value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuses further calls; waits until all have ended. With `cancel_futures` their jobs are cancelled."""
        with self._lock:
            self._is_shut = True
            jobs = list(self._calls)
        if cancel_futures:
            for job in jobs:
                try:
                    job.cancel()
                except ScoredError:  # it has just ended
                    pass
        if wait:
            self._watcher.join()
            shutil.rmtree(self._directory, ignore_errors=True)
