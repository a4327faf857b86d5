"""A job of the cluster."""
from __future__ import annotations

import asyncio
import time
import typing

if typing.TYPE_CHECKING:
    from ._connection import Connection, Json

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between two questions while a job runs


class Job:
    """A job by its number. Its attributes are those of the last answer of the head; refresh() asks again."""

    def __init__(self, connection: 'Connection', number: int, fields: 'Json | None' = None) -> None:
        self._connection = connection
        self.number = number
        self._fields = fields

    def __repr__(self) -> str:
        return f'Job({self.number})'

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)

    @property
    def _path(self) -> str:
        return f'/api/v1/jobs/{self.number}'

    @property
    def fields(self) -> 'Json':
        """All fields of the job, as `scq --json` prints them."""
        if self._fields is None:
            self.refresh()
        assert self._fields is not None
        return self._fields

    @property
    def state(self) -> str:
        return str(self.fields['state'])

    @property
    def is_final(self) -> bool:
        return bool(self.fields['final'])

    @property
    def exit_code(self) -> int:
        return int(self.fields['exit_code'])

    @property
    def name(self) -> str:
        return str(self.fields['name'])

    @property
    def reasons(self) -> typing.List[str]:
        """Why the job waits, or why it ended."""
        return list(self.fields['reasons'])

    @property
    def nodes(self) -> typing.List[str]:
        return list(self.fields['nodes'])

    def refresh(self) -> 'Job':
        self._fields = self._connection.ask('GET', self._path)['job']
        return self

    def wait(self, timeout: 'float | None' = None) -> 'Job':
        """Returns when the job has ended. Raises TimeoutError after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while not self.refresh().is_final:
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f'job {self.number} is {self.state} after {timeout} s')
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return self

    async def wait_async(self, timeout: 'float | None' = None) -> 'Job':
        """wait() for programs that use asyncio."""
        return await asyncio.get_running_loop().run_in_executor(None, self.wait, timeout)

    def output(self, stream: 'str | None' = None, offset: int = 0) -> bytes:
        """Returns the output that the head keeps: 'stdout', 'stderr', or both, without its first `offset` bytes."""
        return b''.join(self._pieces(stream, offset, follow=False))

    def follow(self, stream: 'str | None' = None, offset: int = 0) -> typing.Iterator[bytes]:
        """Yields output as it comes, until the job has ended."""
        return self._pieces(stream, offset, follow=True)

    def profile(self) -> 'Json':
        """Returns what the job used over time: points of processor time and memory."""
        return self._connection.ask('GET', f'{self._path}/profile')

    def _pieces(self, stream: 'str | None', offset: int, follow: bool) -> typing.Iterator[bytes]:
        query = f'offset={offset}&follow={int(follow)}' + (f'&stream={stream}' if stream else '')
        with self._connection.open('GET', f'{self._path}/output?{query}') as response:
            if response.fp is not None and follow:
                response.fp.raw._sock.settimeout(None)  # type: ignore[attr-defined]
            while True:
                piece = response.read1(65536)
                if not piece:
                    return
                yield piece

    def _act(self, action: str, body: 'Json | None' = None) -> 'Job':
        self._connection.ask('POST', f'{self._path}/{action}', body)
        self._fields = None
        return self

    def cancel(self) -> 'Job':
        self._connection.ask('DELETE', self._path)
        self._fields = None
        return self

    def signal(self, name: str) -> 'Job':
        """Sends a signal, such as 'USR1', to all tasks."""
        return self._act('signal', {'signal': name})

    def change(self, **members: typing.Any) -> 'Job':
        """Changes what the submission requested, such as time='2h'; None removes a limit, a condition or a demand."""
        self._connection.ask('PATCH', self._path, members)
        self._fields = None
        return self

    def requeue(self) -> 'Job':
        """Ends a running batch or detached job and puts it back into the queue."""
        return self._act('requeue')

    def hold(self) -> 'Job':
        return self._act('hold')

    def release(self) -> 'Job':
        return self._act('release')

    def suspend(self) -> 'Job':
        return self._act('suspend')

    def resume(self) -> 'Job':
        return self._act('resume')
