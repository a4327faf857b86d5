"""Nodes that hang, and networks that lose, repeat and delay: of a cluster with --netns, as root, with nftables."""
import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess

import pytest

LATE = pathlib.Path(__file__).with_name('send_again.py')


def in_network_of(node, *words):
    return ['nsenter', '-t', str(node['pid']), '-n', *map(str, words)]


def need_nftables():
    for program in ('ip', 'nft', 'nsenter'):
        if shutil.which(program) is None:
            pytest.skip(f'needs {program}')


def nft(node, words):
    done = subprocess.run(in_network_of(node, 'nft', words), capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f'nftables cannot do: {words}: {done.stderr}')


@contextlib.contextmanager
def stopped(node):
    os.kill(node['pid'], signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(node['pid'], signal.SIGCONT)


@contextlib.contextmanager
def cut_off(node):
    """Nothing arrives any more, and neither side notices a closed connection."""
    nft(node, 'add table netdev cut')
    nft(node, 'add chain netdev cut in { type filter hook ingress device eth0 priority 0; }')
    nft(node, 'add rule netdev cut in drop')
    yield
    nft(node, 'delete table netdev cut')


@contextlib.contextmanager
def parted(node):
    """Nothing arrives and nothing leaves, and neither side notices."""
    nft(node, 'add table inet parted')
    for hook in ('input', 'output'):
        nft(node, f'add chain inet parted {hook} {{ type filter hook {hook} priority 0; policy drop; }}')
    yield
    nft(node, 'delete table inet parted')


@contextlib.contextmanager
def muted(node):
    """Nothing leaves any more; what is sent to the node arrives."""
    nft(node, 'add table inet muted')
    nft(node, 'add chain inet muted output { type filter hook output priority 0; policy drop; }')
    yield
    nft(node, 'delete table inet muted')


@contextlib.contextmanager
def without(node, protocol, percent=100):
    """So much of what this protocol (tcp, udp) sends from and to the node is lost."""
    some = f'numgen random mod 100 < {percent}' if percent < 100 else ''
    nft(node, f'add table inet no_{protocol}')
    for hook in ('input', 'output'):
        nft(node, f'add chain inet no_{protocol} {hook} {{ type filter hook {hook} priority 0; }}')
        nft(node, f'add rule inet no_{protocol} {hook} meta l4proto {protocol} {some} drop')
    yield
    nft(node, f'delete table inet no_{protocol}')


@contextlib.contextmanager
def repeated(node, percent):
    """So many of the datagrams that the node sends are sent again, up to 3 ms later: after some that followed them."""
    sender = subprocess.Popen(in_network_of(node, 'python3', LATE, percent))
    yield
    sender.terminate()
    assert sender.wait() == -15, 'it ran until now'


@contextlib.contextmanager
def small_disk(cluster, size):
    """The head's directory is a file system of its own; gives the file that fills it."""
    directory = cluster.directory / 'head'
    cluster.kill('head')
    copy = cluster.directory / 'copy'
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns('*.sock'))
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size},mode=700', 'none', str(directory)])
    if mounted.returncode != 0:
        pytest.skip('cannot mount')
    try:
        shutil.copytree(copy, directory, dirs_exist_ok=True)
        with contextlib.closing(sqlite3.connect(directory / 'jobs.db')) as store:
            store.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        cluster.restart('head')
        cluster.wait_up()
        yield directory / 'filler'
    finally:
        cluster.kill('head')
        subprocess.run(['umount', '-l', str(directory)], check=True)
