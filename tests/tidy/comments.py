"""Ratios of language: how many comments of a folder begin as a fragment, and how many test names are long.

A list of words only moves a dialect to other words, so the share counts. A comment is a block of whole lines of `//`; its first
sentence is read. It is a fragment if it has no finite verb of its own: none at all, or only those of relative and subordinate clauses.
The words that count as verbs stand in verbs.txt. A field, an enumerator or a constant may have a noun phrase.
"""
import collections
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
CODE = re.compile(r'\.(cpp|hpp|c|h|proto)$')
MOST_FRAGMENTS, MOST_OPENINGS = 0.03, 0.01  # of the comments of a folder, but one is always allowed
MOST_WORDS = 8  # of a test name
OPENINGS = {'of', 'those', 'that', 'what', 'who', 'whether', 'also'}
AUXILIARY = set("is are was were am has have had does do did can cannot may might must will would shall should could isn't aren't doesn't don't "
                "wasn't won't can't needn't it's that's there's".split())
CLAUSE = {'that', 'which', 'who', 'whom', 'whose', 'what', 'where', 'when', 'if', 'whether', 'until', 'while', 'because', 'unless'}
OPENERS = {'until', 'when', 'where', 'once', 'after', 'before', 'because', 'unless', 'while', 'as', 'since', 'if', 'so'}
PLURAL_SUBJECT = {'they', 'we', 'you', 'i', 'both', 'all', 'which', 'that', 'who', 'some', 'others', 'these', 'not', 'people', 'data'}
OBJECT = set('the a an its it them all no each every this one nothing their how whether what that these only'.split())
IMPERATIVE = {'see', 'do', 'note', 'use', 'keep', 'call', 'run', 'compare', 'let'}
LABEL = re.compile(r'(Errors?|Threads?|Units?|Shape|Source|Example)\b[\w ]*:')
WORD = re.compile(r"[A-Za-z_][\w']*(?:\(\))?")
NOUN_PHRASE_MAY_STAND = re.compile(r'^\s*(?:(?:static|constexpr|const|inline|extern|mutable|optional|repeated)\s+)*'
                                   r'[\w:<>,&* \[\]]+\s+\w+(?:\[[^\]]*\])?\s*(?:=[^;]*|\{[^;]*\})?;'
                                   r'|^\s*k?\w+\s*(?:=\s*[^,;]+)?,?\s*(?://.*)?$|^\s*constexpr\b')


def verbs():
    """(forms that are always verbs, third persons that are also plural nouns, base forms)"""
    sure, ambiguous, bases = set(), set(), set()
    for line in (HERE / 'verbs.txt').read_text(encoding='utf-8').splitlines():
        for word in line.split('#')[0].split():
            base = word.rstrip('*')
            third = base[:-1] + 'ies' if re.search('[^aeiou]y$', base) else base + ('es' if re.search('(s|x|z|ch|sh|o)$', base) else 's')
            bases.add(base)
            (ambiguous if word.endswith('*') else sure).add(third)
    return sure, ambiguous, bases


SURE, AMBIGUOUS, BASES = verbs()


def is_verb(words, i):
    word = words[i]
    before, after = words[i - 1] if i else '', words[i + 1] if i + 1 < len(words) else ''
    if word in AUXILIARY:
        return before not in AUXILIARY
    if word in SURE:
        return True
    if word in AMBIGUOUS:
        is_after_subject = i > 1 and words[i - 2] in {'the', 'a', 'an', 'each', 'every', 'this', 'one'} and after != 'of'
        return i == 0 or before in {'it', 'this', 'which', 'that', 'who', 'nothing', 'each'} or after in OBJECT or is_after_subject
    if word in BASES:
        return (i == 0 and word in IMPERATIVE) or before in PLURAL_SUBJECT or (
            len(before) > 3 and before.endswith('s') and before not in SURE and i > 0)
    return False


def is_fragment(text):
    """True if the first sentence has no main verb. A label of a contract ("Errors: ...") may begin one."""
    if LABEL.match(text):
        return False
    sentence = re.split(r'(?<=[\w)"\'`])[.:;?!](?:\s|$)', text, maxsplit=1)[0]
    words = [word.lower() for word in WORD.findall(sentence)]
    if len(words) < 2:
        return True
    count = sum(is_verb(words, i) for i in range(len(words)))
    clauses = 0
    for i, word in enumerate(words):
        noun_follows = i + 1 < len(words) and words[i + 1] in {'of', 'to'}
        if word in CLAUSE and not noun_follows and any(is_verb(words, k) for k in range(i + 1, len(words))):
            clauses += 1
    clauses += words[0] in OPENERS and words[0] not in CLAUSE
    return count <= clauses


def comments_of(text):
    """(line number, text, the line of code after it) of each block of whole lines of `//`."""
    lines = text.splitlines()
    block, began = [], 0
    for number, line in enumerate([*lines, ''], 1):
        found = re.match(r'\s*//(?!/)\s?(.*)', line)
        if found:
            began = began if block else number
            block.append(found[1])
        elif block:
            said = ' '.join(part.strip() for part in block)
            if re.search(r'[A-Za-z]{2}', said) and not re.match(r'\W*(tidy:|-{2,}|clang-format|NOLINT|SPDX|namespace\b)', said):
                yield began, said, line
            block = []


def test_names(text):
    for found in re.finditer(r'^TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)', text, re.M):
        yield text.count('\n', 0, found.start()) + 1, found[1], re.findall(r'[A-Z][a-z0-9]*|[A-Z]+(?![a-z])', found[1])


def folder_of(path):
    parts = path.split('/')
    return '/'.join(parts[:2]) if len(parts) > 2 else parts[0]


def faults(root, files):
    """(folder, kind, path, line, text) of all; and how many comments each folder has."""
    found, count = [], collections.Counter()
    for path in files:
        if not CODE.search(path) or '/corpus/' in path:
            continue
        text = pathlib.Path(root, path).read_text(encoding='utf-8', errors='replace')
        for number, said, code in comments_of(text):
            folder = folder_of(path)
            count[folder] += 1
            first = re.match(r'\W*(\w*)', said)[1].lower()
            if first in OPENINGS:
                found.append((folder, 'opening', path, number, said))
            if is_fragment(said) and not (code.strip() and NOUN_PHRASE_MAY_STAND.match(code)):
                found.append((folder, 'fragment', path, number, said))
        for number, name, words in test_names(text):
            if len(words) > MOST_WORDS:
                found.append((folder_of(path), 'name', path, number, name))
    return found, count


def check_comments(root, files):
    found, count = faults(root, files)
    for folder, total in sorted(count.items()):
        for kind, most, what in (('fragment', MOST_FRAGMENTS, 'begin as a fragment'),
                                 ('opening', MOST_OPENINGS, f'begin with {", ".join(sorted(OPENINGS))}')):
            here = [fault for fault in found if fault[0] == folder and fault[1] == kind]
            if len(here) > max(most * total, 1):
                for _, _, path, number, said in here:
                    yield path, number, f'{len(here)} of {total} comments of {folder} {what}: "{said[:60]}"'
    for _, kind, path, number, name in found:
        if kind == 'name':
            yield path, number, f'a test name has at most {MOST_WORDS} words: {name}'


if __name__ == '__main__':
    import subprocess
    import sys
    listed = subprocess.run(['git', 'ls-files', *sys.argv[1:]], capture_output=True, text=True, check=True).stdout.split()
    everything, totals = faults('.', listed)
    for folder, kind, path, number, said in everything:
        print(f'{path}:{number}: {kind}: {said[:150]}')
    kinds = collections.Counter(fault[1] for fault in everything)
    print(f'{sum(totals.values())} comments: {kinds["fragment"]} fragments, {kinds["opening"]} openings; {kinds["name"]} long test names')
