"""Clients that are slow, or idle, hold no place that another one needs: the slowest is dropped."""

import threading

from gateways import PAYMENTS, Case, Client, Upstream, main, message, wait_until

DROPPED = "semel_gateway_clients_dropped_total"
PLACES = 8  # of clients
AT_ONCE = 3  # exchanges with the upstream


class Places(Case):
    settings = ("threads = 1\n"
                f"connections = {PLACES}\n"
                f"upstream-connections = {AT_ONCE}\n"
                'queue-timeout = "15s"\n')
    routes = PAYMENTS

    def setUp(self):
        self.start(Upstream())

    def hold(self, count, data):
        """So many clients that send this, and then nothing."""
        held = []
        for _ in range(count):
            client = Client(self.gateway.port)
            self.addCleanup(client.close)
            client.send(data)
            held.append(client)
        return held

    def is_served(self):
        try:
            return self.gateway.request("GET", "/next").status == 200
        except (OSError, AttributeError):  # refused with 503, or closed before
            return False


class OfClients(Places):
    def others_are_served_beside(self, data):
        self.hold(PLACES, data)
        # As soon as those have waited for a second: far less than their own limits.
        wait_until(self.is_served, "another client is served")
        self.assertGreaterEqual(self.gateway.metric(DROPPED), 1)

    def test_idle_connections(self):
        self.others_are_served_beside(b"")

    def test_heads_that_do_not_end(self):
        self.others_are_served_beside(b"GET / HTTP/1.1\r\nHost: shop\r\n")

    def test_guarded_bodies_that_do_not_end(self):
        data = message("POST", "/payments/1", b"x" * 100, key="a")
        self.others_are_served_beside(data[:-1])

    def test_nobody_is_dropped_where_there_is_room(self):
        idle = self.hold(PLACES - 1, b"")
        self.assertTrue(self.is_served())
        for client in idle:
            self.assertEqual(client.request("GET", "/later").status, 200)
        self.assertEqual(self.gateway.metric(DROPPED), 0)


class OfTheUpstream(Places):
    def test_bodies_that_do_not_end(self):
        self.hold(AT_ONCE, message("POST", "/upload", b"x" * 1000)[:-1])
        self.assertTrue(self.is_served())
        self.assertEqual(self.gateway.metric(DROPPED), 1)

    def test_replies_that_nobody_reads(self):
        self.hold(AT_ONCE, message("GET", f"/?do=big&bytes={16 << 20}"))
        self.assertTrue(self.is_served())
        self.assertGreaterEqual(self.gateway.metric(DROPPED), 1)

    def test_an_upstream_that_is_slow_is_waited_for(self):
        replies = []

        def ask(name):
            replies.append(self.gateway.request("GET", f"/?do=hold&name={name}").status)
        names = [f"held-{number}" for number in range(AT_ONCE - 1)]
        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for name in names:
            self.assertTrue(self.upstream.arrived[name].wait(20))
        self.hold(1, message("POST", "/upload", b"x" * 1000)[:-1])
        self.assertTrue(self.is_served())
        for name in names:
            self.upstream.release(name)
        for thread in threads:
            thread.join()
        self.assertEqual(replies, [200] * len(names))


if __name__ == "__main__":
    main(__doc__)
