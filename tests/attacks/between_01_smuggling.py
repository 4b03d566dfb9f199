"""No request reaches the upstream inside another one, and no reply goes to another request."""

from gateways import Case, Client, main, message, wait_until
from raw_upstream import RawUpstream, ok

INNER = b"POST /payments/99 HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n"
OPENED = "semel_gateway_upstream_connections_opened_total"


class Framed(Case):
    def serve(self, reply, early=("GET", "HEAD", "OPTIONS")):
        self.start(RawUpstream(reply, early))

    def seen(self, target):
        return [each for each in self.upstream.requests if each.target == target]

    def warm_up(self):
        self.assertEqual(self.gateway.request("GET", "/warm").status, 200)

    def nothing_was_smuggled(self):
        """The next request is read and answered as itself, on whatever connection."""
        reply = self.gateway.request("POST", "/upload", INNER)
        self.assertEqual((reply.status, reply.body), (200, b"POST /upload"))
        wait_until(lambda: any(each.is_whole for each in self.seen("/upload")), "it is read")
        self.assertEqual(self.seen("/payments/99"), [])
        self.assertEqual([each.body for each in self.seen("/upload")], [INNER])


class Repeats(Framed):
    """The upstream closes a reused connection once it has read the head of /dies."""

    def setUp(self):
        def reply(method, target, count):
            if target == "/dies" and len(self.seen("/dies")) == 1:
                return None
            return ok(b"" if method == "HEAD" else f"{method} {target}".encode())
        self.serve(reply)

    def test_a_request_with_a_body_is_not_repeated(self):
        # As long as the head that the gateway writes next: it would be eaten as the body.
        size = len(f"POST /upload HTTP/1.1\r\nHost: shop\r\nAuthorization: alice\r\n"
                   f"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n"
                   f"X-Forwarded-Host: shop\r\nContent-Length: {len(INNER)}\r\n\r\n")
        for method in ("GET", "HEAD", "OPTIONS"):
            with self.subTest(method):
                self.upstream.requests.clear()
                self.warm_up()
                reply = self.gateway.request(method, "/dies", b"x" * size)
                self.assertEqual(reply.status, 502)
                self.assertEqual(len(self.seen("/dies")), 1)
                self.nothing_was_smuggled()

    def test_nor_is_one_with_chunks(self):
        self.warm_up()
        head = message("GET", "/dies", b"", {"Transfer-Encoding": "chunked"})
        with Client(self.gateway.port) as client:
            client.send(head + b"3\r\nabc\r\n0\r\n\r\n")
            self.assertEqual(client.receive().status, 502)
        self.assertEqual(len(self.seen("/dies")), 1)
        self.nothing_was_smuggled()

    def test_one_without_a_body_is(self):
        for fields in ({}, {"Content-Length": "0"}):
            self.upstream.requests.clear()
            self.warm_up()
            reply = self.gateway.request("GET", "/dies", b"", fields)
            self.assertEqual((reply.status, reply.body), (200, b"GET /dies"))
            self.assertEqual(len(self.seen("/dies")), 2)


class Debts(Framed):
    """The upstream answers each head at once, and reads the body after it."""

    def setUp(self):
        self.serve(lambda method, target, count: ok(
            b"" if method == "HEAD" else f"{method} {target}".encode()),
            early=("GET", "HEAD", "OPTIONS", "POST", "PUT"))

    def cut_upload(self, data, status=200):
        self.warm_up()
        with Client(self.gateway.port) as client:
            client.send(data)
            reply = client.receive()
            self.assertEqual(reply.status, status)
            self.assertEqual(reply.fields["connection"], ["close"])
            self.assertIsNone(client.receive())
        self.nothing_was_smuggled()

    def test_a_body_that_is_not_there_yet(self):
        for method in ("GET", "POST", "PUT"):
            with self.subTest(method):
                self.upstream.requests.clear()
                self.cut_upload(message(method, "/cut", b"x" * 200)[:-150])

    def test_chunks_that_are_not_there_yet(self):
        head = message("GET", "/cut", b"", {"Transfer-Encoding": "chunked"})
        for part in (b"", b"c8\r\n", b"c8\r\nxxx", b"3\r\nabc\r\n"):
            with self.subTest(part):
                self.upstream.requests.clear()
                self.cut_upload(head + part)

    def test_a_client_that_goes_away_in_the_middle(self):
        self.warm_up()
        with Client(self.gateway.port) as client:
            client.send(message("POST", "/cut", b"x" * 200)[:-150])
            wait_until(lambda: self.seen("/cut"), "the upstream has the head")
        self.nothing_was_smuggled()

    def test_connections_without_debts_are_reused(self):
        for _ in range(5):
            self.assertEqual(self.gateway.request("POST", "/a", b"x" * 100).status, 200)
            self.assertEqual(self.gateway.request("HEAD", "/a").status, 200)
        self.assertEqual(self.gateway.metric(OPENED), 1)


class Pipelined(Framed):
    """The upstream reads each request whole: one that answers early may end the connection."""

    def setUp(self):
        self.serve(lambda method, target, count: ok(f"{method} {target}".encode()), early=())

    def test_pipelined_requests_stay_apart(self):
        with Client(self.gateway.port) as client:
            client.send(message("GET", "/a", INNER) + message("POST", "/b", INNER) +
                        message("GET", "/c"))
            self.assertEqual([client.receive().body for _ in range(3)],
                             [b"GET /a", b"POST /b", b"GET /c"])
        self.nothing_was_smuggled()
        wait_until(lambda: all(each.is_whole for each in self.upstream.requests), "all is read")
        self.assertEqual([each.body for each in self.seen("/a") + self.seen("/b")],
                         [INNER, INNER])


INJECTED = ok(b"injected")
NO_LENGTH = b"HTTP/1.1 200 OK\r\n"


class Replies(Framed):
    """What is behind a reply belongs to no request."""

    LEFT_OVER = {
        "longer": ok(b"") + INJECTED,
        "interim": ok(b"") + b"HTTP/1.1 100 Continue\r\n\r\n",
        "no-content": b"HTTP/1.1 204 No Content\r\n\r\n" + INJECTED,
        "not-modified": b"HTTP/1.1 304 Not Modified\r\n\r\n" + INJECTED,
        "chunks": NO_LENGTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INJECTED,
        "head": ok(INJECTED)}
    REFUSED = {
        "two-lengths": NO_LENGTH + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + INJECTED,
        "both": NO_LENGTH + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "gzip": NO_LENGTH + b"Transfer-Encoding: gzip\r\n\r\n",
        "list": NO_LENGTH + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "twice": NO_LENGTH + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
                             b"0\r\n\r\n",
        "204-length": b"HTTP/1.1 204 No Content\r\nContent-Length: 60\r\n\r\n",
        "204-chunks": b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"}

    def setUp(self):
        replies = {**self.LEFT_OVER, **self.REFUSED}

        def reply(method, target, count):
            return replies.get(target.rsplit("/", 1)[1], ok(f"{method} {target}".encode()))
        self.serve(reply)

    def test_a_connection_with_unread_bytes_is_not_reused(self):
        for name in self.LEFT_OVER:
            with self.subTest(name):
                self.gateway.request("HEAD" if name == "head" else "GET", f"/{name}")
                self.assertEqual(self.gateway.request("GET", "/next").body, b"GET /next")
            if name == "head":
                continue
            with self.subTest(name, guarded=True):
                self.gateway.request("POST", f"/payments/{name}", b"", key=name)
                self.assertEqual(self.gateway.request("GET", "/next").body, b"GET /next")

    def test_a_reply_with_two_readings_is_refused(self):
        for name in self.REFUSED:
            with self.subTest(name):
                reply = self.gateway.request("GET", f"/{name}")
                self.assertEqual((reply.status, reply.problem), (502, "upstream-invalid"))
                self.assertEqual(self.gateway.request("GET", "/next").body, b"GET /next")


if __name__ == "__main__":
    main(__doc__)
