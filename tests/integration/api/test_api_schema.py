"""Requests that schemathesis makes from the OpenAPI document: no fault of the server, and only answers that the document knows."""
import subprocess

import pytest
from cluster import BIN, LIMIT

SCHEMATHESIS = BIN.parent / 'slurm-clients/bin/schemathesis'
CHECKS = 'not_a_server_error,content_type_conformance,response_schema_conformance,unsupported_method'
pytestmark = pytest.mark.long


def test_generated_requests_get_documented_answers(fresh, tmp_path):
    if not SCHEMATHESIS.exists():
        pytest.skip('no schemathesis: tests/slurm_clients.sh installs it from PyPI')
    cluster = fresh(2, '--cores', '2')
    cluster.submit('--hold', 'true')  # job 1, which generated requests name
    token = cluster.json('score', 'token', 'new', 'schema')['secret']
    url = cluster.json('score', 'info')['dashboard_url'] + 'api/v1/openapi.json'
    words = ['--header', f'Authorization: Bearer {token}', '--max-examples', 20, '--phases', 'examples,coverage,fuzzing', '--checks', CHECKS,
             '--no-color', '--seed', 7]
    done = subprocess.run([SCHEMATHESIS, 'run', url, *map(str, words)], capture_output=True, text=True, timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr
    assert cluster.nodes_up() == 2
