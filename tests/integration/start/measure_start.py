#!/usr/bin/env python3
"""Time from `score start` to the end of its first job, and until nothing is left; on pretended hosts (lan.py).

usage: SCORE_BIN=build/release/bin measure_start.py HOSTS REPEATS [OPTION of score start]...
"""
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / 'support'), str(HERE.parents[2] / 'bench/support')]
import lan  # noqa: E402


def main():
    count, repeats, *options = sys.argv[1:]
    network = lan.Lan(int(count))
    first, whole = [], []
    try:
        for _ in range(int(repeats)):
            began = time.time()
            result = network.start(*options, '--', 'sh', '-c', f'scrun -N {count} true && date +%s.%N')
            first.append(float(result.stdout) - began)
            whole.append(time.time() - began)
    finally:
        network.close()
    for name, times in [('first job', first), ('all', whole)]:
        print(f'{count} hosts, {name}: median {statistics.median(times):.2f} s, {min(times):.2f} to {max(times):.2f} s')


if __name__ == '__main__':
    main()
