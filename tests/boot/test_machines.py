"""The harness itself: machines boot, reach each other, reboot, lose power and their cable, and leave nothing."""
import os
import pathlib
import subprocess

import bed


def traces():
    """Returns what a bed could leave on the host. Other tests make and remove links and mounts meanwhile, so only names of beds count."""
    links = subprocess.run(['ip', '-o', 'link'], capture_output=True, text=True, check=True).stdout
    mounts = pathlib.Path('/proc/mounts').read_text()
    cgroups = subprocess.run(
        ['unshare', '--mount', 'sh', '-c', 'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && '
         f'ls -d /sys/fs/cgroup/scored-boot-{os.getpid()}-* || true'], capture_output=True, text=True,
        check=True).stdout
    propagated = sorted(pathlib.Path('/run/systemd/nspawn').glob('**/*'))
    names = [line.split(': ')[1].split('@')[0] for line in links.splitlines()]
    return ([name for name in names if name == 'lan' or name.startswith(('vb-', 've-'))],
            [line for line in mounts.splitlines() if 'nspawn' in line or line.split()[1].startswith('/mnt')], cgroups, propagated)


def reaches(machine, other):
    return machine.run('ping', '-c', '1', '-W', '1', other.name, code=None).returncode == 0


def test_machines_run_systemd_on_a_network_of_their_own(empty_bed):
    one, two = empty_bed.machine('one'), empty_bed.machine('two')
    for machine in (one, two):
        machine.boot()
        assert machine.read('/proc/1/comm') == 'systemd\n'
        assert machine.read('/etc/hostname') == machine.name + '\n'
        assert 'cgroup2' in machine.read('/proc/mounts')
    bed.wait_until(lambda: reaches(one, two), 'one reaches two')
    two.cut()
    assert not reaches(one, two)
    two.heal()
    bed.wait_until(lambda: reaches(one, two), 'one reaches two again')

    one.write('/etc/kept', 'kept\n')
    one.reboot()
    assert one.read('/etc/kept') == 'kept\n'
    one.kill()
    one.boot()
    assert one.read('/etc/kept') == 'kept\n'
    bed.wait_until(lambda: reaches(one, two), 'one reaches two after its boots')


def test_a_closed_bed_leaves_nothing(base):
    before = traces()
    used = bed.Bed([base])
    machine = used.machine('short')
    machine.boot()
    leader = machine.leader()
    used.close()
    assert not pathlib.Path(f'/proc/{leader}').exists()
    assert traces() == before
