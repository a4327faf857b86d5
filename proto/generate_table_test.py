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

VALUE = 'option (value) = { type: "base::%s" };'
# As above; GOOD precedes the messages.
VALUE_CASES = [
    ('value', 'message P { %s uint32 y = 1 [(rule).most = "9"]; }\n' % VALUE % 'P', None),
    ('list without limit', 'message P { %s repeated uint32 y = 1; }\n' % VALUE % 'P',
     'P.y is a list and has no limit'),
    ('limit of no list', 'message P { %s uint32 y = 1 [(rule).count = "9"]; }\n' % VALUE % 'P',
     'P.y is not a list'),
    ('signed without least', 'message P { %s int32 y = 1 [(rule).most = "9"]; }\n' % VALUE % 'P',
     'P.y has no `least`'),
    ('member without value', 'message P { %s Q q = 1; }\nmessage Q { }\n' % VALUE % 'P',
     'its type has no (value)'),
    ('value twice', 'message P { %s }\nmessage Q { %s }\n' % (VALUE % 'P', VALUE % 'P'),
     'Q and P have the same type base::P'),
    ('unknown like', 'message P { option (value) = { type: "base::P" like: "R" }; }\n',
     'there is no message R'),
    ('field of like', 'message P { %s uint32 y = 1; }\n' % VALUE % 'P' +
     'message Q { option (value) = { type: "base::Q" like: "P" }; }\n', 'Q has no field y as P has'),
    ('no value', 'message P { uint32 y = 1; }\n', 'no message has a (value) of the set model'),
]


def run_case(protoc, generator, source_dir, text, *sets):
    """Exit status and stderr of the generator."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / 'case.proto').write_text(HEAD + text)
        subprocess.run([protoc, '-I', directory, '-I', source_dir, f'--descriptor_set_out={root}/set',
                        f'{root}/case.proto', 'proto/options.proto'], check=True,
                       stderr=subprocess.DEVNULL)
        made = subprocess.run([generator, root / 'set', root, *sets], capture_output=True,
                              text=True, check=False)
        return made.returncode, made.stderr


def main():
    protoc, generator, source_dir = sys.argv[1:4]
    failures = 0
    used = 'message B { option (frame) = { type: 2 max_bytes: 8 allow: [NODE] }; P p = 1; Q q = 2; }\n'
    cases = [(name, text, expected, ()) for name, text, expected in CASES]
    for name, text, expected in VALUE_CASES:
        other = '' if 'message Q' in text else 'message Q { }\n'
        cases.append((name, GOOD + used + text + other, expected, ('model',)))
    for name, text, expected, sets in cases:
        status, error = run_case(protoc, generator, source_dir, text, *sets)
        ok = status == 0 if expected is None else status == 1 and expected in error
        print(f'{"ok" if ok else "FAILED"}: {name}: {error.strip()}')
        failures += not ok
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
