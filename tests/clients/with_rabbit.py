#!/usr/bin/python3
"""Runs a suite beside a RabbitMQ of its own: with_rabbit.py COMMAND..

The suite finds the broker's port in SEMEL_TEST_RABBIT. The broker ends with the suite. Debian's
interpreter, which knows python3-pika.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'broker'))
import rabbit  # noqa: E402


def main():
    try:
        with rabbit.Rabbit() as broker:
            environment = dict(os.environ, SEMEL_TEST_RABBIT=str(broker.port))
            return subprocess.run(sys.argv[1:], env=environment, check=False).returncode
    except rabbit.CannotStart as error:
        print(f'failed RabbitMQ starts: {error}'.replace('\n', ' '))
        return 1


if __name__ == '__main__':
    sys.exit(main())
