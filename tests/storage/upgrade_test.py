#!/usr/bin/env python3
"""Kills the first opening of copies of the golden directories, each at another moment, and looks
whether everything is there when it is opened again: upgrade_test.py GOLDEN_MAKER GOLDEN_FOLDER"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time


def check(maker, directory):
    """How many are lost; the whole opening is one, if it fails."""
    done = subprocess.run([maker, directory, "--check"], capture_output=True, timeout=60)
    if done.returncode == 0:
        return 0
    print(f"upgrade: {done.stdout.decode()} {done.stderr.decode()}")
    return max(1, done.stdout.count(b"\n") - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maker")
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"upgrade: seed {options.seed}")
    source = random.Random(options.seed)
    archives = sorted(options.golden.glob("*.tar.gz"))
    if not archives:
        sys.exit("upgrade: no golden directory")
    lost = before = after = 0
    for kill in range(options.kills):
        with tempfile.TemporaryDirectory(prefix="semel_upgrade_") as folder:
            subprocess.run(["tar", "-xzf", archives[kill % len(archives)], "-C", folder,
                            "--no-same-owner"], check=True)
            directory = folder + "/golden"
            with subprocess.Popen([options.maker, directory, "--check"],
                                  stdout=subprocess.PIPE) as process:
                end = time.monotonic() + source.uniform(0, 0.2)
                while time.monotonic() < end and process.poll() is None:
                    pass
                process.kill()
                if b"opened" in process.stdout.read():
                    after += 1
                else:
                    before += 1
            lost += check(options.maker, directory)
    print(f"upgrade: {options.kills} kills of {len(archives)} golden directories, {before} before "
          f"it was open and {after} after, {lost} lost")
    return 1 if lost or not before else 0


if __name__ == "__main__":
    sys.exit(main())
