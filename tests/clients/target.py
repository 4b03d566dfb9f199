"""The server that a client suite talks to: our node, or a redis-server to check the suite itself.

    with open_target('semel', program='build/release/tools/semel/semel') as target:
        reply = target.ask('PING')

A target is a server of tests/support/servers.py, with what a suite may ask for besides.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'support'))
from resp import Failed  # noqa: E402
from servers import Node, Redis  # noqa: E402


class Target:
    """What a suite needs of a server besides host and port."""

    must_live = False  # the runners say so, with what was asked last

    def variables(self):
        """Of its environment."""
        return {}

    def answer(self, words):
        """What a suite reads after it has printed that it needs something."""
        return f'failed this server does nothing for suites: {words}'

    def knows(self, *words):
        """Whether it knows a command: anything but "unknown command" is a yes."""
        try:
            self.ask(*words)
        except Failed as error:
            return not str(error).startswith('ERR unknown command')
        return True


class RedisTarget(Target, Redis):
    def __init__(self, scripts=True):
        hidden = [] if scripts else ['EVAL', 'EVALSHA', 'EVAL_RO', 'EVALSHA_RO', 'SCRIPT']
        super().__init__(*(word for name in hidden for word in ('--rename-command', name, '')))


class SemelTarget(Target, Node):
    def variables(self):
        return {'SEMEL_TEST_PROGRAM': str(self.program)}


TARGETS = ('semel', 'redis', 'redis-without-scripts')


def open_target(against, program=None, options=()):
    """`against` is one of TARGETS."""
    if against == 'semel':
        return SemelTarget(program, *options)
    return RedisTarget(scripts=against == 'redis')
