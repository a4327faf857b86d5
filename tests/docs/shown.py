"""Compares what a page shows below a command with what the command prints.

Words are compared one by one; blanks between them do not count. In the shown text

    ...                matches anything; alone on a line it matches any lines, also none
    3.1, 0:00:01, 50%, 24 ms, 1.2G   match any figure of the same unit: a number counts as a figure if it has a point, a colon or a unit

Everything else must be equal, also ids: a page is typed from its beginning, so they are always the same.
"""
import re

UNIT = r'(?:%|[num]?s|min|h|[KMGT]i?B?(?:/s)?|B/s)(?![\w])'
FIGURE = re.compile(rf'(?<![\w.:])-?(?:\d+(?:[.:]\d+)+|\d+(?= ?{UNIT}))|\.\.\.')


def pattern(line):
    """The regular expression of one shown line."""
    line, out, at = ' '.join(line.split()), '', 0
    for found in FIGURE.finditer(line):
        out += re.escape(line[at:found.start()])
        out += '.*' if found[0] == '...' else r'-?\d[\d.:]*'
        at = found.end()
    return out + re.escape(line[at:])


def matches(shown, printed):
    """Returns True if these printed lines are what the page shows, in this order."""
    if not shown:
        return not printed
    if shown[0].strip() == '...':
        return any(matches(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and re.fullmatch(pattern(shown[0]), ' '.join(printed[0].split())) is not None and matches(
        shown[1:], printed[1:])


def difference(shown, printed, any_order=False):
    """Describes the difference for a failing test; None: there is none."""
    if any_order:
        shown, printed = sorted(shown), sorted(printed)
    if matches(shown, printed):
        return None
    return '\n'.join(['the page shows', *(f'    {line}' for line in shown), 'the command printed',
                      *(f'    {line}' for line in printed)])
