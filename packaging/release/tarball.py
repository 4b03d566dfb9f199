"""The program `semel` in a .tar.gz, without any shared library: for every Linux of its processor.

It is the preset `static`. The licences of everything inside are beside it.
"""

import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import sbom
from archives import write_tar
from facts import ROOT, run

BUILD = '. tools/setup; need "${packages_build[@]}"; build static -- semel'
README = '''Semel {version}

    ./semel node --port 7000          a node that speaks Redis' protocol
    ./semel redis-server --port 7000  the same, for tests: Redis' flags, a clock that tests move
    ./semel help                      everything else

The program needs no library of this system. Hosts are found by files and DNS; other ways of
/etc/nsswitch.conf are not asked. Certificates of authorities are those of the file that
tls-ca-cert-file names. Documentation: {url}
'''


def licences():
    found = {}
    for package in (*(name for name, _, _ in sbom.LINKED), *sbom.OF_THE_SYSTEM):
        text = Path('/usr/share/doc') / package / 'copyright'
        if text.exists():
            found[f'licenses/{package}.txt'] = text.read_bytes()
    return found


def needed(program):
    """Shared libraries that it asks for, and the loader."""
    said = run('readelf', '--dynamic', '--program-headers', '--wide', program)
    return [line.strip() for line in said.splitlines() if 'NEEDED' in line or 'INTERP' in line]


def make(facts, out):
    # Builds in the tree, as the packages do, and prints as it goes.
    subprocess.run(['bash', '-euc', BUILD], cwd=ROOT, check=True, stdout=2)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / 'semel'
        shutil.copy(ROOT / 'build/static/tools/semel/semel', program)
        run('strip', program)
        if needed(program):
            raise AssertionError(f'the program needs {needed(program)}')
        name = f'semel-{facts.version}-linux-{platform.machine()}'
        files = {'semel': (program.read_bytes(), True), 'LICENSE': facts.licence_text,
                 'README': README.format(version=facts.version, url=facts.url).encode(),
                 **licences()}
        target = out / f'{name}.tar.gz'
        write_tar(target, {f'{name}/{path}': data for path, data in files.items()}, facts.epoch)
    return [target]
