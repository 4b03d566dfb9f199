"""Network namespaces for the nodes of a group, and links between them that can be cut.

The proof itself runs in namespaces of its own (`isolate`). Each node has one more, with two links:
one for clients, one for the other nodes. What is cut is a direction between two nodes: the sender's
packets go to an address of the link that nobody has, so that nothing tells it so. All of it ends
with the processes that hold the namespaces.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

from servers import end_with_parent

NOBODY = '02:53:00:00:00:ff'
TRIED = 'SEMEL_FAILOVER_ISOLATED'


def can(*words):
    return shutil.which(words[0]) is not None and subprocess.run(
        words, capture_output=True, check=False).returncode == 0


def isolate():
    """Begins this program again in namespaces of network and mounts of its own, if it can."""
    if TRIED in os.environ:
        return
    os.environ[TRIED] = 'no'
    for more in ((), ('--map-root-user',)):
        words = ('unshare', *more, '--net', '--mount', '--propagation', 'private')
        if can(*words, 'ip', 'link', 'set', 'lo', 'up'):
            os.environ[TRIED] = 'yes'
            os.execvp(words[0], [*words, sys.executable, *sys.argv])


def is_isolated():
    return os.environ.get(TRIED) == 'yes'


def run(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


class Network:
    """Of `count` nodes, numbered from 0. Only where is_isolated()."""

    def __init__(self, count):
        self.count = count
        self.holders = []
        self.cuts = set()  # (sender, receiver)
        try:
            self.make()
        except BaseException:
            self.end()
            raise

    def make(self):
        run('ip', 'link', 'set', 'lo', 'up')
        for bridge in ('clients', 'peers'):
            run('ip', 'link', 'add', bridge, 'type', 'bridge')
            run('ip', 'link', 'set', bridge, 'up')
        run('ip', 'addr', 'add', '10.77.1.254/24', 'dev', 'clients')
        for number in range(self.count):
            holder = subprocess.Popen(  # pylint: disable=consider-using-with
                ['unshare', '--net', 'sleep', 'infinity'], preexec_fn=end_with_parent)
            self.holders.append(holder)
            self.await_namespace(holder)
            self.inside(number, 'ip', 'link', 'set', 'lo', 'up')
            for bridge, net in (('clients', 1), ('peers', 0)):
                outer = f'{bridge}{number}'
                run('ip', 'link', 'add', outer, 'type', 'veth', 'peer', 'name', bridge,
                    'address', self.hardware(number, net), 'netns', holder.pid)
                run('ip', 'link', 'set', outer, 'master', bridge, 'up')
                self.inside(number, 'ip', 'addr', 'add', f'10.77.{net}.{number + 1}/24',
                            'dev', bridge)
                self.inside(number, 'ip', 'link', 'set', bridge, 'up')
        for sender, receiver in self.pairs():
            self.set_link(sender, receiver, True)

    @staticmethod
    def await_namespace(holder):
        own = os.readlink('/proc/self/ns/net')
        end = time.monotonic() + 10
        while os.readlink(f'/proc/{holder.pid}/ns/net') == own:
            if holder.poll() is not None or time.monotonic() > end:
                raise OSError('no namespace could be made')
            time.sleep(0.002)

    @staticmethod
    def hardware(number, net):
        return f'02:53:00:00:0{net}:0{number + 1}'

    def pairs(self):
        return [(sender, receiver) for sender in range(self.count)
                for receiver in range(self.count) if sender != receiver]

    def prefix(self, number):
        """Words that let a program run where this node is."""
        return ('nsenter', f'--net=/proc/{self.holders[number].pid}/ns/net', '--')

    def inside(self, number, *words):
        run(*self.prefix(number), *words)

    def set_link(self, sender, receiver, is_whole):
        to = self.hardware(receiver, 0) if is_whole else NOBODY
        self.inside(sender, 'ip', 'neigh', 'replace', f'10.77.0.{receiver + 1}', 'lladdr', to,
                    'dev', 'peers', 'nud', 'permanent')

    def cut(self, pairs):
        for sender, receiver in pairs:
            self.set_link(sender, receiver, False)
            self.cuts.add((sender, receiver))

    def cut_clients(self, number, is_whole=False):
        run('ip', 'link', 'set', f'clients{number}', 'up' if is_whole else 'down')

    def around(self, number, to=True, of=True):
        """All directions to or from one node."""
        return [pair for pair in self.pairs()
                if (of and pair[0] == number) or (to and pair[1] == number)]

    def heal(self):
        for sender, receiver in sorted(self.cuts):
            self.set_link(sender, receiver, True)
        self.cuts.clear()

    def end(self):
        for holder in self.holders:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
        self.holders.clear()
