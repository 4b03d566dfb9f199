#!/usr/bin/env python3
"""packaging/release: archives have the same bytes each time, and say what registries ask for.

What needs a registry or a compiler (npm, Maven, the program) is made and run by `tools/release` and
`tools/release --check`.
"""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'packaging/release'))
sys.dont_write_bytecode = True
os.environ['SOURCE_DATE_EPOCH'] = '1700000000'

import archives  # noqa: E402
import facts as release_facts  # noqa: E402
import go_module  # noqa: E402
import maven  # noqa: E402
import npm_package  # noqa: E402
import sbom  # noqa: E402
import sdist  # noqa: E402
import tarball  # noqa: E402

URL = 'https://git.example/Some/semel'


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)
        self.facts = release_facts.Facts(URL)


class Archives(Case):
    def test_they_do_not_depend_on_order_or_place(self):
        forth = {'b/two': b'2', 'a': (b'1', True), 'c': b''}
        back = dict(reversed(forth.items()))
        for write, ending in ((archives.write_zip, 'zip'), (archives.write_tar, 'tar.gz')):
            one, two = self.out / f'one.{ending}', self.out / f'another-name.{ending}'
            write(one, forth, 1_700_000_000)
            write(two, back, 1_700_000_000)
            self.assertEqual(one.read_bytes(), two.read_bytes())
            write(two, {**forth, 'a': (b'1', False)}, 1_700_000_000)
            self.assertNotEqual(one.read_bytes(), two.read_bytes())

    def test_what_can_be_run_stays_so(self):
        path = self.out / 'x.tar.gz'
        archives.write_tar(path, {'run': (b'#!', True), 'read': b'x'}, 0)
        self.assertEqual(archives.read_tar(path), {'run': (b'#!', True), 'read': (b'x', False)})
        with tarfile.open(path) as archive:
            member = archive.getmember('run')
            self.assertEqual((member.uid, member.gid, member.uname, member.mtime), (0, 0, '', 0))
        archives.write_zip(self.out / 'x.zip', {'old': b''}, 0)  # before a zip's first year
        with zipfile.ZipFile(self.out / 'x.zip') as archive:
            self.assertEqual(archive.infolist()[0].date_time[0], 1980)


class Parts(Case):
    def test_a_go_module_has_the_name_of_its_place(self):
        made, = go_module.make(self.facts, self.out)
        module, tag = 'git.example/Some/semel/clients/go', f'v{self.facts.version}'
        self.assertEqual(self.facts.go_module, module)
        self.assertEqual(made.relative_to(self.out).as_posix(),
                         f'go/git.example/!some/semel/clients/go/@v/{tag}.zip')
        with zipfile.ZipFile(made) as archive:
            names = archive.namelist()
            self.assertEqual({name.split('@')[0] for name in names}, {module})
            root = f'{module}@{tag}/'
            self.assertIn(root + 'LICENSE', names)
            self.assertIn(f'module {module}\n', archive.read(root + 'go.mod').decode())
            for name in names:
                if name.endswith('.go'):
                    self.assertNotIn(f'"{go_module.NAME_IN_TREE}"', archive.read(name).decode())
            self.assertEqual(archive.read(root + 'go.mod'), made.with_suffix('.mod').read_bytes())
        info = json.loads(made.with_suffix('.info').read_text())
        self.assertEqual(info, {'Version': tag, 'Time': '2023-11-14T22:13:20Z'})

    def test_a_source_distribution_has_metadata_and_no_tests(self):
        made, = sdist.make(self.facts, self.out)
        files = {name.partition('/')[2]: data for name, (data, _)
                 in archives.read_tar(made).items()}
        for line in (f'Version: {self.facts.version}', 'Name: semel', 'License: Apache-2.0',
                     f'Project-URL: Homepage, {URL}', 'Requires-Python: >=3.9'):
            self.assertIn(line, files['PKG-INFO'].decode().splitlines())
        self.assertIn('semel/_claims.py', files)
        self.assertIn('LICENSE', files)
        self.assertFalse([name for name in files if name.startswith(('tests', 'examples'))])

    def test_a_package_of_npm_names_licence_repository_and_types(self):
        text = (ROOT / 'clients/node/package.json').read_text()
        package = json.loads(npm_package.described(text, self.facts))
        self.assertEqual((package['license'], package['version']),
                         ('Apache-2.0', self.facts.version))
        self.assertEqual(package['repository'], {'type': 'git', 'url': f'git+{URL}.git',
                                                 'directory': 'clients/node'})
        self.assertTrue(package['types'].endswith('.d.ts'))

    def test_each_pom_has_what_central_asks_for(self):
        for name in ('', *maven.MODULES):
            text = (ROOT / 'clients/java' / name / 'pom.xml').read_text()
            self.assertTrue(maven.missing_fields(text))  # the fields without a place in the tree
            made = maven.completed(text, self.facts)
            self.assertEqual(maven.missing_fields(made), [], name)
            for field in maven.NEEDED[4:]:
                tag = field.split('/')[-1]
                less = re.sub(rf'<{tag}>[^<]*</{tag}>', f'<{tag} />', made.decode())
                self.assertIn(field, maven.missing_fields(less), name)
        snapshot = made.decode().replace(f'<version>{self.facts.version}<',
                                         '<version>1-SNAPSHOT<')
        self.assertIn('a version that is no SNAPSHOT', maven.missing_fields(snapshot))

    def test_a_bundle_has_sums_and_signatures_of_files(self):
        files = {'a/1/a-1.pom': b'<p/>', 'a/1/a-1.jar': b'jar'}
        signed = {f'{name}.asc': b'signature' for name in files}
        made = maven.write_bundle(files, self.facts, self.out, signed)
        with zipfile.ZipFile(made) as archive:
            names = set(archive.namelist())
            for name, data in files.items():
                path = f'io/semel/{name}'
                self.assertEqual(archive.read(f'{path}.sha1').decode(),
                                 hashlib.sha1(data).hexdigest())
                self.assertIn(f'{path}.asc', names)
            self.assertFalse([name for name in names if name.endswith('.asc.md5')])

    def test_the_list_of_contents_is_complete_and_the_same_each_time(self):
        artefact = self.out / 'x.tar.gz'
        archives.write_tar(artefact, {'a': b'1'}, 0)
        made = sbom.make(self.facts, self.out, [artefact])
        text = made.read_text()
        found = json.loads(text)
        self.assertEqual((found['bomFormat'], found['specVersion']), ('CycloneDX', '1.5'))
        self.assertRegex(found['serialNumber'], r'^urn:uuid:[0-9a-f-]{36}$')
        names = {each['name'] for each in found['components']}
        self.assertLessEqual({'github.com/redis/go-redis/v9', 'ioredis', 'lettuce-core',
                              'spring-context', 'x.tar.gz'}, names)
        purls = [each['purl'] for each in found['components'] if 'purl' in each]
        self.assertEqual(len(purls), len(set(purls)))
        self.assertFalse([purl for purl in purls if '${' in purl])
        self.assertEqual(sbom.make(self.facts, self.out, [artefact]).read_text(), text)

    @unittest.skipUnless(sbom.installed('libc6-dev'), 'the C library is not a package here')
    def test_the_c_library_is_listed_where_it_is_inside(self):
        def names(artefact):
            archives.write_tar(artefact, {'a': b'1'}, 0)
            made = json.loads(sbom.make(self.facts, self.out, [artefact]).read_text())
            return {each['name'] for each in made['components']}
        self.assertIn('glibc', names(self.out / 'semel-1.0.0-linux-x86_64.tar.gz'))
        self.assertNotIn('glibc', names(self.out / 'semel-1.0.0.tar.gz'))

    @unittest.skipUnless(shutil.which('readelf'), 'readelf is not installed')
    def test_a_program_that_needs_shared_libraries_is_not_taken_for_one_without(self):
        needs = ' '.join(tarball.needed('/bin/sh'))
        self.assertIn('libc.so.6', needs)
        self.assertIn('INTERP', needs)


class Program(Case):
    def release(self, *arguments, code=0, **environment):
        done = subprocess.run([sys.executable, ROOT / 'tools/release', '--out', self.out,
                               *arguments], capture_output=True, text=True, check=False,
                              timeout=60, env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_parts_are_made_summed_and_checked(self):
        self.assertIn('name no repository', self.release('go', 'sdist'))
        sums = (self.out / 'SHA256SUMS').read_text()
        self.assertEqual(len(sums.splitlines()), 3)
        self.release('go', 'sdist')
        self.assertEqual((self.out / 'SHA256SUMS').read_text(), sums)
        self.assertIn('left by an earlier release', self.release('go'))
        self.assertIn('left by an earlier release', self.release('--check', 'go', code=1))
        self.release('go', 'sdist')
        made, = self.out.glob('semel-*.tar.gz')
        with io.BytesIO(made.read_bytes()) as kept:
            made.write_bytes(kept.getvalue()[:-1])
        self.assertIn('is not the file of SHA256SUMS', self.release('--check', 'go', code=1))

    def test_what_cannot_be_made_here_is_named(self):
        said = self.release('maven', code=77, PATH=self.only_git())
        self.assertIn('maven    is missing: mvn and javadoc not found', said)

    def only_git(self):
        place = self.out / 'bin'
        place.mkdir()
        git = subprocess.run(['which', 'git'], capture_output=True, text=True, check=True).stdout
        (place / 'git').symlink_to(git.strip())
        return str(place)

    def test_wrong_words_are_refused(self):
        self.assertIn("no part 'debian'", self.release('debian', code=2))
        self.assertIn('not the https address', self.release('go', '--url', 'http://x', code=1))
        self.assertIn('--sign needs --url', self.release('go', '--sign', 'KEY', code=2))


if __name__ == '__main__':
    unittest.main()
