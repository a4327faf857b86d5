"""The transcript of an installation, as the administrator guide shows it: what was typed and what it printed."""
import os
import pathlib
import re

GUIDE = pathlib.Path(__file__).resolve().parents[2] / 'docs/guide/admin.md'
BEGIN, END = '<!-- transcript: written by tests/boot/test_install.py -->\n', '<!-- end of the transcript -->'


class Transcript:
    def __init__(self):
        self.text = ''
        self.lines = 0  # that were typed

    def type(self, machine, line, user=None, shown=None):
        """Runs a line on a machine. Of its output the lines that match `shown` are kept; None: all."""
        self.lines += 1
        prompt = '$' if user else '#'
        done = machine.run('sh', '-c', line + ' 2>&1', user=user, limit=180)
        self.text += f'{machine.name}{prompt} {line}\n'
        self.text += ''.join(f'{text}\n' for text in done.stdout.splitlines() if shown is None or re.search(shown, text))
        return done.stdout

    def lasting(self):
        """Without what differs between two runs: tokens and versions."""
        text = re.sub(r'(--token node\d+:)\S+', r'\1...', self.text)
        return re.sub(r'\d+\.\d+\.\d+', 'VERSION', text)

    def check(self):
        """The guide has this transcript. SCORE_WRITE_TRANSCRIPT=1: puts it there."""
        guide = GUIDE.read_text(encoding='utf-8')
        before, found, rest = guide.partition(BEGIN)
        assert found, f'{GUIDE} has no place for the transcript: {BEGIN}'
        _, end, after = rest.partition(END)
        wanted = f'```\n{self.lasting()}```\n'
        if os.environ.get('SCORE_WRITE_TRANSCRIPT'):
            GUIDE.write_text(before + BEGIN + wanted + end + after, encoding='utf-8')
            return
        assert wanted in rest, f'{GUIDE} differs from this run; SCORE_WRITE_TRANSCRIPT=1 updates it:\n{wanted}'
