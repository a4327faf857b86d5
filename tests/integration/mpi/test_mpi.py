"""MPI libraries under scrun: how their ranks find each other, and what happens when one goes."""
import os
import pathlib
import re
import signal
import time

import mpis
import pytest
from cluster import Cluster, EXAMPLES, LIMIT, abandoned_memory, is_alive, shared_memory, wait_until
from together import run_together

OPEN_MPI = EXAMPLES / 'openmpi'
needs_open_mpi = pytest.mark.skipif(not (OPEN_MPI / 'ring').exists(),
                                    reason='examples were not built with Open MPI')


@needs_open_mpi
@pytest.mark.parametrize('program', ['ring', 'allreduce', 'pi'])
def test_open_mpi_program_runs_on_several_nodes(few, program):
    result = few.run('scrun', '-q', '-N', 4, '--ntasks-per-node', 2, OPEN_MPI / program)
    assert '8' in result.stdout


@needs_open_mpi
def test_open_mpi_and_mpich_share_the_nodes(few):
    running, _ = run_together(few, lambda seconds: [
        ('scrun', '-q', '-N', 8, '-c', 2, folder / 'ring', '--seconds', seconds) for folder in (OPEN_MPI, EXAMPLES)])
    assert len({job['slot'] for job in running}) == 2


BADLY = r'''
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && !strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 5);
  if (rank == 1 && !strcmp(argv[1], "exit")) _exit(0);
  if (rank == 1 && !strcmp(argv[1], "kill")) raise(SIGKILL);
  if (rank == 1 && !strcmp(argv[1], "garbage") && write(atoi(getenv("PMI_FD")), "nonsense\n", 9) != 9) _exit(6);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && !strcmp(argv[1], "garbage")) pause();
  MPI_Finalize();
  return 0;
}
'''
WAYS = {'abort': (5, 'aborted with 5'), 'exit': (1, 'without MPI_Finalize'), 'kill': (137, 'signal 9'),
        'garbage': (1, 'protocol error on its PMI connection')}


@pytest.mark.parametrize('mpi,how', [(mpi, how) for mpi in mpis.NAMES for how in WAYS
                                     if not (mpi.startswith('openmpi') and how == 'garbage')])  # it has no PMI-1
def test_one_rank_that_goes_ends_the_job_everywhere(few, tmp_path, mpi, how):
    program = mpis.build(mpi, BADLY, tmp_path)
    result = few.run('scrun', '-N', 3, program, how, code=None)
    code, reason = WAYS[how]
    # Ranks of Open MPI 5 that lose a peer abort with 14 by themselves. The highest code counts, and the line names the first end.
    its_own, of_a_peer = (code, f'rank 1 on node.*{reason}'), (14, 'aborted with 14')
    ends = [its_own, of_a_peer] if mpis.is_open_mpi_5(mpi) else [its_own]
    assert result.returncode in {max(code, end[0]) for end in ends}, result
    lines = [line for line in result.stderr.splitlines() if any(re.search(pattern, line) for _, pattern in ends)]
    assert len(lines) == 1, result.stderr


SHARES = r'''
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  MPI_Comm node;
  MPI_Win near, far;
  char *memory, own[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Win_allocate_shared(1 << 20, 1, MPI_INFO_NULL, node, &memory, &near);
  MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &far);
  memory[0] = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  printf("%d\n", getpid());
  fflush(stdout);
  for (;;) MPI_Barrier(MPI_COMM_WORLD), usleep(1000);
}
'''


def start_sharing(few, program, nodes):
    """The job and its ranks' processes, once all of them share memory."""
    job = few.start('scrun', '-q', '-N', nodes, '--ntasks-per-node', 2, program)
    return job, [int(job.stdout.readline()) for _ in range(2 * nodes)]


def job_of(pid):
    variables = pathlib.Path(f'/proc/{pid}/environ').read_text().split('\0')
    return int(next(v for v in variables if v.startswith('SCORE_JOBID=')).partition('=')[2])


@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_killed_ranks_leave_no_shared_memory(few, tmp_path, mpi):
    program = mpis.build(mpi, SHARES, tmp_path)
    before = shared_memory()
    (killed, first), (cancelled, second), (living, third) = [start_sharing(few, program, 1) for _ in range(3)]
    os.kill(first[1], signal.SIGKILL)
    few.cancel(job_of(second[0]))
    for job in (killed, cancelled):
        job.communicate(timeout=LIMIT)
    assert is_alive(third[0]) and is_alive(third[1])
    few.cancel(job_of(third[0]))
    living.communicate(timeout=LIMIT)
    wait_until(lambda: not abandoned_memory(before), what=lambda: str(abandoned_memory(before)))


def ancestors(pid):
    while pid > 1:
        pid = int(pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[1])
        yield pid


@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_a_killed_shepherd_leaves_no_shared_memory(few, tmp_path, mpi):
    program = mpis.build(mpi, SHARES, tmp_path)
    before = shared_memory()
    (killed, first), (living, second) = [start_sharing(few, program, 1) for _ in range(2)]
    shepherd, = [pid for pid in ancestors(first[0])
                 if b'scored-shepherd' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')[0]]
    os.kill(shepherd, signal.SIGKILL)
    killed.communicate(timeout=LIMIT)
    wait_until(lambda: not any(map(is_alive, first)))
    assert all(map(is_alive, second))
    few.cancel(job_of(second[0]))
    living.communicate(timeout=LIMIT)
    wait_until(lambda: not abandoned_memory(before), what=lambda: str(abandoned_memory(before)))


@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_a_job_killed_while_it_starts_leaves_no_shared_memory(few, tmp_path, mpi):
    program = mpis.build(mpi, SHARES, tmp_path)
    before = shared_memory()
    for seconds in (0.05, 0.1, 0.2, 0.3):
        job = few.submit('-N', 1, '--ntasks-per-node', 2, program)
        time.sleep(seconds)
        few.cancel(job)
    wait_until(lambda: not abandoned_memory(before), what=lambda: str(abandoned_memory(before)))


SPAWNS = r'''
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  MPI_Comm children;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (rank == 0 && MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                                  MPI_ERRCODES_IGNORE) == MPI_SUCCESS) return 7;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("refused\n");
  MPI_Finalize();
  return 0;
}
'''


@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_spawning_is_refused_and_the_job_goes_on(few, tmp_path, mpi):
    program = mpis.build(mpi, SPAWNS, tmp_path)
    result = few.run('scrun', '-N', 2, program)
    assert result.stdout.splitlines() == ['refused'], result
    lines = [line for line in result.stderr.splitlines() if 'start the job with scrun --spawn N' in line]
    assert len(lines) == (0 if mpi == 'mpich4' else 1), result.stderr  # Debian's MPICH does not ask


NAMES = r'''
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
  char service[32], port[MPI_MAX_PORT_NAME], expected[64];
  int rank, size, code;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  snprintf(service, sizeof service, "service of %d", rank);
  snprintf(port, sizeof port, "port-of-%d", rank);
  if (MPI_Publish_name(service, MPI_INFO_NULL, port) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  snprintf(service, sizeof service, "service of %d", (rank + 1) % size);
  snprintf(expected, sizeof expected, "port-of-%d", (rank + 1) % size);
  code = MPI_Lookup_name(service, MPI_INFO_NULL, port);
  if (code != MPI_SUCCESS || strcmp(port, expected) != 0) MPI_Abort(MPI_COMM_WORLD, 4);
  MPI_Barrier(MPI_COMM_WORLD);
  snprintf(service, sizeof service, "service of %d", rank);
  if (MPI_Unpublish_name(service, MPI_INFO_NULL, port) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 6);
  MPI_Error_class(MPI_Unpublish_name(service, MPI_INFO_NULL, port), &code);  /* a second time */
  if (code != MPI_ERR_SERVICE) MPI_Abort(MPI_COMM_WORLD, 7);
  MPI_Barrier(MPI_COMM_WORLD);
  if (MPI_Lookup_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 5);
  printf("%d knows its neighbour\n", rank);
  MPI_Finalize();
  return 0;
}
'''


@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_names_are_published_and_looked_up(few, tmp_path, mpi):
    program = mpis.build(mpi, NAMES, tmp_path)
    result = few.run('scrun', '-q', '-N', 3, program)
    assert sorted(result.stdout.splitlines()) == [f'{rank} knows its neighbour' for rank in range(3)], result


WORLD = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, has, *number, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &has);
  printf("%d of %d, app %d, sum %d\n", rank, size, has ? *number : -1, sum);
  fflush(stdout);
  if (argc > 1) sleep(atoi(argv[1]));
  MPI_Finalize();
  return 0;
}
'''


def script_of(directory, text):
    script = directory / 'script.sh'
    script.write_text('#!/bin/sh\n' + text)
    script.chmod(0o755)
    directory.chmod(0o755)
    return script


@pytest.mark.parametrize('mpi', mpis.NAMES)
@pytest.mark.parametrize('how', ['script', 'shell'])
def test_a_script_may_start_any_mpi(few, tmp_path, mpi, how):
    program = mpis.build(mpi, WORLD, tmp_path)
    command = [script_of(tmp_path, f'{program}\n')] if how == 'script' else ['sh', '-c', str(program)]
    result = few.run('scrun', '-N', 3, *command)
    assert sorted(result.stdout.splitlines()) == [f'{rank} of 3, app 0, sum 3' for rank in range(3)], result
    assert result.stderr == ''


# MPICH shuts its connection down at its end, so that it can be started once.
def test_a_script_may_start_two_mpis_one_after_the_other(few, tmp_path):
    programs = []
    for mpi in ('mpich4', 'openmpi4'):
        (tmp_path / mpi).mkdir()
        programs.append(mpis.build(mpi, WORLD, tmp_path / mpi))
    result = few.run('scrun', '-N', 2, script_of(tmp_path, f'{programs[0]}\n{programs[1]}\n'))
    assert sorted(result.stdout.splitlines()) == [f'{rank} of 2, app 0, sum 1' for rank in (0, 1) for _ in range(2)]


# A program that the shepherd cannot know: it starts the words after it.
EXECS = '#include <unistd.h>\nint main(int argc, char** argv) { execv(argv[1], argv + 1); return argc; }'


@pytest.mark.parametrize('mpi,words,wanted', [('openmpi4', [], 'pmix'), ('mpich4', ['--mpi=pmix'], 'pmi1')])
def test_an_mpi_that_finds_no_server_ends_the_job(few, tmp_path, mpi, words, wanted):
    program = mpis.build(mpi, WORLD, tmp_path)
    (tmp_path / 'execs').mkdir()
    starter = mpis.build_plain(EXECS, tmp_path / 'execs')
    result = few.run('scrun', '-N', 2, *words, starter, program, '600', code=125)
    line, = [line for line in result.stderr.splitlines() if '--mpi=' in line]
    assert f'--mpi={wanted}' in line and 'libmp' in line and 'node00' in line, line


def test_the_wrong_choice_for_a_program_is_refused(few, tmp_path):
    program = mpis.build('openmpi4', WORLD, tmp_path)
    result = few.run('scrun', '-N', 2, '--mpi=pmi1', program, code=125)
    assert result.stdout == '' and result.stderr.count('use --mpi=pmix or --mpi=auto') == 1, result
    assert few.run('scrun', '-n', 1, '--mpi=pmi1', program).stdout == '0 of 1, app 0, sum 0\n'
    alone = few.run('scrun', '-n', 2, '--mpi=none', program).stdout.splitlines()
    assert alone == ['0 of 1, app 0, sum 0'] * 2


@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_a_program_may_reach_its_mpi_through_a_library(few, tmp_path, mpi):
    program = mpis.build_through_library(mpi, WORLD, tmp_path)
    result = few.run('scrun', '-N', 3, program)
    assert sorted(result.stdout.splitlines()) == [f'{rank} of 3, app 0, sum 3' for rank in range(3)], result


PARENT = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, sum, code;
  if (argc > 1) {
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &rank);
    printf("child in a world of %d\n", rank);
    MPI_Finalize();
    return 0;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char command[4096];
  snprintf(command, sizeof command, "%s child", argv[0]);
  code = rank == 0 ? system(command) : 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("the child %s, sum %d\n", code == 0 ? "ran" : "failed", sum);
  MPI_Finalize();
  return 0;
}
'''


@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_a_rank_that_starts_an_mpi_program_ends_the_job(few, tmp_path, mpi):
    program = mpis.build(mpi, PARENT, tmp_path)
    result = few.run('scrun', '-N', 2, program, code=1)
    assert 'child in' not in result.stdout and result.stderr.count('it has started an MPI program') == 1, result


@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_several_programs_share_one_world(few, tmp_path, mpi):
    program = mpis.build(mpi, WORLD, tmp_path)
    other = tmp_path / 'other'
    other.write_bytes(program.read_bytes())
    other.chmod(0o755)
    result = few.run('scrun', '-N', 2, '-n', 1, program, ':', '-n', 3, other)
    assert sorted(result.stdout.splitlines()) == [
        '0 of 4, app 0, sum 6', *(f'{rank} of 4, app 1, sum 6' for rank in (1, 2, 3))], result


SUM = r'''
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d of %d, sum %d\n", rank, size, sum);
  MPI_Finalize();
  return 0;
}
'''


# MPICH names the shared memory of a node's ranks after PMI's key-value space.
@pytest.mark.parametrize('mpi', mpis.NAMES)
def test_jobs_of_two_clusters_on_one_host_do_not_meet(tmp_path, mpi):
    program = mpis.build(mpi, SUM, tmp_path)
    before = shared_memory()
    clusters = [Cluster(1, '--cores', '4') for _ in range(2)]
    try:
        for _ in range(5):  # equal numbers of jobs and attempts
            jobs = [cluster.start('scrun', '-n', 4, program) for cluster in clusters]
            for job in jobs:
                out, err = job.communicate(timeout=LIMIT)
                assert job.returncode == 0, (out, err)
                assert sorted(out.splitlines()) == [f'{rank} of 4, sum 6' for rank in range(4)]
    finally:
        for cluster in clusters:
            cluster.stop()
    wait_until(lambda: not abandoned_memory(before), what=lambda: str(abandoned_memory(before)))


PLACES = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, size, here, near;
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &near);
  MPI_Comm_size(node, &size);
  here = atoi(getenv("SCORE_NODEID"));
  printf("%d: node %d, %d of %d\n", rank, here, near, size);
  MPI_Finalize();
  return 0;
}
'''


@pytest.mark.parametrize('mpi', ['mpich4', 'openmpi4'])
def test_cyclic_distribution_deals_out_the_ranks(few, tmp_path, mpi):
    program = mpis.build(mpi, PLACES, tmp_path)
    result = few.run('scrun', '-q', '-N', 3, '--ntasks-per-node', 2, '--distribution=cyclic', program)
    assert sorted(result.stdout.splitlines()) == [f'{r}: node {r % 3}, {r // 3} of 2' for r in range(6)]
    result = few.run('scrun', '-q', '-N', 3, '--ntasks-per-node', 2, '--distribution=block', program)
    assert sorted(result.stdout.splitlines()) == [f'{r}: node {r // 2}, {r % 2} of 2' for r in range(6)]


def test_cyclic_ranks_take_input_write_files_and_open_pm(few, tmp_path):
    tmp_path.chmod(0o777)
    many = ('scrun', '-q', '-N', 3, '-n', 5, '--distribution=cyclic')
    words = few.run(*many, '-i', 4, '-o', tmp_path / 'out.%t.%N', 'sh', '-c', 'echo $SCORE_RANK $(cat)', input='hello').stdout
    assert words == ''
    files = {path.name: path.read_text().strip() for path in tmp_path.iterdir()}
    assert files == {'out.0.node00': '0', 'out.1.node01': '1', 'out.2.node02': '2', 'out.3.node00': '3',
                     'out.4.node01': '4 hello'}
    assert '92 solutions' in few.run(*many, EXAMPLES / 'pm_queens', 8).stdout
    failed = few.run('scrun', '-N', 3, '-n', 5, '-m', 'cyclic', 'sh', '-c', 'if [ $SCORE_RANK = 4 ]; then exit 3; fi; sleep 50', code=3)
    assert 'rank 4 on node01' in failed.stderr


MAXES = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void ask(const char* text, char* answer, int bytes) {
  int fd = atoi(getenv("PMI_FD")), n;
  if (write(fd, text, strlen(text)) < 0 || (n = read(fd, answer, bytes - 1)) < 0) _exit(9);
  answer[n] = 0;
}
int main(int argc, char** argv) {
  char answer[256];
  int rank, sum;
  ask("cmd=init pmi_version=1 pmi_subversion=1\n", answer, sizeof answer);
  ask("cmd=get_maxes\n", answer, sizeof answer);  /* what the library will be told */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %d, %s", sum, strstr(answer, "vallen_max"));
  MPI_Finalize();
  return 0;
}
'''


@pytest.mark.parametrize('mpi,how,most', [('mpich4', 'program', 896), ('mpich5', 'program', 8200), ('mpich5', 'shell', 896)])
def test_many_ranks_of_mpich_5_exchange_long_values(few, tmp_path, mpi, how, most):
    program = mpis.build(mpi, MAXES, tmp_path)
    command = [program] if how == 'program' else ['sh', '-c', str(program)]
    result = few.run('scrun', '-q', '-N', 8, '--ntasks-per-node', 4, *command)
    assert result.stdout == f'sum 496, vallen_max={most}\n', result
