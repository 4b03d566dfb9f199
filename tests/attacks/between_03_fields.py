"""No field that is signed or says who asks is lost or added on the way; tunnels are websockets."""

from gateways import PAYMENTS, Case, Client, Upstream, handshake, main

WEBSOCKET = '[[route]]\nname = "ws"\npath = "/ws/**"\nupgrade = true\n'


class Fields(Case):
    def setUp(self):
        self.start(Upstream())

    def test_connection_takes_no_field_away(self):
        there = ["Idempotency-Key: k", "X-Limit: 5", "Cookie: a=b", "Content-Type: text/plain"]
        for name in ("Authorization", "authorization", "Cookie", "Host", "Idempotency-Key",
                     "Content-Type", "Content-Length", "X-Limit"):
            for line in (f"Connection: {name}", f"connection: close,\t{name} ,"):
                for target in ("POST /payments", "POST /other"):
                    reply = self.refuses(f"{target} HTTP/1.1", [*there, line], 400, "bad-request")
                    self.assertIn(b"Connection names the field", reply.body)
        two = [*there, "Connection: keep-alive", "Connection: X-Limit"]
        self.refuses("POST /payments HTTP/1.1", two, 400, "bad-request")

    def test_what_is_for_one_connection_may_be_named(self):
        fields = ["Connection: keep-alive, TE, X-Not-There", "TE: trailers", "X-Limit: 5",
                  "Keep-Alive: 5"]
        self.assertEqual(self.ask("POST /other HTTP/1.1", fields).status, 201)
        seen = self.upstream.requests[-1][2]
        self.assertEqual(seen["x-limit"], ["5"])
        self.assertFalse({"te", "keep-alive", "connection"} & set(seen))

    def test_a_name_that_servers_read_as_another_does_not_arrive(self):
        names = ("Idempotency_Key", "Semel_Fencing_Token", "Semel-Fencing_Token", "X_Forwarded_For",
                 "X_Forwarded-Proto", "X_Real_IP", "Content_Length", "Transfer_Encoding",
                 "Authoriz.ation", "X.Forwarded.For", "X~Limit", "X!", "X_HTTP_Method_Override")
        fields = [f"{name}: 6" for name in names]
        for line in ("POST /payments HTTP/1.1", "POST /other HTTP/1.1"):
            self.assertEqual(self.ask(line, [*fields, "Idempotency-Key: k"]).status, 201)
            seen = self.upstream.requests[-1][2]
            self.assertNotIn("6", [value for values in seen.values() for value in values])
            self.assertFalse([name for name in seen if not name.replace("-", "").isalnum()])
        # It is no key either.
        self.refuses("POST /payments HTTP/1.1", ["Idempotency_Key: k"], 400, "key-missing")


class Tunnels(Case):
    routes = PAYMENTS + WEBSOCKET

    def setUp(self):
        self.start(Upstream())

    def lines(self, **changes):
        fields = {**handshake(), **{name.replace("_", "-"): v for name, v in changes.items()}}
        return [f"{name}: {value}" for name, value in fields.items() if value is not None]

    def test_a_websocket_is_passed_on(self):
        for changes in ({}, {"Upgrade": "WebSocket"}, {"Connection": "keep-alive, upgrade"}):
            head = ["GET /ws/a?do=upgrade HTTP/1.1", "Host: shop", *self.lines(**changes), "", ""]
            with Client(self.gateway.port) as client:
                client.send("\r\n".join(head).encode())
                reply = client.receive()
                self.assertEqual((reply.status, reply.fields["upgrade"]), (101, ["websocket"]))
                client.send(b"abc")
                self.assertEqual(client.stream.read(3), b"ABC")
        self.assertEqual(self.upstream.requests[-1][2]["sec-websocket-version"], ["13"])

    def test_nothing_else_is(self):
        target = "/ws/a?do=upgrade HTTP/1.1"
        for changes in ({"Upgrade": "h2c"}, {"Upgrade": "TLS/1.2"}, {"Upgrade": "websocket, h2c"},
                        {"Upgrade": "h2c, websocket"}, {"Upgrade": ""}, {"Connection": None},
                        {"Connection": "keep-alive"}, {"Sec_WebSocket_Key": None},
                        {"Sec_WebSocket_Key": "short"}, {"Sec_WebSocket_Version": None},
                        {"Sec_WebSocket_Version": "8"}):
            self.refuses(f"GET {target}", self.lines(**changes), 501, "not-supported", None)
        for method in ("POST", "HEAD", "PUT", "OPTIONS"):
            self.refuses(f"{method} {target}", self.lines(), 501, None, None)
        self.refuses("GET /ws/a?do=upgrade HTTP/1.0", self.lines(), 501, "not-supported", None)
        self.refuses(f"GET {target}", self.lines(), 501, "not-supported", b"body")
        for more in ("Upgrade: h2c", "Sec-WebSocket-Version: 8", "Sec-WebSocket-Key: " + "x" * 24):
            self.refuses(f"GET {target}", [*self.lines(), more], 501, "not-supported", None)
        for path in ("/payments", "/other"):
            self.refuses(f"GET {path}?do=upgrade HTTP/1.1", self.lines(), 501, "not-supported",
                         None)

    def test_an_upstream_that_changes_to_another_protocol_gets_nowhere(self):
        def other(wfile, *_):
            wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n")
            return False
        self.upstream.handler = other
        reply = self.ask("GET /ws/a HTTP/1.1", self.lines(), None)
        self.assertEqual((reply.status, reply.problem), (502, "upstream-invalid"))


if __name__ == "__main__":
    main(__doc__)
