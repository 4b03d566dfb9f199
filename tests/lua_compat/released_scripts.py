#!/usr/bin/env python3
"""The catalogue of known scripts beside what libraries release.

Fetches releases with the package managers' own clients, reads the Lua out of them, and asks
`known_of` what the node takes each text for. A script of a lock, token or limiter that RULES name
and the catalogue lacks is a failure. Nothing of what was fetched is kept in the repository.
A release that cannot be had is skipped and counted; 77 if that is all of them.
"""

import argparse
import ast
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True

FETCH_SECONDS = 900

REDISSON = """
3.11.6 3.12.5 3.13.6 3.14.1 3.15.6 3.16.0 3.16.8 3.17.0 3.17.7 3.18.1 3.19.0 3.19.3 3.20.1 3.21.3
3.22.1 3.23.0 3.23.5 3.24.3 3.25.2 3.26.1 3.27.2 3.28.0 3.29.0 3.30.0 3.32.0 3.34.1 3.36.0 3.38.1
3.40.2 3.42.0 3.44.0 3.45.1 3.46.0 3.48.0 3.50.0 3.52.0 4.7.0""".split()
SPRING = """
5.1.13.RELEASE 5.2.11.RELEASE 5.5.20 6.1.9 6.2.11 6.3.11 6.4.7 6.5.5 7.0.5 7.1.2""".split()


class Missing(Exception):
    """This release cannot be had."""


# --- where the Lua is ----------------------------------------------------------------------------

# How many bytes follow the tag of an entry of a class' constant pool.
POOL_BYTES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4,
              18: 4, 19: 2, 20: 2}
TAG_TEXT, TAG_LONG, TAG_DOUBLE, TAG_STRING = 1, 5, 6, 8


def class_strings(data):
    """The string constants of a class file. Java's compiler has joined those that are added up."""
    texts, strings = {}, []
    count, = struct.unpack_from('>H', data, 8)
    at, number = 10, 1
    while number < count:
        tag = data[at]
        if tag == TAG_TEXT:
            size, = struct.unpack_from('>H', data, at + 1)
            texts[number] = data[at + 3:at + 3 + size]
            at += 3 + size
        else:
            if tag == TAG_STRING:
                strings.append(struct.unpack_from('>H', data, at + 1)[0])
            at += 1 + POOL_BYTES[tag]
        number += 2 if tag in (TAG_LONG, TAG_DOUBLE) else 1
    return [texts[each].decode(errors='replace') for each in strings]


def sends(text):
    return 'redis.call' in text or 'redis.pcall' in text


def of_jar(path):
    with zipfile.ZipFile(path) as jar:
        for name in jar.namelist():
            if not name.endswith('.class'):
                continue
            data = jar.read(name)
            if b'redis.call' in data or b'redis.pcall' in data:
                # The outer class and the inner one's name.
                yield from ((Path(name).stem, text) for text in class_strings(data) if sends(text))


def of_python(path):
    for node in ast.walk(ast.parse(path.read_text(errors='replace'))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and sends(node.value):
            yield path.stem, node.value


def in_backticks(path):
    for text in re.findall(r'`([^`]*)`', path.read_text(errors='replace')):
        if sends(text) and '${' not in text:
            yield path.stem, text.replace('\\\n', '')  # a line goes on


OF_FILE = {'.jar': of_jar, '.py': of_python, '.js': in_backticks, '.mjs': in_backticks,
           '.cjs': in_backticks, '.go': in_backticks}


def of_folder(folder):
    """(place, text) of all below `folder`; archives among it are unpacked first."""
    for path in list(folder.rglob('*')):
        if path.suffix in ('.tgz', '.whl', '.zip') or path.name.endswith('.tar.gz'):
            into = path.with_name(path.name + '.d')
            shutil.unpack_archive(path, into, 'zip' if path.suffix in ('.whl', '.zip') else 'gztar')
    for path in sorted(folder.rglob('*')):
        is_test = any('test' in part.lower() for part in path.relative_to(folder).parts)
        if path.is_file() and path.suffix in OF_FILE and not is_test:
            yield from OF_FILE[path.suffix](path)
        elif path.is_file() and path.suffix == '.lua' and not is_test:
            text = path.read_text(errors='replace')
            if sends(text):
                yield path.stem, text


# --- how releases are fetched --------------------------------------------------------------------

def run(command, folder):
    if shutil.which(command[0]) is None:
        raise Missing(f'{command[0]} is not installed')
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                              errors='replace', capture_output=True, check=False,
                              timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise Missing(f'{command[0]} has not ended after {FETCH_SECONDS} s') from None
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines() or ['no word']
        raise Missing(f'{command[0]}: {lines[-1][:160]}')
    return done.stdout


def by_maven(name, version, folder):
    group, artifact = name.split(':')
    kept = Path.home().joinpath('.m2/repository', *group.split('.'), artifact, version,
                                f'{artifact}-{version}.jar')
    if kept.exists():
        shutil.copyfile(kept, folder / kept.name)
        return
    run(['mvn', '-B', '-q', 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy',
         f'-Dartifact={name}:{version}', f'-DoutputDirectory={folder}'], folder)


def by_npm(name, version, folder):
    run(['npm', 'pack', '--silent', f'{name}@{version}'], folder)


def by_pip(name, version, folder):
    run([sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '-d', str(folder),
         f'{name}=={version}'], folder)


def by_go(name, version, folder):
    (folder / 'go.mod').write_text('module released\n')
    output = run(['go', 'mod', 'download', '-json', f'{name}@{version}'], folder)
    place = re.search(r'"Dir": "([^"]+)"', output)
    if not place:
        raise Missing('go: no folder')
    shutil.copytree(place.group(1), folder / 'module')


# --- what must be known --------------------------------------------------------------------------

class Library:
    """`known`: places whose scripts must be in the catalogue, but for texts that `but` finds."""

    def __init__(self, fetch, name, versions, known='.', but=None):
        self.fetch, self.name, self.versions = fetch, name, versions
        self.known = re.compile(known)
        self.but = re.compile(but, re.DOTALL) if but else None

    def must_know(self, place, text):
        return bool(self.known.search(place)) and not (self.but and self.but.search(text))


RULES = (
    Library(by_maven, 'org.redisson:redisson', REDISSON,
            r'^Redisson(Base|Fenced|Spin)?Lock$|^LockTask$'),
    Library(by_maven, 'org.springframework.integration:spring-integration-redis', SPRING,
            'RedisLockRegistry'),
    Library(by_npm, 'redlock', ('4.2.0', '5.0.0-beta.2')),
    Library(by_npm, 'rate-limiter-flexible', ('11.4.0',)),
    # The increment of 4.x is left to the interpreter.
    Library(by_npm, 'rate-limit-redis', ('4.2.0', '6.0.1'), but='"INCR".*"PTTL".*totalHits'),
    Library(by_pip, 'redis', ('4.6.0', '5.0.8', '8.1.0'), '^lock$'),
    Library(by_pip, 'aioredlock', ('0.7.3',)),
    Library(by_go, 'github.com/go-redsync/redsync/v4', ('v4.13.0', 'v4.18.1')),
    Library(by_go, 'github.com/bsm/redislock', ('v0.9.4',)),
)


class Run:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.counts = Counter()
        self.seen = {}  # text: (what it is known as, why it is refused)
        self.lacking = []

    def ask(self, texts):
        new = [text for text in dict.fromkeys(texts) if text not in self.seen]
        if not new:
            return
        done = subprocess.run([self.program], input=b''.join(t.encode() + b'\0' for t in new),
                              capture_output=True, check=True)
        answers = [line.split('\t') for line in done.stdout.decode().splitlines()]
        if len(answers) != len(new):
            raise SystemExit(f'catalogue: {len(new)} texts, {len(answers)} answers')
        self.seen.update(zip(new, answers))

    def release(self, library, version):
        what = f'{library.name} {version}'
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            folder = Path(place)
            try:
                library.fetch(library.name, version, folder)
            except Missing as why:
                self.counts['skipped'] += 1
                print(f'{what}: skipped, {why}', flush=True)
                return
            found = list(of_folder(folder))
        self.counts['releases'] += 1
        self.ask([text for _, text in found])
        wanted = [(where, text) for where, text in found if library.must_know(where, text)]
        lacking = [(where, text) for where, text in wanted if self.seen[text][0] == '-']
        self.lacking += [(what, where, text) for where, text in lacking]
        self.counts['wanted'] += len(wanted)
        if not wanted:
            self.lacking.append((what, '', 'no script where RULES expect some'))
        refused = sum(self.seen[text][1] != '-' for _, text in found)
        print(f'{what}: {len(found)} scripts, {len(wanted)} of locks and tokens, {len(lacking)} of '
              f'these not known, {refused} refused for a command that is not there', flush=True)

    def tell(self, shows):
        printed = set()
        for what, where, text in self.lacking:
            if (where, text) not in printed:
                print(f'\nnot known: {what}, {where}\n{text}')
            printed.add((where, text))
        if shows:
            for text, (_, why) in self.seen.items():
                if why != '-':
                    print(f'\nrefused, {why}:\n{text}')
        known = sum(each[0] != '-' for each in self.seen.values())
        refused = sum(each[1] != '-' for each in self.seen.values())
        print(f'catalogue: {self.counts["releases"]} releases, {self.counts["skipped"]} skipped, '
              f'{len(self.seen)} texts, {known} known, {refused} refused for a command, '
              f'{self.counts["wanted"]} of locks and tokens, {len(printed)} of these not known')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--program', required=True, help='known_of')
    parser.add_argument('--only', default='', help='libraries whose name has this in it')
    parser.add_argument('--refused', action='store_true', help='show what a node refuses')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='semel-released-') as folder:
        one = Run(arguments.program, folder)
        for library in RULES:
            if arguments.only in library.name:
                for version in library.versions:
                    one.release(library, version)
    one.tell(arguments.refused)
    if one.lacking:
        return 1
    return 0 if one.counts['releases'] else 77


if __name__ == '__main__':
    sys.exit(main())
