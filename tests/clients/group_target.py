"""Three nodes of a group as the server of a client suite, which can ask for faults.

A suite prints `need WORD..` and reads `done WORD..` or `failed WHY` from its standard input:

    need leader           done PORT
    need kill-leader      done PORT, which is dead now (SIGKILL)
    need stop-leader      done PORT, which stands still now (SIGSTOP)
    need restart          done, when what was killed or stopped is back and has what the group has
    need transfer         done PORT, which leads now
    need count PREFIX     done N keys, the same on all nodes
    need replica-calls C  done N calls of the command C that nodes which do not lead have answered

It finds the port of a node that does not lead in SEMEL_TEST_PORT, those of all nodes in
SEMEL_TEST_NODES, one where nobody listens in SEMEL_TEST_DEAD_PORT, and in SEMEL_TEST_KILLS how
often it shall have the leader killed.
"""

import re
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'support'))
from group import Group, NoLeader  # noqa: E402
from resp import Failed  # noqa: E402
from servers import CannotStart  # noqa: E402
from target import Target  # noqa: E402

NODES = 3
SECONDS = 60


class GroupTarget(Target):
    host = '127.0.0.1'

    def __init__(self, program, options, kills):
        self.program = Path(program).resolve()
        self.options = options
        self.kills = kills
        self.group = None
        self.marks = 0
        self.dead = socket.socket()  # bound, but it does not listen

    def __enter__(self):
        self.dead.bind((self.host, 0))
        try:
            self.group = Group(self.program, NODES, self.options)
            self.group.wait_complete()
        except (OSError, NoLeader, AssertionError) as error:
            text = f'{error}\n{self.log_tail()}'
            self.__exit__()
            raise CannotStart(text) from None
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.dead.close()
        if self.group is not None:
            self.group.end()

    @property
    def port(self):
        return self.group.ports[self.replicas()[0].number]

    def variables(self):
        return {'SEMEL_TEST_NODES': ' '.join(str(port) for port in self.group.ports),
                'SEMEL_TEST_DEAD_PORT': str(self.dead.getsockname()[1]),
                'SEMEL_TEST_KILLS': str(self.kills)}

    def replicas(self):
        leader = self.group.wait_leader()
        return [node for node in self.group.nodes if node is not leader]

    def ask(self, *words):
        return self.group.wait_leader().ask(*words)

    def is_alive(self):
        """Whether no node ended but those that were killed."""
        return all(node.process is None or node.is_alive() for node in self.group.nodes)

    def log_tail(self):
        return self.group.said() if self.group is not None else ''

    def answer(self, words):
        """What a suite reads after `need`."""
        work = {'leader': self.leader, 'kill-leader': self.kill_leader,
                'stop-leader': self.stop_leader, 'restart': self.restart,
                'transfer': self.transfer, 'count': self.count,
                'replica-calls': self.replica_calls}.get(words[0] if words else '')
        if work is None:
            return f'failed no such need: {words}'
        try:
            found = work(*words[1:])
        except (OSError, Failed, NoLeader, AssertionError, TypeError) as error:
            return 'failed ' + f'{type(error).__name__} {error}'.replace('\n', ' ')
        return 'done' if found is None else f'done {found}'

    def leader(self):
        return self.group.ports[self.group.wait_leader().number]

    def kill_leader(self):
        leader = self.group.wait_leader()
        leader.kill()
        return self.group.ports[leader.number]

    def stop_leader(self):
        leader = self.group.wait_leader()
        leader.pause()
        return self.group.ports[leader.number]

    def restart(self):
        for node in self.group.nodes:
            if node.is_alive():
                node.resume()
            else:
                node.start()
        self.catch_up()
        self.group.wait_complete()

    def catch_up(self):
        """Waits until all nodes have what was acknowledged before this call."""
        is_back = all(node.is_alive() for node in self.group.nodes)
        assert is_back, 'a node that was killed is not back'
        self.marks += 1
        self.insist('SET', 'mark', self.marks)
        for node in self.group.nodes:
            assert self.group.has_seen(node, 'mark', self.marks), f'{node.number + 1} lags behind'

    def insist(self, *words):
        """Asks whoever leads, again while there may be no answer; of words that may be repeated."""
        end = time.monotonic() + SECONDS
        while True:
            try:
                return self.group.wait_leader().ask(*words)
            except (OSError, Failed):
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def transfer(self):
        """One that was answered with OK may still come to nothing: the old leader goes on."""
        before = self.group.wait_leader()
        end = time.monotonic() + SECONDS
        while self.group.wait_leader() is before:
            assert time.monotonic() < end, 'no other node leads'
            self.insist('SEMEL.GROUP', 'TRANSFER')
            again = time.monotonic() + 1
            while self.group.wait_leader() is before and time.monotonic() < again:
                time.sleep(0.005)
        return self.leader()

    def count(self, prefix):
        self.catch_up()
        counts = {len(self.group.keys(node, prefix + '*')) for node in self.group.nodes}
        assert len(counts) == 1, f'nodes have {sorted(counts)} keys'
        return counts.pop()

    def replica_calls(self, command):
        pattern = re.compile(rf'^cmdstat_{re.escape(command.lower())}:calls=(\d+)', re.MULTILINE)
        calls = 0
        for node in self.replicas():
            match = pattern.search(node.ask('INFO', 'commandstats').decode())
            calls += int(match[1]) if match else 0
        return calls
