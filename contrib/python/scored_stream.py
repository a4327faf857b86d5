#!/usr/bin/env python3
"""Reads the stream of a Scored cluster as rows. It needs only the standard library; see docs/reference/stream.md.

    from scored_stream import Stream, rows
    for document in Stream('http://127.0.0.1:4711/', rate=2, parts=['processes']):
        for row in rows(document, 'processes'):
            print(row['job'], row['rank'], row['user'])

    scored_stream.py URL --table processes --count 10 > loads.csv

If the stream breaks, the client reconnects, with growing pauses. Documents that it missed are
absent (`seq` jumps). A head that was restarted has a different `head`.
"""
import argparse
import csv
import http.client
import json
import ssl
import subprocess
import sys
import time
import urllib.parse

TABLES = ('nodes', 'jobs', 'processes', 'runs', 'events', 'traffic', 'cells')


class StreamError(Exception):
    """A retry would not help: the server refused, or is not the expected one, or the address is invalid."""


def rows(document, table):
    """Yields one dictionary per row, each with the document's time_unix_s and names instead of indices."""
    names = [node['name'] for node in document.get('nodes', [])]

    def named(index):
        return names[index] if index is not None and index < len(names) else index

    for row in _raw_rows(document, table):
        if 'node' in row:
            row['node'] = named(row['node'])
        yield {'time_unix_s': document['time_unix_s'], **row}


def _raw_rows(document, table):
    if table == 'processes':
        columns = document['processes']['columns']
        for values in document['processes']['rows']:
            yield dict(zip(columns, values))
    elif table == 'runs':
        for node, job, start, end in document['slices']['runs']:
            yield {'node': node, 'job': job, 'start_s': start, 'end_s': end}
    elif table == 'cells':
        for line in document['matrix']['rows']:
            for node, jobs in enumerate(line['cells']):
                for job in jobs:
                    yield {'slot': line['slot'], 'node': node, 'job': job, 'active': line['active']}
    elif table == 'traffic':
        for node, values in enumerate(document['traffic']):
            if values is not None:
                yield dict(zip(('node', 'sent_bytes_per_s', 'received_bytes_per_s',
                                'sent_messages_per_s', 'received_messages_per_s'), (node, *values)))
    elif table in ('nodes', 'jobs', 'events'):
        for row in document[table]:
            yield dict(row)
    else:
        raise ValueError(f'unknown table {table!r}; one of {", ".join(TABLES)}')


def _parse(url):
    try:
        parsed = urllib.parse.urlsplit(url)
        is_sound = parsed.scheme in ('http', 'https') and parsed.hostname and (parsed.port or True)
    except ValueError:  # an invalid port, or a bracket
        is_sound = False
    if not is_sound:
        raise StreamError(f'{url!r} is not an address of a dashboard, such as http://127.0.0.1:4711/')
    return parsed


class Stream:
    """Iterates over documents, for ever or `count` of them."""

    def __init__(self, url, rate=1, parts=None, job=None, user=None, count=None, token=None,
                 context=None, timeout=30, retry=True):
        query = {'rate': rate}
        if parts:
            query['parts'] = ','.join(parts)
        query.update({name: value for name, value in (('job', job), ('user', user)) if value is not None})
        self.url = _parse(url)
        self.path = '/api/v1/stream?' + urllib.parse.urlencode(query)
        self.count, self.token, self.context = count, token, context
        self.timeout, self.retry = timeout, retry

    def __iter__(self):
        given, pause = 0, 0.1
        while self.count is None or given < self.count:
            try:
                for document in self._documents():
                    yield document
                    given, pause = given + 1, 0.1
                    if given == self.count:
                        return
            except ssl.SSLCertVerificationError as error:
                raise StreamError(f'{self.url.netloc}: {error}') from error
            except (OSError, http.client.HTTPException, json.JSONDecodeError, UnicodeDecodeError):
                if not self.retry:
                    raise
            if not self.retry:
                return
            time.sleep(pause)
            pause = min(pause * 2, 5)

    def _connect(self):
        if self.url.scheme == 'https':
            context = self.context or ssl.create_default_context()
            return http.client.HTTPSConnection(self.url.netloc, timeout=self.timeout, context=context)
        return http.client.HTTPConnection(self.url.netloc, timeout=self.timeout)

    def _documents(self):
        connection = self._connect()
        try:
            headers = {'Authorization': f'Bearer {self.token}'} if self.token else {}
            connection.request('GET', self.path, headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                text = response.read(4096).decode(errors='replace')
                if response.status in (429, 503):
                    raise OSError(f'{response.status}: {text}')
                raise StreamError(f'{response.status}: {text}')
            for line in response:
                if line.endswith(b'\n') and line.strip():
                    yield json.loads(line)
        finally:
            connection.close()


def dashboard_url():
    """Returns the address for the cluster that SCORED_SERVER names, by the command `score info`."""
    info = subprocess.run(['score', 'info', '--json'], check=True, capture_output=True, text=True)
    return json.loads(info.stdout)['dashboard_url']


def main(arguments=None):
    parser = argparse.ArgumentParser(description='The stream of a Scored cluster as CSV')
    parser.add_argument('url', nargs='?', help="the dashboard's address (default: that of `score info`)")
    parser.add_argument('--table', choices=TABLES, default='processes')
    parser.add_argument('--rate', type=float, default=1, help='documents per second')
    parser.add_argument('--count', type=int, help='end after this many documents')
    parser.add_argument('--job', type=int)
    options = parser.parse_args(arguments)
    parts = {'runs': 'slices', 'cells': 'matrix'}.get(options.table, options.table)
    writer = None
    try:
        stream = Stream(options.url or dashboard_url(), options.rate, sorted({'nodes', parts}), options.job,
                        count=options.count)
        for document in stream:
            for row in rows(document, options.table):
                if writer is None:
                    writer = csv.DictWriter(sys.stdout, list(row), extrasaction='ignore')
                    writer.writeheader()
                writer.writerow(row)
            sys.stdout.flush()
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    except StreamError as error:
        print(f'scored_stream: {error}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
