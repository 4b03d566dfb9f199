#!/usr/bin/env python3
"""An application of Spring Boot behind a real gateway: spring_test.py PROGRAM BUILD-FOLDER
[unittest's arguments]. Skips without Maven, Java 17 or the packages of Boot.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from harness import WITHIN, Gateway, new_directory  # noqa: E402

PROGRAM = ''
BUILD = ''
ROUTES = '[[route]]\nname = "pay"\npath = "/pay"\nguard = "idempotency-key"\n'
JSON = {'Content-Type': 'application/json'}


def build():
    """None: it is there. Otherwise why not."""
    java, maven = shutil.which('java'), shutil.which('mvn')
    if not java or not maven:
        return 'no java, or no mvn'
    shutil.copytree(os.path.join(HERE, 'spring'), BUILD, dirs_exist_ok=True)
    made = subprocess.run(
        [maven, '--batch-mode', '--no-transfer-progress', '--quiet', 'compile',
         'dependency:copy-dependencies', '-DoutputDirectory=target/packages'],
        cwd=BUILD, capture_output=True, text=True, check=False, timeout=240)
    return f'Boot cannot be built: {made.stdout[-500:]}' if made.returncode else None


class Shop:
    """A process of the application; its effects outlive it."""

    def __init__(self, effects, port=0):
        target = os.path.join(BUILD, 'target')
        self.process = subprocess.Popen(
            ['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xmx256m',
             f'-Deffects={effects}', '-cp', f'{target}/classes:{target}/packages/*', 'shop.Shop',
             f'--server.port={port}', '--server.address=127.0.0.1', '--logging.level.root=off'],
            stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith('port '):
                self.port = int(line.split()[1])
                return
        raise RuntimeError(f'the application ended with {self.process.wait()}')

    def stop(self):
        self.process.kill()
        self.process.wait(WITHIN)
        self.process.stdout.close()


class Spring(unittest.TestCase):
    def setUp(self):
        self.directory = new_directory()
        self.addCleanup(self.directory.cleanup)
        self.effects = os.path.join(self.directory.name, 'effects')
        self.shop = Shop(self.effects)
        self.addCleanup(lambda: self.shop.stop())
        self.gateway = Gateway(PROGRAM, self.shop.port, ROUTES, self.directory.name,
                               settings='threads = 2\n')
        self.addCleanup(self.gateway.end)

    def pay(self, order, then='', key=None):
        body = json.dumps({'id': order, 'then': then}).encode()
        return self.gateway.request('POST', '/pay', body, JSON, key=key or order)

    def done(self):
        if not os.path.exists(self.effects):
            return []
        with open(self.effects, encoding='utf-8') as file:
            return file.read().split()

    def restart_shop(self):
        self.assertEqual(self.shop.process.wait(WITHIN), 9)
        port = self.shop.port
        self.shop.stop()
        self.shop = Shop(self.effects, port)

    def test_a_repeat_gets_the_reply_without_the_cookie(self):
        for is_replay in (False, True, True):
            reply = self.pay('a')
            self.assertEqual((reply.status, reply.is_replay), (201, is_replay))
            self.assertEqual(json.loads(reply.body), {'receipt': 'a'})
            self.assertEqual('set-cookie' in reply.fields, not is_replay)
        self.assertEqual(self.pay('b', key='a').problem, 'mismatch')
        self.assertEqual(self.done(), ['a'])

    def test_of_16_at_once_one_runs(self):
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(self.pay('c')))
                   for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(replies), 16)
        self.assertLessEqual({reply.status for reply in replies}, {201, 409})
        self.assertEqual(self.pay('c').status, 201)
        self.assertEqual(self.done(), ['c'])

    def test_an_exception_leaves_a_doubt(self):
        self.assertEqual(self.pay('d', 'throw').status, 500)
        again = self.pay('d', 'throw')
        self.assertEqual((again.status, again.problem), (409, 'in-doubt'))
        self.assertEqual(self.done(), ['d'])

    def test_an_application_that_ends_in_the_middle_is_not_asked_again(self):
        for then, effects in (('halt before', []), ('halt after', ['halt-after'])):
            with self.subTest(then):
                order = then.replace(' ', '-')
                self.assertEqual(self.pay(order, then).status, 502)
                self.restart_shop()
                again = self.pay(order, then)
                self.assertEqual((again.status, again.problem), (409, 'in-doubt'))
                self.assertEqual(self.done(), effects)
        self.assertEqual(self.pay('next').status, 201)

    def test_an_application_that_is_away_releases(self):
        port = self.shop.port
        self.shop.stop()
        away = self.pay('e')
        self.assertEqual((away.status, away.problem), (502, 'upstream-unreachable'))
        self.shop = Shop(self.effects, port)
        deadline = time.monotonic() + WITHIN
        while (reply := self.pay('e')).status != 201 and time.monotonic() < deadline:
            time.sleep(0.05)  # a poll interval: the gateway may still back off
        self.assertEqual((reply.status, reply.is_replay), (201, False))
        self.assertEqual(self.done(), ['e'])


if __name__ == '__main__':
    PROGRAM, BUILD = sys.argv.pop(1), sys.argv.pop(1)
    missing = build()
    if missing:
        print(f'spring: skipped: {missing}')
        sys.exit(77)
    unittest.main()
