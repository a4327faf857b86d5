"""A cluster that other users of this machine can use: its node00 is a login node."""
import contextlib
import os
import pwd
import subprocess
import tempfile

from cluster import LIMIT, wait_until


class OtherUser:
    """Runs commands as `nobody`, through the login socket of node00."""

    def __init__(self, cluster, place):
        self.cluster, self.place = cluster, place
        self.account = pwd.getpwnam('nobody')
        self.uid = self.account.pw_uid
        self.socket = f'{place}/login.sock'

    def run(self, *words, code=0, **environment):
        process = self.cluster.start(*words, extra_env={'SCORED_SERVER': self.socket, **environment}, user=self.uid,
                                     group=self.account.pw_gid, extra_groups=[], cwd='/')
        out, err = process.communicate(timeout=LIMIT)
        assert code is None or process.returncode == code, (words, process.returncode, out, err, self.cluster.logs())
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def submit(self, *words, **environment):
        return int(self.run('scrun', '--detach', *words, **environment).stdout)


@contextlib.contextmanager
def other_user(cluster):
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        user = OtherUser(cluster, place)
        for name, table, line in (('head', 'head', 'login_nodes = "node00"'), ('node00', 'node', f'login_socket = "{user.socket}"')):
            path = cluster.directory / name / 'scored.toml'
            path.write_text(path.read_text().replace(f'[{table}]\n', f'[{table}]\n{line}\n', 1))
            cluster.kill(name)
            cluster.restart(name)
        cluster.wait_up()
        wait_until(lambda: os.path.exists(user.socket))
        yield user
        cluster.cancel_all()
