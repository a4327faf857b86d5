"""Parses sizes by the rules of all programs of Scored, as base/units.hpp does."""
import argparse
import re

POWERS = 'KMGTPE'


def size(text):
    """Returns the bytes of "4096", "64K", "1.5M", "1MB" or "1MiB": powers of 1024, case ignored. For argparse's type=."""
    match = re.fullmatch(r'(\d+(?:\.\d+)?)(?:([KMGTPE])(i?B)?|B)?', text, re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 4096, 64K or 1MB")
    unit = 1024 ** (POWERS.index(match[2].upper()) + 1) if match[2] else 1
    whole, _, fraction = match[1].partition('.')
    return int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
