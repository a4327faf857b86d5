"""A head of the test's own, so that its program and exit status are the test's, from the directory of another one."""
import contextlib
import json
import re
import shutil
import sqlite3
import subprocess

from cluster import BIN, wait_until


class Head:
    def __init__(self, source, home, program=BIN / 'scored', listen='127.0.0.1:0'):
        home.mkdir(mode=0o700)
        shutil.copy(source / 'head.lock', home)
        with contextlib.closing(sqlite3.connect(source / 'jobs.db')) as old:
            with contextlib.closing(sqlite3.connect(home / 'jobs.db')) as new:
                old.backup(new)
        text = (source / 'scored.toml').read_text().replace(str(source), str(home))
        (home / 'scored.toml').write_text(re.sub(r'(?m)^listen = .*$', f'listen = "{listen}"', text))
        self.home = home
        self.socket = {'SCORED_SERVER': str(home / 'head.sock')}
        with open(home / 'log', 'w') as log:
            self.process = subprocess.Popen([str(program), '--role=head', '--config', str(home / 'scored.toml')],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        wait_until((home / 'head.port').exists)
        self.port = int((home / 'head.port').read_text())

    def close(self):
        self.process.kill()
        self.process.wait()

    def has_stored_start(self, job):
        """Whether its database has the job's start: it answers that a job runs a moment before."""
        with contextlib.closing(sqlite3.connect(f'file:{self.home}/jobs.db?mode=ro', uri=True)) as store:
            return store.execute('SELECT started_ns FROM jobs WHERE id = ?', [job]).fetchone()[0] > 0

    def log(self):
        return (self.home / 'log').read_text()


def ask(cluster, head, *words):
    """None: no answer."""
    result = cluster.run(*words, '--json', code=None, extra_env=head.socket)
    return json.loads(result.stdout) if result.returncode == 0 else None


def has_nodes(cluster, head):
    answer = ask(cluster, head, 'score', 'info')
    return answer is not None and answer['nodes_up'] == cluster.nodes
