"""A real SMTP server, a sendmail that delivers to it, and a web server that behaves badly when it is told to."""
import email
import http.server
import json
import mailbox
import socket
import ssl
import subprocess
import sys
import threading

import pytest
from cluster import free_port, wait_until

PYTHON = '/usr/bin/python3'  # aiosmtpd is Debian's package
SENDMAIL = '''#!{python}
import smtplib, sys
assert sys.argv[1:3] == ['-oi', '--'], sys.argv
with smtplib.SMTP('127.0.0.1', {port}) as server:
    server.sendmail('scored@test.example', sys.argv[3:], sys.stdin.buffer.read())
'''


class MailServer:
    def __init__(self, directory):
        self.home = directory / 'mail'
        self.port = free_port()
        found = subprocess.run([PYTHON, '-c', 'import aiosmtpd'], check=False, capture_output=True)
        if found.returncode != 0:
            pytest.skip('no python3-aiosmtpd')
        self.process = subprocess.Popen([PYTHON, '-m', 'aiosmtpd', '-n', '-c', 'aiosmtpd.handlers.Mailbox', str(self.home),
                                         '-l', f'127.0.0.1:{self.port}'], stdin=subprocess.DEVNULL)
        wait_until(self.answers)
        self.sendmail = script(directory / 'sendmail', SENDMAIL.format(python=sys.executable, port=self.port))

    def answers(self):
        with socket.socket() as client:
            return client.connect_ex(('127.0.0.1', self.port)) == 0

    def close(self):
        self.process.kill()
        self.process.wait()

    def messages(self):
        if not self.home.exists():
            return []
        found = [email.message_from_bytes(bytes(message)) for message in mailbox.Maildir(self.home, create=False)]
        return sorted(found, key=lambda message: [int(part) for part in message['Message-ID'][1:].split('@')[0].split('.')])

    def events(self):
        return [(int(message['X-Scored-Job']), message['X-Scored-Event']) for message in self.messages()]


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


class WebService:
    """Keeps the documents that it accepts. `behaviour`: "accept", "silent", "close", "flood", or a status to reply with."""

    def __init__(self, certificate=None):
        self.documents, self.headers, self.asked, self.behaviour = [], [], 0, 'accept'
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                service.asked += 1
                service.reply(self, body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f'{"https" if certificate else "http"}://localhost:{self.server.server_port}/hook'
        self.is_over = threading.Event()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reply(self, handler, body):
        behaviour = self.behaviour
        handler.close_connection = True
        if behaviour == 'silent':
            self.is_over.wait()
        elif behaviour == 'close':
            return
        elif behaviour == 'flood':
            part = b'x' * 1_000_000
            for _ in range(1_000):
                handler.wfile.write(part)  # fails when the head closes the connection
        elif behaviour == 'accept':
            self.documents.append(json.loads(body))
            self.headers.append(dict(handler.headers))
            handler.send_response(204)
            handler.end_headers()
        else:
            handler.send_response(behaviour)
            handler.end_headers()

    def events(self, job):
        return [found['event'] for found in self.documents if found.get('job', {}).get('id') == job]

    def close(self):
        self.is_over.set()
        self.server.shutdown()
        self.server.server_close()


def make_certificate(directory, name='localhost'):
    """Returns (certificate, key) of a server of this name."""
    files = directory / f'{name}.crt', directory / f'{name}.key'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
                    '-subj', f'/CN={name}', '-addext', f'subjectAltName=DNS:{name}', '-keyout', files[1], '-out', files[0]],
                   check=True, capture_output=True)
    return tuple(map(str, files))
