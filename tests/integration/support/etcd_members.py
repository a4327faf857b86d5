"""An etcd of several members for the lease of two heads: real processes, HTTPS, faults of each member."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from cluster import free_port, wait_until

CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']


def openssl(*words, environment=None):
    subprocess.run(['openssl', *map(str, words)], check=True, capture_output=True, env=environment)


class Authority:
    """Signs certificates; `environment` may have another wall clock."""

    def __init__(self, directory, name, environment=None):
        self.directory, self.environment = directory, environment
        self.file, self.key = directory / f'{name}.pem', directory / f'{name}.key'
        openssl('req', '-x509', *CURVE, '-days', 3, '-subj', f'/CN={name}', '-keyout', self.key, '-out', self.file,
                environment=environment)

    def sign(self, name, usage, addresses=()):
        """Returns the files of a certificate and its key."""
        made, key, request, more = (self.directory / f'{name}.{kind}' for kind in ('pem', 'key', 'csr', 'ext'))
        more.write_text(f'extendedKeyUsage={usage}\n' +
                        (f'subjectAltName={",".join(f"IP:{one}" for one in addresses)}\n' if addresses else ''))
        openssl('req', '-new', *CURVE, '-subj', '/O=scored', '-keyout', key, '-out', request, environment=self.environment)
        openssl('x509', '-req', '-in', request, '-CA', self.file, '-CAkey', self.key, '-CAcreateserial', '-days', 3,
                '-extfile', more, '-out', made, environment=self.environment)
        return made, key


class Member:
    """`ports` are those of the first head, the second head, and the other members."""

    def __init__(self, number, address, ports, enter):
        self.name, self.address, self.ports, self.enter = f'e{number}', address, ports, enter
        self.process = None


class EtcdMembers:
    """Use it as a context. Each head has its own port at each member, so its link can be cut alone."""

    def __init__(self, directory, addresses=('127.0.0.1',) * 3, enter=((),) * 3, environment=None):
        """enter: words before each member's command, for example of a network namespace."""
        if shutil.which('etcd') is None or shutil.which('openssl') is None:
            pytest.skip('needs etcd (etcd-server) and openssl')
        self.directory = pathlib.Path(directory)
        self.directory.mkdir()
        self.authority = Authority(self.directory, 'ca', environment)
        self.certificate = self.authority.sign('member', 'serverAuth,clientAuth', sorted(set(addresses)))
        self.client = self.authority.sign('head', 'clientAuth')
        self.members = [Member(number, address, [free_port() for _ in range(3)], list(words))
                        for number, (address, words) in enumerate(zip(addresses, enter))]

    def __enter__(self):
        for member in self.members:
            self.start(member)
        return self

    def __exit__(self, *_):
        for member in self.members:
            self.kill(member)

    def start(self, member):
        peers = ','.join(f'{one.name}=http://{one.address}:{one.ports[2]}' for one in self.members)
        clients = ','.join(f'https://{member.address}:{port}' for port in member.ports[:2])
        certificate, key = self.certificate
        words = [*member.enter, 'etcd', '--name', member.name, '--data-dir', self.directory / member.name, '--initial-cluster', peers,
                 '--listen-peer-urls', f'http://{member.address}:{member.ports[2]}',
                 '--initial-advertise-peer-urls', f'http://{member.address}:{member.ports[2]}',
                 '--listen-client-urls', clients, '--advertise-client-urls', clients,
                 '--cert-file', certificate, '--key-file', key, '--client-cert-auth', '--trusted-ca-file', self.authority.file,
                 '--auto-compaction-mode', 'periodic', '--auto-compaction-retention', '5m', '--logger', 'zap']
        with open(self.directory / f'{member.name}.log', 'ab') as log:
            member.process = subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, member):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member.process.pid, signal.SIGCONT)
        member.process.kill()
        member.process.wait()

    def stop(self, member, is_on=True):
        os.kill(member.process.pid, signal.SIGSTOP if is_on else signal.SIGCONT)

    def is_healthy(self, member):
        certificate, key = self.client
        url = f'https://{member.address}:{member.ports[0]}/health'
        words = ['curl', '-s', '--max-time', '5', '--cacert', self.authority.file, '--cert', certificate, '--key', key, url]
        return b'"health":"true"' in subprocess.run([*member.enter, *map(str, words)], capture_output=True, check=False).stdout

    def wait_healthy(self):
        wait_until(lambda: all(self.is_healthy(member) for member in self.members), what=lambda: str(self.directory))

    def config(self, head, **changes):
        """The table [heads] of the head with this number; `changes` replace its values."""
        certificate, key = self.client
        values = {'lease': 'etcd', 'etcd': [f'https://{one.address}:{one.ports[head]}' for one in self.members],
                  'etcd_ca': str(self.authority.file), 'etcd_certificate': str(certificate), 'etcd_key': str(key), **changes}
        return '\n[heads]\n' + ''.join(f'{name} = {str(value)!r}\n'.replace("'", '"') if isinstance(value, str) else
                                         f'{name} = [{", ".join(chr(34) + one + chr(34) for one in value)}]\n'
                                         for name, value in values.items())


def use_etcd(cluster, members, heads=('head', 'head2')):
    """Restarts both heads with their lease in etcd."""
    for name in heads:
        cluster.kill(name)
    for number, name in enumerate(heads):
        with open(cluster.directory / name / 'scored.toml', 'a') as config:
            config.write(members.config(number))
    for name in heads:
        cluster.restart(name)
