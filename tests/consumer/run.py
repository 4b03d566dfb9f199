#!/usr/bin/env python3
"""Semel as users get it: installed into a folder that is then moved, and as source.

run.py [--build DIR] [--work DIR] [--allow-missing] [--long]

Eight programs are built and run: by find_package, FetchContent, add_subdirectory, pkg-config, from
C, from Python, of services that form a group, and of services that are nodes of one. A program
whose library is not there yet counts as not working; --allow-missing lets the run end well
nevertheless. Where libraft cannot be had, find_package must say that replication was left out. Also
reported: what the core adds to a program, and how long its header takes to compile. By
add_subdirectory all of it is built once more: the core as by FetchContent, whose objects a ccache
has, and the rest eight files together; with --long each by itself, which shows a header that was
forgotten, and takes many minutes. The last line is `consumers: N of 8 work`, and names what fell
short.
"""

import argparse
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / 'tests/consumer'
CORE_BYTES_MAX = 1 << 20
README_CMAKE_MAX = 4
README_CPP_MAX = 12
ONCE_SECONDS_GOAL = 0.5


class Absent(Exception):
    """What a consumer needs is not there."""


class Broken(Exception):
    """Something does not hold; the text says what."""


def run(*command, env=None, cwd=None, seconds=1500):
    """Output of a command that must end well."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True,
                          timeout=seconds, check=False)
    if done.returncode != 0:
        raise Broken(f'{shlex.join(words)} ended with {done.returncode}:\n'
                     f'{done.stdout[-4000:]}{done.stderr[-4000:]}')
    return done.stdout


def generator():
    """A system that has ninja may have no make, which cmake would choose."""
    return ['-G', 'Ninja'] if shutil.which('ninja') else []


def configure(source, build, *options):
    """A project of cmake's, configured anew and built with at most two compilers at a time."""
    shutil.rmtree(build, ignore_errors=True)
    ccache = ['-DCMAKE_CXX_COMPILER_LAUNCHER=ccache'] if shutil.which('ccache') else []
    said = run('cmake', '-S', source, '-B', build, *generator(), *ccache, *options)
    jobs = os.environ.get('SEMEL_JOBS') or str(min(os.cpu_count() or 1, 2))
    run('cmake', '--build', build, '--parallel', jobs)
    return said


class Consumers:
    def __init__(self, build, work, together):
        self.build = build
        self.together = together  # options of cmake's
        self.work = work
        self.prefix = work / 'prefix'
        libraries = [path.parent for path in self.prefix.rglob('libsemel_engine.a')]
        self.lib = libraries[0] if libraries else self.prefix / 'lib'
        self.env = dict(os.environ, PKG_CONFIG_PATH=str(self.lib / 'pkgconfig'),
                        LD_LIBRARY_PATH=str(self.lib))

    def storage(self):
        return tempfile.TemporaryDirectory(dir=self.work, prefix='storage_')

    def launch(self, program, *arguments):
        return run(program, *arguments, env=self.env, seconds=60).strip()

    def pkg_config(self, *arguments):
        return shlex.split(run('pkg-config', *arguments, env=self.env))

    def has_replication(self):
        return (self.lib / 'cmake/Semel/Semel-replication-targets.cmake').exists()

    # --- the eight ----------------------------------------------------------------------------

    def find_package(self):
        where = self.work / 'find_package'
        configure(HERE / 'find_package', where, f'-DCMAKE_PREFIX_PATH={self.prefix}')
        self.check_refusals()
        for name in ('links_core', 'links_engine'):
            self.launch(where / name)
        with self.storage() as folder:
            self.launch(where / 'links_semel', Path(folder) / 'others')
            return self.launch(where / 'consumer', Path(folder) / 'orders')

    def check_refusals(self):
        """A missing component is named."""
        without = 'set(CMAKE_DISABLE_FIND_PACKAGE_RocksDB ON)\n'
        self.check_messages(
            self.prefix,
            ('', 'Semel 0.2 CONFIG REQUIRED COMPONENTS wings', 'component wings is none of'),
            (without, 'Semel CONFIG REQUIRED COMPONENTS storage',
             'component storage needs RocksDB'),
            (without, 'Semel CONFIG REQUIRED', 'component storage needs RocksDB'),
            (without, 'Semel CONFIG REQUIRED COMPONENTS core', ''),
            ('', f'Semel {self.later_minor()} CONFIG REQUIRED',
             'compatible with requested version'))

    @staticmethod
    def later_minor():
        version = run(ROOT / 'tools/version').strip()
        major, minor, _ = version.split('.')
        return f'{major}.{int(minor) + 1}'

    def check_messages(self, prefix, *cases):
        """Each case: lines before the call, the call, and what it must say (nothing: it works)."""
        project = self.work / 'refusal'
        project.mkdir(exist_ok=True)
        for first, call, wanted in cases:
            (project / 'CMakeLists.txt').write_text(
                'cmake_minimum_required(VERSION 3.25)\nproject(Refusal LANGUAGES CXX)\n'
                f'{first}find_package({call})\n', encoding='utf-8')
            shutil.rmtree(project / 'build', ignore_errors=True)
            done = subprocess.run(
                ['cmake', '-S', str(project), '-B', str(project / 'build'), *generator(),
                 f'-DCMAKE_PREFIX_PATH={prefix}'],
                capture_output=True, text=True, timeout=120, check=False)
            said = ' '.join((done.stdout + done.stderr).split())
            if (done.returncode != 0) != bool(wanted) or wanted not in said:
                raise Broken(f'{first}find_package({call}) should say {wanted!r}:\n{said}')

    def fetch_content(self):
        where = self.work / 'fetch_content'
        configure(HERE / 'fetch_content', where, f'-DSEMEL_SOURCE={ROOT}', *self.together)
        others = [path.name for path in where.rglob('libsemel_*.a')
                  if path.name not in ('libsemel_engine.a', 'libsemel_patterns.a')]
        if others:
            raise Broken(f'built without being asked for: {" ".join(others)}')
        return self.launch(where / 'consumer')

    def add_subdirectory(self):
        where = self.work / 'add_subdirectory'
        replication = self.has_replication()
        configure(HERE / 'add_subdirectory', where, f'-DSEMEL_SOURCE={ROOT}', *self.together,
                  f'-DREPLICATION={"ON" if replication else "OFF"}')
        with self.storage() as folder:
            if replication:
                self.launch(where / 'group', Path(folder) / 'group')
                self.launch(where / 'group_node', Path(folder) / 'nodes')
            return self.launch(where / 'consumer', Path(folder) / 'orders')

    def by_pkg_config(self):
        where = self.work / 'pkg_config'
        where.mkdir(exist_ok=True)
        source = HERE / 'pkg_config/main.cpp'
        compiler = ['g++', '-std=c++20', '-O1', source]
        core = where / 'core'
        run(*compiler, '-o', core, *self.pkg_config('--cflags', '--libs', 'semel-core'))
        said = self.launch(core)
        # The program of find_package, with all there is.
        every = where / 'every'
        run(*compiler[:-1], HERE / 'find_package/main.cpp', '-o', every,
            *self.pkg_config('--cflags', '--libs', 'semel-storage', 'semel-net', 'semel-signed',
                             'semel-json'))
        # What needs nothing of the machine it runs on.
        static = where / 'static'
        run(*compiler, '-DSEMEL_CONSUMER_STORAGE', '-static', '-o', static,
            *self.pkg_config('--static', '--cflags', '--libs', 'semel-storage'))
        for program in (every, static):
            with self.storage() as folder:
                self.launch(program, Path(folder) / 'jobs')
        return said

    def shared_library(self):
        if not (self.lib / 'libsemel.so.0').exists():
            raise Absent('there is no libsemel.so.0')

    def from_c(self):
        self.shared_library()
        source = HERE / 'c/main.c'
        if not source.exists():
            raise Absent(f'there is no {source.relative_to(ROOT)}')
        program = self.work / 'from_c'
        run('cc', '-std=c11', '-Wall', '-Wextra', '-Werror', source, '-o', program,
            *self.pkg_config('--cflags', '--libs', 'semel'))
        with self.storage() as folder:
            return self.launch(program, Path(folder) / 'orders')

    def from_python(self):
        self.shared_library()
        source = HERE / 'python/main.py'
        for needed in (ROOT / 'bindings/python', source):
            if not needed.exists():
                raise Absent(f'there is no {needed.relative_to(ROOT)}')
        env = dict(self.env, PYTHONPATH=str(ROOT / 'bindings/python'),
                   SEMEL_LIBRARY=str(self.lib / 'libsemel.so.0'), PYTHONDONTWRITEBYTECODE='1')
        with self.storage() as folder:
            return run(sys.executable, source, Path(folder) / 'orders', env=env,
                       seconds=120).strip()

    def services(self):
        """Three that form a group, by find_package and by pkg-config."""
        call = 'Semel CONFIG REQUIRED COMPONENTS replication'
        self.check_without_libraft()
        if not self.has_replication():
            return 'left out, as libraft was not there; find_package says so'
        old = self.work / 'old_raft'
        old.mkdir(exist_ok=True)
        (old / 'raft.h').write_text('#define RAFT_VERSION_MAJOR 0\n#define RAFT_VERSION_MINOR 15\n'
                                    '#define RAFT_VERSION_RELEASE 0\n', encoding='utf-8')
        cached = 'set({} {} CACHE PATH "")\n'.format
        self.check_messages(
            self.prefix,
            (cached('SEMEL_RAFT_INCLUDE', old), call, 'libraft 0.22.1 to 0.22.x, found: 0.15.0'),
            (cached('SEMEL_RAFT_LIBRARY', '""'), call, 'to 0.22.x, found: none'),
            ('set(CMAKE_DISABLE_FIND_PACKAGE_OpenSSL ON)\n', call, "needs OpenSSL's libssl"),
            ('set(CMAKE_DISABLE_FIND_PACKAGE_RocksDB ON)\n', call, 'replication needs RocksDB'),
            ('set(CMAKE_DISABLE_FIND_PACKAGE_Boost ON)\n', call, ''))
        return self.each_way('replication', ('static', ('-static',)))

    def check_without_libraft(self):
        """As if it had not been there when Semel was built."""
        lacking = self.work / 'lacking'
        shutil.rmtree(lacking, ignore_errors=True)
        shutil.copytree(self.prefix, lacking, symlinks=True, copy_function=os.link)
        for part in ('replication', 'group'):
            for path in lacking.rglob(f'Semel-{part}-targets*.cmake'):
                path.unlink()
        component = 'Semel CONFIG REQUIRED COMPONENTS {}'.format
        self.check_messages(
            lacking,
            ('', component('replication'), 'component replication is not installed: Semel was '
                                           'built without it, which needs libraft 0.22.1'),
            ('', component('group'), 'component group is not installed: Semel was built without '
                                     'net or replication, which needs libraft 0.22.1'),
            ('', component('storage'), ''), ('', component('net'), ''))

    def each_way(self, name, *others):
        """The program of a folder by find_package, by pkg-config, and by that with options."""
        where = self.work / name
        configure(HERE / name, where, f'-DCMAKE_PREFIX_PATH={self.prefix}')
        programs = [where / 'consumer']
        for way, options in (('by_hand', ()), *others):
            programs.append(where / way)
            run('g++', '-std=c++20', '-O1', *options, HERE / f'{name}/main.cpp', '-o',
                programs[-1], *self.pkg_config(*['--static'] * bool(options), '--cflags', '--libs',
                                               f'semel-{name}'))
        for program in programs:
            with self.storage() as folder:
                said = self.launch(program, Path(folder) / 'group')
        return said

    def nodes(self):
        """Three that are nodes of a group, one of them in a process that is killed."""
        if not self.has_replication():
            return 'left out, as libraft was not there'
        call = 'Semel CONFIG REQUIRED COMPONENTS group'
        self.check_messages(
            self.prefix,
            ('set(CMAKE_DISABLE_FIND_PACKAGE_OpenSSL ON)\n', call, "group needs OpenSSL's libssl"),
            ('set(CMAKE_DISABLE_FIND_PACKAGE_RocksDB ON)\n', call, 'group needs RocksDB'),
            ('set(CMAKE_DISABLE_FIND_PACKAGE_Boost ON)\n', call, ''),
            ('', 'Semel CONFIG REQUIRED COMPONENTS net group replication storage', ''))
        return self.each_way('group', ('static', ('-static',)))

    # --- what else holds ------------------------------------------------------------------------

    def check_paths(self):
        """Nothing that is installed names the place it was built at. Line numbers of programs and
        archives do, until they are stripped."""
        marks = [str(path).encode() for path in (ROOT, self.build, self.work)]
        for path in sorted(self.prefix.rglob('*')):
            if path.is_symlink() or not path.is_file():
                continue
            data = path.read_bytes()
            if data.startswith((b'\x7fELF', b'!<arch>')):
                copy = self.work / 'stripped'
                run('strip', '--strip-debug', '-o', copy, path)
                data = copy.read_bytes()
                copy.unlink()
            found = [mark.decode() for mark in marks if mark in data]
            if found:
                raise Broken(f'{path.relative_to(self.prefix)} names {found[0]}')

    def check_readme(self):
        """The first C++ and the first cmake of README.md make a program, and are as short as they
        are said to be."""
        page = (ROOT / 'README.md').read_text(encoding='utf-8')
        blocks = {}
        for language, limit in (('cmake', README_CMAKE_MAX), ('cpp', README_CPP_MAX)):
            found = re.search(rf'```{language}\n(.*?)```', page, re.S)
            if not found:
                raise Broken(f'README.md shows no {language}')
            mark = '#' if language == 'cmake' else '//'
            lines = [line for line in found.group(1).split('\n')
                     if line.strip() and not line.strip().startswith(mark)]
            if len(lines) > limit:
                raise Broken(f'README.md needs {len(lines)} lines of {language}, not {limit}')
            blocks[language] = found.group(1), len(lines)
        cmake, cmake_lines = blocks['cmake']
        cpp, cpp_lines = blocks['cpp']
        where = self.work / 'readme'
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        target = re.search(r'target_link_libraries\((\w+)', cmake)
        if not target:
            raise Broken('README.md links nothing')
        # The folder that it is fetched from is the reader's own; here it is this one.
        cmake = re.sub(r'(SOURCE_DIR |add_subdirectory\()[^\s)]+', rf'\g<1>"{ROOT}"', cmake)
        if f'add_executable({target.group(1)}' not in cmake:
            cmake = f'add_executable({target.group(1)} main.cpp)\n{cmake}'
        (where / 'CMakeLists.txt').write_text(
            f'cmake_minimum_required(VERSION 3.25)\nproject(Readme LANGUAGES CXX)\n{cmake}',
            encoding='utf-8')
        for name in {'main.cpp', *re.findall(r'\b[\w]+\.cpp\b', cmake)}:
            (where / name).write_text(cpp, encoding='utf-8')
        # As deep as that of FetchContent: a ccache with a base_dir takes its objects, too.
        built = self.work / 'readme_build'
        configure(where, built, f'-DCMAKE_PREFIX_PATH={self.prefix}', *self.together)
        self.launch(built / target.group(1))
        print(f'readme: {cmake_lines} lines of cmake (at most {README_CMAKE_MAX}), '
              f'{cpp_lines} of C++ (at most {README_CPP_MAX}); the program works')

    def check_size(self):
        """What the core adds to a stripped program."""
        sizes = []
        flags = self.pkg_config('--cflags', '--libs', 'semel-core')
        for name, options in (('without', ['-DWITHOUT_SEMEL']), ('with', [])):
            program = self.work / f'size_{name}'
            run('g++', '-std=c++20', '-O2', *options, HERE / 'size/main.cpp', '-o', program, *flags)
            if self.launch(program, 'k') != 'paid':
                raise Broken(f'size_{name} does not work')
            run('strip', program)
            sizes.append(program.stat().st_size)
        added = sizes[1] - sizes[0]
        print(f'size: Semel::core adds {added / 1024:.0f} KiB to a stripped program of '
              f'{sizes[0] / 1024:.0f} KiB; at most {CORE_BYTES_MAX // 1024} KiB')
        if added > CORE_BYTES_MAX:
            raise Broken(f'Semel::core adds {added} bytes')

    def tell_compile_time(self):
        """User time of the compiler for one header alone, the best of three. Reported, not judged:
        the machine may be a slow one."""
        name = 'patterns/once.hpp'
        if not (self.prefix / 'include/semel' / name).exists():
            name = 'semel.hpp'
        source = self.work / 'header.cpp'
        source.write_text(f'#include <semel/{name}>\n', encoding='utf-8')
        flags = self.pkg_config('--cflags', 'semel-core')
        best = None
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            run('g++', '-std=c++20', '-fsyntax-only', *flags, source)
            took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            best = took if best is None else min(best, took)
        print(f'header: <semel/{name}> takes {best:.2f} s of user time to compile; '
              f'the goal for once.hpp is {ONCE_SECONDS_GOAL} s')


def install(build, work):
    """Installs into one folder and moves it: what is in it must not remember where it was."""
    for name in ('staged', 'prefix'):
        shutil.rmtree(work / name, ignore_errors=True)
    run('cmake', '--install', build, '--prefix', work / 'staged')
    (work / 'staged').rename(work / 'prefix')


def main():
    parser = argparse.ArgumentParser(description='Builds and runs what uses Semel from outside.')
    parser.add_argument('--build', type=Path, default=ROOT / 'build/release')
    parser.add_argument('--work', type=Path, default=ROOT / 'build/consumers')
    parser.add_argument('--allow-missing', action='store_true',
                        help='a program whose library is not there does not fail the run')
    parser.add_argument('--long', action='store_true', help='each file is compiled by itself')
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    try:
        install(arguments.build.resolve(), work)
    except Broken as broken:
        print(broken)
        return 1
    together = [] if arguments.long else ['-DCMAKE_UNITY_BUILD=ON',
                                          '-DCMAKE_UNITY_BUILD_BATCH_SIZE=8']
    consumers = Consumers(arguments.build.resolve(), work, together)
    working = missing = 0
    fell_short = []
    every = (('find_package', consumers.find_package),
             ('FetchContent', consumers.fetch_content),
             ('add_subdirectory', consumers.add_subdirectory),
             ('pkg-config', consumers.by_pkg_config), ('C', consumers.from_c),
             ('Python', consumers.from_python), ('replication', consumers.services),
             ('group', consumers.nodes))
    for name, consumer in every:
        try:
            said = consumer()
            working += 1
            print(f'{name}: works ({said.splitlines()[-1] if said else "silent"})', flush=True)
        except Absent as absent:
            missing += 1
            print(f'{name}: absent, {absent}', flush=True)
        except Broken as broken:
            fell_short.append(name)
            print(f'{name}: BROKEN, {broken}', flush=True)
    for check in (consumers.check_paths, consumers.check_readme, consumers.check_size,
                  consumers.tell_compile_time):
        try:
            check()
        except Broken as broken:
            fell_short.append(check.__name__)
            print(f'{check.__name__}: BROKEN, {broken}', flush=True)
    short = f'; fell short: {", ".join(fell_short)}' if fell_short else ''
    print(f'consumers: {working} of {len(every)} work{short}')
    enough = len(every) - (missing if arguments.allow_missing else 0)
    return 0 if working >= enough and not fell_short else 1


if __name__ == '__main__':
    sys.exit(main())
