"""Between a gateway and its upstream: passes bytes on, and ends a connection at a chosen byte."""

import socket
import threading


class Breaker:
    """Listens on `port`. break_after() is for the next bytes of whatever connection."""

    def __init__(self, target):
        self.target = target
        self.plan = None  # [is_request, bytes left, what has passed]
        self.lock = threading.Lock()
        self.broken = None
        self.open = set()
        self.plug = socket.create_server(('127.0.0.1', 0), backlog=128)
        self.port = self.plug.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def break_after(self, is_request, count):
        with self.lock:
            self.plan = [is_request, count, b'']
            self.broken = None

    def mend(self):
        """What had passed that way since break_after() when the connection was broken; None: it was
        not."""
        with self.lock:
            self.plan = None
            return self.broken

    def allowed(self, is_request, data):
        """What may pass, and whether the connection ends behind it."""
        with self.lock:
            if self.plan is None or self.plan[0] != is_request:
                return data, False
            left = self.plan[1]
            self.plan[1] -= len(data)
            self.plan[2] += data[:left]
            if self.plan[1] > 0:
                return data, False
            self.broken = self.plan[2]
            self.plan = None
            return data[:left], True

    def cut(self):
        """Ends the connections there are, between two requests."""
        with self.lock:
            for plug in self.open:
                shut_down(plug)

    def accept(self):
        while True:
            try:
                client, _ = self.plug.accept()
                server = socket.create_connection(('127.0.0.1', self.target))
            except OSError:
                return
            for plug in (client, server):
                plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.open |= {client, server}
            for pair, is_request in (((client, server), True), ((server, client), False)):
                threading.Thread(target=self.copy, args=(*pair, is_request), daemon=True).start()

    def copy(self, source, sink, is_request):
        try:
            while data := source.recv(65536):
                data, ends = self.allowed(is_request, data)
                sink.sendall(data)
                if ends:
                    break
        except OSError:
            pass
        for plug in (source, sink):
            shut_down(plug)
        with self.lock:
            self.open.discard(source)
        source.close()

    def stop(self):
        self.plug.close()
        self.cut()


def shut_down(plug):
    try:
        plug.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
