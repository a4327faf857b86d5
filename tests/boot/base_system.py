"""The Debian that the machines of a test boot: made once by debootstrap from the mirror that this host's apt uses,
kept in the user's cache directory, never written to afterwards (each machine has an overlay on it)."""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

SUITE = 'bookworm'  # the machines' suite unless a test asks for another
# What the packages of Scored depend on, two MPI libraries, and what the tests use. Machines have no way to a mirror,
# so a dependency that is missing here fails the installation of the packages, and apt names it.
PACKAGES = [
    'adduser', 'apt-utils', 'bash-completion', 'ca-certificates', 'curl', 'dbus', 'fuse3', 'init-system-helpers', 'iproute2',
    'iputils-ping', 'libdw1', 'libfabric1', 'liblmdb0', 'libmpich12', 'libopenmpi3', 'libpmix2', 'libprometheus-cpp-core1.0', 'libsqlite3-0',
    'libncursesw6', 'libsystemd0', 'liburing2', 'nftables', 'openssl', 'procps', 'python3-minimal', 'systemd', 'systemd-sysv']
RENAMED = {'trixie': {'libopenmpi3': 'libopenmpi40', 'libpmix2': 'libpmix2t64'}}


class CannotMake(Exception):
    """No base system here; the text says why and what to do."""


def cache_directory():
    root = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    return pathlib.Path(root) / 'scored' / 'boot'


def mirror():
    """The address from which this host's apt gets Debian, of whatever release."""
    form = '$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)'
    listed = subprocess.run(['apt-get', 'indextargets', '--format', form, 'Identifier: Packages'],
                            capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        origin, codename, component, address = line.split('|')
        if (origin, component) == ('Debian', 'main') and '-' not in codename:
            return address
    raise CannotMake("this host's apt has no source of Debian: add one, then run apt-get update")


def make(suite, packages, directory):
    """Makes a system with these packages. An interrupted call leaves nothing in the directory."""
    if not shutil.which('debootstrap'):
        raise CannotMake('debootstrap is not installed: apt-get install debootstrap')
    unfinished = directory.with_name('unfinished')
    shutil.rmtree(unfinished, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    log = directory.with_name('debootstrap.log')
    command = ['debootstrap', '--variant=minbase', f'--include={",".join(packages)}', suite, unfinished, mirror()]
    with open(log, 'wb') as out:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                check=False).returncode
    if status != 0:
        raise CannotMake(f'debootstrap failed with status {status}; its messages: {log}')
    for archive in (unfinished / 'var/cache/apt/archives').glob('*.deb'):
        archive.unlink()
    unfinished.rename(directory)


def base_system(suite=SUITE):
    """The directory of the base system; makes it if this list of packages was not made before."""
    packages = [RENAMED.get(suite, {}).get(package, package) for package in PACKAGES]
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    name = suite + '-' + hashlib.sha256(' '.join(packages).encode()).hexdigest()[:12]
    with open(cache / 'lock', 'w') as lock:  # two test runs make it once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / name).exists():
            make(suite, packages, cache / name)
    return cache / name


if __name__ == '__main__':  # SUITE DIRECTORY: a small system, for packaging/elsewhere_SUITE.sh
    try:
        make(sys.argv[1], ['ca-certificates'], pathlib.Path(sys.argv[2]))
    except CannotMake as problem:
        sys.exit(f'elsewhere: {problem}')
