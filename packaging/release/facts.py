"""What all artefacts of a release say of themselves."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
PLACEHOLDER = 'https://semel.example/semel'  # of a domain that nobody can have
LICENCE = 'Apache-2.0'
SUMMARY = 'Work that happens once: deduplication, idempotency and claims'


class Facts:
    def __init__(self, url=None):
        self.url = (url or os.environ.get('SEMEL_URL') or PLACEHOLDER).rstrip('/')
        parts = urlsplit(self.url)
        if parts.scheme != 'https' or not parts.netloc or not parts.path.strip('/'):
            sys.exit(f"release: {self.url!r} is not the https address of a repository")
        self.version = re.search(r'#define SEMEL_VERSION "(.*)"',
                                 (ROOT / 'include/semel/version.hpp').read_text())[1]
        self.epoch = int(os.environ.get('SOURCE_DATE_EPOCH') or subprocess.run(
            ['git', '-C', ROOT, 'log', '-1', '--format=%ct'], capture_output=True, text=True,
            check=True).stdout)
        self.licence_text = (ROOT / 'LICENSE').read_bytes()

    @property
    def may_be_published(self):
        return self.url != PLACEHOLDER

    @property
    def go_module(self):
        """Its path: that of the folder in the repository."""
        parts = urlsplit(self.url)
        return f'{parts.netloc}{parts.path}/clients/go'


def tracked(folder):
    """{name below `folder`: bytes} of what belongs to the tree."""
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z', '--', folder],
                            capture_output=True, text=True, check=True).stdout.split('\0')
    return {name[len(folder) + 1:]: (ROOT / name).read_bytes()
            for name in filter(None, listed) if (ROOT / name).is_file()}


def run(*command, **more):
    """What it prints. Ends the program, with the end of its output, if it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f'release: {" ".join(map(str, command))} ended with {done.returncode}:\n'
                 f'{done.stdout[-3000:]}')
    return done.stdout
