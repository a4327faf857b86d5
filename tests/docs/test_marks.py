"""No block of a page escapes the tests, and the rules by which output is compared."""
import page
import pytest
from shown import difference

MOST_EXCUSED = 10  # blocks that cannot run here, of all pages


@pytest.mark.parametrize('name', page.PAGES)
def test_each_block_is_run_or_excused(name):
    found = [page.fault_of(block) for block in page.blocks(name)]
    assert [line for line in found if line] == []


def test_few_blocks_are_excused():
    excused = [block for name in page.PAGES for block in page.blocks(name) if block.kind == 'not run']
    for block in excused:
        print(f'{block.place}: {block.value}')
    assert len(excused) <= MOST_EXCUSED, excused


def test_a_block_without_a_comment_is_found():
    text = 'Type:\n\n```\n$ scq\n```\n'
    assert 'no comment' in page.fault_of(page.blocks('x.md', text)[0])
    assert page.fault_of(page.blocks('x.md', text.replace('Type:', '<!-- run: one -->'))[0]) is None
    assert 'begins with "$ "' in page.fault_of(page.blocks('x.md', '<!-- run: one -->\n```\nscq\n```\n')[0])
    assert 'needs a reason' in page.fault_of(page.blocks('x.md', '<!-- not run: root -->\n```\nscq\n```\n')[0])


def test_a_comment_counts_for_the_next_block_only():
    text = '<!-- run: one -->\nWords.\n```\n$ scq\n```\n'
    assert page.blocks('x.md', text)[0].kind == ''


def test_the_rows_of_a_marked_table_are_commands():
    text = '<!-- run: one -->\n| command | shows |\n| --- | --- |\n| `scq` | jobs; `--json` |\n| `scacct` | ended jobs |\n\n```\nx\n```\n'
    table, block = page.blocks('x.md', text)
    assert table.commands() == [['scq', []], ['scacct', []]] and 'no comment' in page.fault_of(block)


def test_commands_and_what_is_shown_below_them():
    block = page.blocks('x.md', '<!-- run: one, status 1, any order -->\n```\n$ a \\\n  b\nout\n$ c\n```\n')[0]
    assert block.cluster == 'one' and block.options == {'status': '1', 'any order': ''}
    assert block.commands() == [['a \\\n  b', ['out']], ['c', []]]


@pytest.mark.parametrize('shown, printed', [
    ('JOB  NAME', 'JOB NAME'),
    ('3 spin 50% 0:00:01', '3 spin 7% 0:10:59'),
    ('32 tasks on 4 nodes, 3.1 s', '32 tasks on 4 nodes, 12.75 s'),
    ('took 24 ms', 'took 3.5 ms'),
    ('release 0.1.0', 'release 0.2.11'),
    ('...', 'anything'),
    ('node00: ... free', 'node00: 12 of 13 free'),
])
def test_figures_and_dots_match(shown, printed):
    assert difference([shown], [printed]) is None


@pytest.mark.parametrize('shown, printed', [
    ('job 3', 'job 4'), ('8 tasks', '9 tasks'), ('3 spin 50%', '3 spin 50'), ('took 24 ms', 'took 24 s'), ('running', 'runnin')])
def test_everything_else_is_equal(shown, printed):
    assert 'the command printed' in difference([shown], [printed])


def test_lines():
    assert difference(['a', '...', 'c'], ['a', 'b', 'b', 'c']) is None
    assert difference(['a', '...'], ['a']) is None
    assert difference(['a', 'b'], ['b', 'a'])
    assert difference(['a', 'b'], ['b', 'a'], any_order=True) is None
    assert difference(['a'], ['a', 'b'])
