"""An installed tree from which each node of a virtual cluster can lack something.

`score virtual` starts the daemons that lie beside it. In the tree from which the tests start it, `front`, scored and
scored-launcher are scripts that start those of another tree: `whole`, or a copy of it without some files, perhaps in
a mount namespace or with a filter in which other things are missing. A daemon that is restarted gets what its node
lacks then, so one cluster serves many cases.
"""
import os
import pathlib
import shlex
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
# Files of an installation, below /usr.
FILES = {
    'scored-pmix': ['libexec/scored/scored-pmix'],
    'scored-stacks': ['libexec/scored/scored-stacks'],
    'scored-pario': ['sbin/scored-pario'],
    'scored-pario-mount': ['bin/scored-pario-mount'],
    'scored-rings': ['libexec/scored/scored-rings', 'libexec/scored/scored-ring-guard'],
    'scored-scratch-directory': ['libexec/scored/scored-scratch-directory'],
    'libpm-fi': ['lib/*/libfabric', 'lib/libfabric'],
    'page': ['share/scored/web'],
}
HIDDEN = ['fuse', 'fusermount3', 'mpich', 'openmpi', 'python3', 'shm', 'cgroup', 'systemd']  # as hide.sh knows them
CALLS = ['pidfd', 'io_uring', 'ipv6']  # as without_calls knows them
NICE = 'CAP_SYS_NICE'
PARTS = [*FILES, *HIDDEN, *CALLS, NICE]

FRONT = '''#!/bin/sh
node=head
for word; do
  case $word in */node[0-9][0-9] | */node[0-9][0-9]/*) node=${{word##*/node}}; node=node${{node%%/*}} ;; esac
done
tree={base}/whole
[ ! -f "{base}/lacks/$node" ] || . "{base}/lacks/$node"
for word; do
  shift
  case $word in {base}/front/*) word=$tree/${{word#{base}/front/}} ;; esac
  set -- "$@" "$word"
done
exec $with "$tree/usr/{program}" "$@"
'''


class Tree:
    """All of it lies in `base`, an empty directory."""

    def __init__(self, base, build, without_calls):
        self.base = base
        self.without_calls = without_calls
        subprocess.run(['cmake', '--install', build, '--prefix', '/usr'], check=True, capture_output=True,
                       env=dict(os.environ, DESTDIR=str(base / 'whole')))
        (base / 'lacks').mkdir()
        self.copy('front')
        for program in ('sbin/scored', 'libexec/scored/scored-launcher'):
            path = base / 'front/usr' / program
            path.unlink()
            path.write_text(FRONT.format(base=base, program=program))
            path.chmod(0o755)

    @property
    def bin(self):
        return self.base / 'front/usr/bin'

    def copy(self, name):
        """A tree of the same files; gives its /usr."""
        if not (self.base / name).exists():
            shutil.copytree(self.base / 'whole', self.base / name, symlinks=True, copy_function=os.link)
        return self.base / name / 'usr'

    def words_without(self, parts):
        """Returns the words that start a command without these parts, as far as they are not files of the tree."""
        hidden = [part for part in parts if part in HIDDEN]
        calls = [part for part in parts if part in CALLS]
        words = ['unshare', '-m', str(HERE / 'hide.sh'), *hidden, '--'] if hidden else []
        words += ['setpriv', '--bounding-set', '-sys_nice', '--inh-caps', '-sys_nice'] if NICE in parts else []
        return words + ([str(self.without_calls), *calls, '--'] if calls else [])

    def without(self, parts):
        """Gives the tree (its root) that lacks these files."""
        files = sorted(part for part in parts if part in FILES)
        if not files:
            return self.base / 'whole'
        name = 'without_' + '_'.join(files) if len(files) < 4 else 'without_all'
        usr = self.copy(name)
        for pattern in [pattern for part in files for pattern in FILES[part]]:
            for path in usr.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return self.base / name

    def take_away(self, node, parts):
        """From a node, or 'head', when its daemons are started the next time."""
        words = shlex.join(self.words_without(parts))
        (self.base / 'lacks' / node).write_text(f"tree={self.without(parts)}\nwith={shlex.quote(words)}\n")
