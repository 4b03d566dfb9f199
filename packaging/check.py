#!/usr/bin/env python3
"""Checks Debian packages of Semel without installing them: check.py DIR, with the .deb in it.

Unpacks each, runs the program that is in them, plays installation, upgrade, removal and purge of
the node in a root of its own where that is possible, and asks lintian. Prints what lintian finds;
an error of its fails. Packages for another processor need --architecture NAME, and --root DIR of
packaging/cross/root.py, where its libraries are; --emulator PROGRAM runs the program there, with
-L DIR. The last line is the figure.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPECTED = ('libsemel-dev', 'libsemel0', 'libsemel0-dbgsym', 'semel-node', 'semel-tools',
            'semel-tools-dbgsym')
NODE_SECONDS_MAX = 60
failures = []


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=600, check=False, **options)


class Machine:
    """What the packages are for, and how its programs run here."""

    # As readelf names them.
    PROCESSORS = {'amd64': 'X86-64', 'arm64': 'AArch64'}

    def __init__(self, arguments):
        native = run('dpkg', '--print-architecture').stdout.strip()
        self.architecture = arguments.architecture or native
        self.emulator = [arguments.emulator, '-L', arguments.root] if arguments.emulator else []
        # Where dpkg knows the libraries of that processor.
        self.database = [f'--admindir={arguments.root}/var/lib/dpkg'] if arguments.root else []

    def run(self, program, *words, **options):
        return run(*self.emulator, program, *words, **options)

    def owners(self, library):
        """The packages that have it."""
        said = run('dpkg-query', *self.database, '--search', f'*/{library}').stdout
        return {name for names in re.findall(r'^(.*?): /', said, re.MULTILINE)
                for name in re.findall(r'([\w.+-]+)(?::\w+)?', names)}


def expect(condition, what):
    if not condition:
        failures.append(what)
        print(f'package: {what}')


def unpack(packages, where):
    """All packages in one tree, as they would be on a machine; control files beside it."""
    names = {}
    for package in packages:
        name = run('dpkg-deb', '-f', package, 'Package').stdout.strip()
        names[name] = package
        expect(run('dpkg-deb', '-x', package, where / 'root').returncode == 0,
               f'{package.name} cannot be unpacked')
        run('dpkg-deb', '-e', package, where / name)
    return names


def check_scripts(where, names):
    for name in names:
        for script in ('preinst', 'postinst', 'prerm', 'postrm', 'config'):
            path = where / name / script
            if path.exists() and path.read_bytes().startswith(b'#!/bin/sh'):
                done = run('sh', '-n', path)
                expect(done.returncode == 0, f'{name}: {script}: {done.stderr}')


def programs(where):
    """The package of each ELF file that users run or link, and the file."""
    root = where / 'root'
    return [('semel-tools', root / 'usr/bin/semel'),
            *(('libsemel0', path) for path in root.glob('usr/lib/*/libsemel.so.0.*'))]


def check_machine(where, names, machine):
    """The packages and what is in them are for one processor, and depend on what they link."""
    for name, package in names.items():
        said = run('dpkg-deb', '-f', package, 'Architecture').stdout.strip()
        wanted = 'all' if name == 'semel-node' else machine.architecture
        expect(said == wanted, f'{package.name} is for {said}, not {wanted}')
    expect(len(programs(where)) == 2, f'the programs are {programs(where)}')
    for name, path in programs(where):
        header = run('readelf', '-h', path).stdout
        expect(machine.PROCESSORS.get(machine.architecture, '') in header,
               f'{path.name} is not for {machine.architecture}:\n{header}')
        if name not in names:
            continue
        depends = run('dpkg-deb', '-f', names[name], 'Depends').stdout
        depends = {word for word in re.findall(r'([a-z0-9][a-z0-9.+-]+)(?: \([^)]*\))?', depends)}
        needed = re.findall(r'NEEDED.*\[(.*)\]', run('readelf', '-d', path).stdout)
        expect(needed, f'{path.name} needs no library')
        for library in needed:
            owners = machine.owners(library)
            expect(owners & depends, f'{name} needs {library} of {owners}, depends on {depends}')


def check_node(where, machine):
    """A node out of the package answers, and ends when it is told to."""
    ready = where / 'ready'
    command = [*machine.emulator, where / 'root/usr/bin/semel', 'node', '--port', '0', '--dir',
               where / 'node', '--storage-enabled', '--ready-file', ready]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as node:
        end = time.monotonic() + NODE_SECONDS_MAX
        while not ready.exists() and node.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        try:
            port = re.search(r'^port=(\d+)$', ready.read_text(), re.MULTILINE)[1]
            with socket.create_connection(('127.0.0.1', int(port)), timeout=60) as link:
                link.sendall(b'PING\r\nSET k v NX\r\nSET k w NX\r\nGET k\r\n')
                said = b''
                while said.count(b'\r\n') < 5 and (part := link.recv(4096)):
                    said += part
            expect(said == b'+PONG\r\n+OK\r\n$-1\r\n$1\r\nv\r\n', f'the node answers {said!r}')
        except (OSError, TypeError) as error:
            expect(False, f'the node does not answer: {error!r}')
        node.terminate()
        try:
            said, _ = node.communicate(timeout=NODE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            node.kill()
            said, _ = node.communicate()
        expect(node.returncode == 0, f'the node ends with {node.returncode}: {said[-1000:]}')


def check_program(where, version, machine):
    root = where / 'root'
    program = root / 'usr/bin/semel'
    done = machine.run(program, '--version')
    expect(done.stdout == f'semel {version}\n', f'semel --version says {done.stdout!r}')
    done = machine.run(program, 'dedup', input='a\nb\na\n')
    expect(done.stdout == 'a\nb\n', f'semel dedup writes {done.stdout!r}')
    # The service's own settings are good ones; their places are not on this machine.
    done = machine.run(program, 'node', '--config', root / 'etc/semel/semel.toml',
                       '--check-config')
    expect(done.returncode == 0, f'semel.toml: {done.stdout}{done.stderr}')
    unit = (root / 'lib/systemd/system/semel.service').read_text(encoding='utf-8')
    for place in re.findall(r'^ExecStart=(\S+) node --config (\S+)$', unit, re.MULTILINE)[0]:
        expect((root / place[1:]).exists(), f'the unit names {place}, which no package has')
    for place in re.findall(r'^Documentation=file://(\S+)$', unit, re.MULTILINE):
        expect((root / place[1:]).exists(), f'the unit names {place}, which no package has')
    for place in ('bash-completion/completions/semel', 'zsh/vendor-completions/_semel',
                  'fish/vendor_completions.d/semel.fish', 'man/man1/semel-dedup.1.gz'):
        expect((root / 'usr/share' / place).exists(), f'no package has /usr/share/{place}')
    if shutil.which('man'):
        for page in sorted((root / 'usr/share/man/man1').glob('*.gz')):
            done = run('man', '--warnings', '-E', 'UTF-8', '-l', '-Tutf8', page)
            expect(done.returncode == 0 and not done.stderr, f'{page.name}: {done.stderr[:500]}')


def check_replication(where, names, machine):
    """The program has what its description says, and needs no package for it. True: it is there."""
    control = run('dpkg-deb', '-f', names['semel-tools'], 'Description', 'Depends').stdout
    said = 'replication needs no further package' in ' '.join(control.split())
    expect(said != ('built without replication' in ' '.join(control.split())),
           f'semel-tools does not say whether it has replication: {control}')
    expect('libraft' not in control, f'semel-tools depends on libraft: {control}')
    needed = run('readelf', '-d', where / 'root/usr/bin/semel').stdout
    expect('libraft' not in needed, 'semel links the shared library of libraft')
    done = machine.run(where / 'root/usr/bin/semel', 'node', '--port', '0',
                       '--dir', where / 'member', '--node-id', '1', '--cluster-id', 'c0ffee',
                       '--cluster-init', '--peer', '1=127.0.0.1:7101,127.0.0.1:7001')
    expect((done.returncode == 0) == said, f'semel node --cluster-init: {done.stdout}{done.stderr}')
    recommended = run('dpkg-deb', '-f', names['libsemel-dev'], 'Recommends').stdout
    # One of them alone: 0.15, which is refused, would meet a bound from above.
    bounds = re.findall(r'libraft-dev [^,]*', recommended)
    expect(bounds == (['libraft-dev (>= 0.22.1)'] if said else []),
           f'libsemel-dev recommends {recommended}')
    return said


def check_symbols(where):
    """What was stripped is in the packages of symbols, where gdb looks for it by its build ID."""
    root = where / 'root'
    for _, program in programs(where):
        expect('.debug_line' not in run('readelf', '-SW', program).stdout,
               f'{program.name} is not stripped')
        notes = run('readelf', '-n', program).stdout
        found = re.search(r'Build ID: ([0-9a-f]{2})([0-9a-f]+)', notes)
        expect(found, f'{program.name} has no build ID')
        if not found:
            continue
        symbols = root / f'usr/lib/debug/.build-id/{found[1]}/{found[2]}.debug'
        sums = ''.join(path.read_text() for path in where.glob('*-dbgsym/md5sums'))
        expect(f'  {symbols.relative_to(root)}\n' in sums, f'no md5sum is of {symbols.name}')
        expect(symbols.exists(), f'no package has the symbols of {program.name}')
        expect('.debug_line' in run('readelf', '-SW', symbols).stdout,
               f'the symbols of {program.name} have no line numbers')
        # gdb looks for a source where the file says; and ../../engine comes from a ccache that is
        # told to make paths relative, so that the bytes would depend on it.
        data = symbols.read_bytes() if symbols.exists() else b''
        expect(b'\0/usr/src/semel/engine' in data and b'../engine' not in data,
               f'the symbols of {program.name} name sources by relative paths')


def check_paths(where, root_of_sources):
    mark = str(root_of_sources).encode()
    for path in sorted((where / 'root').rglob('*')):
        if path.is_file() and not path.is_symlink() and mark in path.read_bytes():
            expect(False, f'{path.relative_to(where / "root")} names the place it was built at')


# A root of its own, with users of its own, whose programs are the machine's; what would touch
# services is played by scripts that note how they were called.
REHEARSAL = r'''
set -e
cd "$1"
mkdir -p usr lib lib64 bin sbin etc dev tmp run mock var/lib/dpkg var/lib/semel
mount --rbind /usr usr
for name in bin sbin lib lib64; do
  [ ! -L /$name ] || { rmdir $name; ln -s usr/$name $name; }
  [ -L /$name ] || mount --rbind /$name $name
done
mount --bind /dev dev
cp -r /etc/adduser.conf /etc/login.defs /etc/nsswitch.conf /etc/pam.d /etc/security etc
printf 'root:x:0:0:root:/root:/bin/sh\n' > etc/passwd
printf 'root:*:19000:0:99999:7:::\n' > etc/shadow
printf 'root:x:0:\nnogroup:x:65534:\n' > etc/group
echo kept > var/lib/semel/log
for name in deb-systemd-helper deb-systemd-invoke systemctl; do
  printf '#!/bin/sh\necho "%s $*" >> /calls\n' $name > mock/$name
  chmod 755 mock/$name
done
: > calls
'''


def rehearse(where, names):
    """The node's scripts in a root of their own, as dpkg calls them. False: not possible here."""
    if os.geteuid() != 0 or 'semel-node' not in names:
        return False
    stage = where / 'stage'
    stage.mkdir()
    scripts = where / 'semel-node'
    shutil.copytree(scripts, stage / 'DEBIAN')
    shutil.copytree(where / 'root/etc', stage / 'etc')
    calls = (('postinst', 'configure', ''), ('postinst', 'configure', '0.0.9-1'),
             ('prerm', 'remove'), ('postrm', 'remove'), ('postrm', 'purge'))
    lines = [f'PATH=/mock:$PATH /DEBIAN/{words[0]} '
             + ' '.join(f"'{word}'" for word in words[1:]) for words in calls]
    lines.insert(1, "stat -c '%U:%G %a' /etc/semel/semel.toml >> /calls")
    (stage / 'play').write_text('set -e\n' + '\n'.join(lines) + '\n', encoding='utf-8')
    (stage / 'setup').write_text(REHEARSAL, encoding='utf-8')
    done = run('unshare', '--mount', '--pid', '--fork', '--propagation', 'private', 'sh', '-c',
               f'sh {stage}/setup {stage} && chroot {stage} /bin/sh /play')
    if done.returncode != 0 and not (stage / 'calls').exists():
        print(f'package: the scripts were not rehearsed here: {done.stderr.strip()[:200]}')
        return False
    said = (stage / 'calls').read_text(encoding='utf-8')
    expect(done.returncode == 0, f'the scripts of semel-node: {done.stderr}')
    for wanted in ('root:semel 640', 'deb-systemd-helper unmask', 'deb-systemd-helper mask',
                   'deb-systemd-helper purge'):
        expect(wanted in said, f'the scripts of semel-node do not do: {wanted}\n{said}')
    users = (stage / 'etc/passwd').read_text(encoding='utf-8')
    expect(re.search(r'^semel:.*:/var/lib/semel:/usr/sbin/nologin$', users, re.MULTILINE),
           f'there is no user semel: {users}')
    expect((stage / 'var/lib/semel/log').exists() and 'records are left' in done.stderr,
           'a purge takes the records away, or does not say that it left them')
    return True


def lint(packages):
    done = run('lintian', '--allow-root', '--tag-display-limit', '0', '--fail-on', 'error',
               *packages)
    found = [line for line in done.stdout.split('\n') if re.match(r'[EW]: ', line)]
    for line in found:
        print(line)
    errors = sum(line.startswith('E: ') for line in found)
    expect(done.returncode == 0 and errors == 0, f'lintian: {errors} errors {done.stderr[:500]}')
    return errors, len(found) - errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('folder', type=Path)
    parser.add_argument('--architecture', help="as dpkg names it; default: this machine's")
    parser.add_argument('--root', type=Path, help='of packaging/cross/root.py')
    parser.add_argument('--emulator', help='a program that takes -L ROOT PROGRAM..')
    arguments = parser.parse_args()
    if arguments.emulator and not arguments.root:
        parser.error('--emulator needs --root')
    folder, machine = arguments.folder, Machine(arguments)
    sources = Path(__file__).resolve().parents[1]
    version = re.search(r'#define SEMEL_VERSION "(.*)"',
                        (sources / 'include/semel/version.hpp').read_text()).group(1)
    packages = sorted(folder.glob('*.deb'))
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        names = unpack(packages, where)
        for expected in EXPECTED:
            expect(expected in names, f'there is no package {expected}')
        check_scripts(where, names)
        check_machine(where, names, machine)
        check_program(where, version, machine)
        check_node(where, machine)
        replicates = check_replication(where, names, machine)
        check_symbols(where)
        check_paths(where, sources)
        rehearsed = rehearse(where, names)
    # cpack gives packages of symbols neither changelog nor copyright, and does not mark them as
    # made by a tool, which lintian would want; their files and sums are checked above.
    errors, warnings = lint([package for name, package in names.items()
                             if not name.endswith('-dbgsym')])
    for name, package in sorted(names.items()):
        print(f'{package.stat().st_size // 1024:7} KiB  {package}')
    print(f'package: {len(packages)} packages for {machine.architecture}, '
          f'lintian {errors} errors {warnings} warnings, '
          f'{"with" if replicates else "WITHOUT"} replication, scripts '
          f'{"rehearsed" if rehearsed else "not rehearsed"}, {len(failures)} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
