"""A cluster, by the address of its head."""
from __future__ import annotations

import os
import ssl
import typing
import urllib.parse
import uuid

from ._connection import Connection, Json, default_address
from .job import Job


class Cluster:
    """The cluster whose head serves `address`: a Unix socket, or https://HOST:PORT with a personal token.

    Without an address it is SCORED_API, else the socket beside SCORED_SERVER, else /run/scored/api.sock; without a token
    it is SCORED_TOKEN."""

    def __init__(self, address: str | None = None, token: str | None = None,
                 context: ssl.SSLContext | None = None) -> None:
        self._connection = Connection(address or default_address(), token or os.environ.get('SCORED_TOKEN'), context)

    def __repr__(self) -> str:
        return f'Cluster({self._connection.address!r})'

    def submit(self, command: typing.Sequence[str] | None = None, *, script: str | None = None,
               environment: typing.Mapping[str, str] | None = None, key: str | None = None,
               **options: typing.Any) -> Job:
        """Submits a command, or the text of a batch script, and returns the job when it is stored.

        Options are called as those of scrun, with underscores: nodes=4, time='10m', memory='2G'. The working directory
        is the present one and the environment this process's, unless `directory` and `environment` say otherwise. The
        same `key` makes one job only, however often it is submitted."""
        entries = dict(os.environ) if environment is None else environment
        body: Json = {'directory': os.getcwd(), 'environment': [f'{name}={value}' for name, value in entries.items()]}
        if command is not None:
            body['command'] = [os.fspath(word) for word in command]
        if script is not None:
            body['script'] = script
        if os.geteuid() == 0:
            body['allow_root'] = True
        body.update(options)
        headers = {'Idempotency-Key': key or uuid.uuid4().hex}
        return Job(self._connection, self._connection.ask('POST', '/api/v1/jobs', body, headers)['job'])

    def map(self, command: typing.Sequence[str], tasks: str, **options: typing.Any) -> Job:
        """Submits an array; `tasks` is "0-99" or "0-99%8". Each task has SCORE_ARRAY_TASK_ID."""
        return self.submit(command, array=tasks, **options)

    def job(self, number: int) -> Job:
        """Returns the job of this number. Raises ScoredError with status 404 if the head does not know it."""
        return Job(self._connection, number).refresh()

    def jobs(self, user: str = 'me', **filters: typing.Any) -> typing.Iterator[Job]:
        """Yields the jobs of a user, or of all, in the order of their numbers. Filters: state, name, ended."""
        query = {'user': user, **{name: str(int(value) if isinstance(value, bool) else value)
                                  for name, value in filters.items()}}
        while True:
            page = self._connection.ask('GET', '/api/v1/jobs?' + urllib.parse.urlencode(query))
            for fields in page['jobs']:
                yield Job(self._connection, fields['job'], fields)
            if not page['truncated']:
                return
            query['after'] = str(page['next'])

    def nodes(self) -> typing.List[Json]:
        """Returns the nodes, as `scnodes --json` prints them."""
        return list(self._connection.ask('GET', '/api/v1/nodes')['nodes'])

    def info(self) -> Json:
        """Returns the cluster and its settings, as `score info --json` prints them."""
        return self._connection.ask('GET', '/api/v1/cluster')
