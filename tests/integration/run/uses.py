"""Uses processor time, memory and disk as its arguments say, then prints what it used: CPU MEMORY WRITTEN of this process alone.

    python3 uses.py SECONDS MEGABYTES WRITES-MEGABYTES [FILE]
"""
import os
import resource
import sys

seconds, megabytes, writes = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
memory = bytearray(megabytes << 20)
for at in range(0, len(memory), 4096):
    memory[at] = 1
if writes:
    with open(sys.argv[4], 'wb') as file:
        for _ in range(writes):
            file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


while used() < seconds:
    pass
print(used(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, writes << 20, flush=True)
os._exit(0)
