"""Values on the wire are enums: no code compares a text field of a message with a literal.

The sender writes such a word in one program and the reader spells it in another, so a compiler sees
no difference between them. An enum in the .proto file takes its place, and proto/convert/words.hpp
has the words for people.
"""
import pathlib
import re

FIELD = re.compile(r'^\s*(?:repeated\s+)?(?:bytes|string)\s+(\w+)\s*=\s*\d+', re.M)
READERS = re.compile(r'^(proto|scored|scout|bench)/(?!.*_test\.cpp$)')


def text_fields(root):
    """The names of all text fields of the messages."""
    return {name for path in pathlib.Path(root, 'proto').glob('*.proto')
            for name in FIELD.findall(path.read_text(encoding='utf-8'))}


def pattern_of(fields):
    """Finds a comparison of one of the fields, which may be an element of it, with a literal."""
    call = rf'(?:\.|->)(?P<field>{"|".join(sorted(fields)) or "(?!)"})\([^()]*\)'
    literal = r'"(?!")'
    again = call.replace('<field>', '<second>')
    third = call.replace('<field>', '<third>')
    return re.compile(rf'{call}\s*[!=]=\s*{literal}|"\s*[!=]=\s*[\w.>()-]*?{again}|'
                      rf'{third}\.(?:starts_with|ends_with|contains|compare|find)\({literal}')


def check_wire_words(path, lines, pattern):
    """(line, rule, what) of each comparison."""
    if not READERS.match(path):
        return
    for number, line in enumerate(lines, 1):
        found = pattern.search(line)
        if found:
            field = next(name for name in found.groups() if name)
            yield number, 'wire', f'{field} is compared with a literal: make it an enum (proto/README.md)'
