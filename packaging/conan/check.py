#!/usr/bin/env python3
"""Creates the package of conanfile.py and checks it: check.py CONAN DIR.

CONAN is the program; its home, packages and builds are below DIR, and no remote is asked. The
package is created twice, with the core alone and with every part; its own test links and runs each
part, by cmake and by pkg-config. What must be refused is played as well: another C++ standard,
replication without storage, a package of the system that is missing, and a part that was not asked
for. Where libraft 0.22 is missing replication is left out, and the last line, which is the figure,
says so.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CREATE_SECONDS_MAX = 5400
PARTS = ('storage', 'net', 'replication', 'c', 'tools')
# As in the presets: eight sources are compiled as one.
UNITY = "{'CMAKE_UNITY_BUILD': 'ON', 'CMAKE_UNITY_BUILD_BATCH_SIZE': '8'}"
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print(f'conan: {what}', flush=True)


class Conan:
    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.home = folder / 'home'
        shutil.rmtree(self.home, ignore_errors=True)
        self.env = {**os.environ, 'CONAN_HOME': str(self.home)}
        self('profile', 'detect')
        # Without a remote nothing can be downloaded, whatever a recipe asks for.
        self('remote', 'remove', '*')

    def __call__(self, *words, seconds=120):
        return subprocess.run([str(word) for word in (self.program, *words)], env=self.env,
                              capture_output=True, text=True, timeout=seconds, check=False,
                              stdin=subprocess.DEVNULL)

    def build(self, verb, *words, standard='20', settings=()):
        jobs = os.environ.get('SEMEL_JOBS') or str(min(os.cpu_count() or 1, 2))
        return self(verb, *words, '-s', f'compiler.cppstd={standard}',
                    '-c', f'tools.build:jobs={jobs}',
                    '-c', f'tools.cmake.cmake_layout:test_folder={self.folder / "test"}',
                    '-c', 'tools.cmake.cmaketoolchain:generator=Ninja',
                    '-c', f'tools.cmake.cmaketoolchain:extra_variables={UNITY}', *settings,
                    seconds=CREATE_SECONDS_MAX)


def asked(parts):
    return [word for part in parts for word in ('-o', f'semel/*:{part}=True')]


def create(conan, parts, wanted):
    """One package; `wanted` is how often its own test must have said that it works."""
    done = conan.build('create', HERE, *asked(parts))
    said = done.stdout + done.stderr
    (conan.folder / f'create-{"-".join(parts) or "core"}.log').write_text(said, encoding='utf-8')
    expect(done.returncode == 0, f'no package with {parts or "the core"}:\n{said[-3000:]}')
    works = len(re.findall('once works|from C: works|^semel dedup: works', said, re.MULTILINE))
    expect(works == wanted, f'{works} programs work, not {wanted}, with {parts or "the core"}')
    return done.returncode == 0


def check_package(conan):
    """What is in the packages: licence and files for cmake, which do not say where it was built."""
    listed = json.loads(conan('list', 'semel/*:*', '--format=json').stdout)['Local Cache']
    count = 0
    for reference, recipe in listed.items():
        for revision in recipe['revisions'].values():
            for package in revision['packages']:
                path = Path(conan('cache', 'path', f'{reference}:{package}').stdout.strip())
                count += 1
                for name in ('licenses/LICENSE', 'lib/cmake/Semel/SemelConfig.cmake',
                             'include/semel/semel.hpp', 'lib/libsemel_engine.a'):
                    expect((path / name).exists(), f'no package has {name}')
                for held in (*path.rglob('*.cmake'), *path.rglob('*.pc')):
                    expect(str(conan.home) not in held.read_text(),
                           f'{held.name} names the place it was built at')
    expect(count == 2, f'{count} packages, not 2: their options do not tell them apart')


def check_refusals(conan):
    """Each ends before anything is built, and says why."""
    cases = (
        (('create', HERE), {'standard': '17'}, 'Current cppstd (17) is lower than the required'),
        (('create', HERE, *asked(['replication'])), {}, 'replication needs -o "semel/*:storage=T'),
        (('create', HERE, '-s', 'os=Windows'), {}, 'Semel runs on Linux'),
    )
    for words, options, reason in cases:
        done = conan.build(*words, **options)
        said = done.stdout + done.stderr
        expect(done.returncode != 0 and reason in said, f'no {reason!r} in:\n{said[-1500:]}')
    return len(cases) + check_bare_system(conan)


def check_bare_system(conan):
    """A system that has nothing: dpkg-query knows no package, apt-get says what it is asked for."""
    mock, asked_for = conan.folder / 'mock', conan.folder / 'mock/asked'
    shutil.rmtree(mock, ignore_errors=True)
    mock.mkdir()
    for name, script in (('dpkg-query', 'exit 1'), ('apt-get', f'echo "$@" >>"{asked_for}"')):
        (mock / name).write_text(f'#!/bin/sh\n{script}\n')
        (mock / name).chmod(0o755)
    conan.env['PATH'] = f'{mock}{os.pathsep}{os.environ["PATH"]}'
    done = conan.build('create', HERE)
    said = done.stdout + done.stderr
    expect(done.returncode != 0 and 'libxxhash-dev' in said and not asked_for.exists(),
           f'a package of the system that is missing is not named:\n{said[-1500:]}')
    conan.build('install', '--requires=semel/[*]', f'--output-folder={conan.folder / "install"}',
                settings=('-c', 'tools.system.package_manager:mode=install'))
    conan.env['PATH'] = os.environ['PATH']
    lines = asked_for.read_text().splitlines() if asked_for.exists() else []
    for wanted in ('update', 'install .*libxxhash-dev libssl-dev', 'install .*libboost1.8.-dev'):
        expect(any(re.search(wanted, line) for line in lines),
               f'apt-get is not asked to {wanted}: {lines}')
    return 1


def has_libraft():
    done = subprocess.run(['dpkg-query', '-W', '-f=${Version}', 'libraft-dev'], check=False,
                          capture_output=True, text=True, timeout=60)
    return done.stdout.startswith('0.22')


def main():
    conan = Conan(Path(sys.argv[1]), Path(sys.argv[2]).resolve())
    parts = [part for part in PARTS if part != 'replication' or has_libraft()]
    create(conan, [], 3)
    refused = check_refusals(conan)
    if create(conan, parts, 5):
        check_package(conan)
    print(f'conan: the core and {", ".join(parts)} created and tested, {refused} refused, '
          f'{"" if "replication" in parts else "replication LEFT OUT, "}{len(failures)} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
