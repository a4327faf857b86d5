"""scbench io --parts mounts: compares a mount over PM by UDP with one over TCP, in turns, and the processor time of all processes."""
import contextlib
import mmap
import os
import random
import shutil
import subprocess
import sys
import time

RECORD, SMALL = 1 << 20, 4096
SMALL_PER_MB = 20
WAYS = ('tcp', 'udp')


def used_seconds(pid):
    """Returns the processor time of a process with all its threads, including those of io_uring."""
    fields = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Mount:
    def __init__(self, program, servers, way, megabytes):
        self.place = servers.root / f'mount-{way}'
        self.place.mkdir()
        self.server, self.megabytes = servers.processes[0].pid, megabytes
        self.process = subprocess.Popen([program, '--volume', servers.file, '--foreground', self.place], env=os.environ | {'PARIO_TRANSPORT': way})
        end = time.monotonic() + 30
        while not os.path.ismount(self.place):
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit('scbench io: cannot start the mount')
            time.sleep(0.02)
        self.fd = os.open(self.place / 'bench', os.O_RDWR | os.O_CREAT)

    def close(self):
        os.close(self.fd)
        subprocess.run([shutil.which('fusermount3'), '-u', self.place], check=False)
        self.process.wait()

    def run(self, what, size, memory):
        """Returns elapsed seconds and processor seconds."""
        places = range(0, self.megabytes * RECORD, RECORD) if size == RECORD else [
            random.randrange(self.megabytes * RECORD // SMALL) * SMALL for _ in range(SMALL_PER_MB * self.megabytes)]
        used = time.process_time() + used_seconds(self.server) + used_seconds(self.process.pid)
        begin = time.monotonic()
        for place in places:
            done = os.pwrite(self.fd, memory, place) if what == 'write' else os.preadv(self.fd, [memory], place)
            if done != size:
                sys.exit(f'scbench io: {what}: {done} bytes')
        took = time.monotonic() - begin
        return took, time.process_time() + used_seconds(self.server) + used_seconds(self.process.pid) - used


def measure(program, servers, options):
    """Returns lists of ratios by figure: PM's rate divided by TCP's, and its processor time divided by TCP's."""
    values = {}
    memories = {size: mmap.mmap(-1, size) for size in (RECORD, SMALL)}  # aligned: one request of FUSE per record
    with contextlib.ExitStack() as stack:
        mounts = {}
        for way in WAYS:
            mounts[way] = Mount(program, servers, way, options.megabytes)
            stack.callback(mounts[way].close)
        mounts['tcp'].run('write', RECORD, memories[RECORD])  # allocates
        for round_ in range(options.rounds):
            for what in ('read', 'write'):
                for size in (RECORD, SMALL):
                    got = {way: mounts[way].run(what, size, memories[size]) for way in (WAYS if round_ % 2 else WAYS[::-1])}
                    name = f'mount_udp_{what}_{"1m" if size == RECORD else "4k"}'
                    values.setdefault(f'{name}_vs_tcp', []).append(got['tcp'][0] / got['udp'][0])
                    if got['tcp'][1] > 0:
                        values.setdefault(f'{name}_cpu_vs_tcp', []).append(got['udp'][1] / got['tcp'][1])
    return values
