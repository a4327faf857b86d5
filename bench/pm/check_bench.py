#!/usr/bin/env python3
"""check_bench.py SCBENCH CASE: checks the format of the output of scbench pm, not the figures
themselves. CASE is shmem, network or plot. Exits with 77 if this machine cannot run the case."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SCBENCH, CASE = sys.argv[1:]
KEYS = {'device', 'size', 'one_way_us', 'bandwidth_mb_s', 'vs_raw', 'vs_tcp', 'bandwidth_vs_raw', 'bandwidth_vs_tcp',
        'method', 'one_way_us_spread', 'bandwidth_mb_s_spread'}
SHORT = ['--rounds', '1', '--count', '300' if CASE == 'shmem' else '20', '--json']


def run(*words, code=0):
    result = subprocess.run([SCBENCH, 'pm', *words], capture_output=True, text=True, timeout=600)
    assert result.returncode == code, f'{words}: {result.returncode}: {result.stdout}{result.stderr}'
    return result.stdout


def rows(*words):
    return [json.loads(line) for line in run(*words, *SHORT).splitlines()]


def check_rows(device, sizes):
    found = rows('--device', device, '--size', ','.join(map(str, sizes)))
    assert [row['size'] for row in found] == sizes
    for row in found:
        assert not KEYS - set(row), KEYS - set(row)
        # So few small messages may have a bandwidth that is printed as 0.
        # A ratio of rounds that other programs disturbed may round to 0.
        assert row['one_way_us'] > 0 and all(row[key] >= 0 for key in ('vs_raw', 'vs_tcp')), row
        low, high = row['one_way_us_spread']
        assert low <= row['one_way_us'] <= high


def shmem():
    check_rows('shmem', [8, 65536])
    sizes = [row['size'] for row in rows('--device', 'shmem', '--size', '8,4K,4KiB,0.01mb')]
    assert sizes == [8, 4096, 4096, 10485], sizes
    memory, = rows('--memory')
    assert memory['bytes_a_peer'] <= 64 and memory['total_kb'] <= 512 + 64 * 1000 / 1024
    hits, = rows('--device', 'shmem', '--hits', '--size', '8192')
    assert all(hits[f'write_hit_{percent}_mb_s'] > 0 for percent in (100, 50, 0)) and hits['write_vs_message'] > 0
    for wrong in (['--device', 'wire'], ['--size', '0'], ['--size', '5M'], ['--size', '1X'], ['--loss', '99'], ['--auth', 'none'],
                  ['--device', 'shmem', '--garbage', '5'], ['--device', 'udp', '--rounds', 'x']):
        run(*wrong, *([] if '--device' in wrong else ['--device', 'udp']), code=125)


def network():
    if os.geteuid() != 0:
        sys.exit(77)
    for device in 'udp', 'ethernet':
        check_rows(device, [8, 20_000])
    garbage, = rows('--device', 'udp', '--garbage', '20000')
    assert garbage['garbage_frames_s'] > 0 and garbage['goodput_vs_elsewhere'] > 0
    assert garbage['raw_elsewhere_vs_clean'] > 0 and garbage['tcp_elsewhere_vs_clean'] > 0
    garbage, = rows('--device', 'ethernet', '--garbage', '20000')
    assert garbage['goodput_vs_clean'] > 0 and garbage['goodput_vs_elsewhere'] > 0
    auth, = rows('--device', 'udp', '--auth', 'compare', '--size', '1000')
    assert auth['one_way_tag_vs_key'] > 0
    loss, = rows('--device', 'udp', '--loss', '1', '--cut')
    assert loss['lost'] == 'frames' and loss['bandwidth_vs_lossless'] > 0 and loss['bandwidth_vs_unfiltered'] > 0


def plot():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / 'pm.svg'
        words = ['--plot', str(path), '--device', 'shmem', '--size', '4,4096', '--rounds', '1', '--count', '30']
        result = subprocess.run([SCBENCH, 'pm', *words], capture_output=True, text=True, timeout=600)
        if result.returncode == 77:
            print(result.stderr)
            sys.exit(77)
        assert result.returncode == 0, result.stderr
        text = path.read_text()
        assert '<svg' in text and len(text) > 10_000


{'shmem': shmem, 'network': network, 'plot': plot}[CASE]()
