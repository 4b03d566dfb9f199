#!/usr/bin/env python3
"""Runs PROGRAM with a directory that is not there yet: run.py [--without-storage] PROGRAM..."""

import subprocess
import sys
import tempfile


def main():
    words = sys.argv[1:]
    if words[0] == '--without-storage':
        return subprocess.run([*words[1:], '-'], timeout=120, check=False).returncode
    with tempfile.TemporaryDirectory() as directory:
        return subprocess.run([*words, f'{directory}/storage'], timeout=120,
                              check=False).returncode


if __name__ == '__main__':
    sys.exit(main())
