"""A cluster of booted machines: one head, nodes, a login node, two users with different rights."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess

from bed import Bed, wait_until

BIN = pathlib.Path(os.environ.get('SCORE_BIN', 'build/release/bin')).resolve()
EXAMPLES = pathlib.Path(os.environ.get('SCORE_EXAMPLES', BIN.parent / 'examples')).resolve()
PACKAGES = pathlib.Path(os.environ.get('SCORE_PACKAGES', BIN.parent.parent / 'packages')).resolve()
USERS = {'alice': 2001, 'bob': 2002}  # bob is an operator
NODES = 'node[00-01],login'
OF_HEAD = ['scored-head', 'scored-common', 'scored-client', 'libpm1']
OF_NODE = ['scored-node', 'scored-common', 'scored-client', 'libpm1', 'libpm-fi1']

# Of the node daemon, before there was scored-jobs.service, in what concerns cgroups.
FORMER_UNIT = '''[Unit]
After=scored-launcher.service
Requires=scored-launcher.service
[Service]
Type=notify
ExecStart=/usr/sbin/scored --role=node --config /etc/scored/scored.toml
User=scored-node
Group=scored-node
Restart=always
KillMode=process
Delegate=yes
TasksMax=infinity
RuntimeDirectory=scored-node
RuntimeDirectoryPreserve=yes
'''


def packages(directory=PACKAGES):
    """The packages to install, if they are there and have the program that sets a host up."""
    found = sorted(directory.glob('*.deb'))
    listed = [subprocess.run(['dpkg-deb', '-c', package], capture_output=True, text=True, check=True).stdout
              for package in directory.glob('scored-common_*.deb')]
    return found if any('/scored-setup\n' in files for files in listed) else []


def way():
    """How the machines get the programs."""
    if packages():
        return f'the packages in {PACKAGES}'
    return f'cmake --install {BIN.parent} (no packages with scored-setup in {PACKAGES})'


def installed_files(directory, found=None):
    """Fills a directory with what machines get the programs from, as a layer below their own files: the packages, or
    the files that `cmake --install` puts on a host."""
    os.chmod(directory, 0o755)
    if found := found or packages():
        (directory / 'packages').mkdir()
        for package in found:
            shutil.copy(package, directory / 'packages')
        return
    subprocess.run(['cmake', '--install', BIN.parent, '--prefix', '/usr'], check=True, capture_output=True,
                   env=os.environ | {'DESTDIR': str(directory)})
    # A directory here would hide the base system's link to /usr/lib.
    shutil.copytree(directory / 'lib', directory / 'usr/lib', dirs_exist_ok=True)
    shutil.rmtree(directory / 'lib')


def install(machine, names):
    """The one command by which an administrator installs these packages."""
    if packages():
        files = [f'/packages/{name}_*.deb' for name in names]
        machine.run('sh', '-c', 'apt-get install -q -y --no-install-recommends ' + ' '.join(files))
        return
    machine.run('systemd-sysusers')
    machine.run('systemd-tmpfiles', '--create', 'scored.conf')
    machine.run('journalctl', '--update-catalog')
    machine.run('systemctl', 'daemon-reload')
    machine.run('ldconfig')


def add_users(machine):
    for name, uid in USERS.items():
        machine.run('useradd', '--create-home', '--shell', '/bin/bash', '--uid', uid, name)
    machine.run('groupadd', '--force', '--system', 'scored-admin')
    machine.run('usermod', '--append', '--groups', 'scored-admin', 'bob')


def node_lines(printed):
    """The lines that scored-setup printed for the nodes, by node."""
    lines = [line.strip() for line in printed.splitlines() if line.startswith('  scored-setup node ')]
    return {line.split()[-1].split(':')[0]: line for line in lines}


class BootedCluster:
    def __init__(self, base, installed, of_nodes=None):
        """installed: the layer that installed_files() has filled. of_nodes: such a layer and a base for all but the head."""
        self.bed = Bed([installed, base])
        self.head = self.bed.machine('head')
        self.nodes = [self.bed.machine('node00', of_nodes), self.bed.machine('node01', of_nodes)]
        self.login = self.bed.machine('login', of_nodes)
        self.machines = [self.head, *self.nodes, self.login]

    def boot(self):
        """The machines with programs and users, and no configuration."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(self.boot_one, self.machines))

    def boot_one(self, machine):
        machine.boot()
        add_users(machine)
        install(machine, OF_HEAD if machine is self.head else OF_NODE)

    def set_up(self):
        """As the documents say: one command on the head, one on each node."""
        done = self.head.run('scored-setup', 'head', '--nodes', NODES, '--login-nodes', 'login')
        for name, line in node_lines(done.stdout).items():
            self.bed.machines[name].run('sh', '-c', line + (' --login' if name == 'login' else ''))
        self.wait_for_nodes()
        self.head.run('scadm', 'drain', 'login', '-m', 'login node')

    def wait_for_nodes(self):
        wait_until(lambda: set(self.states().values()) == {'up'}, 'all nodes are up')

    def states(self):
        """By node."""
        return {node['node']: node['state'] for node in self.head.json('scnodes')['nodes']}

    def submit(self, user, *words):
        """A detached job; gives its id."""
        return int(self.head.run('scrun', '--detach', *words, user=user).stdout)

    def job(self, job):
        return self.head.json('score', 'job', job)['job']

    def wait_for(self, job, state):
        wait_until(lambda: self.job(job)['state'] == state, f'job {job} is {state}')

    def wait_for_end(self, job, state):
        wait_until(lambda: self.job(job)['final'], f'job {job} ends')
        assert self.job(job)['state'] == state, self.head.json('score', 'job', job)['events']

    def close(self):
        self.bed.close()
