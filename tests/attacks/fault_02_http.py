"""A page in a browser sends a POST to the node: nothing of it is carried out, on any door."""

import pathlib
import socket
import ssl
import subprocess
import tempfile

from node import TEXTS, Client, Node, Skip, prove, until

BODY = (b"\r\nEVAL \"return redis.call('SET','owned','1')\" 0\r\nSET owned 1\r\n"
        b"CONFIG SET requirepass hijacked\r\n")
HEADERS = (b" / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n"
           b"Origin: http://other.example\r\nContent-Type: text/plain;charset=UTF-8\r\n"
           b"Content-Length: %d\r\n\r\n" % len(BODY))


def make_certificate(folder):
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2",
         "-subj", "/CN=localhost"], capture_output=True, check=False)
    if made.returncode != 0:
        raise Skip("openssl makes no certificate")


def doors(node):
    yield lambda: node.client()
    yield lambda: Client(node.facts["unix"], form=TEXTS)

    def over_tls():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", int(node.facts["tls_port"])), timeout=15)
        return Client(context.wrap_socket(plain), form=TEXTS)

    yield over_tls


def test(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_certificate(folder)
        with Node(program, "--unix-socket", "{dir}/socket", "--tls-port", "0",
                  "--tls-cert-file", folder / "cert.pem", "--tls-key-file", folder / "key.pem",
                  "--tls-auth-clients", "no") as node:
            before = 0
            for door in doors(node):
                for method in (b"POST", b"post", b"GET", b"PUT", b"OPTIONS"):
                    guest = door()
                    guest.raw(method + HEADERS + BODY)
                    answer = guest.rest()
                    assert b"+OK" not in answer, answer
                    guest.close()
                    before += 1
                # Behind commands that are answered, cut anywhere.
                guest = door()
                assert guest("PING") == "PONG"
                guest.raw(b"PO")
                guest.raw(b"ST" + HEADERS + BODY)
                assert guest.rest() == b""
                guest.close()
                before += 1
            mine = node.client()
            assert mine("EXISTS", "owned") == 0
            assert mine("CONFIG", "GET", "requirepass") == [b"requirepass", b""]
            until(lambda: "event=http_refused" in node.log(), "a line in the log")
        # A node that asks for a password says nothing either.
        with Node(program, "--requirepass", "secret") as node:
            guest = node.client()
            guest.raw(b"POST" + HEADERS + BODY)
            assert guest.rest() == b""
            assert "event=http_refused" in node.log()


prove(2, "a request of a browser is closed at its first line", test)
