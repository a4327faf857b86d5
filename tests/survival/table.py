"""The table of promises: its rows, and the tests that they name."""
import fnmatch
import functools
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ['rules', 'survive', 'holes', 'faults', 'attacks']
# Each of them has a row; a table may have more.
NEEDED = [*(f'rule-{n}' for n in range(1, 11)), *(f'hole-{n}' for n in range(1, 16)),
          *(f'F{n:02}' for n in range(1, 31)), *(f'S{n:02}' for n in range(1, 39))]
KEYS = {'promise', 'bound', 'tests', 'gap'}


def sections():
    """[(title, {id: row})]"""
    found = []
    for name in FILES:
        table = tomllib.loads((ROOT / f'tests/survival/{name}.toml').read_text(encoding='utf-8'))
        found.append((table.pop('title'), table))
    return found


def rows():
    return {key: row for _, table in sections() for key, row in table.items()}


def is_pytest(test):
    return '.py::' in test


def is_gtest(test):
    return ' ' in test


def sources(pattern):
    """Files of that name, outside of build folders."""
    for folder in sorted(ROOT.iterdir()):
        if folder.is_dir() and folder.name not in ('build', '.git', 'debian'):
            yield from sorted(folder.glob(f'**/{pattern}'))


@functools.cache
def gtest_names():
    """Suite.Test of every source."""
    pattern = re.compile(r'^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)', re.M)
    names = set()
    for path in sources('*_test.cpp'):
        names |= {f'{suite}.{test}' for suite, test in pattern.findall(path.read_text(encoding='utf-8'))}
    return names


@functools.cache
def cmake_text():
    return '\n'.join(path.read_text(encoding='utf-8') for path in [*sources('CMakeLists.txt'), *sources('*.cmake')])


def exists(test):
    """In the sources."""
    if is_pytest(test):
        path, name = test.split('::')
        file = ROOT / 'tests' / path
        return file.exists() and f'\ndef {name}(' in file.read_text(encoding='utf-8')
    if is_gtest(test):
        program, names = test.split()
        is_program = re.search(rf'score_test\({program}\s', cmake_text()) is not None
        return is_program and bool(fnmatch.filter(gtest_names(), names.removeprefix('*/')))
    kind, _, name = test.partition('.')
    if kind == 'fuzz':
        return f'score_fuzz({name} ' in cmake_text()
    return f'add_test(NAME {test}' in cmake_text() or f'add_test(NAME {kind}.' in cmake_text()


def faults():
    """What is wrong with the table, one line each."""
    seen = set()
    for _, table in sections():
        for key, row in table.items():
            if key in seen:
                yield f'{key}: two rows'
            seen.add(key)
            if set(row) - KEYS or not {'promise', 'bound', 'tests'} <= set(row):
                yield f'{key}: a row has promise, bound, tests and may have gap'
                continue
            yield from (f'{key}: no such test: {test}' for test in row['tests'] if not exists(test))
    yield from (f'{key}: no row' for key in NEEDED if key not in seen)
    yield from (f'{path}: figure() of a promise that is not in the table: {key}'
                for path, key in recorded() if key not in seen)


def recorded():
    """(file, id) of each call of figure() with a constant."""
    for path in [*sources('*_test.cpp'), *sources('test_*.py')]:
        for key in re.findall(r'\bfigure\([\'"]([\w-]+)[\'"]', path.read_text(encoding='utf-8')):
            yield path.relative_to(ROOT), key
