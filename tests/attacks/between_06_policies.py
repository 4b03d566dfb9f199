"""--check-config refuses what has no effect, and all that a start refuses, TLS files included."""

import os
import shutil
import subprocess
import unittest

from gateways import PAYMENTS, check_config, main, new_directory

GATEWAY = '[gateway]\nlisten = "127.0.0.1:0"\nupstream = "http://127.0.0.1:1"\ndefault = "pass"\n'


def route(lines, path="/x"):
    return f'[[route]]\nname = "x"\npath = "{path}"\n{lines}\n'


class Policies(unittest.TestCase):
    def setUp(self):
        self.directory = new_directory()
        self.addCleanup(self.directory.cleanup)

    def refuses(self, text, *words):
        """With one line for each of `words`, in any order."""
        code, lines = check_config(text, self.directory.name)
        self.assertEqual((code, len(lines)), (2, len(words)), lines)
        for word in words:
            self.assertTrue(any(word in line for line in lines), (word, lines))

    def accepts(self, text):
        self.assertEqual(check_config(text, self.directory.name)[0], 0)

    def test_what_can_never_match(self):
        for text, word in ((PAYMENTS.replace("POST", "post"), "'post'"),
                           (PAYMENTS.replace("POST", "POST "), "'POST '"),
                           (PAYMENTS.replace('"POST"', ""), "methods is empty"),
                           (PAYMENTS.replace("/payments/**", "/x/../payments"), "dot segment"),
                           (PAYMENTS.replace("/payments/**", "/payments;v=1"), "parameters"),
                           (route("", "/**") + PAYMENTS, "'x' in front")):
            self.refuses(GATEWAY + text, word)
        self.accepts(GATEWAY + PAYMENTS + route("", "/**"))

    def test_what_has_no_effect(self):
        for lines, word in (('keep = "1h"', "keep has no effect"),
                            ('signature-keys = ["a"]', "signature-keys has no effect"),
                            ('guard = "refuse"\nscope = ["shared"]', "scope has no effect"),
                            ('guard = "debounce"\nwait = "1s"', "wait has no effect")):
            self.refuses(GATEWAY + route(lines), word)
        self.refuses(GATEWAY + 'upstream-ca = "/x"\n', "upstream-ca and", "upstream-ca '/x'")

    def test_all_is_reported_at_once(self):
        text = ('[gateway]\nlisten = "x"\nupstream = "y"\nadmin = "0.0.0.0:1"\nhead-bytes = 1\n'
                'tls-cert = "/none/a"\ntls-key = "/none/b"\n'
                '[[key]]\nid = "a"\nsecret = "0123456789abcdef"\n' + PAYMENTS)
        self.refuses(text, "'x' is not host:port", "'y' is not http", "admin is", "head-bytes is 1",
                     "tls-cert '/none/a'", "tls-key '/none/b'", "key 'a' signs for no route",
                     "default is missing")
        self.refuses("[gateway\n", "checked.toml:1")  # and not what is missing besides

    def test_files_of_tls(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")

        def made(name):
            key, cert = (os.path.join(self.directory.name, name + end) for end in (".key", ".pem"))
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
                            "-days", "2", "-subj", f"/CN={name}"], check=True, capture_output=True)
            return cert, key

        def tls(cert, key):
            return GATEWAY + f'tls-cert = "{cert}"\ntls-key = "{key}"\n'
        cert, key = made("a")
        _, other = made("b")
        empty = os.path.join(self.directory.name, "empty")
        with open(empty, "w", encoding="utf-8"):
            pass
        self.accepts(tls(cert, key))
        self.refuses(tls(cert, other), f"tls-key '{other}'")
        self.refuses(tls(key, key), f"tls-cert '{key}'")
        self.refuses(tls(cert, empty), f"tls-key '{empty}'")
        self.refuses(tls(self.directory.name, "/none"), "tls-cert '", "tls-key '/none'")
        node = 'store-node = ["127.0.0.1:1"]\nstore-tls = true\n'
        self.refuses(GATEWAY + node + f'store-cert = "{cert}"\nstore-key = "{other}"\n',
                     f"store-key '{other}'")
        self.refuses(GATEWAY.replace("http://", "https://") + f'upstream-ca = "{key}"\n',
                     f"upstream-ca '{key}'")


if __name__ == "__main__":
    main(__doc__)
