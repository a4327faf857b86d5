"""The packages in clients/ for Dask, PSI/J, Snakemake and Jupyter, with their frameworks from PyPI."""
import os
import pathlib
import subprocess

import pytest
from cluster import BIN, LIMIT

PYTHON = BIN.parent / 'slurm-clients/bin/python'
CLIENTS = pathlib.Path(__file__).resolve().parents[3] / 'clients'
PACKAGES = [CLIENTS / name for name in ('python', 'dask', 'psij', 'snakemake', 'jupyter')]
pytestmark = pytest.mark.long


@pytest.fixture(scope='module')
def nodes():
    from cluster import Cluster
    cluster = Cluster(4, '--cores', '4', '--memory', '4G')
    yield cluster
    cluster.stop()


def run(nodes, folder, *words, module):
    """Runs a program that uses the packages; it must have the module."""
    if not PYTHON.exists() or subprocess.run([PYTHON, '-c', f'import {module}'], capture_output=True).returncode != 0:
        pytest.skip(f'no {module}: tests/slurm_clients.sh installs it from PyPI')
    paths = os.pathsep.join(map(str, PACKAGES))
    more = {'PYTHONPATH': paths, 'SCORED_API': str(nodes.directory / 'head/api.sock'), 'PATH': f'{PYTHON.parent}:{nodes.env["PATH"]}'}
    done = subprocess.run([PYTHON, *words], capture_output=True, text=True, timeout=LIMIT, cwd=folder, env={**nodes.env, **more})
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:] + nodes.logs()
    return done.stdout


DASK = '''
from dask.distributed import Client
from scored_dask import ScoredCluster
with ScoredCluster(cores=2, memory='512MB', walltime='10m', log_directory='.', interface='lo') as cluster:
    print(cluster.job_script())
    cluster.scale(jobs=2)
    with Client(cluster) as client:
        client.wait_for_workers(2)
        print('sum', sum(client.gather(client.map(lambda x: x * x, range(10)))))
'''


def test_dask_workers_are_jobs(nodes, tmp_path):
    out = run(nodes, tmp_path, '-c', DASK, module='dask_jobqueue')
    assert 'sum 285' in out and '#SCORE --cpus-per-task=2' in out, out
    assert not nodes.json('scq', '--active')['jobs']


PSIJ = '''
import pathlib, psij
executor = psij.JobExecutor.get_instance('scored')
executor.config.queue_polling_interval = 1
here = pathlib.Path.cwd()
def run(executable, *arguments, **resources):
    spec = psij.JobSpec(executable=executable, arguments=list(arguments), stdout_path=here / 'out', directory=here)
    spec.resources = psij.ResourceSpecV1(**resources) if resources else None
    job = psij.Job(spec)
    executor.submit(job)
    return job, job.wait()
job, status = run('/bin/sh', '-c', 'echo $MORE hello')
print('one', status.state.name, status.exit_code, (here / 'out').read_text().strip())
job, status = run('/bin/false')
print('two', status.state.name, status.exit_code)
job, status = run('/bin/hostname', node_count=2, processes_per_node=1)
print('three', status.state.name)
job = psij.Job(psij.JobSpec(executable='/bin/sleep', arguments=['600'], directory=here))
executor.submit(job)
job.wait(target_states=[psij.JobState.ACTIVE])
job.cancel()
print('four', job.wait().state.name, job.native_id in executor.list())
'''


def test_psij_has_an_executor(nodes, tmp_path):
    out = run(nodes, tmp_path, '-c', PSIJ, module='psij').splitlines()
    assert out == ['one COMPLETED 0 hello', 'two FAILED 1', 'three COMPLETED', 'four CANCELED True'], out


SNAKEFILE = '''
rule all:
    input: "sum"
rule part:
    output: "part{i}"
    resources: mem_mb=100, runtime=5
    threads: 2
    shell: "echo $SCORE_JOB_ID {threads} > {output}"
rule sum:
    input: expand("part{i}", i=range(3))
    output: "sum"
    shell: "cat {input} > {output}"
'''


def test_snakemake_has_an_executor(nodes, tmp_path):
    (tmp_path / 'Snakefile').write_text(SNAKEFILE)
    words = ('-m', 'snakemake', '--executor', 'scored', '--jobs', '5', '--latency-wait', '60')
    run(nodes, tmp_path, *words, module='snakemake')
    lines = (tmp_path / 'sum').read_text().splitlines()
    assert len(lines) == 3 and len({line.split()[0] for line in lines}) == 3 and {line.split()[1] for line in lines} == {'2'}, lines
    (tmp_path / 'Snakefile').write_text('rule all:\n    output: "x"\n    shell: "exit 3"\n')
    if PYTHON.exists():
        with pytest.raises(AssertionError, match='exit code'):
            run(nodes, tmp_path, *words, module='snakemake')


JUPYTER = '''
import json, pathlib
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
import scored_jupyter, sys
from jupyter_client.provisioning import KernelProvisionerFactory
class Entry:
    name, value = 'scored-provisioner', 'scored_jupyter:ScoredProvisioner'
    def load(self): return scored_jupyter.ScoredProvisioner
factory = KernelProvisionerFactory.instance()
factory.provisioners['scored-provisioner'] = Entry()
folder = pathlib.Path('kernels/scored')
folder.mkdir(parents=True)
metadata = {'kernel_provisioner': {'provisioner_name': 'scored-provisioner', 'config': {'cpus_per_task': 2}}}
(folder / 'kernel.json').write_text(json.dumps({'argv': [sys.executable, '-m', 'ipykernel_launcher', '-f', '{connection_file}'], 'display_name': 'x',
                                                'language': 'python', 'metadata': metadata}))
manager = KernelManager(kernel_name='scored', kernel_spec_manager=KernelSpecManager(kernel_dirs=['kernels']))
manager.connection_file = str(pathlib.Path('connection.json').resolve())
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=300)
def reply_to(request):
    while True:
        message = client.get_shell_msg(timeout=300)
        if message['parent_header'].get('msg_id') == request:
            return message['content']['status'], message['content'].get('ename')
def ask(code):
    return reply_to(client.execute(code))
print(ask('import os; assert os.environ["SCORE_JOB_ID"]'))
request = client.execute('print("begun", flush=True)\\nimport time\\ntime.sleep(600)')
while True:
    message = client.get_iopub_msg(timeout=300)
    if message['msg_type'] == 'stream': break
manager.interrupt_kernel()
print(reply_to(request))
print(ask('1'))
client.stop_channels()
manager.shutdown_kernel(now=True)
print('ended', manager.is_alive())
'''


def test_jupyter_kernels_are_jobs(nodes, tmp_path):
    out = run(nodes, tmp_path, '-c', JUPYTER, module='ipykernel').splitlines()
    assert out == ["('ok', None)", "('error', 'KeyboardInterrupt')", "('ok', None)", 'ended False'], out
    assert not nodes.json('scq', '--active')['jobs']
