#!/usr/bin/env python3
"""The table generator refuses .proto files that leave a hole.

usage: generate_table_test.py PROTOC GENERATOR SOURCE_DIR
"""
import pathlib
import subprocess
import sys
import tempfile

HEAD = '''syntax = "proto3";
package score.wire;
import "proto/options.proto";
'''
GOOD = 'message A { option (frame) = { type: 1 max_bytes: 8 allow: [HEAD] }; uint32 x = 1; }\n'
CASES = [  # (name, messages, what the error must say; None: it is accepted)
    ('annotated', GOOD, None),
    ('used as a field', GOOD + 'message P { uint32 y = 1; }\n'
     'message B { option (frame) = { type: 2 max_bytes: 8 allow: [NODE] }; P p = 1; }\n', None),
    ('no annotation', GOOD + 'message B { uint32 x = 1; }\n', 'B opens a frame but has no'),
    ('no sender', 'message A { option (frame) = { type: 1 max_bytes: 8 }; }\n',
     'no role may send it'),
    ('number twice', GOOD + 'message B { option (frame) = { type: 1 max_bytes: 8 allow: [NODE] }; }\n',
     'have the same type 1'),
    ('number 0', 'message A { option (frame) = { type: 0 max_bytes: 8 allow: [NODE] }; }\n',
     'type must be'),
    ('number too large',
     'message A { option (frame) = { type: 65536 max_bytes: 8 allow: [NODE] }; }\n',
     'type must be'),
    ('no frames', '', 'no frames'),
]


def run_case(protoc, generator, source_dir, text):
    """Exit status and stderr of the generator."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / 'case.proto').write_text(HEAD + text)
        subprocess.run([protoc, '-I', directory, '-I', source_dir, f'--descriptor_set_out={root}/set',
                        f'{root}/case.proto', 'proto/options.proto'], check=True,
                       stderr=subprocess.DEVNULL)
        made = subprocess.run([generator, root / 'set', root / 'out.inc'], capture_output=True,
                              text=True, check=False)
        return made.returncode, made.stderr


def main():
    protoc, generator, source_dir = sys.argv[1:4]
    failures = 0
    for name, text, expected in CASES:
        status, error = run_case(protoc, generator, source_dir, text)
        ok = status == 0 if expected is None else status == 1 and expected in error
        print(f'{"ok" if ok else "FAILED"}: {name}: {error.strip()}')
        failures += not ok
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
