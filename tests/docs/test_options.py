"""Options that the pages name in their text exist: each is in the man page of its command."""
import pathlib
import re

import page
import pytest

MAN = page.ROOT / 'deploy/man'
COMMANDS = sorted({path.name.split('.')[0] for path in MAN.glob('*.scd')} - {'pario', 'scored'}, key=len, reverse=True)
SPAN = re.compile(r'`([^`]+)`')
OPTION = re.compile(r'(?<![\w-])(--?[a-zA-Z][\w-]*)')
ALSO = {  # options that a page describes under another name
    'scrun': {'-np', '-ppn', '-host', '-hostfile', '-genv', '-wdir', '-configfile'},
}
GNU = {'--help', '--version', '-h'}


def words_of(text):
    """(command, its options) of each of our commands in a piece of shell text."""
    for part in re.split(r'[|;&]+|\$\(', re.sub(r"'[^']*'|\"[^\"]*\"", 'TEXT', text)):
        part = part.split(' #')[0].strip()
        name = next((name for name in COMMANDS if re.match(rf'(?:build/release/bin/)?{name.replace("-", "[ -]")}(?![\w-])', part)), None)
        if name:
            # A program that a command starts, and its options, end the command's own.
            yield name, OPTION.findall(re.split(r' -- | (?:\./|openmpi/|TEXT|sh |sleep |gdb |valgrind |\w+/)', part)[0])


def texts(name):
    source = re.sub(r'<!--.*?-->', '', (page.ROOT / name).read_text(encoding='utf-8'), flags=re.DOTALL)
    fenced = re.compile(r'^\s*```.*?^\s*```', re.DOTALL | re.MULTILINE)
    for block in fenced.findall(source):
        for line in block.splitlines():
            yield line.removeprefix('$ ')
    yield from SPAN.findall(fenced.sub('', source))


@pytest.mark.parametrize('name', page.PAGES)
def test_options_exist(name):
    unknown = []
    for text in texts(name):
        for command, options in words_of(text):
            man = ''.join(path.read_text(encoding='utf-8') for path in MAN.glob(f'{command}.[178].scd'))
            known = set(re.findall(r'\*(--?[\w-]+)', man.replace('\\', ''))) | ALSO.get(command, set()) | GNU
            unknown += [f'{text}: {command} has no {option}' for option in options if option not in known]
    assert unknown == []


def test_an_unknown_option_is_found():
    assert list(words_of('scrun --nodse 4 ./a.out --fast | sort -n')) == [('scrun', ['--nodse'])]
    assert list(words_of('build/release/bin/score virtual --nodes 4 -- bash')) == [('score-virtual', ['--nodes'])]
    assert list(words_of("sbatch --wrap 'scrun -n 1'")) == []
