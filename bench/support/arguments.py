"""Parses command lines of scbench: an error is one line, with exit status 125, as in all commands of Scored."""
import argparse
import difflib
import math
import os
import sys

ERROR = 125  # base/exit_codes.hpp: an error of Scored, or of the way in which it was called
INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """The parser of a command; argparse uses the class for subcommands as well."""

    def error(self, message):
        self.exit(ERROR, f"{self.prog}: {message.removeprefix('argument ')} (try {self.prog} --help)\n")

    def parse_args(self, args=None, namespace=None):
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            word = rest[0].split('=')[0]
            near = difflib.get_close_matches(word, self.option_words(), 1, 0.75) if word.startswith('--') else []
            what = 'unknown option' if word.startswith('-') else 'unexpected argument'
            self.error(f"{what} '{word}'" + (f'; did you mean {near[0]}?' if near else ''))
        return options

    def option_words(self):
        """Returns the long and short options, including those of subcommands."""
        words = [word for action in self._actions for word in action.option_strings]
        for action in self._actions:
            for parser in action.choices.values() if isinstance(action.choices, dict) else ():
                words += parser.option_words()
        return words


def whole(least=1, most=10_000_000):
    def read(text):
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return int(text)
    return read


def real(least, most):
    def read(text):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least:g} to {most:g}")
        return value
    return read


def size(least, most):
    """Bytes, as in "512M"."""
    def read(text):
        digits, end = text.rstrip('KMGT'), text[len(text.rstrip('KMGT')):]
        value = int(digits) << 10 * ('', 'K', 'M', 'G', 'T').index(end) if digits.isascii() and digits.isdigit() and len(end) < 2 else -1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a size from {least >> 20}M to {most >> 30}G")
        return value
    return read


def some_of(known):
    def read(text):
        parts = text.split(',')
        for part in parts:
            if part not in known:
                raise argparse.ArgumentTypeError(f"'{part}' is not one of {', '.join(known)}")
        return parts
    return read


def run(prog, main):
    """Returns the exit status of main(). An exception is printed as one line, unless SCBENCH_TRACEBACK is set."""
    try:
        return main() or 0
    except SystemExit as error:
        if not isinstance(error.code, str):
            raise
        print(error.code, file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python writes at its exit
        return ERROR
    except Exception as error:  # noqa: BLE001
        if os.environ.get('SCBENCH_TRACEBACK'):
            raise
        is_file = isinstance(error, OSError) and error.filename
        lines = (f'{error.filename}: {error.strerror}' if is_file else str(error)).strip().splitlines()
        print(f'{prog}: {lines[0][:400] if lines else type(error).__name__}', file=sys.stderr)
        return ERROR
