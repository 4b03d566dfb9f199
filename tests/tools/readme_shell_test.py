#!/usr/bin/env python3
"""Each shell block of README.md runs as it stands: readme_shell_test.py SEMEL [LIBRARY PACKAGE]

`tools/run` is the program SEMEL, and port 6379 a free one; nothing else is changed. What a comment
names behind a command ("# outcome replay") must be in its output. The Python block runs with the
shared LIBRARY and the PACKAGE. Blocks that install or build are looked at, not run: tools/prove
consumers installs, and readme_test.py compares the packages. Ends with 77 without redis-cli.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRACE = '@@'  # in front of each command in the output


def blocks(language):
    return re.findall(rf'^```{language}\n(.*?)^```$', (ROOT / 'README.md').read_text(),
                      re.MULTILINE | re.DOTALL)


def prepare(folder, semel, redis_cli):
    """A folder in which the commands of a block find what they name."""
    run = folder / 'tools/run'
    run.parent.mkdir()
    run.write_text(f'#!/bin/bash\nexec "{semel}" "${{@/#6379/0}}"\n')
    shim = folder / 'bin/redis-cli'
    shim.parent.mkdir()
    shim.write_text('#!/bin/bash\n'
                    f'exec "{redis_cli}" -p "$(sed -n \'s/^port=//p\' ready)" "$@"\n')
    for program in (run, shim):
        program.chmod(0o755)
    for name in ('access.log', 'monday.log', 'tuesday.log'):
        (folder / name).write_text('1 2 3 4 5 6 /a\n1 2 3 4 5 6 /a\n2 2 3 4 5 6 /b\n')
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


def check(command, promise, output):
    if f'{TRACE}ended with' in output:
        sys.exit(f'{command}:{output}')
    if not command.startswith(('redis-cli', 'printf')):
        return 0
    # "(nil): the key is yours": what stands in front of a colon is the reply.
    words = promise.split(':')[0].replace('(nil)', '').replace(',', ' ').split()
    for word in words if not promise.startswith('a minute') else []:
        if word not in output.split():
            sys.exit(f'{command}: README.md promises {word!r}:{output}')
    if promise.startswith('(nil)') and output.strip():
        sys.exit(f'{command}: README.md promises (nil):{output}')
    return len(words)


def main():
    semel = Path(sys.argv[1]).resolve()
    redis_cli = shutil.which('redis-cli')
    if not redis_cli:
        print('readme: skipped, redis-cli is not installed')
        return 77
    ran = checked = 0
    for block in blocks('sh'):
        if block.startswith('apt-get'):
            continue
        if block.startswith('cmake'):
            steps = [line.split()[1] for line in block.strip().split('\n')]
            if steps != ['--preset', '--build', '--install']:
                sys.exit(f'README.md should configure, build and install, in this order: {steps}')
            continue
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder), semel, redis_cli)
            for command, promise, output in run_block(block, folder):
                ran += 1
                checked += check(command, promise, output)
    if len(sys.argv) > 2:
        for block in blocks('python'):
            environment = dict(os.environ, SEMEL_LIBRARY=sys.argv[2], PYTHONPATH=sys.argv[3])
            subprocess.run([sys.executable, '-B', '-c', block], env=environment, timeout=60,
                           check=True)
            ran += 1
    print(f'readme: {ran} commands ran, {checked} words of their replies are as promised')
    return 0 if ran > 10 and checked > 5 else 1


if __name__ == '__main__':
    sys.exit(main())
