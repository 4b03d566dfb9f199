"""A method that the gateway reads in one way and its upstream in another reaches no upstream."""

import unittest

from gateways import PAYMENTS, Case, Upstream, check_config, main, new_directory

OVERRIDES = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")


class Methods(Case):
    def setUp(self):
        self.start(Upstream())

    def test_another_spelling_of_a_method_is_refused(self):
        for method in ("post", "Post", "POSt", "pOST", "FETCH", "POST_", "BREW"):
            reply = self.refuses(f"{method} /payments", [], 400, "bad-request")
            self.assertIn(f"'{method}'", reply.body.decode())
            self.refuses(f"{method} /other", [], 400, "bad-request")
        self.assertEqual(self.ask("POST /payments HTTP/1.1", ["Idempotency-Key: k"]).status, 201)

    def refuses(self, line, *more):
        return super().refuses(line if line.endswith("1.1") else line + " HTTP/1.1", *more)

    def test_a_second_method_is_refused_on_a_guarded_path(self):
        for name in (*OVERRIDES, "x-http-method-override"):
            for line in ("GET /payments", "PUT /payments/7", "POST /payments", "GET /PAYMENTS"):
                self.refuses(line, [f"{name}: POST", "Idempotency-Key: k"], 400, "method-override")
            self.assertEqual(self.ask("GET /other HTTP/1.1", [f"{name}: POST"]).status, 200)

    def test_a_second_method_in_the_query_is_refused_on_a_guarded_path(self):
        for query in ("_method=POST", "a=b&%5Fmethod=POST"):
            self.refuses(f"GET /payments?{query}", ["Idempotency-Key: k"], 400, "method-override")
            self.assertEqual(self.ask(f"GET /other?{query} HTTP/1.1").status, 200)

    def test_a_second_method_in_another_spelling_does_not_arrive(self):
        name = OVERRIDES[0].replace("-", "_")
        self.assertEqual(self.ask("GET /payments HTTP/1.1", [f"{name}: POST"]).status, 200)
        self.assertNotIn(name.lower(), self.upstream.requests[-1][2])

    def test_another_spelling_of_a_path_is_refused(self):
        for path in ("/Payments", "/PAYMENTS/7", "/payments;a/7", "//payments", "/;/payments/7",
                     "/%70ayments", "/%50ayments/", "/payments%3b", "/payments/%2e%2e/payments",
                     "/x/../payments", "/./payments", "/payments/.", "/x%2f..%2fpayments",
                     "/x\\payments", "/payments%00", "/payments%09", "/payments%5c",
                     "/payments#x", "http://shop/payments", "/%2570ayments", "*", "shop:80"):
            self.refuses(f"POST {path}", [], 400, None)


class Ignored(Case):
    routes = PAYMENTS + 'method-override = "ignore"\n'

    def test_a_route_may_say_that_its_upstream_ignores_it(self):
        self.start(Upstream())
        fields = [f"{OVERRIDES[0]}: DELETE", "Idempotency-Key: k"]
        self.assertEqual(self.ask("POST /payments HTTP/1.1", fields).status, 201)


class Default(unittest.TestCase):
    def test_where_a_route_guards_the_default_is_said(self):
        with new_directory() as directory:
            flags = ["--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"]
            code, lines = check_config(PAYMENTS, directory, *flags)
            self.assertEqual((code, len(lines)), (2, 1))
            self.assertIn("default is missing: route 'payments' guards", lines[0])
            for word in ("refuse", "pass"):
                text = f'[gateway]\ndefault = "{word}"\n' + PAYMENTS
                self.assertEqual(check_config(text, directory, *flags)[0], 0)


class Refused(Case):
    settings = 'threads = 1\ndefault = "refuse"\n'

    def test_what_no_route_names_is_refused(self):
        self.start(Upstream())
        self.refuses("GET /payments HTTP/1.1", [], 403, "route-refused")
        self.refuses("POST /other HTTP/1.1", [], 403, "route-refused")


if __name__ == "__main__":
    main(__doc__)
