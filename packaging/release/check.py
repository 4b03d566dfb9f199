"""Unpacks the artefacts of a release and runs them as their users would.

Each check has an empty folder. A node is that of the program that is built, or of the one that
SEMEL_TEST_PROGRAM names. A registry out of reach is a skip.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import archives
import go_module
import maven
import tarball
from facts import ROOT

sys.path[:0] = [str(ROOT / 'tests/clients'), str(ROOT / 'tests/support')]

from servers import Node, Server, free_ports  # noqa: E402
from suites import OUT_OF_REACH  # noqa: E402

SKIPPED = 77


class Skip(Exception):
    """What is checked cannot be had here."""


class Wrong(Exception):
    """An artefact does not do what it should."""


def expect(holds, text):
    if not holds:
        raise Wrong(text)


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=900, **more)
    if done.returncode != 0 and OUT_OF_REACH.search(done.stdout):
        raise Skip(f'{command[0]}: a registry is out of reach')
    expect(done.returncode == 0, f'{" ".join(map(str, command))} ended with {done.returncode}:\n'
                                 f'{done.stdout[-2000:]}')
    return done.stdout


def one(out, pattern):
    found = sorted(out.glob(pattern))
    if len(found) != 1:
        raise Skip(f'{len(found)} files {pattern} in {out}')
    return found[0]


def block_of(page, language):
    """The first block of a page."""
    return re.search(rf'^```{language}\n(.*?)^```$', (ROOT / page).read_text(), re.S | re.M)[1]


def node():
    found = [os.environ.get('SEMEL_TEST_PROGRAM'),
             *(str(ROOT / f'build/{preset}/tools/semel/semel') for preset in
               ('package', 'release', 'dev'))]
    program = next((each for each in found if each and Path(each).exists()), None)
    if not program:
        raise Skip('no program semel is built; SEMEL_TEST_PROGRAM names one')
    return Node(Path(program))


def on_port(text, port):
    return text.replace('localhost:6379', f'localhost:{port}').replace(
        '127.0.0.1:6379', f'127.0.0.1:{port}').replace('new Redis()', f'new Redis({port})')


def said_twice(text, words):
    expect(text.split() == words.split(), f'the example prints {text.strip()!r}, not {words!r}')


def check_npm(_, out, folder):
    made = one(out, 'semel-client-*.tgz')
    names = set(archives.read_tar(made))
    expect({'package/LICENSE', 'package/README.md', 'package/dist/src/index.js',
            'package/dist/src/index.d.ts'} <= names, f'{made.name} has {sorted(names)[:20]}')
    run('npm', 'init', '-y', cwd=folder)
    run('npm', 'install', '--no-audit', '--no-fund', made, 'ioredis', cwd=folder)
    with node() as served:
        (folder / 'example.mjs').write_text(on_port(block_of('clients/node/README.md', 'js'),
                                                    served.port))
        said_twice(run('node', 'example.mjs', cwd=folder), 'receipt 12 false receipt 12 true')


def check_go(facts, out, folder):
    proxy = out / 'go'
    one(out, f'go/{go_module.escaped(facts.go_module)}/@v/*.zip')
    proxies = f'file://{proxy},{run("go", "env", "GOPROXY", cwd=folder).strip()}'
    environment = {**os.environ, 'GOPROXY': proxies, 'GONOSUMDB': facts.go_module, 'GOFLAGS': '',
                   'GOMODCACHE': str(folder / 'modules'), 'GOTOOLCHAIN': 'local'}
    program = folder / 'example'
    program.mkdir()
    run('go', 'mod', 'init', 'example', cwd=program, env=environment)
    text = block_of('clients/go/README.md', 'go').replace(f'"{go_module.NAME_IN_TREE}"',
                                                          f'"{facts.go_module}"')
    with node() as served:
        (program / 'main.go').write_text(on_port(text, served.port))
        try:
            run('go', 'get', f'{facts.go_module}@v{facts.version}', cwd=program, env=environment)
            run('go', 'mod', 'tidy', cwd=program, env=environment)
            said_twice(run('go', 'run', '.', cwd=program, env=environment),
                       'receipt 12 false <nil> receipt 12 true <nil>')
        finally:
            run('go', 'clean', '-modcache', cwd=program, env=environment)  # its files are read-only


def check_maven(facts, out, folder):
    bundle = one(out, 'semel-java-*-bundle.zip')
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder / 'repository')
    for pom in sorted((folder / 'repository').rglob('*.pom')):
        missing = maven.missing_fields(pom.read_bytes())
        expect(not missing, f'{pom.name} lacks {", ".join(missing)}')
        if maven.PARENT in pom.name:
            continue
        for kind in ('', '-sources', '-javadoc'):
            jar = pom.with_name(f'{pom.stem}{kind}.jar')
            expect(jar.exists() and jar.with_name(f'{jar.name}.sha1').read_text()
                   == hashlib.sha1(jar.read_bytes()).hexdigest(), f'{jar.name} or its sum')
    page = 'clients/java/README.md'
    pom = block_of(page, 'xml').replace('</project>', (
        '<repositories><repository><id>release</id>'
        f'<url>file://{folder}/repository</url></repository></repositories></project>'))
    project = folder / 'example'
    (project / 'src/main/java').mkdir(parents=True)
    (project / 'pom.xml').write_text(pom)
    # An empty one: `mvn install` may have put the modules into this user's.
    local = f'-Dmaven.repo.local={folder}/local'
    with node() as served:
        (project / 'src/main/java/Example.java').write_text(
            on_port(block_of(page, 'java'), served.port))
        run('mvn', '-q', '-B', local, 'compile', 'dependency:copy-dependencies', cwd=project)
        said = run('java', '-cp', 'target/classes:target/dependency/*', 'Example', cwd=project)
        lines = [line for line in said.splitlines() if 'receipt' in line or 'charged' in line]
        said_twice(' '.join(lines), 'receipt 1 receipt 1 charged 1 time(s)')


def check_wheel(facts, out, folder):
    check_python(facts, one(out, '*.whl'), folder, {})


def check_sdist(facts, out, folder):
    library = os.environ.get('SEMEL_LIBRARY') or next(
        map(str, ROOT.glob('build/*/bindings/c/libsemel.so.0')), None)
    if not library:
        raise Skip('no libsemel.so.0 is built; SEMEL_LIBRARY names one')
    check_python(facts, one(out, 'semel-*.[0-9].tar.gz'), folder, {'SEMEL_LIBRARY': library})


def check_python(facts, made, folder, more):
    run(sys.executable, '-m', 'venv', folder / 'env')
    python = folder / 'env/bin/python'
    run(python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', made)
    environment = {**os.environ, **more}
    environment.pop('PYTHONPATH', None)
    said = run(python, '-c', 'import semel; print(semel.__version__)', cwd=folder, env=environment)
    expect(said.strip() == facts.version, f'{made.name} is version {said.strip()}')
    text = block_of('docs/start/python.md', 'python')
    said_twice(run(python, '-c', text, cwd=folder, env=environment), 'attempt 1 receipt 7')


def check_deb(facts, out, folder):
    names = sorted(out.glob('*.deb'))
    if not names:
        raise Skip(f'no packages in {out}')
    for path in names:
        said = run('dpkg-deb', '-f', path, 'Version').strip()
        expect(said.startswith(facts.version), f'{path.name} is version {said}')
        run('dpkg-deb', '-x', path, folder / 'root')
    library = next((folder / 'root/usr/lib').glob('*/libsemel.so.0'), None)
    paths = {**os.environ, 'LD_LIBRARY_PATH': str(library.parent)} if library else None
    said = run(folder / 'root/usr/bin/semel', '--version', env=paths)
    expect(said == f'semel {facts.version}\n', f'--version says {said!r}')


SYSTEMS = ('bullseye', 'bookworm', 'trixie')  # Debian 11 to 13: glibc 2.31, 2.36 and 2.41


def bare_system(name):
    """The root of a Debian with nothing but its base; kept for the next check."""
    root = ROOT / 'build/release-systems' / name
    if os.geteuid() != 0 or not shutil.which('debootstrap'):
        raise Skip('debootstrap, as root, makes the systems to check on')
    if not (root / 'etc/debian_version').exists() or (root / 'debootstrap').exists():
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(['debootstrap', '--variant=minbase', name, str(root)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise Skip(f'debootstrap does not make {name}')
    return root


class InRoot(Server):
    """`semel redis-server` in the root of another system."""

    name = 'semel redis-server'

    def __init__(self, root, program):
        super().__init__()
        self.port = free_ports(1)[0]
        self.command = ['chroot', root, program, 'redis-server', '--port', self.port]

    def words(self):
        return self.command

    def is_ready(self):
        return self.answers()


def check_tar(facts, out, folder):
    made = one(out, 'semel-*-linux-*.tar.gz')
    with tarfile.open(made) as archive:
        archive.extractall(folder, filter='data')
    place = folder / made.name.removesuffix('.tar.gz')
    expect(not tarball.needed(place / 'semel'), f'it needs {tarball.needed(place / "semel")}')
    expect(len(list((place / 'licenses').iterdir())) > 5, 'licences are missing')
    ran = []
    for name in SYSTEMS:
        try:
            root = bare_system(name)
        except Skip as why:
            print(f'tar      {name} is skipped: {why}')
            continue
        shutil.copy(place / 'semel', root / 'semel')
        said = run('chroot', root, '/semel', '--version')
        expect(said == f'semel {facts.version}\n', f'{name}: --version says {said!r}')
        with InRoot(root, '/semel') as server:
            server.ask('SET', 'job', 'done', 'PX', 60_000)
            expect(server.ask('EVAL', "return redis.call('get', KEYS[1])", '1', 'job') == b'done',
                   f'{name}: a script does not read its key')
            server.ask('SEMEL.CLOCK', 'ADVANCE', 60_000)
            expect(server.ask('GET', 'job') is None, f'{name}: the ttl does not end')
            expect(server.stop() == 0, f'{name}: it does not end in order')
        ran.append(name)
    if not ran:
        raise Skip('no system to run it on')
    print(f'tar      runs on a bare {", ".join(ran)}')


CHECKS = {'tar': check_tar, 'npm': check_npm, 'go': check_go, 'maven': check_maven,
          'wheel': check_wheel, 'sdist': check_sdist, 'deb': check_deb}


def not_summed(out):
    """Files of the folder that this release did not make: an earlier one left them."""
    named = {line.split('  ', 1)[1] for line in (out / 'SHA256SUMS').read_text().splitlines()}
    files = (path.relative_to(out).as_posix() for path in sorted(out.rglob('*')) if path.is_file())
    return [name for name in files if name.removesuffix('.asc') not in {*named, 'SHA256SUMS'}]


def check_sums(out):
    lines = (out / 'SHA256SUMS').read_text().splitlines()
    for line in lines:
        wanted, name = line.split('  ', 1)
        expect(archives.digest(out / name) == wanted, f'{name} is not the file of SHA256SUMS')
    left = not_summed(out)
    expect(not left, f'{", ".join(left)}: left by an earlier release, and not in SHA256SUMS')
    return len(lines)


def run_checks(facts, out, parts):
    ran = skipped = 0
    try:
        print(f'sums     {check_sums(out)} files are those of SHA256SUMS')
        for part in parts:
            try:
                with tempfile.TemporaryDirectory(prefix='semel_release_') as folder:
                    CHECKS[part](facts, out, Path(folder))
                ran += 1
                print(f'{part:<8} runs', flush=True)
            except Skip as why:
                skipped += 1
                print(f'{part:<8} skipped: {why}', flush=True)
    except (Wrong, AssertionError, OSError) as why:
        print(f'release: {why}', file=sys.stderr)
        return 1
    print(f'release {facts.version}: {ran} parts run, {skipped} skipped')
    return SKIPPED if ran == 0 else 0
