"""The five minutes of Java, Python, Go and Node.js, as their pages have them, twice in one system.

A block of a page that follows a line which ends in "`name.ext`:" is that file. The blocks of shell
are played as they stand, in one shell for all that the page shows: folder and variables are kept
from block to block. Replaced is only this: apt-get does not ask, and in the checkout `tools/run`
starts the installed program, as docs/start says. A block that starts a node has no network but its
own loopback, so what it needs was fetched before. What a comment promises behind a program of the
page ("# receipt 12") must be in the program's output, in that order.
"""

import re
import shutil
import subprocess
import sys
import time

from bare import ROOT, Skip, expect

sys.path.insert(0, str(ROOT / 'tests/clients'))

from suites import OUT_OF_REACH, TOO_OLD  # noqa: E402

# The page, its headings, and what the checkout has for it.
PAGES = {
    'go': ('clients/go/README.md', ('Five minutes',), ('clients/go',)),
    'java': ('clients/java/README.md', ('Five minutes',), ('clients/java',)),
    'node': ('clients/node/README.md', ('Five minutes',), ('clients/node',)),
    'python': ('docs/start/python.md', ('In process', 'With a node'), ()),
}
CHECKOUT = 'root/semel'
FILE = re.compile(r'`([\w./]+\.\w+)`:\n\n$')
PROGRAMS = re.compile(r'go run|java |node |python3 \w+\.py|redis-cli')
FETCHES = re.compile(r'.*\b(go (mod tidy|build)|mvn|npm|pip)\b')
UNREACHED = re.compile(OUT_OF_REACH.pattern + '|unable to find valid certification path|'
                       'SELF_SIGNED_CERT|CERTIFICATE_VERIFY_FAILED|signed by unknown authority',
                       re.I)
OUTDATED = re.compile(TOO_OLD.pattern + '|is not in GOROOT')
TRACE = '@@'
STATE = '/root/.story'  # between the blocks


class Step:
    """A block of a page: a file (`name`), or commands (`name` is None)."""

    def __init__(self, name, text):
        self.name = name
        self.text = text


def steps_of(page, headings):
    text = (ROOT / page).read_text(encoding='utf-8')
    found = []
    for heading in headings:
        section = re.search(rf'^## {heading}\n(.*?)(?=^## |\Z)', text, re.S | re.M)
        if not section:
            raise SystemExit(f'{page} has no {heading!r}')
        for block in re.finditer(r'^```(\w+)\n(.*?)^```$', section[1], re.S | re.M):
            name = FILE.search(section[1][:block.start()])
            if block[1] != 'sh' and not name:
                raise SystemExit(f'{page} does not say which file this is:\n{block[2]}')
            found.append(Step(name[1] if block[1] != 'sh' else None, block[2]))
    if sum(step.name is None for step in found) < 2:
        raise SystemExit(f'{page} shows no commands below {headings}')
    return found


def promises(block):
    """[(command, the words that its output must have)]"""
    pairs = []
    for line in block.strip().split('\n'):
        command, _, comment = (part.strip() for part in line.partition('  # '))
        pairs.append((command, comment.split() if PROGRAMS.match(command) else []))
    return pairs


def script_of(block):
    """Each command ends the block if it fails; its number and what it ended with are printed."""
    lines = ['set +e -a', f'. {STATE}/variables', f'cd "$(cat {STATE}/folder)"']
    for command, _ in promises(block):
        unattended = command.replace('apt-get install', 'apt-get -qy install')
        lines += [f'echo; echo "{TRACE}"', unattended]  # what was printed may end in no newline
        if not command.endswith('&'):
            lines.append(f'code=$?; [ $code -eq 0 ] || '
                         f'{{ echo "{TRACE}ended with $code"; exit 1; }}')
    lines += [f'export -p >{STATE}/variables', f'pwd >{STATE}/folder']
    return 'exec 2>&1\n' + '\n'.join(lines)


def alone(block):
    """Whether it has no network: it starts a node."""
    return ' --port ' in block


def in_order(words, output):
    """The first word that is not in the output behind the ones before it, or None."""
    rest = iter(output.split())
    return next((word for word in words if word not in rest), None)


def check(system, block, done):
    """Whether all commands did what the page says."""
    outputs = re.split(rf'^{TRACE}$', done.stdout, flags=re.M)[1:]
    pairs = promises(block)
    for (command, words), output in zip(pairs, outputs):
        if f'{TRACE}ended with' in output:
            if FETCHES.match(command) and not alone(block):
                for pattern, why in ((UNREACHED, 'the packages are out of reach'),
                                     (OUTDATED, 'what this system has is too old')):
                    if pattern.search(output):
                        raise Skip(f'{command}: {why}')
            return expect(False, f'{system.name}: {command}:\n{output[-3000:]}')
        missing = in_order(words, output)
        if missing:
            return expect(False, f'{system.name}: {command}: the page promises {missing!r}:\n'
                                 f'{output[-2000:]}')
    return expect(len(outputs) == len(pairs) and done.returncode == 0,
                  f'{system.name}: the block ended early:\n{block}{done.stdout[-2000:]}'
                  f'{done.stderr[-500:]}')


def lay_checkout(system, audience):
    """What the page names of a checkout."""
    checkout = system.folder / CHECKOUT
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z', '--cached', '--others',
                             '--exclude-standard', '--', *PAGES[audience][2]],
                            capture_output=True, text=True, check=True).stdout.split('\0')
    for name in filter(None, listed if PAGES[audience][2] else ()):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, checkout / name)
    run = checkout / 'tools/run'
    run.parent.mkdir(parents=True, exist_ok=True)
    run.write_text('#!/bin/sh\nexec semel "$@"\n')
    run.chmod(0o755)
    if audience == 'python':
        wheels = list((ROOT / 'build/wheel/dist').glob('*.whl'))
        if not wheels:
            raise Skip('tools/package wheel made no wheel')
        place = checkout / 'build/wheel/dist'
        place.mkdir(parents=True)
        for wheel in wheels:
            shutil.copy(wheel, place)
    settings = ROOT.home() / '.m2/settings.xml'  # where this machine's Maven finds its registry
    if audience == 'java' and settings.exists():
        (system.folder / 'root/.m2').mkdir()
        shutil.copy(settings, system.folder / 'root/.m2')


def play_page(system, steps):
    """Plays the steps in a new shell in the checkout. False: one did not do what the page says."""
    state = system.folder / STATE[1:]
    state.mkdir(exist_ok=True)
    (state / 'variables').write_text('')
    (state / 'folder').write_text(f'/{CHECKOUT}\n')
    for step in steps:
        if step.name:
            folder = system.folder / (state / 'folder').read_text().strip()[1:]
            (folder / step.name).write_text(step.text, encoding='utf-8')
            continue
        first = promises(step.text)[0][0]
        done = system.play(first, script_of(step.text), alone(step.text))
        if not check(system, step.text, done):
            return False
    return True


def play(base, audience, common):
    """Plays the audience's page in a copy of `base`: the number of steps. `common`: the seconds
    that it took to make `base`. Skip: a registry or the wheel cannot be had, or what the system has
    is too old."""
    started = time.monotonic()
    page, headings, _ = PAGES[audience]
    system = base.copy(audience)
    try:
        lay_checkout(system, audience)
        own = None
        for _ in range(2):  # a reader begins again beside what the first time left behind
            if not play_page(system, steps_of(page, headings)):
                return system.steps
            own = own or time.monotonic() - started
    finally:
        shutil.rmtree(system.folder, ignore_errors=True)
    print(f'{audience:<9} {(common + own) / 60:.1f} minutes, {common / 60:.1f} of them for the '
          'system and the node', flush=True)
    return system.steps
