"""The client for Node.js as npm publishes it: compiled, with types, licence and repository."""

import json
import shutil
import tempfile
from pathlib import Path

from archives import read_tar, write_tar
from facts import ROOT, run, tracked


def described(text, facts):
    """package.json, with what a registry shows."""
    package = json.loads(text)
    package['repository'] = {'type': 'git', 'url': f'git+{facts.url}.git',
                             'directory': 'clients/node'}
    package['homepage'] = f'{facts.url}#readme'
    package['bugs'] = {'url': f'{facts.url}/issues'}
    package['keywords'] = ['idempotency', 'deduplication', 'redis', 'lock']
    return json.dumps(package, indent=2) + '\n'


def make(facts, out):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, data in tracked('clients/node').items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        shutil.copy(ROOT / 'LICENSE', folder / 'LICENSE')
        manifest = folder / 'package.json'
        manifest.write_text(described(manifest.read_text(), facts))
        run('npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', cwd=folder)
        run('npx', '--no-install', 'tsc', cwd=folder)
        run('npm', 'pack', '--ignore-scripts', '--pack-destination', folder, cwd=folder)
        made, = folder.glob('*.tgz')
        target = out / made.name
        write_tar(target, read_tar(made), facts.epoch)
    return [target]
