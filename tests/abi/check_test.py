#!/usr/bin/env python3
"""Small libraries that check.py must take, and some that it must not. Ends with 77 where abidiff or
a compiler for C is not installed."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECK = Path(__file__).resolve().parent / 'check.py'
HEADER = '''
struct semel_options { int size; long memory; };
typedef struct semel_engine semel_engine;
'''
FIRST = '''
#include "include/semel.h"
struct semel_engine { int hidden; };
static semel_engine engine;
semel_engine *semel_open(const struct semel_options *options) {
  engine.hidden = options->size; return &engine;
}
int semel_claim(semel_engine *engine, const char *key) { return engine->hidden + key[0]; }
'''
# (what is done to header or library, exit code, a word of what is said)
CASES = (
    ('the same', lambda text: text, 0, 'as the baseline'),
    ('added', lambda text: text + 'int semel_more(void);\n' + (
        'int semel_more(void) { return 1; }\n' if 'include' in text else ''), 0, 'some added'),
    ('removed', lambda text: text.replace('int semel_claim', 'static inline int semel_claim'), 1,
     'taken away or changed'),
    ('a parameter', lambda text: text.replace('const char *key)', 'const char *key, int n)')
     .replace('key[0]', 'key[n]'), 1, 'taken away or changed'),
    ('a member', lambda text: text.replace('int size;', 'long more; int size;'), 1,
     'taken away or changed'),
    # A program that only holds a pointer to it is not affected.
    ('a member within', lambda text: text.replace('int hidden;', 'long more; int hidden;'), 0,
     'as the baseline'),
    ('a name of others', lambda text: text + (
        'int other(void) { return 1; }\n' if 'include' in text else ''), 1, 'other'),
)


def build(folder, name, change, types='-g'):
    source = folder / 'library.c'
    source.write_text(change(FIRST), encoding='utf-8')
    (folder / 'include').mkdir(exist_ok=True)
    (folder / 'include/semel.h').write_text(change(HEADER), encoding='utf-8')
    library = folder / f'{name}.so'
    subprocess.run(['cc', types, '-shared', '-fPIC', '-Wl,-soname,libsemel.so.0', source, '-o',
                    library], check=True, timeout=60)
    return library


def check(library, baseline, *words):
    done = subprocess.run([sys.executable, CHECK, library, '--baseline', baseline, '--header',
                           library.parent / 'include/semel.h', *words],
                          capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    for needed in ('cc', 'abidiff', 'abidw', 'nm'):
        if not shutil.which(needed):
            print(f'abi: skipped, {needed} is not installed')
            return 77
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        baseline = folder / 'baseline.xml'
        code, said = check(build(folder, 'first', str), baseline)
        failures += code != 1 or 'there is no' not in said
        code, said = check(folder / 'first.so', baseline, '--write')
        failures += code != 0
        if str(folder) in baseline.read_text(encoding='utf-8'):
            print('the baseline names the folder it was made in')
            failures += 1
        code, said = check(build(folder, 'bare', str, '-g1'), baseline)
        failures += code != 77 or 'without types' not in said
        for title, change, wanted, word in CASES:
            library = build(folder, 'changed', change)
            code, said = check(library, baseline)
            if code != wanted or word not in said:
                failures += 1
                print(f'{title}: {code}, not {wanted}: {said}')
    print(f'abi: {len(CASES)} libraries, {failures} judged wrongly')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
