"""The sources of a library or a test are compiled in batches, so local functions of one source are seen by the next one.

Two local functions of one name and different parameters compile, and a call may then choose the one of another source. So
such names must be unique in a library or a test. `score_alone(source.cpp)` in its CMakeLists.txt takes a source out of the batches.
"""
import collections
import os
import pathlib
import re

LOCAL = re.compile(r'^namespace \{\n(.*?)^\}  // namespace\n', re.S | re.M)
FUNCTION = re.compile(r'^(?!return|using|//|#)(?:template <[^;]*>\n)?[A-Za-z_\[][^\n;={}]*?[\s&*>](\w+)\(', re.M)
TARGET = re.compile(r'(?:score_library|score_test|target_sources)\(\s*(\w+)([^)]*)\)')
ALONE = re.compile(r'score_alone\(([^)]*)\)')


def local_functions(text):
    return {name for body in LOCAL.findall(text) for name in FUNCTION.findall(body)}


def targets(root, files):
    """Target -> its sources, of the libraries and tests that are compiled in batches."""
    found = collections.defaultdict(list)
    for listing in files:
        if os.path.basename(listing) != 'CMakeLists.txt':
            continue
        text = re.sub(r'#.*', '', pathlib.Path(root, listing).read_text(encoding='utf-8'))
        alone = ' '.join(ALONE.findall(text)).split()
        for name, words in TARGET.findall(text):
            for word in words.split():
                path = os.path.normpath(os.path.join(os.path.dirname(listing), word))
                if word.endswith('.cpp') and word not in alone and pathlib.Path(root, path).is_file():
                    found[name].append(path)
    return found


def check_batches(root, files):
    for _, paths in sorted(targets(root, files).items()):
        first = {}
        for path in paths:
            for name in sorted(local_functions(pathlib.Path(root, path).read_text(encoding='utf-8', errors='replace'))):
                other = first.setdefault(name, path)
                if other != path:
                    yield 'batch', path, f'{name}() is also local to {os.path.basename(other)}: calls may choose the other one'
