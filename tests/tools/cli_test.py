#!/usr/bin/env python3
"""Black-box tests of `semel cli`: cli_test.py PATH_OF_SEMEL [unittest arguments]."""

import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from servers import Node, free_ports  # noqa: E402

SEMEL = ''
SECONDS = 30


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = Node(SEMEL)
        cls.node.start()

    @classmethod
    def tearDownClass(cls):
        cls.node.end()

    def setUp(self):
        self.node.ask('FLUSHALL')

    def run_cli(self, *words, lines=None, flags=()):
        return subprocess.run(
            [SEMEL, 'cli', '--at', f'127.0.0.1:{self.node.port}', *flags, *words],
            input=lines if lines is None or isinstance(lines, bytes) else lines.encode(),
            stdin=subprocess.DEVNULL if lines is None else None, capture_output=True,
            timeout=SECONDS, check=False)

    def check(self, done, code, out=None, error=None):
        self.assertEqual(done.returncode, code, done)
        if out is not None:
            self.assertEqual(done.stdout.decode(), out)
        if error is not None:
            self.assertRegex(done.stderr.decode(), error)

    def test_one_command(self):
        self.check(self.run_cli('SET', 'k', 'v'), 0, 'OK\n')
        self.check(self.run_cli('get', 'k'), 0, 'v\n')
        self.check(self.run_cli('get', 'none'), 0, '(nil)\n')
        self.check(self.run_cli('incr', 'n'), 0, '1\n')
        self.check(self.run_cli('rpush', 'l', 'a b', ''), 0, '2\n')
        self.check(self.run_cli('lrange', 'l', '0', '-1'), 0, '1) a b\n2) ""\n')
        self.check(self.run_cli('lrange', 'none', '0', '-1'), 0, '(empty)\n')

    def test_words_that_look_like_flags(self):
        self.check(self.run_cli('lrange', 'none', '0', '-1'), 0)
        self.check(self.run_cli('SET', 'k', '--json'), 0, 'OK\n')
        self.check(self.run_cli('get', 'k'), 0, '--json\n')

    def test_a_claim_needs_no_prefix(self):
        done = self.run_cli('claim', 'cli', 'o-1')
        self.check(done, 0)
        self.assertIn('outcome: granted\n', done.stdout.decode())
        epoch = re.search(r'^epoch: (\d+)$', done.stdout.decode(), re.M)[1]
        self.check(self.run_cli('complete', 'cli', 'o-1', epoch, 'paid'), 0)
        done = self.run_cli('claim', 'cli', 'o-1', flags=['--json'])
        reply = json.loads(done.stdout)
        self.assertEqual((reply['outcome'], reply['result']), ('replay', 'paid'))
        # Redis has a command of that name, which stays Redis'.
        self.check(self.run_cli('wait', '0', '1'), 0, '0\n')

    def test_bytes(self):
        self.node.ask('SET', 'bytes', b'\xff\x00"\\')
        self.check(self.run_cli('get', 'bytes'), 0, '"\\xff\\x00\\"\\\\"\n')
        done = self.run_cli('get', 'bytes', flags=['--json'])
        self.assertEqual(json.loads(done.stdout), '\u00ff\u0000"\\')
        self.node.ask('SET', 'text', 'Grüße'.encode())
        self.check(self.run_cli('get', 'text'), 0, 'Grüße\n')
        self.node.ask('HSET', 'h', b'\xfe', '1', 'f', '2')
        done = self.run_cli('hgetall', 'h', flags=['--json'])
        self.assertEqual(json.loads(done.stdout), {'\u00fe': '1', 'f': '2'})

    def test_errors(self):
        self.check(self.run_cli('nothing', 'x'), 1, '', r"unknown command 'nothing'")
        done = self.run_cli('get', flags=['--json'])
        self.check(done, 1)
        self.assertIn('wrong number', json.loads(done.stdout)['error'])
        self.check(self.run_cli('monitor'), 2, '', 'answers more than once')
        self.check(self.run_cli(flags=['--watch', '1s']), 2, '', 'needs a command')
        self.check(self.run_cli('ping', flags=['--watch', '1ms']), 2, '', 'below 100ms')
        self.check(self.run_cli('ping', flags=['--watch', '25h']), 2, '', 'more than 24h')
        self.check(self.run_cli('ping', flags=['--wait', 'x']), 2, '', 'x')
        self.check(self.run_cli('ping', flags=['--jsn']), 2, '', "no flag '--jsn'")
        done = subprocess.run([SEMEL, 'cli', '--at', '127.0.0.1:1', 'ping'], capture_output=True,
                              timeout=SECONDS, check=False)
        self.check(done, 1, '', '127.0.0.1:1')
        done = subprocess.run([SEMEL, 'cli', '--at', 'no address', 'ping'], capture_output=True,
                              timeout=SECONDS, check=False)
        self.check(done, 2, '', 'no address')

    def test_lines(self):
        done = self.run_cli(lines='set "a b" 1\n\n  get "a b"\nhelp claim\nexit\nset never 1\n')
        self.check(done, 0)
        out = done.stdout.decode()
        self.assertTrue(out.startswith('OK\n1\nSEMEL.CLAIM '), out)
        self.assertEqual(self.node.ask('EXISTS', 'never'), 0)
        # A transaction is of one connection.
        done = self.run_cli(lines='multi\nset k 1\nget k\nexec\n')
        self.check(done, 0, 'OK\nQUEUED\nQUEUED\n1) OK\n2) 1\n')

    def test_lines_that_fail(self):
        done = self.run_cli(lines='set "a\nping\n')
        self.check(done, 0, 'PONG\n', r'a quote is not closed\n\Z')  # not what was typed
        self.check(self.run_cli(lines='ping\nnothing\n'), 1, 'PONG\n', 'unknown command')
        self.check(self.run_cli(lines=''), 0, '')
        self.check(self.run_cli(lines='help nothing\n'), 0, "no command 'nothing'\n")

    def test_a_node_that_goes_and_comes(self):
        node = Node(SEMEL, port=free_ports(1)[0])
        self.addCleanup(node.end)
        node.start()
        cli = subprocess.Popen([SEMEL, 'cli', '--at', f'127.0.0.1:{node.port}'],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        self.addCleanup(cli.wait)
        self.addCleanup(cli.kill)
        node.stop()
        node.start()
        out, _ = cli.communicate(b'ping\nhgetall none\n', timeout=SECONDS)
        self.assertTrue(out.decode().endswith('PONG\n(empty)\n'), out)

    def test_watch(self):
        with tempfile.TemporaryFile() as out:
            cli = subprocess.Popen(
                [SEMEL, 'cli', '--at', f'127.0.0.1:{self.node.port}', '--watch', '100ms', 'incr',
                 'watched'], stdout=out)
            try:
                end = time.monotonic() + SECONDS
                while (self.node.ask('GET', 'watched') or b'0') < b'3':
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)
            finally:
                cli.terminate()
                cli.wait()
            out.seek(0)
            self.assertRegex(out.read(), rb'1\n[^\n]*2\n')

    def test_at_a_terminal(self):
        ours, theirs = pty.openpty()
        cli = subprocess.Popen([SEMEL, 'cli', '--at', f'127.0.0.1:{self.node.port}'],
                               stdin=theirs, stdout=theirs, stderr=theirs,
                               env={**os.environ, 'TERM': 'dumb'})
        os.close(theirs)
        self.addCleanup(os.close, ours)
        self.addCleanup(cli.wait)
        self.addCleanup(cli.kill)
        seen = b''

        def until(text):
            nonlocal seen
            end = time.monotonic() + SECONDS
            while text not in seen:
                left = end - time.monotonic()
                self.assertTrue(left > 0 and select.select([ours], [], [], left)[0], seen)
                seen += os.read(ours, 4096)

        until(b'> ')
        os.write(ours, b'echo typed-words\n')
        until(b'\r\ntyped-words')
        os.write(ours, b'exit\n')
        self.assertEqual(cli.wait(SECONDS), 0)


if __name__ == '__main__':
    SEMEL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
