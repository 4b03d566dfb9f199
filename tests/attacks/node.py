"""Starts nodes for the tests in this folder, and speaks to them.

A test is a program `fault_NN_name.py --program PATH_OF_SEMEL`: exit code 0 passed, 1 failed, 77
skipped with a line that says why. Its last line is `fault N: <sentence>: passed`. It takes at most
20 s. The environment variable SEMEL_BUILD_DIR, if set, names the build the program came from.

    from node import Node, prove

    def test(program):
        with Node(program, "--io-threads", "2") as node:
            client = node.client()
            assert client("PING") == "PONG"

    prove(6, "a stuck thread is seen", test)
"""

import argparse
import os
import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
# pylint: disable=wrong-import-position,unused-import
import servers  # noqa: E402
from resp import PATIENCE, TEXTS, Client, ErrorReply, encode  # noqa: E402,F401
from servers import until  # noqa: E402,F401

SKIPPED = 77


class Skip(Exception):
    """This machine cannot run the test; the text says why."""


class Node(servers.Node):
    """`ready`: False does not wait until the node serves. Simple strings are texts, errors of a
    type of their own."""

    form = TEXTS

    def __init__(self, program, *flags, ready=True, **options):
        super().__init__(program, *flags, **options)
        self.awaits = ready

    def __enter__(self):
        return self.start(self.awaits)


def prove(number, sentence, test):
    """Runs `test(program)` with the program of the command line, prints the line and ends."""
    parser = argparse.ArgumentParser(description=f"fault {number}: {sentence}")
    parser.add_argument("--program", required=True, help="the program semel")
    program = os.path.abspath(parser.parse_args().program)
    try:
        test(program)
    except Skip as why:
        print(f"fault {number}: {sentence}: skipped, {why}")
        sys.exit(SKIPPED)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        print(f"fault {number}: {sentence}: failed")
        sys.exit(1)
    print(f"fault {number}: {sentence}: passed")
    sys.exit(0)
