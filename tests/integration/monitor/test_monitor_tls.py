"""The dashboard for other hosts: only with TLS and a token."""
import json
import random
import resource
import shutil
import socket
import subprocess
import time

import pytest
from cluster import BIN, LIMIT, configure_head, free_port
from web import Web, faults, value


def test_open_address_without_tls_refuses_to_start(tmp_path):
    config = tmp_path / 'scored.toml'
    config.write_text('[head]\nnodes = "n0"\n[monitor]\nlisten = "0.0.0.0:8080"\n')
    result = subprocess.run([BIN / 'scored', '--role=head', '--config', config], capture_output=True, text=True,
                            timeout=LIMIT)
    assert result.returncode == 2
    assert result.stderr.startswith(f'scored: head: {config}:4: listen: not a loopback address: '
                                    'that needs tls_certificate, tls_key and token_file')
    assert result.stderr.count('\n') == 1


@pytest.fixture
def certificate(tmp_path):
    """(certificate, key, token file) of this host."""
    if shutil.which('openssl') is None or shutil.which('curl') is None:
        pytest.skip('no openssl or curl')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                    '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1',
                    '-keyout', tmp_path / 'key', '-out', tmp_path / 'certificate'], check=True, capture_output=True)
    (tmp_path / 'key').chmod(0o600)
    (tmp_path / 'token').write_text('0123456789abcdef0123\n')
    (tmp_path / 'token').chmod(0o600)
    return tmp_path / 'certificate', tmp_path / 'key', tmp_path / 'token'


def open_to_others(certificate, port):
    crt, key, token = certificate
    return (f'[monitor]\nlisten = "0.0.0.0:{port}"\nnames = ["localhost:{port}"]\ntls_certificate = "{crt}"\n'
            f'tls_key = "{key}"\ntoken_file = "{token}"\n')


def test_tls_and_token_open_the_dashboard_to_other_hosts(fresh, certificate):
    cluster = fresh(2)
    port = free_port()
    configure_head(cluster, open_to_others(certificate, port))
    url = f'https://localhost:{port}/'
    assert cluster.json('score', 'info')['dashboard_url'] == url
    token = '-H', 'Authorization: Bearer 0123456789abcdef0123'

    def curl(*words, path=''):
        return subprocess.run(['curl', '-sS', '--cacert', certificate[0], '-w', '\n%{http_code}', *words, url + path],
                              capture_output=True, text=True, timeout=LIMIT)
    assert curl(path='api/v1/snapshot').stdout.endswith('\n401')
    assert curl('-H', 'Authorization: Bearer guess', path='api/v1/snapshot').stdout.endswith('\n401')
    document, status = curl(*token, path='api/v1/snapshot').stdout.rsplit('\n', 1)
    assert status == '200' and faults(json.loads(document)) == []
    streamed = curl(*token, '-N', path='api/v1/stream?rate=10&count=5').stdout.splitlines()
    assert len([json.loads(line) for line in streamed[:-1] if line]) == 5
    address = cluster.run('scadm', 'web-login').stdout.strip()
    assert address.startswith(url)
    login = curl('-i', '-d', 'token=' + address.split('#')[1], path='login').stdout
    assert 'HTTP/1.1 303' in login and '; Secure' in login
    # Not without the certificate's authority, not in plain, not by an old version.
    assert subprocess.run(['curl', '-sS', url], capture_output=True, timeout=LIMIT).returncode == 60
    assert subprocess.run(['curl', '-sS', '--cacert', certificate[0], '--tls-max', '1.1', url], capture_output=True,
                          timeout=LIMIT).returncode != 0
    assert b'200' not in Web(f'http://localhost:{port}/').raw(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')


def test_tls_survives_random_bytes_and_silent_clients(fresh, certificate):
    cluster = fresh(1)
    port = free_port()
    configure_head(cluster, open_to_others(certificate, port))
    silent = [socket.create_connection(('127.0.0.1', port)) for _ in range(20)]
    rng = random.Random(6)
    for _ in range(50):
        with socket.create_connection(('127.0.0.1', port), timeout=LIMIT) as link:
            link.sendall(bytes([22, 3, 1]) + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200))))
    got = subprocess.run(['curl', '-sS', '--cacert', certificate[0], '-H', 'Authorization: Bearer 0123456789abcdef0123',
                          f'https://localhost:{port}/metrics'], capture_output=True, text=True, timeout=LIMIT)
    assert value(got.stdout, 'scored_nodes', '{state="up"}') == 1
    for link in silent:
        link.settimeout(LIMIT)
        assert link.recv(1) == b''  # the handshake has its time


def test_silent_tls_clients_block_no_other_client(fresh, certificate):
    limit = 1024 + 128
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < limit + 500:
        pytest.skip(f'only {hard} descriptors')
    cluster = fresh(1)
    port = free_port()
    configure_head(cluster, open_to_others(certificate, port))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit + 500), hard))
    try:
        silent = [socket.create_connection(('127.0.0.1', port)) for _ in range(limit + 100)]
        got = subprocess.run(['curl', '-sS', '--cacert', certificate[0], '-H', 'Authorization: Bearer 0123456789abcdef0123',
                              f'https://localhost:{port}/metrics'], capture_output=True, text=True, timeout=LIMIT)
        assert value(got.stdout, 'scored_nodes', '{state="up"}') == 1
        for link in silent:
            link.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize('wrong, says', [
    ('chmod', 'key is open to others: chmod 640'), ('key', 'tls_key'), ('certificate', 'tls_certificate')])
def test_bad_certificates_are_reported_at_the_start(tmp_path, certificate, wrong, says):
    crt, key, token = certificate
    if wrong == 'chmod':
        key.chmod(0o644)
    else:
        (tmp_path / wrong).write_text('nonsense')
    config = tmp_path / 'scored.toml'
    secret = tmp_path / 'cluster.key'
    config.write_text(f'[head]\nnodes = "n0"\nlisten = "127.0.0.1:0"\nrun_dir = "{tmp_path}/run"\n'
                      f'state_dir = "{tmp_path}/state"\nkey_file = "{secret}"\n' + open_to_others(certificate, 0))
    subprocess.run([BIN / 'scored', '--role=head', '--config', config, '--new-key'], check=True, timeout=LIMIT)
    result = subprocess.run([BIN / 'scored', '--role=head', '--config', config], capture_output=True, text=True,
                            timeout=LIMIT)
    assert result.returncode == 1 and says in result.stderr, result
    assert result.stderr.count('\n') == 1
