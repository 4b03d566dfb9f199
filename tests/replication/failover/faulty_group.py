"""A group whose nodes can be cut off, whose disks fail or are full, and whose wall clocks step."""
import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

import networks
from group import Group

DISK_BYTES = 4 << 30  # each start of a node takes 16 MiB, until its next snapshot
PRELOAD = Path(__file__).resolve().parent / 'preload.c'


class Faults:
    """What preload.c reads."""

    BYTES = 48

    def __init__(self, path):
        path.write_bytes(bytes(self.BYTES))
        with open(path, 'r+b') as file:
            self.memory = mmap.mmap(file.fileno(), self.BYTES)

    def put(self, at, value):
        struct.pack_into('q', self.memory, at, value)

    def get(self, at):
        return struct.unpack_from('q', self.memory, at)[0]

    def step_clock(self, nanoseconds):
        self.put(0, nanoseconds)

    def slow_syncs(self, nanoseconds):
        self.put(8, nanoseconds)

    def fail_syncs(self, count):
        self.put(16, count)

    def fail_fsyncs(self, count):
        self.put(24, count)

    def failed_syncs(self):
        return self.get(32)

    def boot_machine(self):
        self.put(40, self.get(40) + 1)


def is_built_with_tsan(program):
    with open(program, 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as whole:
        return whole.find(b'__tsan_init') >= 0


class FaultyGroup(Group):
    """`skipped` has, for each means that this machine does not have, why."""

    def __init__(self, program, count, chance):
        self.chance = chance
        self.skipped = {}
        self.network = None
        self.disk = None  # a small file system of one node
        self.small = None  # that node
        super().__init__(program, count)

    def prepare(self):
        for means in (self.make_network, self.make_preload, self.make_disk):
            try:
                means()
            except (OSError, subprocess.CalledProcessError) as error:
                self.skipped[means.__name__.removeprefix('make_')] = str(error)

    def make_network(self):
        if not networks.is_isolated():
            raise OSError('namespaces cannot be made')
        self.network = networks.Network(len(self.nodes) + 1)  # one may be added
        for node in self.nodes:
            self.connect_node(node)

    def connect_node(self, node):
        node.host = f'10.77.1.{node.number + 1}'
        node.peer_host = f'10.77.0.{node.number + 1}'
        node.under = self.network.prefix(node.number)
        node.options = ('--bind', node.host, '--protected-mode', 'no')

    def grow(self):
        super().grow()
        self.connect_node(self.nodes[-1])
        return self.nodes[-1]

    def shrink(self):
        """The one that was added, and is no member any more, is gone."""
        node = self.nodes.pop()
        self.ports.pop()
        self.peers.pop()
        if node.is_alive():
            node.kill()
        shutil.rmtree(node.directory, ignore_errors=True)

    def make_preload(self):
        compiler = shutil.which('cc')
        if compiler is None:
            raise OSError('no C compiler')
        if is_built_with_tsan(self.program):
            raise OSError('ThreadSanitizer takes the same calls')
        library = self.place / 'preload.so'
        subprocess.run([compiler, '-O2', '-shared', '-fPIC', '-o', library, PRELOAD], check=True)
        for node in self.nodes:
            path = self.place / f'{node.number}.faults'
            node.faults = Faults(path)
            node.environment = {**os.environ, 'LD_PRELOAD': str(library),
                                'SEMEL_FAULTS': str(path),
                                'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') +
                                                ':verify_asan_link_order=0'}

    def make_disk(self):
        if not networks.is_isolated():
            raise OSError('nothing can be mounted')
        disk = self.place / 'disk'
        disk.mkdir()
        subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', disk], check=True, capture_output=True)
        self.disk = disk
        self.size_disk()
        self.small = self.chance.choice(self.nodes)
        self.small.directory = disk / str(self.small.number)

    def size_disk(self, size=DISK_BYTES):
        subprocess.run(['mount', '-o', f'remount,size={size}', self.disk], check=True,
                       capture_output=True)

    def fill_disk(self):
        """It becomes as small as what is on it."""
        for _ in range(100):
            found = os.statvfs(self.disk)
            try:
                return self.size_disk((found.f_blocks - found.f_bfree) * found.f_frsize)
            except subprocess.CalledProcessError:
                continue  # something was written meanwhile
        raise OSError('the disk cannot be filled')

    def places(self):
        """Where clients find the first nodes."""
        return [(node.host, self.ports[node.number]) for node in self.nodes[:self.founders]]

    def said(self):
        """Without what clients did."""
        found = []
        for path in sorted(self.place.glob('*.log')):
            lines = [line[:300] for line in path.read_text(errors='replace').splitlines()
                     if ' event=semel_' not in line]
            found += [f'--- {path.name}', *lines[-15:]]
        return '\n'.join(found)

    def end(self):
        try:
            super().end()
        finally:
            if self.network is not None:
                self.network.end()
            if self.disk is not None:
                subprocess.run(['umount', '-l', self.disk], check=False)
            shutil.rmtree(self.place, ignore_errors=True)
