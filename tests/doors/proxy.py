"""A proxy in front of a node that does to a request what its key asks for, the first time: `lost
claim` swallows the reply and cuts, `late claim` holds the reply back, `busy claim` and `tryagain
claim` answer an error twice, `down claim` cuts and refuses for a moment. `oom complete` answers an
error each time, but not to the mark of a result that is not kept. `claim` is SEMEL.CLAIM or
SEMEL.WAIT, `complete` SEMEL.COMPLETE.

The fault is found by the key alone, so doors need no line of their own for it: the key "lost-claim"
of any namespace meets `lost claim`.
"""

import socket
import threading
import time

LATE_SECONDS = 2.5  # a door of the stories has a patience of 1 s
DOWN_SECONDS = 0.4
TIMES = 2  # errors before an answer
ERRORS = {'busy': b'-BUSY Redis is busy running a script. You can only call SCRIPT KILL or '
                  b'SHUTDOWN NOSAVE.\r\n',
          'tryagain': b'-TRYAGAIN the group has no leader\r\n',
          'oom': b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"}
MARK_BYTES = 1  # of a result that is not kept
KINDS = {b'SEMEL.CLAIM': 'claim', b'SEMEL.WAIT': 'claim', b'SEMEL.COMPLETE': 'complete'}
LINES = b'+-:_,#('
BLOBS = b'$=!'
LISTS = {ord('*'): 1, ord('~'): 1, ord('>'): 1, ord('%'): 2}


class Cut(Exception):
    """The connection is to end."""


def read_whole(file):
    """The bytes of one value, of a request or a reply. b'': the end."""
    line = file.readline()
    if not line:
        return b''
    kind, size = line[0], line[1:].strip()
    if kind in BLOBS and size not in (b'-1', b'?'):
        return line + file.read(int(size) + 2)
    if kind in LISTS and size != b'-1':
        return line + b''.join(read_whole(file) for _ in range(int(size) * LISTS[kind]))
    return line


def words_of(request):
    """The words of an array of bulk strings."""
    words, rest = [], request.split(b'\r\n', 1)[1] if request.startswith(b'*') else b''
    while rest.startswith(b'$'):
        size, rest = rest[1:].split(b'\r\n', 1)
        words.append(rest[:int(size)])
        rest = rest[int(size) + 2:]
    return words


class Proxy:
    """Listens on a port of 127.0.0.1; `with Proxy(port_of_node, stories) as proxy: proxy.port`."""

    def __init__(self, node_port, stories):
        self.node_port = node_port
        self.faults = {story['name'].encode(): story['wire'].split()
                       for story in stories if 'wire' in story}
        self.counts = {}
        self.down_until = 0.0
        self.lock = threading.Lock()
        self.listener = None
        self.port = None
        self.links = set()

    def __enter__(self):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        with self.lock:
            links, self.links = self.links, set()
        for link in links:
            end(link)

    def accept(self):
        while True:
            try:
                plug, _ = self.listener.accept()
            except OSError:
                return
            if time.monotonic() < self.down_until:
                plug.close()
                continue
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(plug,), daemon=True).start()

    def serve(self, plug):
        node = socket.create_connection(('127.0.0.1', self.node_port))
        node.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.links |= {plug, node}
        try:
            with plug.makefile('rb') as requests, node.makefile('rb') as replies:
                while request := read_whole(requests):
                    self.pass_on(request, plug, node, replies)
        except (OSError, ValueError, Cut):
            pass
        finally:
            end(plug)
            end(node)

    def pass_on(self, request, plug, node, replies):
        what = self.fault_of(words_of(request))
        if what in ERRORS:
            plug.sendall(ERRORS[what])
            return
        if what == 'down':
            self.down_until = time.monotonic() + DOWN_SECONDS
            raise Cut
        node.sendall(request)
        reply = read_whole(replies)
        if what == 'lost' or not reply:
            raise Cut
        if what == 'late':
            time.sleep(LATE_SECONDS)
        plug.sendall(reply)

    def has_met(self, namespace, name):
        """Whether a request of the namespace met the fault of the story."""
        return (namespace.encode(), name.encode()) in self.counts

    def fault_of(self, words):
        """What happens to the request, or none. Each namespace, a door's, meets a fault anew."""
        kind = KINDS.get(words[0].upper()) if words else None
        for name, (what, when) in self.faults.items():
            # The gateway writes the client's scope in front of a key, with a '|'.
            key = next((word for word in words[1:] if word.split(b'|')[-1] == name), None)
            if key is None or when != kind or what == 'oom' and len(words[4]) <= MARK_BYTES:
                continue
            met = (words[1], name)
            with self.lock:
                count = self.counts[met] = self.counts.get(met, 0) + 1
            if what == 'oom' or count <= (TIMES if what in ERRORS else 1):
                return what
        return None


def end(plug):
    try:
        plug.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    plug.close()
