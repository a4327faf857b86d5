"""Programs that call Slurm's commands, as their users write them. tests/slurm_clients.sh installs them; PyPI and Maven's registry have them."""
import shutil
import subprocess
import sys

import pytest
from cluster import BIN, LIMIT

CLIENTS = BIN.parent / 'slurm-clients'
PYTHON = CLIENTS / 'bin/python'
pytestmark = pytest.mark.long

SUBMITIT = '''
import submitit
def square(x):
    place = submitit.JobEnvironment()
    return x * x, place.global_rank, place.num_tasks, len(place.hostnames)
def fails():
    raise ValueError('no')
executor = submitit.AutoExecutor(folder='sub/%j', cluster='slurm')
executor.update_parameters(timeout_min=2, nodes=1, tasks_per_node=1, cpus_per_task=1, name='two words')
job = executor.submit(square, 5)
print('result', job.result())
with executor.batch():
    jobs = [executor.submit(square, i) for i in range(3)]
print('array', [one.result()[0] for one in jobs])
bad = executor.submit(fails)
try:
    bad.result()
except submitit.core.utils.FailedJobError:
    print('failure seen')
print('states', job.watcher.get_state(job.job_id, mode='force'), bad.watcher.get_state(bad.job_id, mode='force'))
executor.update_parameters(nodes=2, tasks_per_node=2)
print('multi', sorted(executor.submit(square, 7).results()))
'''

DASK = '''
from dask_jobqueue import SLURMCluster
from dask.distributed import Client
cluster = SLURMCluster(cores=1, memory='500MB', walltime='00:05:00', log_directory='logs', interface='lo')
cluster.scale(jobs=2)
client = Client(cluster, timeout=120)
client.wait_for_workers(2, timeout=300)
print('sum', sum(client.gather(client.map(lambda x: x * x, range(20)))))
client.close()
cluster.close()
print('closed')
'''

PARSL = '''
import os, parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider
provider = SlurmProvider(partition='normal', nodes_per_block=2, init_blocks=1, max_blocks=1, walltime='00:05:00', launcher=SrunLauncher(),
                         worker_init='export PATH=%s' % os.environ['PATH'])
executor = HighThroughputExecutor(label='h', address='127.0.0.1', max_workers_per_node=1, cores_per_worker=1, provider=provider)
parsl.load(Config(executors=[executor], run_dir='parsl'))
@parsl.python_app
def square(x):
    return x * x
print('sum', sum(square(i).result(timeout=300) for i in range(5)))
parsl.dfk().cleanup()
print('clean')
'''

PSIJ = '''
import os, time
from datetime import timedelta
from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
executor = JobExecutor.get_instance('slurm')
def run(command, arguments, launcher=None, **resources):
    job = Job(JobSpec(executable=command, arguments=arguments, directory=os.getcwd(), stdout_path='psij.out', stderr_path='psij.err',
                      resources=ResourceSpecV1(**resources), attributes=JobAttributes(duration=timedelta(minutes=2)), launcher=launcher))
    executor.submit(job)
    status = job.wait(timeout=timedelta(seconds=300))
    print(command, status and status.state, status and status.exit_code, open('psij.out').read().split())
run('/bin/echo', ['hello'])
run('/bin/false', [])
run('/bin/echo', ['x'], 'srun', node_count=2, processes_per_node=2)
job = Job(JobSpec(executable='/bin/sleep', arguments=['300']))
executor.submit(job)
job.wait(timeout=timedelta(seconds=300), target_states=[JobState.ACTIVE])
job.cancel()
print('cancel', job.wait(timeout=timedelta(seconds=300)).state, flush=True)
os._exit(0)
'''

SNAKEFILE = '''
rule all:
    input: expand('{n}.txt', n=range(3))
rule one:
    output: '{n}.txt'
    resources: mem_mb=200, runtime=5
    shell: 'echo $SLURM_JOB_ID > {output}'
'''

NEXTFLOW = '''
process square {
  input: val x
  output: stdout
  script: "echo \\$((${x} * ${x}))"
}
process fails_once {
  errorStrategy 'retry'
  maxRetries 1
  output: stdout
  script: "echo attempt ${task.attempt}; exit ${task.attempt == 1 ? 3 : 0}"
}
process wide {
  time '3s'
  clusterOptions '--nodes=2 --ntasks=2'
  output: stdout
  script: "srun -n 2 sh -c 'echo rank \\$SLURM_PROCID'"
}
workflow {
  squares = Channel.of(1, 2, 3) | square
  squares.mix(fails_once(), wide()) | map { it.trim().readLines().sort().join(' ') } | view
}
'''

OPENED = ('java.lang', 'java.io', 'java.nio', 'java.net', 'java.util', 'java.util.concurrent.locks', 'java.util.concurrent.atomic', 'sun.nio.ch',
          'sun.nio.fs', 'sun.net.www.protocol.http', 'jdk.internal.misc')


@pytest.fixture(scope='module')
def links(few, tmp_path_factory):
    if not (CLIENTS / 'complete').exists():
        pytest.skip('the clients of Slurm are missing (tests/slurm_clients.sh makes them)')
    directory = tmp_path_factory.mktemp('links')
    few.run('score', 'slurm-commands', directory)
    return directory


def run_client(few, links, tmp_path, *words):
    tmp_path.chmod(0o777)
    path = f'{links}:{CLIENTS}/bin:{few.env["PATH"]}'
    result = few.start(*words, cwd=tmp_path, extra_env={'PATH': path, 'HOME': str(tmp_path)}, stderr=subprocess.STDOUT)
    output, _ = result.communicate(timeout=LIMIT)
    sys.stdout.write(output)
    assert result.returncode == 0, output
    return output.splitlines()


def run_program(few, links, tmp_path, text):
    (tmp_path / 'client.py').write_text(text)
    return run_client(few, links, tmp_path, PYTHON, 'client.py')


def test_submitit(few, links, tmp_path):
    lines = run_program(few, links, tmp_path, SUBMITIT)
    assert lines[-5:] == ['result (25, 0, 1, 1)', 'array [0, 1, 4]', 'failure seen', 'states COMPLETED FAILED',
                          'multi [(49, 0, 4, 2), (49, 1, 4, 2), (49, 2, 4, 2), (49, 3, 4, 2)]']


def test_dask(few, links, tmp_path):
    assert [line for line in run_program(few, links, tmp_path, DASK) if line in ('sum 2470', 'closed')] == ['sum 2470', 'closed']


def test_parsl(few, links, tmp_path):
    lines = run_program(few, links, tmp_path, PARSL)
    assert 'sum 30' in lines and 'clean' in lines


def test_psij(few, links, tmp_path):
    assert run_program(few, links, tmp_path, PSIJ)[-4:] == [
        "/bin/echo COMPLETED 0 ['hello']", '/bin/false FAILED 1 []', "/bin/echo COMPLETED 0 ['x', 'x', 'x', 'x']", 'cancel CANCELED']


@pytest.mark.parametrize('how', ['slurm', 'generic'])
def test_snakemake(few, links, tmp_path, how):
    (tmp_path / 'Snakefile').write_text(SNAKEFILE)
    generic = ['--executor', 'cluster-generic', '--cluster-generic-submit-cmd', 'sbatch --parsable -n {threads}', '--cluster-generic-cancel-cmd', 'scancel']
    executor = ['--executor', 'slurm'] if how == 'slurm' else generic
    run_client(few, links, tmp_path, CLIENTS / 'bin/snakemake', '--jobs', 3, *executor)
    assert len({(tmp_path / f'{n}.txt').read_text() for n in range(3)}) == 3


def test_nextflow(few, links, tmp_path):
    if not (CLIENTS / 'nextflow').is_dir() or not shutil.which('java'):
        pytest.skip('Nextflow or Java is missing (tests/slurm_clients.sh fetches Nextflow with Maven)')
    (tmp_path / 'main.nf').write_text(NEXTFLOW)
    (tmp_path / 'nextflow.config').write_text("process.executor = 'slurm'\nexecutor.pollInterval = '1 sec'\n")
    opened = [f'--add-opens=java.base/{name}=ALL-UNNAMED' for name in OPENED]
    lines = run_client(few, links, tmp_path, 'env', 'NXF_OFFLINE=true', 'java', *opened, '-cp', f'{CLIENTS}/nextflow/*', 'nextflow.cli.Launcher', 'run',
                       'main.nf', '-ansi-log', 'false')
    shown = sorted(line for line in lines if line in ('1', '4', '9', 'attempt 2', 'rank 0 rank 1'))
    assert shown == ['1', '4', '9', 'attempt 2', 'rank 0 rank 1'], lines
