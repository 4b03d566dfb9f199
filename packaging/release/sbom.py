"""What the artefacts contain and need, as CycloneDX 1.5 in JSON."""

import json
import re
import shutil
import subprocess
import time
import uuid
from xml.etree import ElementTree

from archives import digest
from facts import LICENCE, ROOT, SUMMARY

# Linked into the program: Debian's package that has the version, its name elsewhere, its licence.
LINKED = (
    ('librocksdb-dev', 'rocksdb', 'GPL-2.0-only OR Apache-2.0'),
    ('libraft-dev', 'raft', 'LGPL-3.0-only WITH LGPL-3.0-linking-exception'),
    ('libluajit-5.1-dev', 'luajit', 'MIT'), ('libssl-dev', 'openssl', 'Apache-2.0'),
    ('libboost-dev', 'boost', 'BSL-1.0'), ('libxxhash-dev', 'xxhash', 'BSD-2-Clause'),
    ('libfmt-dev', 'fmt', 'MIT'), ('libspdlog-dev', 'spdlog', 'MIT'),
    ('libcli11-dev', 'cli11', 'BSD-3-Clause'), ('libtomlplusplus-dev', 'tomlplusplus', 'MIT'),
    ('zlib1g-dev', 'zlib', 'Zlib'), ('libzstd-dev', 'zstd', 'BSD-3-Clause'),
    ('libsnappy-dev', 'snappy', 'BSD-3-Clause'), ('liblz4-dev', 'lz4', 'BSD-2-Clause'))
# Linked as well by the program that needs no shared library (the part tar): the C library, the
# compiler's, and what Debian's RocksDB asks for.
OF_THE_SYSTEM = {'libc6-dev': ('glibc', 'LGPL-2.1-or-later'),
                 'libstdc++-12-dev': ('gcc-libraries', 'GPL-3.0-or-later WITH GCC-exception-3.1'),
                 'libbz2-dev': ('bzip2', 'bzip2-1.0.6'),
                 'libgflags-dev': ('gflags', 'BSD-3-Clause')}


def component(kind, name, version, purl, licence=None, **more):
    made = {'type': kind, 'bom-ref': purl, 'name': name, 'version': version, 'purl': purl, **more}
    if licence:
        made['licenses'] = [{'expression': licence}]
    return made


def installed(package):
    """The version that this system has, or None."""
    if not shutil.which('dpkg-query'):
        return None
    done = subprocess.run(['dpkg-query', '-W', '-f=${Version}', package], capture_output=True,
                          text=True, check=False)
    return done.stdout or None


def linked():
    for package, name, licence in LINKED:
        version = installed(package)
        if version:
            yield component('library', name, version, f'pkg:deb/debian/{package}@{version}',
                            licence)


def of_the_system(artefacts):
    if not any('-linux-' in path.name for path in artefacts):
        return
    for package, (name, licence) in OF_THE_SYSTEM.items():
        version = installed(package)
        if version:
            yield component('library', name, version, f'pkg:deb/debian/{package}@{version}',
                            licence)


def go_modules():
    text = (ROOT / 'clients/go/go.mod').read_text()
    for name, version in re.findall(r'^\s*(?:require )?([\w./-]+\.[\w./-]+) (v\S+)', text, re.M):
        yield component('library', name, version, f'pkg:golang/{name}@{version}')


def java_libraries():
    """What the modules are compiled against; an application brings its own."""
    seen = set()
    parent = ElementTree.parse(ROOT / 'clients/java/pom.xml').getroot()
    known = {f'${{{each.tag}}}': each.text for each in parent.find('properties')}
    for module in sorted((ROOT / 'clients/java').glob('*/pom.xml')):
        for each in ElementTree.parse(module).getroot().iterfind('dependencies/dependency'):
            group, name, version = (each.findtext(tag) for tag in
                                    ('groupId', 'artifactId', 'version'))
            version = known.get(version, version)
            purl = f'pkg:maven/{group}/{name}@{version}'
            if group == 'io.semel' or purl in seen:
                continue
            seen.add(purl)
            yield component('library', name, version, purl, group=group, scope='optional')


def npm_packages():
    """The drivers, of which an application brings one: the package itself needs nothing."""
    package = json.loads((ROOT / 'clients/node/package.json').read_text())
    for name in package['peerDependencies']:
        version = package['devDependencies'][name]
        yield component('library', name, version, f'pkg:npm/{name}@{version}', scope='optional')


def make(facts, out, artefacts):
    files = [{'type': 'file', 'bom-ref': path.name, 'name': path.name,
              'hashes': [{'alg': 'SHA-256', 'content': digest(path)}]} for path in artefacts]
    parts = sorted([*linked(), *of_the_system(artefacts), *go_modules(), *java_libraries(),
                    *npm_packages()], key=lambda each: each['purl'])
    own = component('application', 'semel', facts.version, f'pkg:generic/semel@{facts.version}',
                    LICENCE, description=SUMMARY,
                    externalReferences=[{'type': 'vcs', 'url': facts.url}])
    document = {
        'bomFormat': 'CycloneDX', 'specVersion': '1.5', 'version': 1,
        'metadata': {
            'timestamp': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(facts.epoch)),
            'component': own},
        'components': [*parts, *files],
        'dependencies': [{'ref': own['bom-ref'], 'dependsOn': [each['bom-ref'] for each in parts]}]}
    # Of the content, so that the same release has the same number.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    document['serialNumber'] = f'urn:uuid:{number}'
    target = out / f'semel-{facts.version}.cdx.json'
    target.write_text(json.dumps(document, indent=2) + '\n')
    return target
