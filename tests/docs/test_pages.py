"""Types the command lines of the pages, and compares what they print with what the pages show."""
import os
import pathlib
import shutil
import subprocess

import page
import pytest
from cluster import BIN, EXAMPLES, LIMIT, wait_until
from session import SHELL_END, Session, make_tree
from shown import difference

NEEDS = {  # a comment "needs: NAME" on the page: (whether it is here, why the page's commands are not run)
    'mpich': (lambda: (EXAMPLES / 'ring').exists(), "MPICH is not installed, so its examples are not built"),
    'openmpi': (lambda: all(path.exists() for path in (EXAMPLES / 'openmpi/ring', BIN / 'scored-pmix', BIN.parent / 'lib/libfabric/libpm-fi.so')),
                'Open MPI, PMIx or libfabric is not installed'),
    'fuse': (lambda: os.access('/dev/fuse', os.W_OK) and shutil.which('fusermount3') is not None, 'there is no /dev/fuse or fusermount3'),
    'gdb': (lambda: shutil.which('gdb') is not None and os.geteuid() == 0,
            'gdb is not installed, or this is not root: it may not attach, or jobs are stopped by signals, to which it attaches at once'),
}
CONFIGURATION = {
    'head': ('[head]', 'cluster = "c"\nnodes = "node[00-03]"\nlisten = "127.0.0.1:7421"\n'),
    'node': ('[node]', 'cluster = "c"\nhead = "127.0.0.1:7421"\nname = "node00"\n'),
}


def stem(name):
    return pathlib.Path(name).stem.lower()


def runs():
    for name in page.PAGES:
        for cluster, blocks in page.clusters(name).items():
            yield pytest.param(name, cluster, blocks, id=f'{stem(name)}-{cluster}')


def configurations():
    for name in page.PAGES:
        for block in page.blocks(name):
            if block.kind == 'config':
                yield pytest.param(block, id=f'{stem(name)}-config-{block.line}')


def starts_cluster(block):
    return block.commands()[0][0].split('#')[0].rstrip().endswith(SHELL_END)


def check(session, block, problems):
    """Runs the commands of a block; adds what differs to `problems`."""
    for condition in block.waits:
        wait_until(lambda: session.run(condition)[0] == 0, LIMIT, lambda: f'{block.place}: {condition}')
    expected, keys = int(block.options.get('status', 0)), block.options.get('keys')
    for number, (command, shown) in enumerate(block.commands(), 1):
        if command.split('#')[0].rstrip().endswith(SHELL_END):
            continue  # the session has run it
        words = command.split('#')[0].split()
        if words[:1] == ['cat'] and not (session.here() / words[1]).exists():
            (session.here() / words[1]).write_text('\n'.join(shown) + '\n')
        status, printed = session.run(command, keys if number == len(block.commands()) else None)
        print('\n'.join([f'$ {command}', *printed]))  # pytest -s shows the page as a user sees it
        if status != expected:
            problems.append(f'{block.place}: $ {command}\nended with {status}, not {expected}:\n' + '\n'.join(printed))
        elif shown and (found := difference(shown, printed, 'any order' in block.options)):
            problems.append(f'{block.place}: $ {command}\n{found}')


@pytest.mark.parametrize('name, cluster, blocks', runs())
def test_commands_of(name, cluster, blocks, tmp_path):
    first = next(block for block in page.blocks(name) if block.kind == 'run' and starts_cluster(block))
    if not starts_cluster(blocks[0]):
        blocks = [first, *blocks]
    for need in (need for block in blocks for need in block.options.get('needs', '').split()):
        is_here, reason = NEEDS[need]
        if not is_here():
            pytest.skip(reason)
    make_tree(tmp_path)
    session, problems = Session(blocks[0].commands()[0][0], tmp_path), []
    try:
        for block in blocks:
            check(session, block, problems)
        for pid, command, out in session.background:
            if status := session.wait_for(pid):
                problems.append(f'{name}: $ {command}\nended with {status}:\n{out.read_text()}')
    finally:
        status = session.close()
    assert not problems, '\n\n'.join(['', *problems])
    assert status == 0, f'{session.first}: {status}'


@pytest.mark.parametrize('block', configurations())
def test_configuration(block, tmp_path):
    """The daemons accept the lines of a configuration."""
    role = block.value.strip()
    table, needed = CONFIGURATION[role]
    text = '\n'.join(block.text) + '\n'
    text = text.replace(f'{table}\n', f'{table}\n{needed}') if table in block.text else f'{table}\n{needed}{text}'
    config = tmp_path / 'scored.toml'
    config.write_text(text)
    done = subprocess.run([BIN / 'scored', f'--role={role}', '--config', config, '--check-config'], capture_output=True, text=True)
    assert done.returncode == 0, f'{block.place}: {done.stderr}\n{text}'
