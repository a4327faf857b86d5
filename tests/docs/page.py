"""The code blocks of a page and the comments that say how each is run: README.md lists the comments."""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ('README.md', 'docs/guide/user.md', 'docs/guide/mpi.md', 'docs/guide/admin.md', 'docs/guide/container.md', 'docs/debugging.md')
MARK = re.compile(r'<!-- (run by|run|config|not run|transcript|wait until): (.*?) -->')
ROW = re.compile(r'\| `([^`]+)` \|')
FENCE = re.compile(r'^\s*```')
OPTIONS = ('any order', 'status', 'keys', 'needs')


@dataclasses.dataclass
class Block:
    page: str
    line: int  # of its first fence
    kind: str = ''  # of the comment above it; empty: none
    value: str = ''
    waits: list = dataclasses.field(default_factory=list)  # commands to repeat until they succeed, before the block
    text: list = dataclasses.field(default_factory=list)

    @property
    def place(self):
        return f'{self.page}:{self.line}'

    @property
    def cluster(self):
        return self.value.split(',')[0].strip()

    @property
    def options(self):
        """{'any order': '', 'status': '1'} of "run: NAME, any order, status 1"."""
        found = {}
        for part in self.value.split(',')[1:]:
            name = next((name for name in OPTIONS if part.strip().startswith(name)), None)
            assert name, f'{self.place}: unknown option "{part.strip()}" of a block; there are {OPTIONS}'
            found[name] = part.strip()[len(name):].strip()
        return found

    def commands(self):
        """(command, lines shown below it) of each `$` line; a line that ends with a backslash goes on."""
        found = []
        for line in self.text:
            if found and found[-1][0].endswith('\\'):
                found[-1][0] += '\n' + line
            elif line.startswith('$ '):
                found.append([line[2:], []])
            else:
                assert found, f'{self.place}: "{line}" stands before the first $ line'
                found[-1][1].append(line)
        return found


def blocks(page, text=None):
    """All fenced blocks of a page, and the tables below a comment "run": the first code of each row is a command.
    A comment belongs to the block that follows it, with at most blank lines between."""
    found, mark, waits, inside, table = [], ('', ''), [], None, None
    text = (ROOT / page).read_text(encoding='utf-8') if text is None else text
    for number, line in enumerate(text.splitlines(), 1):
        if table and not line.startswith('|'):
            table, mark, waits = None, ('', ''), []
        if FENCE.match(line):
            if inside:
                found.append(inside)
                inside, mark, waits = None, ('', ''), []
            else:
                inside = Block(page, number, *mark, waits)
        elif inside:
            inside.text.append(line)
        elif line.startswith('|') and mark[0] == 'run':
            if table is None:
                table = Block(page, number, *mark, waits)
                found.append(table)
            if row := ROW.match(line):
                table.text.append('$ ' + row[1])
        elif marked := MARK.fullmatch(line.strip()):
            if marked[1] == 'wait until':
                waits.append(marked[2])
            else:
                mark = (marked[1], marked[2])
        elif line.strip():
            mark, waits = ('', ''), []
    return found


def fault_of(block):
    """Why a block does not pass, in one line; None: it is run, or excused with a reason."""
    if not block.kind:
        return f'{block.place}: no comment above the block says how it is run, or why not (tests/docs/README.md)'
    if block.kind == 'not run' and len(block.value.split()) < 4:
        return f'{block.place}: "not run" needs a reason'
    if block.kind == 'run by':
        test = ROOT / block.value
        if not test.is_file() or pathlib.Path(block.page).name not in test.read_text(encoding='utf-8'):
            return f'{block.place}: {block.value} does not read this page'
    if block.kind == 'run' and not [line for line in block.text if line.startswith('$ ')]:
        return f'{block.place}: no line of the block begins with "$ "'
    return None


def clusters(page):
    """{name: its blocks in order} of a page."""
    found = {}
    for block in blocks(page):
        if block.kind == 'run':
            found.setdefault(block.cluster, []).append(block)
    return found
