#!/usr/bin/env python3
"""make_doc.py SOURCE MAN OUT: guide, reference and manual pages as HTML below OUT, with an index.

SOURCE is the project's tree, MAN a directory with man1, man3, ... Needs Python's markdown and mandoc.
"""
import pathlib
import re
import shutil
import subprocess
import sys

import markdown

PAGE = '''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>body {{ max-width: 60em; margin: 2em auto; padding: 0 1em; font-family: sans-serif }}
pre {{ background: #f4f4f4; padding: 1em; overflow: auto }} td, th {{ padding: .2em .6em; text-align: left }}</style>
</head>
<body>
{body}
</body>
</html>
'''


def title_of(text, path):
    found = re.search(r'^# (.+)$', text, re.M)
    return found[1] if found else path.stem


def local_link(match, source, known):
    """A link to a document of this set becomes one to its HTML; one that leads out of the set becomes text."""
    label, target = match[1], match[2]
    if re.match(r'[a-z]+:|#', target):
        return match[0]
    path, hash_, anchor = target.partition('#')
    found = known.get((source.parent / path).resolve())
    return f'[{label}]({found}{hash_}{anchor})' if found else label


def write_documents(source, out):
    documents = [path for folder in ('guide', 'reference') for path in sorted((source / 'docs' / folder).glob('*.md'))]
    documents.append(source / 'docs/architecture.md')
    known = {path.resolve(): f'{path.parent.name}-{path.stem}.html' for path in documents}
    rows = []
    for path in documents:
        text = path.read_text(encoding='utf-8')
        linked = re.sub(r'(?<!!)\[([^\]]+)\]\(([^)\s]+)\)', lambda m, path=path: local_link(m, path, known), text)
        linked = re.sub(r'!\[[^\]]*\]\([^)]*\)', '', linked)
        name, title = known[path.resolve()], title_of(text, path)
        body = markdown.markdown(linked, extensions=['tables', 'fenced_code', 'toc'])
        (out / name).write_text(PAGE.format(title=title, body=body), encoding='utf-8')
        rows.append((name, title))
    return rows


def write_pages(man, out):
    rows = []
    for page in sorted(man.glob('man[0-9]/*.[0-9]')):
        if page.read_text(encoding='utf-8').startswith('.so '):
            continue
        name = f'man-{page.name}.html'
        html = subprocess.run(['mandoc', '-Thtml', '-Oman=man-%N.%S.html', page], capture_output=True, text=True, check=True)
        (out / name).write_text(html.stdout, encoding='utf-8')
        rows.append((name, f'{page.stem}({page.suffix[1:]})'))
    return rows


def main():
    source, man, out = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    listed = [('Guide and reference', write_documents(source, out)), ('Manual pages', write_pages(man, out))]
    body = '<h1>Scored</h1>\n'
    for heading, rows in listed:
        items = '\n'.join(f'<li><a href="{name}">{title}</a></li>' for name, title in rows)
        body += f'<h2>{heading}</h2>\n<ul>\n{items}\n</ul>\n'
    (out / 'index.html').write_text(PAGE.format(title='Scored', body=body), encoding='utf-8')


main()
