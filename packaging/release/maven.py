"""The modules for Java as Maven Central takes them: poms, classes, sources, javadoc, checksums.

Central asks each pom for a name, a description, an address, licence, developers and scm. What they
are called stands in the poms of the tree, the rest comes from here.
"""

import hashlib
import tempfile
import time
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from archives import write_zip
from facts import LICENCE, ROOT, run, tracked

MODULES = ('semel-core', 'semel-spring', 'semel-spring-boot-starter')
PARENT = 'semel-java'
GROUP = 'io/semel'
NEEDED = ('modelVersion', 'groupId', 'artifactId', 'version', 'name', 'description', 'url',
          'licenses/license/name', 'licenses/license/url', 'developers/developer/name',
          'developers/developer/url', 'scm/connection', 'scm/developerConnection', 'scm/url')
SPACE = 'http://maven.apache.org/POM/4.0.0'
ROOT_TAG = (f'<project xmlns="{SPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            f'xsi:schemaLocation="{SPACE} https://maven.apache.org/xsd/maven-4.0.0.xsd">')


def element(name, *children):
    made = ElementTree.Element(name)
    for child in children:
        if isinstance(child, str):
            made.text = child
        else:
            made.append(child)
    return made


def completed(text, facts):
    """A pom of the tree with what Central asks for. Each says all itself: what is inherited from a
    parent with other folders would get their names appended."""
    project = ElementTree.fromstring(text)
    for name in ('groupId', 'version'):
        if project.find(name) is None:
            project.insert(1, element(name, project.findtext(f'parent/{name}')))
    connection = f'scm:git:{facts.url}.git'
    for made in (
            element('url', facts.url),
            element('licenses', element('license', element('name', LICENCE), element(
                'url', 'https://www.apache.org/licenses/LICENSE-2.0.txt'))),
            element('developers', element('developer', element('name', 'The Semel project'),
                                          element('url', facts.url))),
            element('scm', element('connection', connection),
                    element('developerConnection', connection),
                    element('tag', f'v{facts.version}'), element('url', facts.url))):
        project.append(made)
    ElementTree.indent(project)
    body = ElementTree.tostring(project, encoding='unicode')
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            + body.replace('<project>', ROOT_TAG, 1) + '\n').encode()


def missing_fields(pom):
    """What Central would refuse the pom for."""
    project = ElementTree.fromstring(pom)
    names = {'': SPACE}

    def text(path):
        return (project.findtext(path, namespaces=names) or '').strip()

    missing = [path for path in NEEDED if not text(path)]
    if text('version').endswith('SNAPSHOT'):
        missing.append('a version that is no SNAPSHOT')
    return missing


def jar_entries(path):
    with zipfile.ZipFile(path) as jar:
        return {name: jar.read(name) for name in jar.namelist() if not name.endswith('/')}


def write_jar(path, entries, epoch):
    """A manifest is the first entry, or readers of streams do not see it."""
    write_zip(path, entries, epoch)
    first = 'META-INF/MANIFEST.MF'
    if first in entries and sorted(entries)[0] != first:
        raise AssertionError(f'{path}: {sorted(entries)[0]} comes before the manifest')


MANIFEST = b'Manifest-Version: 1.0\r\nCreated-By: tools/release\r\n\r\n'


def javadoc(module, folder):
    """{name: bytes} of the pages."""
    sources = sorted(str(path) for path in (module / 'src/main/java').rglob('*.java'))
    classes = (module / 'target/classpath').read_text().strip()
    run('javadoc', '-quiet', '-notimestamp', '-Xdoclint:none', '--release', '8', '-encoding',
        'UTF-8', '-classpath', classes, '-d', folder, *sources)
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob('*') if path.is_file()}


def build(folder, facts):
    for name, data in tracked('clients/java').items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    moment = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(facts.epoch))
    run('mvn', '-q', '-B', '-DskipTests', f'-Dproject.build.outputTimestamp={moment}', 'package',
        'dependency:build-classpath', '-Dmdep.outputFile=target/classpath', cwd=folder)


def make(facts, out):
    """A bundle to upload: the folders of a repository in a zip."""
    files = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / 'java'
        build(folder, facts)
        licence = {'META-INF/NOTICE.txt': f'Semel, {LICENCE}\n{facts.url}\n'.encode()}
        pom = (folder / 'pom.xml').read_text()
        files[f'{PARENT}/{facts.version}/{PARENT}-{facts.version}.pom'] = completed(pom, facts)
        for module in MODULES:
            base = f'{module}/{facts.version}/{module}-{facts.version}'
            pom = (folder / module / 'pom.xml').read_text()
            files[f'{base}.pom'] = completed(pom, facts)
            sources = {}
            for part in ('java', 'resources'):
                place = folder / module / 'src/main' / part
                sources.update({path.relative_to(place).as_posix(): path.read_bytes()
                                for path in place.rglob('*') if path.is_file()})
            parts = {
                '': jar_entries(folder / module / 'target' / f'{module}-{facts.version}.jar'),
                '-sources': {'META-INF/MANIFEST.MF': MANIFEST, **sources},
                '-javadoc': {'META-INF/MANIFEST.MF': MANIFEST,
                             **javadoc(folder / module, Path(name) / f'doc-{module}')}}
            for kind, entries in parts.items():
                made = Path(name) / f'{module}{kind}.jar'
                write_jar(made, {**entries, **licence}, facts.epoch)
                files[f'{base}{kind}.jar'] = made.read_bytes()
    return [write_bundle(files, facts, out)]


def write_bundle(files, facts, out, signatures=None):
    """With the checksums that Central asks for, and with signatures {name: bytes}."""
    entries = {}
    for name, data in {**files, **(signatures or {})}.items():
        entries[f'{GROUP}/{name}'] = data
        if name.endswith('.asc'):
            continue
        for algorithm in ('md5', 'sha1', 'sha256'):
            made = hashlib.new(algorithm, data).hexdigest()
            entries[f'{GROUP}/{name}.{algorithm}'] = made.encode()
    target = out / f'semel-java-{facts.version}-bundle.zip'
    write_zip(target, entries, facts.epoch)
    return target
