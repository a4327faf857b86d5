"""Trees of real programs on the mount: venv, tar, cp -a, git, lock files, links, names."""
import contextlib
import filecmp
import multiprocessing
import os
import shutil
import signal
import socket
import stat
import sys
import threading
import time

import pytest
from mounts import REQUIRED, Mount
from two_mounts import EXCHANGE, LIBC, LIMIT, NOREPLACE, call, folder, has_kernel, mounts, other, rename2, run, volume  # noqa: F401
from volumes import Servers, errno_of, make_temporary

pytestmark = REQUIRED
AT_SYMLINK_FOLLOW = 0x400


def make_tree(top):
    """Files, links, special files, modes and times, as a system tree has them."""
    (top / 'bin').mkdir(parents=True)
    (top / 'bin/tool').write_bytes(os.urandom(200_000))
    (top / 'bin/tool').chmod(0o4755)
    (top / 'bin/name').symlink_to('tool')
    (top / 'bin/dangling').symlink_to('/no/such/place')
    os.link(top / 'bin/tool', top / 'bin/same')
    (top / 'empty').touch()
    os.mkfifo(top / 'fifo', 0o640)
    (top / 'shared').mkdir()
    (top / 'shared').chmod(0o3775)
    (top / 'deep/er').mkdir(parents=True)
    (top / 'deep/er/up').symlink_to('../../bin')
    os.setxattr(top / 'empty', 'user.note', b'kept')
    os.utime(top / 'empty', ns=(1_111_111_111_123_456_789, -5_000_000_001))
    os.utime(top / 'bin/name', ns=(3, 4), follow_symlinks=False)


def facts_of(top):
    """Everything about a tree that a copy must have."""
    facts, numbers = {}, {}
    for path in sorted(top.rglob('*')):
        status = path.lstat()
        name = str(path.relative_to(top))
        links = numbers.setdefault(status.st_ino, name) if stat.S_ISREG(status.st_mode) else None
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        values = {value: os.getxattr(path, value) for value in os.listxattr(path, follow_symlinks=False)} if path.is_file() else None
        time_ns = None if path.is_dir() and not path.is_symlink() else status.st_mtime_ns
        facts[name] = (status.st_mode, links, content, values, time_ns)
    return facts


def test_tree_is_as_made_on_both_mounts(folder, other, tmp_path):
    make_tree(tmp_path / 'tree')
    make_tree(folder / 'tree')
    here, there = facts_of(folder / 'tree'), facts_of(other / 'tree')
    assert here == there
    local = facts_of(tmp_path / 'tree')
    assert {name: (mode, links) for name, (mode, links, *_) in here.items()} == {
        name: (mode, links) for name, (mode, links, *_) in local.items()}
    assert (folder / 'tree/bin/tool').stat().st_nlink == 2
    assert (folder / 'tree/bin/name').lstat().st_size == len('tool')
    assert (folder / 'tree/empty').stat().st_atime_ns == 1_111_111_111_123_456_789


def test_tar_and_cp_keep_everything(folder, other, tmp_path):
    source = tmp_path / 'source'
    make_tree(source)
    run('cp', '-a', source, folder / 'copied')
    run('tar', '--xattrs', '-cf', tmp_path / 'a.tar', '-C', source, '.')
    (folder / 'unpacked').mkdir()
    run('tar', '--xattrs', '--xattrs-include=user.*', '-xpf', tmp_path / 'a.tar', '-C', folder / 'unpacked')
    run('tar', '-C', other / 'copied', '-cf', tmp_path / 'b.tar', '.')
    assert facts_of(other / 'copied') == facts_of(source)
    assert facts_of(other / 'unpacked') == facts_of(source)
    run('rm', '-r', folder / 'copied', folder / 'unpacked')
    assert os.listdir(other) == []


def test_system_tree_is_packed_and_unpacked(folder, tmp_path):
    """A part of this system's own tree, with its links."""
    archive = tmp_path / 'system.tar'
    parts = [part for part in ('etc/alternatives', 'etc/ssl', 'usr/share/zoneinfo/America') if os.path.isdir(f'/{part}')]
    run('tar', '-cf', archive, '-C', '/', *parts)
    run('tar', '-xpf', archive, '-C', folder)
    run('tar', '-df', archive, '-C', folder)


def test_python_environment_works(folder):
    run(sys.executable, '-m', 'venv', '--without-pip', folder / 'env')
    assert (folder / 'env/bin/python').is_symlink()
    assert run(folder / 'env/bin/python', '-c', 'import sys; print(sys.prefix)').strip() == str(folder / 'env')


@pytest.mark.skipif(not shutil.which('git'), reason='git is not installed')
def test_git_works(folder):
    own = {'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_CONFIG_NOSYSTEM': '1', 'HOME': str(folder)}
    for kind in ('AUTHOR', 'COMMITTER'):
        own |= {f'GIT_{kind}_NAME': 'a', f'GIT_{kind}_EMAIL': 'a@b'}
    (folder / 'r').mkdir()

    def git(*words, at='r'):
        return run('git', *words, cwd=folder / at, env=os.environ | own)

    git('init', '-q')
    (folder / 'r/f').write_text('\n'.join(str(i) for i in range(20_000)))
    (folder / 'r/l').symlink_to('f')
    git('add', '.')
    git('commit', '-qm', 'one')
    git('checkout', '-qb', 'side')
    git('gc', '-q')
    git('clone', '-q', '.', '../clone')
    git('fsck', '--strict', at='clone')
    assert git('status', '--porcelain', at='clone') == ''
    assert os.readlink(folder / 'clone/l') == 'f'
    assert filecmp.cmp(folder / 'r/f', folder / 'clone/f', shallow=False)


def take_lock(lock, own, turns, counter):
    """The way of mail programs: link(2) of an own file to the name of the lock."""
    own.touch()
    for _ in range(turns):
        while errno_of(os.link, own, lock):
            time.sleep(0.001)
        value = int(counter.read_text())
        counter.write_text(str(value + 1))
        lock.unlink()


def test_lock_files_exclude_each_other(folder, other):
    (folder / 'counter').write_text('0')
    context = multiprocessing.get_context('fork')
    workers = [context.Process(target=take_lock, args=(one / 'lock', one / f'own{i}', 25, one / 'counter'))
               for i, one in enumerate((folder, other, folder, other))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LIMIT)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert (other / 'counter').read_text() == '100'


def test_links_count_and_keep_file(folder, other):
    (folder / 'a').write_text('text')
    for i in range(5):
        os.link(folder / 'a', folder / f'b{i}')
    assert (other / 'b3').stat().st_nlink == 6
    assert errno_of(os.link, folder / 'a', folder / 'b0') == 'EEXIST'
    assert errno_of(os.link, folder, folder / 'directory') == 'EPERM'
    os.rename(folder / 'a', folder / 'b0')  # names of one file: nothing happens
    assert (folder / 'a').exists()
    (folder / 'new').write_text('new')
    os.rename(folder / 'new', folder / 'b1')
    assert (folder / 'a').stat().st_nlink == 5
    with open(folder / 'b2', 'r+') as opened:
        for name in ('a', 'b0', 'b2', 'b3'):
            os.unlink(folder / name)
        assert os.fstat(opened.fileno()).st_nlink == 1
        os.unlink(folder / 'b4')
        assert os.fstat(opened.fileno()).st_nlink == 0
        assert opened.read() == 'text'
        opened.write(' more')
        opened.flush()
        opened.seek(0)
        assert opened.read() == 'text more'
    assert os.listdir(other) == ['b1']


def test_links_beside_removal_lose_no_file(folder, other):
    """While names come and go on both mounts, the file stays until the last one is gone."""
    (folder / 'file').write_text('kept')

    def work(root, tag):
        for i in range(60):
            os.link(root / 'file', root / f'{tag}{i}')
            assert (root / f'{tag}{i}').read_text() == 'kept'
            os.unlink(root / f'{tag}{i}')

    threads = [threading.Thread(target=work, args=(root, tag)) for root, tag in ((folder, 'a'), (other, 'b'), (folder, 'c'))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(1.1)  # the kernel's attributes
    assert (folder / 'file').stat().st_nlink == 1
    assert (other / 'file').read_text() == 'kept'


def test_symbolic_links_are_followed_and_loop(folder, other):
    (folder / 'd').mkdir()
    (folder / 'd/f').write_text('x')
    (folder / 'way').symlink_to('d')
    assert (other / 'way/f').read_text() == 'x'
    (folder / 'one').symlink_to('two')
    (folder / 'two').symlink_to('one')
    assert errno_of(open, folder / 'one') == 'ELOOP'
    assert errno_of(os.symlink, 'x' * 4096, folder / 'long') == 'ENAMETOOLONG'
    longest = 'x/' * 2047
    os.symlink(longest, folder / 'long')
    assert os.readlink(other / 'long') == longest
    os.rename(folder / 'way', folder / 'path')
    os.unlink(folder / 'path')
    assert (folder / 'd/f').exists()


def test_fifo_and_socket_by_name(folder):
    os.mkfifo(folder / 'fifo')
    writer = multiprocessing.get_context('fork').Process(target=lambda: (folder / 'fifo').write_text('through'))
    writer.start()
    assert (folder / 'fifo').read_text() == 'through'
    writer.join()
    with contextlib.ExitStack() as stack:
        os.chdir(folder)  # names of sockets are short
        stack.callback(os.chdir, '/')
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind('socket')
        server.listen()
        client = stack.enter_context(socket.socket(socket.AF_UNIX))
        client.connect('socket')
        assert stat.S_ISSOCK(os.stat('socket').st_mode)
    assert errno_of(os.mknod, folder / 'device', stat.S_IFCHR | 0o600, os.makedev(1, 3)) == 'EPERM'


def test_extended_attributes(folder, other):
    path = folder / 'f'
    path.touch()
    os.setxattr(path, 'user.small', b'v')
    os.setxattr(path, 'user.big', b'x' * 32_768)
    assert os.getxattr(other / 'f', 'user.big') == b'x' * 32_768
    assert sorted(os.listxattr(other / 'f')) == ['user.big', 'user.small']
    assert errno_of(os.setxattr, path, 'user.small', b'w', os.XATTR_CREATE) == 'EEXIST'
    assert errno_of(os.setxattr, path, 'user.none', b'w', os.XATTR_REPLACE) == 'ENODATA'
    assert errno_of(os.setxattr, path, 'user.huge', b'x' * 40_000) == 'E2BIG'
    assert errno_of(os.setxattr, path, 'trusted.x', b'') in ('ENOTSUP', 'EPERM')
    os.removexattr(path, 'user.big')
    assert os.listxattr(other / 'f') == ['user.small']
    assert errno_of(os.getxattr, other / 'f', 'user.big') == 'ENODATA'


def test_setgid_directory_gives_its_group(folder, other):
    groups = [group for group in os.getgroups() if group != os.getegid()] or ([1234] if os.geteuid() == 0 else [])
    if not groups:
        pytest.skip('this user has one group')
    (folder / 'd').mkdir()
    os.chown(folder / 'd', -1, groups[0])
    (folder / 'd').chmod(0o2775)
    (folder / 'd/f').touch()
    (folder / 'd/sub').mkdir()
    (folder / 'd/l').symlink_to('f')
    for name in ('f', 'sub', 'l'):
        assert (other / 'd' / name).lstat().st_gid == groups[0]
    assert (other / 'd/sub').stat().st_mode & stat.S_ISGID
    assert errno_of(os.chown, folder / 'd/f', os.geteuid() + 1, -1) == 'EPERM'
    (folder / 'plain').touch()
    assert (folder / 'plain').stat().st_gid == os.getegid()


@pytest.mark.skipif(not has_kernel(6, 2), reason='Linux before 6.2 has no O_TMPFILE on FUSE')
def test_unnamed_file_gets_name(folder, other):
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, b'secret')
    assert os.fstat(fd).st_nlink == 0 and os.listdir(folder) == []
    call(LIBC.linkat, -100, f'/proc/self/fd/{fd}'.encode(), -100, os.fsencode(folder / 'named'), AT_SYMLINK_FOLLOW)
    os.close(fd)
    assert (other / 'named').read_bytes() == b'secret'
    assert (other / 'named').stat().st_nlink == 1
    os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o640))
    assert os.listdir(other) == ['named']


def test_names_are_exchanged_and_not_replaced(folder, other):
    (folder / 'd').mkdir()
    for i in range(8):  # names of various servers
        (folder / f'a{i}').write_text('one')
        (folder / f'd/b{i}').write_text('two')
        assert errno_of(rename2, folder / f'a{i}', folder / f'd/b{i}', NOREPLACE) == 'EEXIST'
        rename2(folder / f'a{i}', folder / f'd/b{i}', EXCHANGE)
        assert ((other / f'a{i}').read_text(), (other / f'd/b{i}').read_text()) == ('two', 'one')
        rename2(folder / f'a{i}', folder / f'new{i}', NOREPLACE)
    assert errno_of(rename2, folder / 'new0', folder / 'none', EXCHANGE) == 'ENOENT'
    rename2(folder / 'new0', folder / 'd', EXCHANGE)
    assert (folder / 'd').read_text() == 'two' and len(os.listdir(folder / 'new0')) == 8
    assert sorted(os.listdir(other)) == sorted(['d', *(f'new{i}' for i in range(8))])


def test_many_names_in_one_directory(folder):
    count = 3_000
    made = folder / 'many'
    made.mkdir()
    for i in range(count):
        os.close(os.open(made / f'name{i}', os.O_CREAT | os.O_WRONLY))
    seen = 0
    with os.scandir(made) as entries:
        for entry in entries:
            os.unlink(entry.path)
            seen += 1
    assert seen == count and os.listdir(made) == []
    made.rmdir()


def test_removed_server_process_keeps_links(tmp_path):
    """Links, targets and values are as durable as other names."""
    with make_temporary() as root:
        servers = Servers(root, 2)
        try:
            mount = Mount(servers.file, tmp_path / 'mount')
            try:
                top = mount.directory
                for i in range(20):
                    (top / f'f{i}').write_text(str(i))
                    os.link(top / f'f{i}', top / f'l{i}')
                    (top / f's{i}').symlink_to(f'f{i}')
                    os.setxattr(top / f'f{i}', 'user.i', str(i).encode())
                for index in range(2):
                    servers.processes[index].send_signal(signal.SIGKILL)
                    servers.processes[index].wait()
                    servers.start(index)
                time.sleep(1.1)
                for i in range(20):
                    assert (top / f's{i}').read_text() == str(i)
                    assert (top / f'l{i}').stat().st_nlink == 2
                    assert os.getxattr(top / f'l{i}', 'user.i') == str(i).encode()
            finally:
                mount.stop()
        finally:
            servers.stop()
