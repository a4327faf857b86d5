"""/metrics of head and nodes, and Prometheus that scrapes them."""
import json
import pathlib
import shutil
import subprocess

import pytest
from cluster import LIMIT, free_port, wait_until
from web import Web, value

BUSY = ['sh', '-c', 'while :; do :; done']


@pytest.fixture(scope='module')
def web(few):
    return Web(few.json('score', 'info')['dashboard_url'])


def promtool(*words, **options):
    if shutil.which('promtool') is None:
        pytest.skip('no promtool')
    return subprocess.run(['promtool', *words], capture_output=True, text=True, timeout=LIMIT, **options)


def scrape(web):
    """The text of /metrics. Who asks too often is refused for a while."""
    answers = []

    def is_answered():
        answers.append(web.ask('/metrics'))
        return answers[-1].status == 200
    wait_until(is_answered)
    return answers[-1].body.decode()


def test_metrics_of_head_and_nodes_are_clean(fresh):
    cluster = fresh(3, '--node-metrics', '--slice', '20ms')
    jobs = [cluster.submit('-n', 3, *BUSY) for _ in range(2)]
    for job in jobs:
        cluster.wait_job(job, 'running')
    head = Web(cluster.json('score', 'info')['dashboard_url'])
    port = (cluster.directory / 'node01/metrics.port').read_text().strip()
    node = Web(f'http://127.0.0.1:{port}/')
    for web in (head, node):
        wait_until(lambda: value(scrape(web), 'scored_gang_switches_total') > 5)
        text = scrape(web)
        checked = promtool('check', 'metrics', input=text)
        assert checked.returncode == 0 and not checked.stderr.strip(), checked
        assert value(text, 'scored_gang_switch_duration_seconds_count', '{phase="total"}') > 0
        assert value(text, 'scored_gang_slot_seconds_total') > 0
    # Nobody watches: of the boundaries before a scrape, once they are settled.
    wait_until(lambda: value(scrape(head), 'scored_gang_switch_skew_seconds_count') > 0)
    text = scrape(head)
    assert value(text, 'scored_nodes', '{state="up"}') == 3
    assert value(text, 'scored_jobs', '{state="running"}') == 2
    if cluster.description['cgroup']:
        figure = 'scored_node_cpu_seconds_total', '{mode="user",node="node00"}'  # absent where the node was late
        wait_until(lambda: ''.join(figure) in (text := scrape(head)) and value(text, *figure) > 0)
    assert node.ask('/').status == 404 and node.ask('/api/v1/snapshot').status == 404
    cluster.cancel_all()
    wait_until(lambda: value(scrape(head), 'scored_jobs_ended_total', '{state="cancelled"}') == 2)
    assert value(scrape(head), 'scored_jobs_ended_total', '{state="out-of-memory"}') == 0


def test_prometheus_scrapes_the_cluster(few, web, tmp_path):
    if shutil.which('prometheus') is None:
        pytest.skip('no prometheus')
    rules = pathlib.Path(__file__).parents[3] / 'deploy/prometheus/scored.rules.yml'
    (tmp_path / 'p.yml').write_text(
        'global: {scrape_interval: 1s, evaluation_interval: 1s}\n'
        f'rule_files: ["{rules}"]\n'
        'scrape_configs: [{job_name: scored-head, static_configs: [{targets: ["' + web.url.netloc + '"]}]}]\n')
    address = f'127.0.0.1:{free_port()}'
    server = subprocess.Popen(['prometheus', f'--config.file={tmp_path}/p.yml', f'--storage.tsdb.path={tmp_path}/db',
                               f'--web.listen-address={address}'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def asked(expression):
            try:
                answer = Web(f'http://{address}/').ask('/api/v1/query?query=' + expression)
                return json.loads(answer.body)['data']['result'] if answer.status == 200 else []
            except OSError:
                return []
        # A scrape that took longer than a second is none.
        for expression, figure in (('up', 1), ('sum(scored_nodes)', 8)):
            wait_until(lambda: [float(one['value'][1]) for one in asked(expression)] == [figure], what=lambda: asked(expression))
        wait_until(lambda: [one['metric']['cluster'] for one in asked('scored_build_info')] == ['virtual'])
    finally:
        server.terminate()
        server.wait(LIMIT)
