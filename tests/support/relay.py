"""A relay between clients that speak Redis' protocol and their server, which loses, delays and
answers what a test says."""

import socket
import threading
import time

from resp import LOOPBACK, PATIENCE, read_raw


class Listener:
    """Takes connections on a port of its own: welcome(plug), on the thread of all of them."""

    def __init__(self):
        self.listener = socket.create_server((LOOPBACK, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def address(self):
        return f'{LOOPBACK}:{self.port}'

    def accept(self):
        while True:
            try:
                plug = self.listener.accept()[0]
            except OSError:
                return
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.welcome(plug)

    def stop(self):
        self.listener.close()


class Relay(Listener):
    """`fault(request)` says of each request's bytes what becomes of it. None: it is passed on;
    'request': the connection ends before the server has it; 'reply': after the server has carried
    it out, before its answer; 'mute': it is passed on, and no answer ever comes; bytes: they are
    the answer, and the server has nothing of it; a number: its reply is so many seconds late."""

    receive = staticmethod(read_raw)  # the next request of a client

    def __init__(self, port):
        self.target = port
        self.fault = lambda request: None
        self.lock = threading.Lock()
        self.open = set()
        super().__init__()

    def welcome(self, near):
        try:
            far = socket.create_connection((LOOPBACK, self.target), PATIENCE)
        except OSError:
            near.close()
            return
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.open |= {near, far}
        threading.Thread(target=self.serve, args=(near, far), daemon=True).start()

    def serve(self, near, far):
        try:
            with near.makefile('rb') as requests, far.makefile('rb') as replies:
                while self.pass_on(self.receive(requests), near, far, replies):
                    pass
        except (OSError, ValueError):
            pass
        with self.lock:
            self.open -= {near, far}
        for plug in (near, far):
            end(plug)

    def pass_on(self, request, near, far, replies):
        """Whether the connection goes on."""
        how = self.fault(request)
        if how == 'request':
            return False
        if isinstance(how, bytes):
            near.sendall(how)
            return True
        far.sendall(request)
        reply = read_raw(replies)
        if how == 'reply':
            return False
        if isinstance(how, float):
            time.sleep(how)
        if how != 'mute':
            near.sendall(reply)
        return True

    def stop(self):
        super().stop()
        with self.lock:
            open_ones, self.open = self.open, set()
        for plug in open_ones:
            end(plug)


def end(plug):
    try:
        plug.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    plug.close()
