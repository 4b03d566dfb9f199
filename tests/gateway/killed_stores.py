"""Stores of a gateway whose processes proof_gateway.py kills (-9) and starts again.

Each has `flags` for the gateway; `disturb(ended)`, which kills until the event is set, and then has
all processes up; `forget()`, which deletes what is stored; `end()`; `kills` and `leader_kills`.
Processes end with the thread that starts them: disturb() is for the main thread.
"""

import os
import shutil

from stores import Node
from group import Group  # stores has found the folder


class Directory:
    """In the gateway's process, which is killed by others."""

    def __init__(self, place):
        self.path = os.path.join(place, 'store')
        self.flags = ('--store', self.path)
        self.kills = self.leader_kills = 0

    def disturb(self, ended):
        ended.wait()

    def forget(self):
        shutil.rmtree(self.path)

    def end(self):
        pass


class OneNode:
    KILL_EVERY = (0.1, 0.7)  # seconds, from and to

    def __init__(self, program, place, rng):
        self.random = rng
        self.node = Node(program, place)
        self.path = os.path.join(place, 'node')
        self.flags = ('--store-node', self.node.address)
        self.kills = self.leader_kills = 0
        self.forgets = False

    def disturb(self, ended):
        while not ended.wait(self.random.uniform(*self.KILL_EVERY)):
            self.node.kill()
            self.kills += 1
            if self.forgets:
                shutil.rmtree(self.path)
            self.node.start()

    def forget(self):
        self.forgets = True

    def end(self):
        self.node.end()


class ThreeNodes:
    """One group. Most often the leader is killed; at times two nodes, so that no majority is left,
    or all. A node is away for some time, in which others may be killed."""

    KILL_EVERY = (0.2, 1.2)
    AWAY = (0.0, 0.6)
    VICTIMS = (('leader', 50), ('any', 35), ('two', 10), ('all', 5))

    def __init__(self, program, rng):
        self.random = rng
        self.group = Group(program, 3)
        try:
            self.group.wait_leader()
            self.group.wait_complete()
        except BaseException:
            self.group.end()
            raise
        self.flags = ('--store-node', ','.join(f'127.0.0.1:{port}' for port in self.group.ports))
        self.kills = self.leader_kills = 0
        self.forgets = False

    def victims(self):
        kinds, weights = zip(*self.VICTIMS)
        kind = 'all' if self.forgets else self.random.choices(kinds, weights)[0]
        alive = [node for node in self.group.nodes if node.is_alive()]
        if kind == 'leader':
            leader = self.group.leader()
            return [] if leader is None else [leader]
        return self.random.sample(alive, min(len(alive), {'any': 1, 'two': 2}.get(kind, 3)))

    def disturb(self, ended):
        while not ended.wait(self.random.uniform(*self.KILL_EVERY)):
            leader = self.group.leader()
            chosen = self.victims()
            for node in chosen:
                node.kill()
                self.kills += 1
                self.leader_kills += node is leader
            if self.forgets:
                for node in chosen:
                    shutil.rmtree(node.directory)
            ended.wait(self.random.uniform(*self.AWAY))
            for node in self.random.sample(chosen, len(chosen)):
                node.start()

    def forget(self):
        self.forgets = True

    def end(self):
        self.group.end()
