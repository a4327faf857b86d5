"""Real programs on the mount: MPI-IO, HDF5, SQLite, fio, and the access patterns of IOR and mdtest."""
import contextlib
import hashlib
import multiprocessing
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import time

import pytest
from mounts import REQUIRED, Mount
from volumes import Servers, make_temporary

pytestmark = REQUIRED
HERE = pathlib.Path(__file__).parent
LIMIT = 300
RANKS = 4


class Volume:
    def __init__(self, servers, mounts):
        self.servers, self.mounts = servers, mounts


@pytest.fixture(scope='module')
def volume(tmp_path_factory):
    with make_temporary() as root:
        servers = Servers(root, 3)
        try:
            with contextlib.ExitStack() as stack:
                made = [Mount(servers.file, tmp_path_factory.mktemp('mounts') / f'mount{i}') for i in range(2)]
                for one in made:
                    stack.callback(one.stop)
                yield Volume(servers, [one.directory for one in made])
        finally:
            codes = servers.stop()
        assert codes == [0, 0, 0], servers.log(0)


@pytest.fixture
def folders(volume, request):
    """One fresh directory, as both mounts show it."""
    name = hashlib.sha1(request.node.name.encode()).hexdigest()[:10]
    (volume.mounts[0] / name).mkdir()
    return [mount / name for mount in volume.mounts]


def compiled(tmp_path, compiler, source):
    found = shutil.which(compiler)
    if not found:
        pytest.skip(f'{compiler} is not installed')
    program = tmp_path / 'program'
    subprocess.run([found, '-O1', '-Wall', '-o', program, HERE / source], check=True, timeout=LIMIT, cwd=tmp_path)
    return program


def run_ranks(mpi, program, directories):
    mpirun = shutil.which('mpirun.mpich' if mpi == 'mpich' else 'mpirun.openmpi')
    if not mpirun:
        pytest.skip(f'{mpi}: no mpirun')
    words = [mpirun, '-n', str(RANKS)]
    if mpi != 'mpich':
        words += ['--oversubscribe', '--mca', 'io', 'ompio' if mpi == 'ompio' else 'romio321', '--mca', 'btl', 'self,vader']
    allowed = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
    done = subprocess.run([*words, program, *directories], capture_output=True, text=True, timeout=LIMIT, env=os.environ | allowed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f'{RANKS} ranks: all data is right' in done.stdout


@pytest.mark.parametrize('nodes', [1, 2])
@pytest.mark.parametrize('mpi', ['mpich', 'ompio', 'romio'])
def test_mpi_io(folders, tmp_path, mpi, nodes):
    """Two nodes are two mounts."""
    program = compiled(tmp_path, 'mpicc.mpich' if mpi == 'mpich' else 'mpicc.openmpi', 'mpi_io.c')
    run_ranks(mpi, program, folders[:nodes])


@pytest.mark.parametrize('mpi', ['mpich', 'ompio', 'romio'])
def test_hdf5(folders, tmp_path, mpi):
    program = compiled(tmp_path, 'h5pcc.mpich' if mpi == 'mpich' else 'h5pcc.openmpi', 'hdf5_io.c')
    run_ranks(mpi, program, folders[:2])


def insert_rows(path, number, mode, count):
    """Moves amounts between rows; the sum stays what it was. Adds one row to `log` per transaction."""
    chance = random.Random(number)
    with contextlib.closing(sqlite3.connect(path, timeout=120, isolation_level=None)) as base:
        base.execute(f'pragma journal_mode={mode}')
        base.execute('pragma synchronous=full')
        for i in range(count):
            try:
                base.execute('begin immediate')
                first, second = chance.sample(range(100), 2)
                base.execute('update account set amount = amount - ? where id = ?', (i, first))
                base.execute('update account set amount = amount + ? where id = ?', (i, second))
                base.execute('insert into log values (?, ?, ?)', (number, i, 'x' * chance.randrange(5000)))
                base.execute('commit')
            except sqlite3.OperationalError as error:
                if 'locked' not in str(error):
                    raise
                base.execute('rollback')


def start_writers(path, mode):
    """Four processes with transactions on the accounts of a new database."""
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute('create table account (id integer primary key, amount integer)')
        base.execute('create table log (writer integer, i integer, text text)')
        base.executemany('insert into account values (?, 1000)', [(i,) for i in range(100)])
        base.commit()
    writers = [multiprocessing.Process(target=insert_rows, args=(path, number, mode, 25)) for number in range(4)]
    for writer in writers:
        writer.start()
    return writers


@pytest.mark.parametrize('kills', [False, True], ids=['', 'kill'])
@pytest.mark.parametrize('mode', ['delete', 'truncate', 'persist'])
def test_sqlite_with_many_writers(volume, folders, mode, kills):
    """Several processes, each with its transactions; a server is killed and started again amid them."""
    path = folders[0] / 'base'
    writers = start_writers(path, mode)
    turn = 0
    while kills and any(writer.is_alive() for writer in writers):
        volume.servers.kill(turn % 3)
        volume.servers.start(turn % 3)
        turn += 1
        time.sleep(0.3)
    for writer in writers:
        writer.join(LIMIT)
    assert [writer.exitcode for writer in writers] == [0] * 4
    with contextlib.closing(sqlite3.connect(folders[1] / 'base')) as base:
        assert base.execute('pragma integrity_check').fetchall() == [('ok',)]
        assert base.execute('select sum(amount) from account').fetchone() == (100_000,)
        rows = base.execute('select writer, i from log order by writer, i').fetchall()
    assert len(rows) == len(set(rows)) and len(rows) > 20


@pytest.mark.parametrize('pattern', ['write', 'randwrite', 'randrw'])
@pytest.mark.parametrize('engine', ['psync', 'libaio', 'pvsync2'])
def test_fio_verifies_what_it_wrote(folders, tmp_path, pattern, engine):
    if not shutil.which('fio'):
        pytest.skip('fio is not installed')
    done = subprocess.run(['fio', '--name=verify', f'--directory={folders[0]}', f'--rw={pattern}', f'--ioengine={engine}', '--size=8M',
                           '--bsrange=512-256k', '--bs_unaligned', '--numjobs=2', '--iodepth=8', '--verify=crc32c', '--do_verify=1',
                           '--verify_fatal=1', '--fsync=50', '--end_fsync=1', '--group_reporting'],
                          capture_output=True, text=True, timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == 0 and 'err= 0' in done.stdout, done.stdout + done.stderr


def in_processes(function, jobs):
    with multiprocessing.get_context('fork').Pool(len(jobs)) as pool:
        return pool.starmap(function, jobs)


def bytes_of(rank, block, length):
    return hashlib.sha256(f'{rank} {block}'.encode()).digest() * (length // 32)


def write_blocks(path, rank, offsets, length):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    for block, offset in enumerate(offsets):
        assert os.pwrite(fd, bytes_of(rank, block, length), offset) == length
    os.fsync(fd)
    os.close(fd)


def check_blocks(path, rank, offsets, length):
    fd = os.open(path, os.O_RDONLY)
    wrong = [offset for block, offset in enumerate(offsets) if os.pread(fd, length, offset) != bytes_of(rank, block, length)]
    os.close(fd)
    return wrong


@pytest.mark.parametrize('shares', [True, False], ids=['one file', 'a file per rank'])
@pytest.mark.parametrize('order', ['segmented', 'strided', 'random'])
def test_ior_patterns(folders, shares, order):
    """Each rank reads what its neighbour wrote on the other mount."""
    ranks, blocks, length = 6, 24, 40_000 // 32 * 32
    chance = random.Random(1)
    places = list(range(ranks * blocks))
    if order == 'random':
        chance.shuffle(places)
    own = [places[rank::ranks] if order != 'segmented' else places[rank * blocks:(rank + 1) * blocks] for rank in range(ranks)]
    offsets = [[place * length for place in one] for one in own]
    names = ['shared' if shares else f'file{rank}' for rank in range(ranks)]
    in_processes(write_blocks, [(folders[rank % 2] / names[rank], rank, offsets[rank], length) for rank in range(ranks)])
    wrong = in_processes(check_blocks, [(folders[(rank + 1) % 2] / names[rank], rank, offsets[rank], length) for rank in range(ranks)])
    assert wrong == [[]] * ranks


def make_files(folder, rank, count):
    own = folder / f'rank{rank}'
    own.mkdir(parents=True)
    for i in range(count):
        (own / f'file{i}').write_bytes(b'x' * i)
        os.mkdir(own / f'dir{i}')


def stat_files(folder, rank, count):
    own = folder / f'rank{rank}'
    return [(own / f'file{i}').stat().st_size for i in range(count)] == list(range(count)) and len(os.listdir(own)) == 2 * count


def remove_files(folder, rank, count):
    own = folder / f'rank{rank}'
    for i in range(count):
        os.rename(own / f'file{i}', own / f'renamed{i}')
        os.unlink(own / f'renamed{i}')
        os.rmdir(own / f'dir{i}')
    own.rmdir()


def test_mdtest_patterns(folders):
    """Creates, looks at and removes files and directories; each rank looks at those of its neighbour."""
    ranks, count = 6, 60
    in_processes(make_files, [(folders[rank % 2], rank, count) for rank in range(ranks)])
    assert all(in_processes(stat_files, [(folders[(rank + 1) % 2], rank, count) for rank in range(ranks)]))
    in_processes(remove_files, [(folders[rank % 2], rank, count) for rank in range(ranks)])
    assert os.listdir(folders[0]) == []
