"""Programs as Debian packages them (Open MPI), started by scrun, while another job shares their nodes.

On two nodes; SCORE_PROGRAM_RANKS=4 runs them on four, which takes minutes where these have to share processors."""
import os
import re
import shutil

import pytest
from cluster import EXAMPLES, wait_until

RANKS = int(os.environ.get('SCORE_PROGRAM_RANKS', 2))
MELT = """
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 20
run 60
"""
# The package's example with a smaller matrix; lines differ by their number.
HPCC = f"""HPLinpack benchmark input file
one small matrix
HPL.out      output file name
8            device out
1            sizes
200          Ns
1            blockings
40           NBs
0            PMAP
1            grids
{RANKS // 2}            Ps
2            Qs
16.0         threshold
1            panel fact
2            PFACTs
1            recursive stopping criterium
4            NBMINs
1            panels in recursion
2            NDIVs
1            recursive panel fact.
1            RFACTs
1            broadcast
1            BCASTs
1            lookahead depth
1            DEPTHs
2            SWAP
64           swapping threshold
0            L1
0            U
1            Equilibration
8            memory alignment in double
##### This line is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


def installed(program):
    if not shutil.which(program):
        pytest.skip(f'needs {program}')
    return program


def slots(few):
    return {job['slot'] for job in few.json('scq', '--active')['jobs'] if job['state'] == 'running'}


@pytest.fixture
def other(few):
    """A job that wants every core of every node, so that whatever starts shares them in time."""
    job = few.start('scrun', '-q', '-N', 8, '-c', 2, EXAMPLES / 'pi', '--seconds', 1000)
    wait_until(lambda: job.poll() is not None or slots(few), what=job.poll)
    yield
    assert job.poll() is None  # it was there all the time
    job.terminate()
    job.communicate()


def run_shared(few, *words):
    """What the job printed, which had the nodes for some of its time only."""
    result = few.run('scrun', '-v', '-N', RANKS, *words, limit=100 * RANKS)
    job = few.job(int(re.search(r'jid=(\d+)', result.stderr)[1]))
    assert 0 < job['scheduled_s'] < 0.9 * job['elapsed_s'], job
    return result.stdout


@pytest.mark.parametrize('net', ['native', 'pm'])
def test_hpcc_verifies_its_results(few, other, tmp_path, net):
    installed('hpcc')
    (tmp_path / 'hpccinf.txt').write_text(HPCC)
    run_shared(few, f'--net={net}', '-D', tmp_path, 'hpcc')
    result = (tmp_path / 'hpccoutf.txt').read_text()
    assert re.search(r'(?m)^Success=1$', result), result[-3000:]
    assert re.search(r'(?m)^ +1 tests completed and passed residual checks', result), result
    assert 'FAILED' not in result
    assert re.search(rf'(?m)^CommWorldProcs={RANKS}$', result)


def energies(text):
    """(step, total energy) of each line of the table: step, temperature, two more energies, total, pressure."""
    table = re.search(r'(?ms)^\s*Step .*?$(.*?)^Loop time', text)[1]
    rows = [line.split() for line in table.splitlines() if line.strip()]
    return [(int(row[0]), float(row[4])) for row in rows]


@pytest.mark.parametrize('net', ['native', 'pm'])
def test_lammps_computes_what_one_process_does(few, other, tmp_path, net):
    (tmp_path / 'in.melt').write_text(MELT)
    words = (installed('lmp'), '-in', 'in.melt', '-log', 'none')
    alone = energies(few.run('scrun', '-q', '-n', 1, '-D', tmp_path, *words).stdout)
    out = run_shared(few, f'--net={net}', '-D', tmp_path, *words)
    together = energies(out)
    assert re.search(r'\d by \d by \d MPI processor grid', out), out
    assert '1 by 1 by 1 MPI' not in out
    assert [step for step, _ in alone] == [0, 20, 40, 60], alone
    assert [step for step, _ in together] == [0, 20, 40, 60]
    assert [energy for _, energy in together] == pytest.approx([energy for _, energy in alone], abs=1e-3)
