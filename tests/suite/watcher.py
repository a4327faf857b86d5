#!/usr/bin/env python3
"""An ordinary program that sleeps 10 ms again and again, to see whether the machine still runs ordinary programs.

It prints one line of JSON each time it is NOTICE late: when (CLOCK_MONOTONIC), how late, and the cause, from the kernel's own accounts:

- waited: it was ready to run and other threads had the processors (second number of /proc/self/schedstat)
- stolen: the hypervisor ran other machines (steal of /proc/stat, the processor that lost most)
- still:  the rest; nothing had the processor instead. The machine was stopped, or its timers were blocked

Only what it waited, less what was stolen meanwhile, is starvation."""
import contextlib
import json
import os
import sys
import time

PERIOD, NOTICE = 0.01, 0.25
TICK = os.sysconf('SC_CLK_TCK')


def waited():
    """Seconds on the run queue so far; None where the kernel does not count them."""
    try:
        with open('/proc/self/schedstat', encoding='ascii') as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):
        return None


def stolen():
    """Seconds so far, of each processor."""
    with open('/proc/stat', encoding='ascii') as file:
        lines = [line.split() for line in file if line.startswith('cpu') and line[3].isdigit()]
    return [int(words[8]) / TICK for words in lines]


def judge(late, waiting, stealing):
    """The cause, and the seconds of starvation."""
    if waiting is None:
        return 'unknown', 0.0
    starved = max(0.0, min(waiting, late) - stealing)
    parts = {'starved': starved, 'stolen': min(stealing, late), 'still': late - min(waiting, late)}
    return max(parts, key=parts.get), starved


def main():
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    parent = os.getppid()
    then, before, thefts = time.monotonic(), waited(), stolen()
    looked = then
    while os.getppid() == parent:
        time.sleep(PERIOD)
        now = time.monotonic()
        late = now - then - PERIOD
        if late > NOTICE:
            after, stealing = waited(), stolen()
            waiting = None if after is None else after - before
            cause, starved = judge(late, waiting, max((b - a for a, b in zip(thefts, stealing)), default=0.0))
            print(json.dumps({'at': now, 'late': late, 'cause': cause, 'starved': starved}), flush=True)
        if late > NOTICE or now - looked > 0.2:
            looked, before, thefts = now, waited(), stolen()
        then = time.monotonic()


if __name__ == '__main__':
    sys.exit(main())
