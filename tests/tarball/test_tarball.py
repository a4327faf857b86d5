"""The tarball in small systems of other releases, without any package, for an ordinary user, without a file of the build."""
import os
import pathlib
import re
import subprocess

import base_system
import pytest
import roots

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ['SCORE_BIN']).resolve().parent
OLDEST_GLIBC = (2, 34)
EVERYWHERE = {'libc.so.6', 'libdl.so.2', 'libgcc_s.so.1', 'libm.so.6', 'libpthread.so.0', 'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'}


@pytest.fixture(scope='module')
def packed(tmp_path_factory):
    """The tarball, and the folder that it unpacks to."""
    out = tmp_path_factory.mktemp('tarball')
    made = subprocess.run(['g++', '-print-file-name=libstdc++_pic.a'], capture_output=True, text=True, check=True)
    if '/' not in made.stdout:
        pytest.skip('libstdc++_pic.a is not installed: apt-get install libstdc++-12-pic')
    packing = subprocess.run([SOURCE / 'packaging/tarball.sh', out, BUILD], capture_output=True, text=True, check=False)
    assert packing.returncode == 0, packing.stderr
    [tarball] = out.glob('*.tar.xz')
    subprocess.run(['tar', '-C', out, '-xf', tarball], check=True)
    os.chmod(out, 0o755)
    return tarball, out / tarball.name.removesuffix('.tar.xz')


@pytest.fixture(scope='module', params=['bookworm', 'trixie', 'jammy', 'noble'])
def system(request, packed):
    """Runs a script in one of the releases."""
    if roots.missing():
        pytest.skip(roots.missing())
    try:
        root = roots.root(request.param)
    except base_system.CannotMake as problem:
        pytest.skip(str(problem))

    def run(script, **options):
        result = roots.run(root, packed[1], script, **options)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run


def programs_of(top):
    """What readelf prints of each program and library."""
    for path in sorted(top.rglob('*')):
        if path.is_file() and not path.is_symlink():
            with open(path, 'rb') as file:
                is_elf = file.read(4) == b'\x7fELF'
            if is_elf:
                yield path, subprocess.run(['readelf', '--wide', '--dynamic', '--version-info', path], capture_output=True,
                                           text=True, check=True).stdout


def test_tarball_is_small(packed):
    assert packed[0].stat().st_size <= 25e6


def test_programs_need_an_old_glibc(packed):
    for path, text in programs_of(packed[1]):
        needed = {tuple(map(int, version.split('.'))) for version in re.findall(r'Name: GLIBC_([\d.]+)', text)}
        assert max(needed, default=OLDEST_GLIBC) <= OLDEST_GLIBC, path
        assert 'GLIBC_ABI' not in text and 'GLIBC_PRIVATE' not in text, path


def test_libraries_are_included_or_everywhere(packed):
    included = {path.name for path in (packed[1] / 'lib').rglob('*.so*')}
    for path, text in programs_of(packed[1]):
        assert set(re.findall(r'NEEDED.*\[(.*)\]', text)) <= included | EVERYWHERE, path
        for place in re.findall(r'R(?:UN)?PATH.*\[(.*)\]', text):
            assert all(part.startswith('$ORIGIN/') for part in place.split(':')), path


def test_loader_finds_each_library(system):
    missing = system('find $SCORED -type f -perm -u+x -exec ldd {} + 2>&1 | grep "not found" || true')
    assert missing == ''


def test_job_runs_on_every_node(system):
    names = system("cd $SCORED; bin/score virtual --nodes 8 -- bin/scrun -N 8 sh -c 'echo $SCORE_NODENAME'")
    assert sorted(names.split()) == [f'node0{number}' for number in range(8)]


def test_commands_and_doctor_work(system):
    text = system("$SCORED/bin/score virtual --nodes 8 -- sh -ec 'scrun -N 8 true; score doctor; scq -a; scnodes; scacct'")
    assert 'ok       pairs      PM connects 28 pairs of 8 nodes' in text, text
    assert 'completed' in text


def test_user_without_an_entry_runs_jobs(system):
    assert system('$SCORED/bin/score virtual --nodes 1 -- scrun id -u', user=4321) == '4321\n'


def test_pm_program_runs(system):
    text = system('$SCORED/bin/score virtual --nodes 8 -- scrun -n 8 $SCORED/libexec/scored/bench/pm_queens 8')
    assert '8 queens on 8 ranks: 92 solutions' in text


def test_page_is_served(system, packed):
    page = system('''$SCORED/bin/score virtual --nodes 1 -- bash -ec '
        url=$(score info | grep -o "http://[0-9.:]*")
        address=${url#http://}
        exec 3<>/dev/tcp/${address%:*}/${address#*:}
        printf "GET / HTTP/1.1\\r\\nHost: $address\\r\\nConnection: close\\r\\n\\r\\n" >&3
        cat <&3' ''')
    assert (packed[1] / 'share/scored/web/index.html').read_text(encoding='utf-8') in page


VOLUME = '''
PATH=$SCORED/bin:$SCORED/sbin:$PATH
export PARIO_VOLUME=$HOME/demo.volume
(umask 077; scio create demo --server 127.0.0.1:7711 >$PARIO_VOLUME)
mkdir data mounted
scored-pario --volume $PARIO_VOLUME --index 0 --directory data --capacity 100M &
until : 2>/dev/null <>/dev/tcp/127.0.0.1/7711; do sleep 0.1; done
scio cp $SCORED/LICENSE :/stored
'''


def test_volume_stores_a_file(system):
    system(VOLUME + 'scio cp :/stored back; cmp back $SCORED/LICENSE')


def test_root_mounts_a_volume(system):
    if not os.path.exists('/dev/fuse'):
        pytest.skip('there is no /dev/fuse')
    system(VOLUME + 'scored-pario-mount mounted; cmp mounted/stored $SCORED/LICENSE', user=0)


def test_programs_are_sent_to_hosts(system):
    text = system('''
        cat >ssh <<'END'
#!/bin/sh
while :; do case $1 in -[oplEFi]) shift 2 ;; -*) shift ;; *) break ;; esac; done
shift
exec env -i PATH=/usr/bin:/bin HOME="$HOME" sh -c "$*"
END
        chmod +x ssh
        $SCORED/bin/score start --hosts 127.0.0.1 --head-address 127.0.0.1 --ssh $HOME/ssh --push always -- \\
          scrun -N 1 sh -c 'ls /tmp/scored-push-*/bin' ''')
    assert 'scored-launcher' in text.split()
