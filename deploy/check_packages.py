#!/usr/bin/env python3
"""Checks that every installed file belongs to one Debian package, so that the packages can be built and installed
together. Their build would find an error (dh_install, dh_missing, dpkg), but only after a whole compilation.
usage: check_packages.py SOURCE BUILD"""
import os
import pathlib
import subprocess
import sys
import tempfile

# These are not in every build: the page needs esbuild, and some programs need their libraries.
OPTIONAL = ('usr/share/scored/web', 'usr/bin/scored-pario-mount', 'usr/sbin/scored-pario', 'usr/share/man/man1/scored-pario-mount.1',
            'usr/share/man/man8/scored-pario.8', 'usr/libexec/scored/scbench-io')


def as_debian(root):
    """Moves libraries to the paths that a build for /usr uses."""
    libraries = root / 'usr/lib'
    if not (libraries / 'pkgconfig').exists():
        return
    (libraries / 'any').mkdir()
    for entry in [*libraries.glob('libpm*'), *libraries.glob('libpario*'), libraries / 'pkgconfig', *libraries.glob('libfabric')]:
        entry.rename(libraries / 'any' / entry.name)


def files_below(path):
    return {path} if path.is_symlink() or not path.is_dir() else {entry for entry in path.rglob('*') if entry.is_symlink() or not entry.is_dir()}


# Programs that hold something of the system and run as the users of jobs (ADR 0106), and the copies for `score start`.
UNREADABLE = ('libexec/scored/scored-shepherd', 'libexec/scored/scored-pmix', 'sbin/scored-pario', 'bin/scored-pario-mount')
READABLE = ('libexec/scored/bundle/scored-shepherd', 'libexec/scored/bundle/scored-pmix')


def wrong_modes(root):
    for names, mode in ((UNREADABLE, 0o711), (READABLE, 0o755)):
        for path in (root / 'usr' / name for name in names):
            if path.exists() and path.stat().st_mode & 0o777 != mode:
                yield f'/{path.relative_to(root)}: mode {path.stat().st_mode & 0o777:o}, not {mode:o}'


def patterns(path):
    lines = [line.strip() for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith('#') and ' ' not in line]


def main():
    source, build = pathlib.Path(sys.argv[1]), sys.argv[2]
    problems = []
    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place)
        subprocess.run(['cmake', '--install', build, '--prefix', '/usr'], env=os.environ | {'DESTDIR': place}, check=True,
                       stdout=subprocess.DEVNULL)
        problems += wrong_modes(root)
        as_debian(root)
        owners = {}
        for listing in [*sorted(source.glob('debian/*.install')), source / 'debian/not-installed']:
            for pattern in patterns(listing):
                found = set().union(*(files_below(path) for path in root.glob(pattern)))
                if not found and pattern not in OPTIONAL:
                    problems.append(f'{listing.name}: nothing matches {pattern}')
                for path in found:
                    owners.setdefault(path, set()).add(listing.name)
        for path in sorted(files_below(root)):
            names = owners.get(path, set())
            if len(names) != 1:
                problems.append(f'/{path.relative_to(root)}: in {" and ".join(sorted(names)) or "no package"}')
    print('\n'.join(problems))
    sys.exit(1 if problems else 0)


main()
