"""Signatures of a release, by a secret key of gpg that its owner has."""

import subprocess
import sys
import zipfile

import maven


def signature(data, key):
    done = subprocess.run(['gpg', '--batch', '--local-user', key, '--armor', '--detach-sign'],
                          input=data, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f'release: gpg does not sign with {key}: {done.stderr.decode()[-500:]}')
    return done.stdout


def sign_bundle(path, facts, key):
    """Central takes a signature beside each file of a bundle."""
    with zipfile.ZipFile(path) as bundle:
        files = {name[len(maven.GROUP) + 1:]: bundle.read(name) for name in bundle.namelist()
                 if name.endswith(('.jar', '.pom'))}
    signatures = {f'{name}.asc': signature(data, key) for name, data in files.items()}
    maven.write_bundle(files, facts, path.parent, signatures)


def sign_file(path, key):
    path.with_name(path.name + '.asc').write_bytes(signature(path.read_bytes(), key))


def sign(facts, artefacts, key):
    """A signature FILE.asc beside each; a bundle has those of its files inside, and so is another
    file afterwards."""
    for path in artefacts:
        if path.name.endswith('-bundle.zip'):
            sign_bundle(path, facts, key)
        sign_file(path, key)
