"""MPI_Comm_spawn in jobs with room for more tasks (scrun --spawn), with real MPI libraries."""
import re
import subprocess

import mpis
import pytest
from cluster import LIMIT, abandoned_memory, is_alive, shared_memory, wait_until

SPAWNS = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int sum_over(MPI_Comm comm, int mine) {  /* between two groups: the sum of the other */
  int sum = -1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}
static void talk(MPI_Comm other, int is_child, const char* name) {
  int rank, size, remote, large = 300000, i;
  MPI_Comm all;
  char* bytes = malloc(large);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_remote_size(other, &remote);
  int sum = sum_over(other, is_child ? 100 + rank : 1 + rank);
  MPI_Intercomm_merge(other, is_child, &all);
  int place, members;
  MPI_Comm_rank(all, &place);
  MPI_Comm_size(all, &members);
  memset(bytes, place == 0 ? 7 : 0, large);
  MPI_Bcast(bytes, large, MPI_CHAR, 0, all);
  for (i = 0; i < large; ++i) if (bytes[i] != 7) MPI_Abort(MPI_COMM_WORLD, 8);
  MPI_Barrier(all);
  MPI_Comm_free(&all);
  free(bytes);
  printf("%s %d of %d with %d: sum %d of %d\n", name, rank, size, remote, sum, members);
  fflush(stdout);
}
static int child(int argc, char** argv, MPI_Comm parent) {
  int *number, has;
  char name[64];
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &has);
  snprintf(name, sizeof name, "%s/%d", argv[1], has ? *number : -1);
  if (!strcmp(argv[1], "fails")) exit(6);
  if (!strcmp(argv[1], "waits")) { printf("waits\n"); fflush(stdout); pause(); }
  talk(parent, 1, name);
  MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 0;
}
static int try_spawn(char* program, char* word, int count, MPI_Comm comm, MPI_Comm* children) {
  char* words[] = {word, NULL};
  int codes[16], class = 0, code;
  code = MPI_Comm_spawn(program, words, count, MPI_INFO_NULL, 0, comm, children, codes);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return code == MPI_SUCCESS ? 0 : class == MPI_ERR_SPAWN ? 1 : 2;  /* 2: a class of the library's choice */
}
int main(int argc, char** argv) {
  MPI_Comm parent, children;
  int rank, *universe, has;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) return child(argc, argv, parent);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const char* how = argv[1];
  int count = argc > 2 ? atoi(argv[2]) : 2;
  if (!strcmp(how, "all")) {
    if (try_spawn(argv[0], "child", count, MPI_COMM_WORLD, &children)) MPI_Abort(MPI_COMM_WORLD, 3);
    talk(children, 0, "parent");
    MPI_Comm_disconnect(&children);
  } else if (!strcmp(how, "each")) {  /* every rank, for itself */
    if (try_spawn(argv[0], "child", count, MPI_COMM_SELF, &children)) MPI_Abort(MPI_COMM_WORLD, 3);
    talk(children, 0, "parent");
    MPI_Comm_disconnect(&children);
  } else if (!strcmp(how, "several")) {
    char* programs[] = {argv[0], argv[0]};
    char *red[] = {"red", NULL}, *blue[] = {"blue", NULL}, **words[] = {red, blue};
    int counts[] = {1, 2}, codes[3];
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    if (MPI_Comm_spawn_multiple(2, programs, words, counts, infos, 0, MPI_COMM_WORLD, &children, codes)) return 3;
    talk(children, 0, "parent");
    MPI_Comm_disconnect(&children);
  } else if (!strcmp(how, "path")) {
    char* words[] = {"child", NULL};
    int codes[2];
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "path", argv[2]);
    if (MPI_Comm_spawn(argv[3], words, 2, info, 0, MPI_COMM_WORLD, &children, codes)) return 3;
    talk(children, 0, "parent");
    MPI_Comm_disconnect(&children);
  } else if (!strcmp(how, "missing")) {
    int first = try_spawn("/no/such/program", "child", 2, MPI_COMM_SELF, &children);
    int second = try_spawn(argv[0], "child", 2, MPI_COMM_SELF, &children);
    printf("first %d second %d\n", first, second);
    fflush(stdout);
    talk(children, 0, "parent");
    MPI_Comm_disconnect(&children);
  } else if (!strcmp(how, "room")) {
    int first = try_spawn(argv[0], "child", 2, MPI_COMM_SELF, &children);
    MPI_Comm more;
    int second = try_spawn(argv[0], "child", 2, MPI_COMM_SELF, &more);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &has);
    printf("first %d second %d universe %d\n", first, second, has ? *universe : -1);
    fflush(stdout);
    talk(children, 0, "parent");
    MPI_Comm_disconnect(&children);
  } else {  /* fails, waits */
    try_spawn(argv[0], argv[1], count, MPI_COMM_WORLD, &children);
    if (!strcmp(how, "waits") && rank == 0) { printf("waits\n"); fflush(stdout); }
    pause();
  }
  MPI_Finalize();
  return 0;
}
'''

CAN_SPAWN = [mpi for mpi in mpis.NAMES if mpi != 'mpich4']  # Debian's MPICH cannot: UCX opens no ports


@pytest.fixture(params=CAN_SPAWN)
def program(request, tmp_path):
    return mpis.build(request.param, SPAWNS, tmp_path)


NETS = ['native', 'pm']


def lines(result):
    return sorted(result.stdout.splitlines())


@pytest.mark.parametrize('net', NETS)
def test_one_task_spawns_two(few, program, net):
    result = few.run('scrun', '-q', f'--net={net}', '-n', 1, '--spawn', 2, program, 'all')
    assert lines(result) == ['child/0 0 of 2 with 1: sum 1 of 3', 'child/0 1 of 2 with 1: sum 1 of 3',
                             'parent 0 of 1 with 2: sum 201 of 3'], result
    assert result.stderr == ''


@pytest.mark.parametrize('net', NETS)
def test_tasks_of_several_nodes_spawn_on_several_nodes(few, program, net):
    result = few.run('scrun', '-q', '-l', f'--net={net}', '-N', 3, '-m', 'cyclic', '-n', 3, '--spawn', 4, program, 'all', 4)
    out = lines(result)
    assert [line for line in out if 'parent' in line] == [
        f'{rank}: parent {rank} of 3 with 4: sum 406 of 7' for rank in range(3)], result
    assert [line for line in out if 'child' in line] == [
        f'{3 + rank}: child/0 {rank} of 4 with 3: sum 6 of 7' for rank in range(4)], result


def test_each_task_spawns_for_itself(few, program):
    result = few.run('scrun', '-q', '-N', 2, '-m', 'cyclic', '-n', 2, '--spawn', 4, program, 'each', 2)
    out = lines(result)
    assert len(out) == 6 and len([line for line in out if line.startswith('child/0 1 of 2 with 1: sum')]) == 2, result


def test_several_programs_are_spawned_at_once(few, program):
    result = few.run('scrun', '-q', '-N', 2, '-n', 1, '--spawn', 3, program, 'several')
    assert lines(result) == ['blue/1 1 of 3 with 1: sum 1 of 4', 'blue/1 2 of 3 with 1: sum 1 of 4',
                             'parent 0 of 1 with 3: sum 303 of 4', 'red/0 0 of 3 with 1: sum 1 of 4'], result


def test_a_missing_program_fails_at_the_parent_alone(few, program):
    result = few.run('scrun', '-q', '-N', 2, '-n', 1, '--spawn', 2, program, 'missing')
    assert re.search('first [12] second 0', result.stdout), result
    assert len([line for line in lines(result) if line.startswith('child/0')]) == 2, result
    assert len(re.findall('executable /no/such/program: not found', result.stderr)) == 1, result.stderr


# Open MPI does not pass the key on.
def test_the_info_key_path_is_searched_first(few, tmp_path):
    program = mpis.build('mpich5', SPAWNS, tmp_path)
    folder = tmp_path / 'folder'
    folder.mkdir()
    program.rename(folder / 'hostname')  # a name that PATH has too
    result = few.run('scrun', '-q', '-N', 2, '-n', 1, '--spawn', 2, folder / 'hostname', 'path', f'/nowhere:{folder}', 'hostname')
    assert len([line for line in lines(result) if line.startswith('child/0')]) == 2, result


def test_a_spawn_beyond_the_room_fails_and_names_the_option(few, program):
    result = few.run('scrun', '-q', '-n', 1, '--spawn', 3, program, 'room')
    assert re.search('first 0 second [12] universe 4', result.stdout), result
    assert len(re.findall('--spawn 4', result.stderr)) == 1, result.stderr


def test_a_job_without_room_is_told_the_option(few, program):
    result = few.run('scrun', '-q', '-n', 1, program, 'all', code=3)
    assert len(re.findall('scrun --spawn N', result.stderr)) == 1, result.stderr


def test_a_spawned_task_that_fails_ends_the_job(few, program):
    before = shared_memory()
    result = few.run('scrun', '-N', 2, '-n', 1, '--spawn', 2, program, 'fails', code=None)
    assert result.returncode != 0 and 'rank ' in result.stderr, result
    wait_until(lambda: not abandoned_memory(before), what=lambda: str(abandoned_memory(before)))


def rows(few, job):
    """Of sctop, by rank."""
    document = few.json('score', 'top', '--once')
    columns = document['processes']['columns']
    found = [dict(zip(columns, values)) for values in document['processes']['rows']]
    return {row['rank']: row for row in found if row['job'] == job}


@pytest.fixture
def waiting(few, program):
    """A job on two nodes whose task has spawned two, all of which wait: its front end, its number, its rows of sctop."""
    front = few.start('scrun', '-q', '-N', 2, '-n', 1, '--spawn', 2, program, 'waits')
    for _ in range(3):
        assert front.stdout.readline() == 'waits\n', (front.communicate(), few.logs())
    job, = [row['job'] for row in few.json('scq', '--active')['jobs']]
    seen = {}

    def has_all():
        seen.update(rows(few, job))
        return sorted(seen) == [0, 1, 2]
    wait_until(has_all, what=lambda: seen)
    yield front, job, seen
    few.cancel(job)
    front.communicate(timeout=LIMIT)


def test_spawned_tasks_are_tasks_of_their_job(few, waiting):
    front, job, seen = waiting
    assert few.job(job)['tasks'] == 3
    assert seen[0]['node'] != seen[2]['node'] and all(is_alive(row['pid']) for row in seen.values()), seen
    few.run('score', 'suspend', job)
    few.wait_job(job, 'suspended')
    wait_until(lambda: {row['state'] for row in rows(few, job).values()} == {'frozen'}, what=lambda: rows(few, job))
    few.run('score', 'resume', job)
    few.wait_job(job, 'running')
    wait_until(lambda: 'frozen' not in {row['state'] for row in rows(few, job).values()}, what=lambda: rows(few, job))
    few.cancel(job)
    assert front.wait(LIMIT) != 0
    wait_until(lambda: not any(is_alive(row['pid']) for row in seen.values()), what=lambda: seen)


def test_spawned_tasks_outlive_their_node_daemons(few, waiting):
    front, job, seen = waiting
    for node in ('node00', 'node01'):
        few.kill(node)
        few.restart(node)
    few.wait_up()
    wait_until(lambda: sorted(rows(few, job)) == [0, 1, 2], what=lambda: rows(few, job))
    assert all(is_alive(row['pid']) for row in seen.values()), seen
    few.run('sccancel', '-s', 'TERM', job)
    front.communicate(timeout=LIMIT)
    wait_until(lambda: not any(is_alive(row['pid']) for row in seen.values()), what=lambda: seen)


def test_room_that_no_program_uses_ends_with_the_job(few):
    assert few.run('scrun', '-q', '-l', '-N', 3, '-n', 1, '--spawn', 5, 'echo', 'alone').stdout == '0: alone\n'
    front = few.start('scrun', '-q', '-N', 3, '-n', 1, '--spawn', 2, 'cat', stdin=subprocess.PIPE)
    wait_until(lambda: [row['state'] for row in few.json('scq', '--active')['jobs']] == ['running'])
    for node in ('node00', 'node02'):  # of the task, and one that has none yet
        few.kill(node)
        few.restart(node)
    few.wait_up()
    assert front.communicate('read\n', timeout=LIMIT) == ('read\n', '')
    assert front.returncode == 0


def test_programs_of_a_job_share_its_room(few, program):
    result = few.run('scrun', '-q', '--spawn', 2, '-n', 1, program, 'all', ':', '-n', 1, program, 'all')
    assert sorted(line.split(':')[0] for line in lines(result)) == [
        'child/0 0 of 2 with 2', 'child/0 1 of 2 with 2', 'parent 0 of 2 with 2', 'parent 1 of 2 with 2'], result


@pytest.mark.parametrize('words, hint', [
    (['--ntasks-per-node', 2, '--spawn', 1], 'give the number of tasks with -n'), (['-N', 2, '--spawn', 1], 'give -n'),
    (['-n', 1, '--spawn', 0], '--spawn'), (['-n', 1, '--spawn', 'x'], '--spawn'), (['-n', 1, '--spawn', 1048576], '--spawn')])
def test_room_that_cannot_be_is_refused(few, words, hint):
    result = few.run('scrun', *words, 'true', code=125)
    assert hint in result.stderr and len(result.stderr.splitlines()) == 1, result
