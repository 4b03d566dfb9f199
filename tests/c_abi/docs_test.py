#!/usr/bin/env python3
"""The programs of docs/c-abi.md build and run.

docs_test.py PAGE COMPILER INCLUDE LIBRARY PACKAGE
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def run(what, *command, **how):
    done = subprocess.run(command, timeout=120, check=False, **how)
    if done.returncode != 0:
        sys.exit(f'docs: {what} ended with {done.returncode}')


def main():
    page, compiler, include, library, package = sys.argv[1:]
    text = Path(page).read_text(encoding='utf-8')
    blocks = re.findall(r'^```(\w+)\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    kinds = [kind for kind, _ in blocks]
    if kinds != ['c', 'python']:
        sys.exit(f'docs: the page has {kinds}; say here how each is run')
    with tempfile.TemporaryDirectory() as folder:
        source, program = f'{folder}/page.c', f'{folder}/page'
        Path(source).write_text(blocks[0][1], encoding='utf-8')
        directory = str(Path(library).resolve().parent)
        run('the build', compiler, '-std=c89', '-pedantic', '-Wall', '-Wextra', '-Werror',
            f'-I{include}', source, library, f'-Wl,-rpath,{directory}', '-o', program)
        run('the program', program)
        run('the script', sys.executable, '-c', blocks[1][1],
            env={**os.environ, 'SEMEL_LIBRARY': library, 'PYTHONPATH': package})
    print('docs: both programs of the page run')


if __name__ == '__main__':
    main()
