#!/usr/bin/env python3
"""check_symbols.py SOURCE LIBRARY: the functions of pario.h are those of libpario.so, of its Debian symbols file, and of pario(3)."""
import pathlib
import re
import subprocess
import sys

source, library = pathlib.Path(sys.argv[1]), sys.argv[2]
header = re.sub(r'/\*.*?\*/', '', (source / 'pario/client/pario.h').read_text(), flags=re.S)
declared = set(re.findall(r'\b(pario_\w+)\([^*]', header)) - {'pario_entry_function'}
listed = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True, check=True).stdout
exported = set(re.findall(r' T (pario_\w+)', listed))
symbols = set(re.findall(r'^ (pario_\w+)@', (source / 'debian/libpario1.symbols').read_text(), re.M))
page = set(re.findall(r'pario_\w+', (source / 'deploy/man/pario.3.scd').read_text().replace('\\_', '_')))
faults = [f'{one}: in {have} but not in {lack}'
          for have, ours, lack, theirs in (('pario.h', declared, 'libpario.so', exported), ('libpario.so', exported, 'pario.h', declared),
                                           ('pario.h', declared, 'debian/libpario1.symbols', symbols),
                                           ('debian/libpario1.symbols', symbols, 'pario.h', declared), ('pario.h', declared, 'pario(3)', page))
          for one in sorted(ours - theirs)]
print('\n'.join(faults) or f'{len(declared)} functions')
sys.exit(bool(faults))
