#!/usr/bin/env python3
"""Each block of README.md and docs/start runs as it stands, twice, in one folder for all pages:
readme_shell_test.py SEMEL [LIBRARY PACKAGE [COMPILER ARCHIVE...]]

`tools/run` is the program SEMEL, and port 6379 a free one; nothing else is changed. All blocks run
in the order of their pages, and then all of them again beside what they have left behind. No two
pages may use one namespace: a reader may leave a node running between them. What a comment
names behind a command ("# outcome replay") must be in its output. Blocks of Python run with the
shared LIBRARY and the PACKAGE; one that begins with its file's name ("# worker.py") is a file of
the page's shell. Blocks of C++ in docs/start are built by COMPILER with the ARCHIVEs, and run;
those of README.md are examples. Blocks that install or build are looked at, not run: tools/prove
consumers installs, and readme_test.py compares the packages. Ends with 77
without redis-cli or curl.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROSE = ('a minute',)  # comments that promise no words
TRACE = '@@'  # in front of each command in the output


def blocks(page, language):
    return re.findall(rf'^```{language}\n(.*?)^```$', page.read_text(), re.MULTILINE | re.DOTALL)


def lay_files(folder, files):
    for block in files:
        port = "port=int(open('ready').read().split('port=')[1].split()[0])"
        text = block.replace('port=6379', port)
        (folder / block.split()[1]).write_text(text)


def prepare(folder, semel, redis_cli):
    """A folder in which the commands of all pages find what they name."""
    run = folder / 'tools/run'
    run.parent.mkdir()
    run.write_text(f'#!/bin/bash\nexec "{semel}" "${{@/#6379/0}}"\n')
    shim = folder / 'bin/redis-cli'
    shim.parent.mkdir()
    shim.write_text('#!/bin/bash\n'
                    f'exec "{redis_cli}" -p "$(sed -n \'s/^port=//p\' ready)" "$@"\n')
    python = folder / 'bin/python3'
    python.write_text(f'#!/bin/bash\nexec "{redis_python()}" "$@"\n')
    for program in (run, shim, python):
        program.chmod(0o755)
    for name in ('access.log', 'monday.log', 'tuesday.log'):
        (folder / name).write_text('1 2 3 4 5 6 /a\n1 2 3 4 5 6 /a\n2 2 3 4 5 6 /b\n')
    (folder / 'people.csv.gz').write_bytes(gzip.compress(b'email\na@x.org\na@x.org\n'))
    (folder / 'events.jsonl').write_text('{"order": {"id": 7}}\n{"order": {"id": 7}}\n')


def run_block(block, folder):
    """[(command, what its comment promises, its output)]"""
    script, promises = ['set -u'], []
    for line in block.strip().split('\n'):
        command, _, promise = line.partition('  # ')
        promises.append((command.strip(), promise.strip()))
        script += [f'echo "{TRACE}"', f'{command.strip()} || echo "{TRACE}ended with $?"'
                   if not command.strip().endswith('&') else command.strip()]
    environment = dict(os.environ, PATH=f'{folder}/bin:{os.environ["PATH"]}')
    done = subprocess.run(['bash', '-c', '\n'.join(script)], cwd=folder, env=environment,
                          timeout=60, check=False, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    outputs = re.split(rf'^{TRACE}$', done.stdout, flags=re.MULTILINE)[1:]
    if len(outputs) != len(promises):
        sys.exit(f'the block ended early:\n{block}\n{done.stdout}')
    return [(*promise, output) for promise, output in zip(promises, outputs)]


def check(command, promise, output, pattern):
    if f'{TRACE}ended with' in output:
        sys.exit(f'{command}:{output}')
    if not re.match(pattern, command):
        return 0
    # "(nil): the key is yours": what stands in front of a colon is the reply.
    words = promise if promise.startswith('{') else promise.split(':')[0]
    words = words.replace('(nil)', '').replace(',', ' ').split()
    if promise.startswith(PROSE):
        words = []
    for word in words:
        if word not in output.replace(',', ' ').split():
            sys.exit(f'{command}: the page promises {word!r}:{output}')
    if promise.startswith('(nil)') and output.strip():
        sys.exit(f'{command}: the page promises (nil):{output}')
    return len(words)


def run_shell(page, folder):
    """(commands, words) of a page's shell, run in the folder."""
    pattern = r'redis-cli|printf'  # commands whose comments promise words
    if page.parent.name == 'start':
        pattern += r'|tools/run dedup|curl|cat|python3'
    ran = checked = 0
    lay_files(folder, [block for block in blocks(page, 'python')
                       if re.match(r'# \w+\.py\n', block)])
    for block in blocks(page, 'sh'):
        if block.startswith('apt-get'):
            continue
        if block.startswith('cmake'):
            steps = [line.split()[1] for line in block.strip().split('\n')]
            if steps != ['--preset', '--build', '--install']:
                sys.exit(f'{page.name} should configure, build and install, in this order: {steps}')
            continue
        if 'python3 ' in block and not redis_python():
            print(f'{page.name}: skipped, a block that needs python3-redis')
            continue
        for command, promise, output in run_block(block, folder):
            ran += 1
            checked += check(command, promise, output, pattern)
        if (folder / 'ready').exists():
            sys.exit(f'{page.name}: the ready file is still there behind\n{block}')
    return ran, checked


def run_shells(pages, semel, redis_cli):
    """(commands, words) of the pages' shell, which runs twice."""
    ran = checked = 0
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), semel, redis_cli)
        for _ in range(2):
            for page in pages:
                commands, words = run_shell(page, Path(name))
                ran, checked = ran + commands, checked + words
    return ran, checked


NAMESPACE = re.compile(
    r"SEMEL\.(?:NAMESPACE|CLAIM|COMPLETE|INFLIGHT)(?:', '| )(\w+)"  # shell, and Redis' clients
    r"|new Claims\(redis, '(\w+)'|semel\.New\(rdb, \"(\w+)\"|semel\.once\(\"(\w+)\"")


def check_namespaces(pages):
    """Ends the test if two pages use one namespace of a node."""
    owners = {}
    for page in pages:
        for found in NAMESPACE.finditer(page.read_text()):
            name = found[found.lastindex]
            other = owners.setdefault(name, page)
            if other != page:
                sys.exit(f'{other} and {page} use the namespace {name!r}')
    return len(owners)


def redis_python():
    """A Python that has redis-py; None: there is none."""
    for python in (shutil.which('python3'), '/usr/bin/python3'):
        if python and subprocess.run([python, '-c', 'import redis'], check=False,
                                     stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def run_python(page, library, package):
    environment = dict(os.environ, SEMEL_LIBRARY=library, PYTHONPATH=package)
    chosen = [block for block in blocks(page, 'python') if not block.startswith('#')]
    for block in chosen:
        subprocess.run([sys.executable, '-B', '-c', block], env=environment, timeout=60, check=True)
    return len(chosen)


def run_cpp(page, compiler, archives):
    chosen = blocks(page, 'cpp')
    for block in chosen:
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / 'page.cpp', Path(folder) / 'page'
            source.write_text(block)
            subprocess.run([compiler, '-std=c++20', '-Wall', '-Wextra', '-Werror',
                            f'-I{ROOT}/include', source, *archives, '-pthread', '-o', program],
                           timeout=300, check=True)
            subprocess.run([program], timeout=60, check=True)
    return len(chosen)


def main():
    semel = Path(sys.argv[1]).resolve()
    redis_cli = shutil.which('redis-cli')
    if not redis_cli or not shutil.which('curl'):
        print('readme: skipped, redis-cli or curl is not installed')
        return 77
    starts = sorted((ROOT / 'docs/start').glob('*.md'))
    clients = sorted((ROOT / 'clients').glob('*/README.md'))
    if check_namespaces([ROOT / 'README.md', *starts, *clients]) < 2 + len(clients):
        sys.exit('the pages name fewer namespaces than there are clients')
    pages = [ROOT / 'README.md', *starts]
    ran, checked = run_shells(pages, semel, redis_cli)
    for page in pages:
        languages = set(re.findall(r'^```(\w+)$', page.read_text(), re.MULTILINE))
        if not languages <= {'sh', 'python', 'cpp', 'cmake'}:
            sys.exit(f'{page.name} has code that nothing here runs: {languages}')
        if len(sys.argv) > 2:
            ran += run_python(page, *sys.argv[2:4])
        if len(sys.argv) > 4 and page in starts:
            ran += run_cpp(page, sys.argv[4], sys.argv[5:])
    print(f'readme: {ran} commands ran, {checked} words of their replies are as promised')
    return 0 if ran > 120 and checked > 100 else 1


if __name__ == '__main__':
    sys.exit(main())
