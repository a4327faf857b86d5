"""CMake names the optional parts that it leaves out, and the package that brings each."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = {'pmix': 'scored-pmix: PMIx for jobs of Open MPI (install libpmix-dev)',
         'libdw': 'scored-stacks: score stacks (install libdw-dev)',
         'liburing': 'scored-pario: servers of striped volumes, scrun --scratch (install liburing-dev and liblmdb-dev)',
         'fuse3': 'scored-pario-mount: mounted volumes, scrun --scratch (install libfuse3-dev)'}


def configured(directory, *options):
    """The list at the end of a configuration: {part: 'built' or 'left out'}."""
    done = subprocess.run(['cmake', '-S', ROOT, '-B', directory, '-G', 'Ninja', *options], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.split('-- Optional parts:\n')[1].splitlines()
    lines = [line.removeprefix('--   ') for line in lines if line.startswith('--   ')]
    return {line[10:]: line[:10].strip() for line in lines}


@pytest.mark.skipif(not shutil.which('pkg-config'), reason='needs pkg-config')
def test_each_part_that_is_left_out_names_its_package(tmp_path):
    filtered = tmp_path / 'pkg-config'
    pattern = '|'.join(f'*" {name}"*' for name in PARTS)
    filtered.write_text(f'#!/bin/sh\ncase " $*" in {pattern}) exit 1 ;; esac\nexec {shutil.which("pkg-config")} "$@"\n')
    filtered.chmod(0o755)
    found = configured(tmp_path / 'build', f'-DPKG_CONFIG_EXECUTABLE={filtered}', '-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON',
                       '-DSCORE_ESBUILD=NOTFOUND', '-DSCDOC=NOTFOUND', '-DCMAKE_PROGRAM_PATH=', '-DSCORED_WEB=off')
    assert all(found.get(part) == 'left out' for part in PARTS.values()), found
    assert found['unit tests (install libgtest-dev, as ./try test does)'] == 'left out'
    assert found["the dashboard's page (install esbuild and set SCORED_WEB=auto)"] == 'left out'
