"""Rules about the tree as a whole: folder sizes, READMEs, cycles, unused limits."""
import collections
import os
import pathlib
import re

FOLDER_FILES = 28
README_LINES = 40
CODE = re.compile(r'\.(cpp|hpp|h|c)$')
COUNTED = re.compile(r'\.(cpp|hpp|h|c|py|ts|tsx|mjs)$')
TEST = re.compile(r'_test\.(cpp|py)$|^(tests|bench|examples)/')
INCLUDE = re.compile(r'\s*#include "([^"]+)"')
LIMITS = 'base/limits.hpp'
TABLES = 'docs/reference/limits.md'
IN_DAEMONS = re.compile(r'^(gang|monitor|pario/server|proto/transport|scored|scout/cluster)/.*(?<!_test)\.(cpp|hpp)$')
FULL = re.compile(r'(?:size\(\)|count_?|count\(\)|active\(\)|pending\(\)) *[>=]= *(?:\d+ *\* *)?(?:\w+::)*(k(?:Max|Most)\w+)')
DECISIONS = 'docs/adr/'


def text_of(root, path):
    return pathlib.Path(root, path).read_text(encoding='utf-8', errors='replace')


def folders_of(files):
    """Folder -> number of source files directly in it."""
    return collections.Counter(os.path.dirname(path) for path in files
                               if COUNTED.search(path) and '/' in path)


def check_folders(root, files):
    for folder, count in sorted(folders_of(files).items()):
        if count > FOLDER_FILES:
            yield 'room', folder, f'{count} source files, at most {FOLDER_FILES}: split the folder'
    with_sources = set(folders_of(files))
    top = {path.split('/')[0] for path in files if '/' in path} - {'.ci', 'cmake', 'packaging'}
    for folder in sorted(with_sources | top):
        readme = pathlib.Path(root, folder, 'README.md')
        if not readme.is_file():
            yield 'readme', folder, 'no README.md'
        elif len(readme.read_text(encoding='utf-8').splitlines()) > README_LINES:
            yield 'readme', f'{folder}/README.md', f'more than {README_LINES} lines'


def includes(root, files):
    """(file, included file) of all code that is not a test."""
    known = set(files)
    for path in files:
        if CODE.search(path) and not TEST.search(path):
            for line in text_of(root, path).splitlines():
                found = INCLUDE.match(line)
                if found and found[1] in known:
                    yield path, found[1]


def cycles(edges):
    """Strongly connected components with more than one member (Tarjan 1972)."""
    graph = collections.defaultdict(set)
    for source, target in edges:
        graph[source].add(target)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def check_cycles(root, files, allowed):
    """A header and its .cpp are one file. `allowed` edges ("a -> b") are left out; used ones are marked."""
    pairs = set(includes(root, files))
    for rule, name in (('folder-cycle', os.path.dirname), ('file-cycle', lambda f: CODE.sub('', f))):
        edges = {(name(a), name(b)) for a, b in pairs if name(a) != name(b)}
        in_cycles = [set(cycle) for cycle in cycles(edges)]
        for a, b in sorted(edges):
            if (rule, f'{a} -> {b}') in allowed and any({a, b} <= cycle for cycle in in_cycles):
                yield rule, f'{a} -> {b}', 'closes a cycle'
        left = {(a, b) for a, b in edges if (rule, f'{a} -> {b}') not in allowed}
        for cycle in cycles(left):
            inside = sorted(f'{a} -> {b}' for a, b in left if a in cycle and b in cycle)
            yield rule, ' '.join(cycle), 'include each other: ' + ', '.join(inside)


def check_limits(root, files):
    """A limit that only limits.hpp names limits nothing."""
    if LIMITS not in files:
        return
    text = re.sub(r'//.*', '', text_of(root, LIMITS))
    defined = dict(re.findall(r'inline constexpr [^=;]*?\b(k[A-Z]\w*)\s*=\s*([^;]*);', text))
    used = set()
    for path in files:
        if CODE.search(path) and path != LIMITS:
            used.update(re.findall(r'\bk[A-Z]\w*', text_of(root, path)))
    todo = [name for name in defined if name in used]
    reached = set(todo)
    while todo:  # what defines a used limit is used
        for name in re.findall(r'\bk[A-Z]\w*', defined[todo.pop()]):
            if name in defined and name not in reached:
                reached.add(name)
                todo.append(name)
    for name in sorted(set(defined) - reached):
        yield 'limit', name, 'no code uses this limit'


def described_tables(root, files):
    """The limits that the page of tables names; None without the page."""
    return set(re.findall(r'\bk[A-Z]\w*', text_of(root, TABLES))) if TABLES in files else None


def check_shares(path, lines, described):
    """A table with a limit that the page does not name: it says who fills it, and what one user may have."""
    if described is None or not IN_DAEMONS.match(path):
        return
    for number, line in enumerate(lines, 1):
        for name in FULL.findall(line):
            if name not in described:
                yield number, 'share', f'{TABLES} does not say who fills the table that {name} limits'


def check_listed(root, files):
    """Tests below tests/integration that ctest does not know, and decisions that their list does not name once."""
    decisions = text_of(root, DECISIONS + 'README.md') if DECISIONS + 'README.md' in files else ''
    for path in files:
        if re.match(DECISIONS + r'\d{4}-', path):
            count = decisions.count(f'({path.removeprefix(DECISIONS)})')
            if count != 1:
                yield 'listed', path, f'{DECISIONS}README.md names it {count} times'
    for path in files:
        found = re.fullmatch(r'(tests/integration/\w+/)test_(\w+)\.py', path)
        if not found:
            continue
        listing = found[1] + 'CMakeLists.txt'
        if listing not in files or not re.search(rf'\b{found[2]}\b', text_of(root, listing)):
            yield 'listed', path, f'{listing} does not name it: ctest does not run it'
