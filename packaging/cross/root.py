#!/usr/bin/env python3
"""Makes a root of another processor to build against: root.py ARCHITECTURE DIR PACKAGE...

mmdebstrap takes the packages of ARCHITECTURE, and what they depend on, from this system's own
sources of its release, and unpacks them into DIR; none of their programs run. The packages of this
system stay as they are: as a foreign architecture beside them, a library that cannot be installed
for two processors would replace its twin. A package may be NAME=VERSION.

Links in DIR stay inside of it, and DIR/var/lib/dpkg knows which package each library is of, by its
place in this system, so that `dpkg-shlibdeps --admindir` finds what a program depends on. A DIR of
the same packages is left as it is; a new one takes its place as a whole. The last line is the
figure; ends with 77, and says why, if the packages cannot be had.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

DOWNLOAD_SECONDS_MAX = 1200
SECONDS_MAX = 120
SAYS = 'semel-root'  # the file in DIR that says what it was made of


class Skip(Exception):
    """The root cannot be had here; the text says why."""


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=True).stdout


def release():
    try:
        text = Path('/etc/os-release').read_text(encoding='utf-8')
    except OSError as error:
        raise Skip(f'this system does not say what it is: {error}') from error
    found = re.search(r'^VERSION_CODENAME="?(\w+)"?$', text, re.MULTILINE)
    if not found:
        raise Skip('this system has no release that packages belong to')
    return found[1]


def sources(suite):
    """The files of this system's sources that name its release; others may not be of Debian."""
    files = [Path('/etc/apt/sources.list'), *sorted(Path('/etc/apt/sources.list.d').glob('*'))]
    found = [path for path in files if path.suffix in ('.list', '.sources') and path.is_file()
             and re.search(rf'^[^#\n]*\b{suite}\b', path.read_text(), re.MULTILINE)]
    if not found:
        raise Skip(f'no source of packages in /etc/apt names {suite}')
    return found


def extract(architecture, folder, packages):
    if not shutil.which('mmdebstrap'):
        raise Skip('mmdebstrap is missing')
    suite = release()
    command = ['mmdebstrap', '--quiet', '--variant=extract', f'--architectures={architecture}',
               '--skip=cleanup/apt/cache', f'--include={",".join(packages)}', suite, folder,
               *sources(suite)]
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=DOWNLOAD_SECONDS_MAX, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise Skip(f'mmdebstrap did not end within {DOWNLOAD_SECONDS_MAX} s') from error
    if done.returncode != 0:
        raise Skip(f'mmdebstrap ended with {done.returncode}: {done.stderr.strip()[-500:]}')


def keep_links_inside(folder):
    """An absolute link would lead to the library of this system."""
    for path in folder.rglob('*'):
        target = os.readlink(path) if path.is_symlink() else ''
        if target.startswith(('/usr/', '/lib/')):
            path.unlink()
            path.symlink_to(os.path.relpath(folder / target[1:], path.parent))


def keep_targets_inside(folder, place):
    """Files for cmake that name libraries by their place in a system, instead of beside them."""
    for path in folder.glob('usr/**/cmake/**/*.cmake'):
        if path.is_file() and not path.is_symlink():
            text = path.read_text(encoding='utf-8', errors='surrogateescape')
            changed = re.sub(r'(["; ])/usr(?=/lib/|/include\b|")', rf'\g<1>{place}/usr', text)
            if changed != text:
                path.write_text(changed, encoding='utf-8', errors='surrogateescape')


def describe(architecture, folder, place):
    """dpkg's own database of what was unpacked, for dpkg-query. `place` is where folder will be."""
    database = folder / 'var/lib/dpkg'
    info = database / 'info'
    info.mkdir(parents=True, exist_ok=True)
    (info / 'format').write_text('1\n')
    native = run('dpkg', '--print-architecture').strip()
    (database / 'arch').write_text(f'{native}\n{architecture}\n')
    status = []
    packages = sorted((folder / 'var/cache/apt/archives').glob('*.deb'))
    for package in packages:
        fields = run('dpkg-deb', '-f', package)
        status.append(re.sub(r'(?m)^Package: .*$', r'\g<0>\nStatus: install ok installed', fields))
        control = folder / 'control'
        run('dpkg-deb', '-e', package, control)
        name = re.search(r'^Package: (\S+)$', fields, re.MULTILINE)[1]
        if re.search(r'^Multi-Arch: same$', fields, re.MULTILINE):
            name = f'{name}:{architecture}'
        for kind in ('symbols', 'shlibs'):
            if (control / kind).exists():
                shutil.copy(control / kind, info / f'{name}.{kind}')
        shutil.rmtree(control)
        listed = re.findall(r'^\S+ +\S+ +\d+ +\S+ +\S+ +\.(/.*?)/?(?: -> .*)?$',
                            run('dpkg-deb', '-c', package), re.MULTILINE)
        (info / f'{name}.list').write_text(''.join(f'{place}{path}\n' for path in listed))
        package.unlink()
    (database / 'status').write_text('\n'.join(status))
    return len(packages)


def main():
    architecture, place, packages = sys.argv[1], Path(sys.argv[2]).absolute(), sys.argv[3:]
    wanted = ' '.join([architecture, str(place), *packages]) + '\n'
    said = place / SAYS
    if said.exists() and said.read_text() == wanted:
        print(f'root: {place} is there')
        return 0
    fresh = place.with_name(place.name + '.new')
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        extract(architecture, fresh, packages)
    except Skip as why:
        print(f'root: skipped, {why}')
        shutil.rmtree(fresh, ignore_errors=True)
        return 77
    keep_links_inside(fresh)
    keep_targets_inside(fresh, place)
    count = describe(architecture, fresh, place)
    (fresh / SAYS).write_text(wanted)
    shutil.rmtree(place, ignore_errors=True)
    fresh.rename(place)
    print(f'root: {count} packages of {architecture} in {place}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
