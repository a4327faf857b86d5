"""A cluster of booted machines: one head, nodes, a login node, two users with different rights."""
import os
import pathlib
import shutil
import subprocess

from bed import NETWORK, Bed, wait_until

BIN = pathlib.Path(os.environ.get('SCORE_BIN', 'build/release/bin')).resolve()
EXAMPLES = pathlib.Path(os.environ.get('SCORE_EXAMPLES', BIN.parent / 'examples')).resolve()
PACKAGES = pathlib.Path(os.environ.get('SCORE_PACKAGES', BIN.parent.parent / 'packages')).resolve()
USERS = {'alice': 2001, 'bob': 2002}  # bob is an operator

CONFIGURATION = """[head]
cluster = "booted"
nodes = "node[00-01]"
listen = "0.0.0.0:7421"
[node]
cluster = "booted"
head = "head:7421"
"""


def packages():
    return sorted(PACKAGES.glob('*.deb'))


def way():
    """How the machines get the programs."""
    return f'packages of {PACKAGES}' if packages() else f'cmake --install {BIN.parent} (no packages in {PACKAGES})'


def install_tree(directory):
    """The files that `cmake --install` would put on a host, as a layer below the machines' own files."""
    subprocess.run(['cmake', '--install', BIN.parent, '--prefix', '/usr'], check=True, capture_output=True,
                   env=os.environ | {'DESTDIR': str(directory)})
    # A directory here would hide the base system's link to /usr/lib.
    shutil.copytree(directory / 'lib', directory / 'usr/lib', dirs_exist_ok=True)
    shutil.rmtree(directory / 'lib')


class BootedCluster:
    def __init__(self, base, directory):
        """directory: an empty one, for the layer of installed files."""
        os.chmod(directory, 0o755)
        if not packages():
            install_tree(directory)
        self.bed = Bed([directory, base])
        self.head = self.bed.machine('head')
        self.nodes = [self.bed.machine('node00'), self.bed.machine('node01')]
        self.login = self.bed.machine('login')
        self.machines = [self.head, *self.nodes, self.login]

    def boot(self):
        for machine in self.machines:
            machine.boot()
            self.add_users(machine)
            self.install(machine)

    def add_users(self, machine):
        for name, uid in USERS.items():
            machine.run('useradd', '--create-home', '--shell', '/bin/bash', '--uid', uid, name)
        machine.run('groupadd', '--force', '--system', 'scored-admin')
        machine.run('usermod', '--append', '--groups', 'scored-admin', 'bob')

    def install(self, machine):
        if not packages():
            machine.run('systemd-sysusers')
            machine.run('systemd-tmpfiles', '--create', 'scored.conf')
            machine.run('journalctl', '--update-catalog')
            machine.run('systemctl', 'daemon-reload')
            machine.run('ldconfig')

    def configure(self):
        """The first job's way by hand."""
        for machine in self.machines:
            machine.write('/etc/scored/scored.toml', CONFIGURATION)
        as_daemon = ['setpriv', '--reuid=scored', '--regid=scored', '--clear-groups', 'env', '--chdir=/var/lib/scored']
        self.head.run('install', '-d', '-o', 'scored', '-g', 'scored', '-m', '700', '/var/lib/scored')
        self.head.run(*as_daemon, 'scored', '--role=head', '--new-key')
        self.head.write('/etc/systemd/system/scored-head.service.d/network.conf',
                        f'[Service]\nIPAddressAllow={NETWORK}0/24\n')
        self.head.run('systemctl', 'daemon-reload')
        self.head.run('systemctl', 'enable', '--now', 'scored-head')
        for node in self.nodes:
            self.head.run(*as_daemon, 'scored', '--role=head', '--node-key', node.name)
            key = self.head.read(f'/var/lib/scored/{node.name}.key')
            node.write('/etc/scored/node.key', key, mode='600')
            node.run('chown', 'scored:scored', '/etc/scored/node.key')
            node.run('systemctl', 'enable', '--now', 'scored-node')
        self.wait_for_nodes()

    def wait_for_nodes(self):
        wait_until(lambda: self.states() == {'up'}, 'all nodes are up')

    def states(self):
        nodes = self.head.json('scnodes')['nodes']
        return {node['state'] for node in nodes}

    def close(self):
        self.bed.close()
