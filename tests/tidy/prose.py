"""Rules about language: the worst patterns stay out of messages, headings and documents.

Looked at are documents (.md, .scd, .catalog), the comments of .proto files, and string literals of
programs. Comments of other code and tests are not.
"""
import pathlib
import re

DOCUMENT = re.compile(r'\.(md|scd|catalog|proto)$')
PROGRAM = re.compile(r'\.(cpp|hpp|c|h|ts|tsx)$')
TEST = re.compile(r'_test\.|/test/|^(tests|examples)/')
LITERAL = re.compile(r'"((?:\\.|[^"\\])*)"|`([^`]*)`|>([^<>{}]{12,})<|\'((?:\\.|[^\'\\])*)\'')
CODE_SPAN = re.compile(r'`[^`]*`')
PATTERNS = [  # (pattern, what to write instead)
    (re.compile(r'\b(tell|tells|told|telling)\b', re.I), 'report, print, log, show'),
    (re.compile(r'\b(nobody|whoever|whom)\b', re.I), 'no one, users, a passive: name the actor'),
    (re.compile(r'(^|[.:;] |\()who (is|are|was|has|have|had|comes?|says?|asks?|wants?|sends?|sees?|does)\b', re.I),
     'name the actor'),
    (re.compile(r'(^|[.:;] |\()what (came|comes|is|was|are|were|has|goes|it|they|he) [^?]*$', re.I),
     'name the thing'),
    (re.compile(r'\b(glances?|short way|wish(es)?|patience|twins?|playouts?|late digest)\b', re.I),
     "the trade's own word: sample, fast path, request, timeout, copy"),
    (re.compile(r'\b(times|looks|beats|switches|seconds|slices) in a row\b', re.I), 'consecutive'),
    (re.compile(r'\b(is|are) another\b', re.I), 'has changed, differs'),
    (re.compile(r'\b(one|two|once|twice|bytes|messages|files|daemons?|lines?|tasks?|ranks?|connections?) an? '
                r'(job|node|task|rank|line|message|frame|user|slot|slice|switch|core|file|folder)\b', re.I),
     'per, not "a"'),
    (re.compile(r'\bnonsense\b', re.I), 'unexpected, malformed'),
    (re.compile(r'\bis no (job|node|number|user|such|part)\b', re.I), 'is not a ...'),
]
HEADING = re.compile(r'^#+ +(what|who|whom|whoever|how often|how far|how much)\b', re.I)


def prose_of(path, text):
    """(line number, text) of all that people read."""
    inside_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if path.endswith('.md') and line.lstrip().startswith('```'):
            inside_code = not inside_code
        if inside_code:
            continue
        if path.endswith('.proto'):
            if '//' in line:
                yield number, line.split('//', 1)[1].strip()
        elif DOCUMENT.search(path):
            yield number, CODE_SPAN.sub('', line)
        elif not line.lstrip().startswith(('//', '*', '#include', 'import ')):
            for found in LITERAL.finditer(re.sub(r'(^|\s)//.*', '', line)):
                yield number, next(group for group in found.groups() if group is not None)


def check_prose(root, files):
    for path in files:
        is_document, is_program = DOCUMENT.search(path), PROGRAM.search(path)
        if not (is_document or is_program) or TEST.search(path) or '/corpus/' in path:
            continue
        text = pathlib.Path(root, path).read_text(encoding='utf-8', errors='replace')
        for number, sentence in prose_of(path, text):
            if path.endswith('.md') and HEADING.search(sentence):
                yield path, number, 'a heading is a noun phrase'
            for pattern, instead in PATTERNS:
                found = pattern.search(sentence)
                if found:
                    yield path, number, f'"{found[0].strip()}": {instead}'
