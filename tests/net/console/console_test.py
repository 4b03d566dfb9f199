"""The console of `semel node` over HTTP: console_test.py PATH_OF_SEMEL [unittest arguments].

Nothing sleeps for a guessed time; `until` looks again and again, with a bound.
"""

import json
import pathlib
import re
import socket
import sys
import tempfile
import threading
import time
import unittest

import console_node
from console_node import PATIENCE, ConsoleNode, Session, servers

SEMEL = ''
PAGE_BYTES_MAX = 200 * 1024
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
          "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")


def text_of(key):
    """A key as the console writes it, as far as these tests need it."""
    return ''.join(chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f'\\x{byte:02x}'
                   for byte in key)


class Case(unittest.TestCase):
    def node(self, *arguments):
        return ConsoleNode(self, SEMEL, *arguments)

    def acting(self, *arguments):
        return self.node('--console-actions', 'yes', *arguments)

    def doubt(self, node, key=b'p-1'):
        """A claim whose owner has said that it does not know."""
        client = node.client()
        client('SEMEL.NAMESPACE', 'payments', 'AS', 'payment')
        reply = client('SEMEL.CLAIM', 'payments', key, 'OWNER', 'worker-1')
        epoch = dict(zip(reply[::2], reply[1::2]))[b'epoch']
        client('SEMEL.FAIL', 'payments', key, epoch, 'IN-DOUBT')
        return client

    def outcome(self, client, key=b'p-1'):
        return client('SEMEL.CLAIM', 'payments', key)[1]


class Page(Case):
    def test_without_the_setting_there_is_none(self):
        node = self.node('--console', 'no')
        self.assertEqual(node.get('/console/').status, 404)
        # No page in a browser learns which paths there are, and none sends a body.
        self.assertEqual(node.post('login', b'').status, 403)
        self.assertEqual(node.post('login', {}).status, 403)

    def test_it_needs_an_admin_port(self):
        with self.assertRaisesRegex(AssertionError, 'console: it needs an admin-port'):
            self.node('--admin-port', '-1')

    def test_an_origin_is_checked(self):
        with self.assertRaisesRegex(AssertionError, "'semel.example' does not begin with https"):
            self.node('--console-origin', 'semel.example')

    def test_files_are_small_and_come_from_nowhere_else(self):
        node = self.node()
        page = node.get('/console/')
        self.assertEqual(page.status, 200)
        names = set(re.findall(r'(?:src|href)="(/console/[^"]+)"', page.body.decode()))
        self.assertEqual(names, {'/console/icon.svg', '/console/console.css',
                                 '/console/console.js'})
        total = len(page.body)
        modules = {f'/console/{name}.js' for name in ('base', 'claims', 'key', 'plots')}
        for name in names | modules:
            answer = node.get(name)
            self.assertEqual(answer.status, 200, name)
            total += len(answer.body)
            text = answer.body.decode()
            for address in re.findall(r'https?://[^\s"\'`)]+', text):
                self.assertEqual(address, 'http://www.w3.org/2000/svg', name)
            self.assertNotRegex(text, r'innerHTML|outerHTML|insertAdjacent|document\.write|eval\(')
        mark = pathlib.Path(__file__).resolve().parents[3] / 'docs/pictures/mark.svg'
        self.assertEqual(node.get('/console/icon.svg').body, mark.read_bytes())
        self.assertLessEqual(total, PAGE_BYTES_MAX)
        self.assertNotRegex(page.body.decode(),
                            r'(?i)<script>|<style|\son\w+=|\sstyle=|javascript:')

    def test_each_response_has_the_headers_of_safety(self):
        node = self.node()
        for path in ('/console/', '/console/console.js', '/console/api/status',
                     '/console/api/session', '/console/nothing', '/console'):
            headers = node.get(path).headers
            self.assertTrue(headers['Content-Security-Policy'].startswith(POLICY), path)
            self.assertEqual(headers['X-Content-Type-Options'], 'nosniff', path)
            self.assertEqual(headers['X-Frame-Options'], 'DENY', path)
            self.assertEqual(headers['Cache-Control'], 'no-store', path)
            self.assertEqual(headers['Referrer-Policy'], 'no-referrer', path)
            self.assertIsNone(headers['Access-Control-Allow-Origin'], path)

    def test_status_shows_no_key(self):
        node = self.node()
        client = node.client()
        client('SEMEL.CLAIM', 'orders', 'secret-key', 'OWNER', 'secret-owner')
        status = node.get('/console/api/status')
        self.assertEqual(status.status, 200)
        self.assertNotIn(b'secret', status.body)
        self.assertGreater(status.json()['memory']['used'], 0)
        self.assertEqual(node.get('/console/api/history?after=0').status, 200)
        self.assertEqual(node.get('/console/api/history?after=x').word(), (400, 'bad_request'))


class Login(Case):
    def test_session_of_a_user(self):
        node = self.node('--requirepass', 'geheim')
        self.assertEqual(node.login(password='wrong').word(), (401, 'wrong_login'))
        self.assertEqual(node.login('nobody', 'geheim').word(), (401, 'wrong_login'))
        session = node.login(password='geheim')
        self.assertRegex(session.set_cookie, r'^semel_console_\d+=[0-9a-f]{64}; Path=/console; '
                                             r'HttpOnly; SameSite=Strict$')
        self.assertEqual(session.user(), 'default')
        client = node.client()
        client('AUTH', 'geheim')
        self.assertIn(b'name=console', client('CLIENT', 'LIST'))
        self.assertEqual(session.post('logout').status, 200)
        self.assertIsNone(session.user())
        self.assertEqual(session.key('a', 'b').word(), (401, 'not_logged_in'))
        node.logged('event=console_logout user=default')
        self.assertIn('event=login_denied user=nobody', node.log())
        self.assertNotIn(b'name=console', client('CLIENT', 'LIST'))

    def test_the_page_learns_whether_default_has_a_password(self):
        def is_open(node, **headers):
            return node.get('/console/api/session', **headers).json()['default_has_no_password']

        self.assertFalse(is_open(self.node('--requirepass', 'geheim')))
        node = self.node()
        self.assertTrue(is_open(node))
        client = node.client()
        client('ACL', 'SETUSER', 'default', 'off')
        self.assertFalse(is_open(node))

    def test_calls_need_a_login(self):
        node = self.acting()
        for call in ('key', 'scan', 'keys', 'decisions', 'resolve', 'forget', 'logout', 'nothing'):
            self.assertEqual(node.post(call, {}).word(), (401, 'not_logged_in'), call)

    def test_guessing_is_slowed_down_whoever_guesses_right(self):
        node = self.node('--requirepass', 'geheim')
        for _ in range(5):
            self.assertEqual(node.login(password='wrong').status, 401)
        refused = node.login(password='geheim')
        self.assertEqual(refused.word(), (429, 'too_many'))
        self.assertIn(int(refused.headers['Retry-After']), range(1, 8))

    def test_a_cookie_that_was_planted_is_never_used(self):
        node = self.node()
        planted = f'semel_console_{node.admin}={"0" * 64}'
        session = node.login(Cookie=planted)
        self.assertNotIn('0' * 64, session.cookie)
        self.assertIsNone(node.get('/console/api/session', Cookie=planted).json()['user'])
        # Two of one name: nobody knows which is meant.
        both = f'{session.cookie}; {planted}'
        self.assertIsNone(node.get('/console/api/session', Cookie=both).json()['user'])

    def test_a_new_login_ends_the_session_of_the_browser(self):
        node = self.node()
        first = node.login()
        second = node.login(Cookie=first.cookie)
        self.assertIsNone(first.user())
        self.assertEqual(second.user(), 'default')

    def test_change_of_the_user_ends_its_sessions(self):
        changes = {'password': ('ACL', 'SETUSER', 'ann', 'resetpass', '>new'),
                   'off': ('ACL', 'SETUSER', 'ann', 'off'),
                   'deleted': ('ACL', 'DELUSER', 'ann')}
        node = self.node()
        client = node.client()
        for name, change in changes.items():
            client('ACL', 'SETUSER', 'ann', 'reset', 'on', '>old', '+@all', '~*')
            session = node.login('ann', 'old')
            self.assertEqual(session.user(), 'ann', name)
            client(*change)
            self.assertIsNone(session.user(), name)
            self.assertEqual(session.post('scan').status, 401, name)
        # The same name and password, and another user.
        client('ACL', 'SETUSER', 'ann', 'reset', 'on', '>old', '+@all', '~*')
        self.assertIsNone(session.user())

    def test_client_kill_ends_a_session(self):
        node = self.node()
        session = node.login()
        client = node.client()
        self.assertEqual(client('CLIENT', 'KILL', 'SKIPME', 'yes'), 1)
        servers.until(lambda: session.user() is None, 'the end of the session', PATIENCE)
        node.logged('reason=connection_closed')

    def test_limits_of_user_and_password(self):
        node = self.node()
        for fields in ({'user': 'a' * 1025}, {'password': 'a' * 4097}, {'user': 1},
                       {'password': None}):
            body = {'user': 'default', 'password': '', **fields}
            self.assertEqual(node.post('login', body).word(), (400, 'bad_request'), fields)


class Guard(Case):
    def test_another_origin_gets_nothing(self):
        node = self.acting()
        session = node.login()
        client = self.doubt(node)
        claim = session.key('payments', 'p-1').json()['claim']
        fields = {'namespace': 'payments', 'key': 'p-1', 'state': claim['state'],
                  'epoch': claim['epoch'], 'as': 'released'}
        for headers in ({'Origin': 'http://evil.example'}, {'Origin': None}, {'Origin': 'null'},
                        {'Host': f'evil.example:{node.admin}'}, {'X_Semel_Csrf': None},
                        {'X_Semel_Csrf': '0' * 64}, {'Content-Type': 'text/plain'},
                        {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site'}):
            answer = session.post('resolve', fields, **headers)
            self.assertEqual(answer.word(), (403, 'refused'), headers)
        self.assertEqual(self.outcome(client), b'in_doubt')
        self.assertEqual(session.post('resolve', fields).status, 200)
        self.assertEqual(self.outcome(client), b'granted')

    def test_another_sessions_token_is_no_help(self):
        node = self.node()
        one, other = node.login(), node.login()
        self.assertEqual(one.post('scan', X_Semel_Csrf=other.csrf).word(), (403, 'refused'))

    def test_a_name_that_was_pointed_here_sees_nothing(self):
        node = self.node()
        for path in ('/console/', '/console/api/status', '/console/api/session'):
            self.assertEqual(node.get(path, Host='evil.example').word(), (403, 'refused'), path)
        self.assertEqual(node.get('/console/', Host=f'localhost:{node.admin}').status, 200)

    def test_behind_a_proxy(self):
        node = self.node('--console-origin', 'https://semel.example', '--requirepass', 'geheim')
        outside = {'Host': 'semel.example', 'Origin': 'https://semel.example'}
        answer = node.post('login', {'password': 'geheim'}, **outside)
        self.assertTrue(answer.headers['Set-Cookie'].endswith('; Secure'))
        session = Session(node, answer)
        self.assertEqual(session.post('scan', **outside).status, 200)
        # Nor is it used without https.
        self.assertEqual(session.post('scan').word(), (401, 'not_logged_in'))
        open_node = self.node('--console-origin', 'https://semel.example')
        self.assertEqual(open_node.post('login', {}, **outside).word(), (403, 'refused'))


class Keys(Case):
    def test_hostile_keys_and_owners(self):
        node = self.acting()
        client = self.doubt(node)
        session = node.login()
        keys = [b'<script>alert(1)</script>', b'\xff\xfe\x00', 'a\u202eb'.encode(), b'\\x41',
                b'"\'&<>', b'x' * (64 * 1024 - len('payments:'))]
        for key in keys:
            client('SEMEL.CLAIM', 'payments', key, 'OWNER', b'<b>\xff')
            answer = session.key('payments', text_of(key))
            self.assertEqual(answer.status, 200, key[:20])
            self.assertEqual(answer.json()['claim']['owner'], '<b>\\xff')
            self.assertEqual(answer.json()['claim']['state'], 'held')
            self.assertEqual(answer.headers['Content-Type'], 'application/json')
            again = session.key('payments', answer.json()['key'])
            self.assertEqual(again.json()['key'], answer.json()['key'])
        found = session.post('scan', {'cursor': '0'}).json()['found']
        self.assertEqual(len(found), len(keys) + 1)
        self.assertIn('a\\xe2\\x80\\xaeb', [row['key'] for row in found])

    def test_keys_and_bodies_that_are_refused(self):
        node = self.node()
        self.doubt(node)
        session = node.login()
        for key in ('', '\\', '\\x4', 'x' * (64 * 1024 + 1), '\\x41' * (64 * 1024 + 1)):
            self.assertEqual(session.key('payments', key).word(), (400, 'bad_request'), key[:20])
        self.assertEqual(session.key('nowhere', 'k').word(), (404, 'no_namespace'))
        self.assertEqual(session.key('\u0000<script>', 'k').word(), (404, 'no_namespace'))
        for body in (b'', b'{', b'[]', b'null', b'\xff', b'{"key":' + b'[' * 5000, b'"a"',
                     b'{"namespace":1,"key":{}}'):
            answer = session.post('key', body)
            self.assertEqual(answer.word(), (400, 'bad_request'), body[:20])
        for cursor in ('x', '-1', '', '1' * 40, 7):
            self.assertEqual(session.post('scan', {'cursor': cursor}).status, 400, cursor)

    def test_rights_are_those_of_the_user(self):
        node = self.acting()
        client = self.doubt(node)
        client('SEMEL.CLAIM', 'orders', 'o-1')
        client('ACL', 'SETUSER', 'reader', 'on', '>r', '%R~orders:*', '+semel.getclaim',
               '+semel.explain', '+semel.inflight', '+select')
        client('ACL', 'SETUSER', 'none', 'on', '>n')
        session = node.login('reader', 'r')
        self.assertEqual(session.key('orders', 'o-1').json()['claim']['state'], 'held')
        self.assertEqual(session.key('payments', 'p-1').word(), (403, 'no_permission'))
        self.assertEqual([row['key'] for row in session.post('scan').json()['found']], ['o-1'])
        claim = session.key('orders', 'o-1').json()['claim']
        self.assertEqual(session.act('forget', 'orders', 'o-1', claim).word(),
                         (403, 'no_permission'))
        self.assertEqual(client('SEMEL.GETCLAIM', 'orders', 'o-1')[1], b'held')
        session = node.login('none', 'n')
        self.assertEqual(session.key('orders', 'o-1').word(), (403, 'no_permission'))
        self.assertEqual(session.post('scan').word(), (403, 'no_permission'))
        client('ACL', 'SETUSER', 'none', '~*', '+@all')  # holds at once
        self.assertEqual(session.key('orders', 'o-1').status, 200)

    def test_results_are_cut(self):
        node = self.node('--maxmemory', '64mb')
        client = node.client()
        reply = client('SEMEL.CLAIM', 'orders', 'o-1')
        epoch = reply[reply.index(b'epoch') + 1]
        client('SEMEL.COMPLETE', 'orders', 'o-1', epoch, b'\0' * 8_000_000)
        answer = node.login().key('orders', 'o-1')
        result = answer.json()['claim']['result']
        self.assertEqual(result, {'text': '\\x00' * 1024, 'bytes': 8_000_000, 'cut': True})

    def test_a_search_goes_over_all_claims_in_slices(self):
        node = self.node()
        client = node.client()
        keys = [f'k-{i}' for i in range(30_000)]
        for start in range(0, len(keys), 5000):
            part = keys[start:start + 5000]
            client('SEMEL.CLAIMS', 'orders', 'LEASE', 60000 + start, 'KEYS', len(part), *part)
        session = node.login()
        cursor, slices, found, left_out = '0', 0, set(), 0
        while True:
            answer = session.post('scan', {'cursor': cursor}).json()
            slices += 1
            self.assertLessEqual(len(answer['found']), 512)
            found |= {row['key'] for row in answer['found']}
            left_out += answer['left_out']
            cursor = answer['cursor']
            if cursor == '0':
                break
        self.assertGreater(slices, 2)
        self.assertGreaterEqual(len(found) + left_out, len(keys))


    def test_a_search_lists_a_lease_that_is_over_apart(self):
        node = self.node('--test-clock')
        client = node.client()
        client('SEMEL.NAMESPACE', 'careful', 'LEASE', 5000, 'ON-LEASE-END', 'IN-DOUBT')
        client('SEMEL.CLAIM', 'careful', 'doubt')
        client('SEMEL.CLAIM', 'orders', 'late', 'LEASE', 5000)
        client('SEMEL.CLAIM', 'orders', 'on-time', 'LEASE', 60000)
        client('SEMEL.CLOCK', 'ADVANCE', 5000)
        found = node.login().post('scan', {'cursor': '0'}).json()['found']
        self.assertEqual({row['key']: row['state'] for row in found},
                         {'doubt': 'in_doubt', 'late': 'over', 'on-time': 'held'})


class Actions(Case):
    def test_resolve_and_forget(self):
        node = self.acting()
        client = self.doubt(node)
        session = node.login()
        claim = session.key('payments', 'p-1').json()['claim']
        self.assertEqual(claim['state'], 'in_doubt')
        answer = session.act('resolve', 'payments', 'p-1', claim,
                             **{'as': 'done', 'result': 'p\\x00'})
        self.assertEqual(answer.status, 200, answer.body)
        reply = client('SEMEL.CLAIM', 'payments', 'p-1')
        self.assertEqual((reply[1], reply[-1]), (b'replay', b'p\0'))
        # What was seen is there no more.
        again = session.act('resolve', 'payments', 'p-1', claim, **{'as': 'done'})
        self.assertEqual(again.word(), (409, 'changed'))
        claim = session.key('payments', 'p-1').json()['claim']
        self.assertEqual(session.act('resolve', 'payments', 'p-1', claim, **{'as': 'done'}).word(),
                         (409, 'changed'))
        self.assertEqual(session.act('forget', 'payments', 'p-1', claim).status, 200)
        self.assertEqual(self.outcome(client), b'granted')
        log = node.log()
        lines = [line for line in log.splitlines() if 'event=console_action' in line]
        self.assertEqual([re.search(r'action=(\w+).*outcome=(\w+)', line).groups()
                          for line in lines],
                         [('resolve_done', 'ok'), ('resolve_done', 'changed'),
                          ('resolve_done', 'nothing'), ('forget', 'ok')])
        for line in lines:
            self.assertRegex(line, r'user=default address=127\.0\.0\.1:\d+ .*namespace=payments '
                                   r'key_hash=[0-9a-f]{16}')

    def test_a_record_that_changes_after_it_was_seen_stays(self):
        node = self.acting()
        client = self.doubt(node)
        session = node.login()
        claim = session.key('payments', 'p-1').json()['claim']
        client('SEMEL.RESOLVE', 'payments', 'p-1', 'RELEASED')
        client('SEMEL.CLAIM', 'payments', 'p-1', 'OWNER', 'worker-2')
        for call, fields in (('resolve', {'as': 'released'}), ('forget', {})):
            answer = session.act(call, 'payments', 'p-1', claim, **fields)
            self.assertEqual(answer.word(), (409, 'changed'))
        self.assertEqual(self.outcome(client), b'in_flight')

    def test_read_only_by_default(self):
        node = self.node()
        client = self.doubt(node)
        session = node.login()
        claim = session.key('payments', 'p-1').json()['claim']
        for call in ('resolve', 'forget'):
            answer = session.act(call, 'payments', 'p-1', claim, **{'as': 'done'})
            self.assertEqual(answer.word(), (403, 'read_only'))
        self.assertEqual(self.outcome(client), b'in_doubt')
        node.logged('outcome=read_only')

    def test_six_in_a_second_are_one_too_many_for_the_log(self):
        node = self.acting()
        self.doubt(node)
        session = node.login()
        claim = session.key('payments', 'p-1').json()['claim']
        claim['epoch'] = '1'
        answers = [session.act('forget', 'payments', 'p-1', claim).word() for _ in range(30)]
        self.assertIn((429, 'too_many'), answers)
        changed = answers.count((409, 'changed'))
        lines = [line for line in node.log().splitlines() if 'event=console_action' in line]
        self.assertEqual(len(lines), changed)

    def test_with_a_full_memory(self):
        node = self.acting('--maxmemory', '8mb')
        client = self.doubt(node)
        value = b'v' * 4000
        number = 0
        while not client('SET', f'fill-{number}', value).startswith(b'OOM'):
            number += 1
        session = node.login()
        self.assertEqual(node.get('/console/api/status').status, 200)
        claim = session.key('payments', 'p-1').json()['claim']
        self.assertEqual(session.act('forget', 'payments', 'p-1', claim).status, 200)
        self.assertEqual(client('SEMEL.GETCLAIM', 'payments', 'p-1')[1], b'absent')

    def test_with_a_storage_the_answer_waits_for_the_disk(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        node = self.acting('--storage-enabled', 'yes', '--durability', 'synced', '--dir',
                           folder.name)
        client = self.doubt(node)
        session = node.login()
        claim = session.key('payments', 'p-1').json()['claim']
        self.assertEqual(session.act('resolve', 'payments', 'p-1', claim,
                                     **{'as': 'released'}).status, 200)
        self.assertEqual(self.outcome(client), b'granted')
        self.assertIsNotNone(node.get('/console/api/status').json()['storage'])


class Attacks(Case):
    def test_a_paused_node_gives_an_answer_in_time(self):
        node = self.acting()
        client = self.doubt(node)
        session = node.login()
        claim = session.key('payments', 'p-1').json()['claim']
        client('CLIENT', 'PAUSE', 60000, 'WRITE')
        began = time.monotonic()
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(
            session.act('forget', 'payments', 'p-1', claim))) for _ in range(2)]
        for thread in threads:
            thread.start()
        self.assertEqual(node.get('/livez').status, 200)  # nothing else waits
        for thread in threads:
            thread.join(PATIENCE)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual({answer.status for answer in answers}, {503})
        self.assertIsNone(session.user())
        self.assertIn('outcome=unknown', node.log())
        other = node.client()
        other('CLIENT', 'UNPAUSE')
        self.assertEqual(other('SEMEL.GETCLAIM', 'payments', 'p-1')[1], b'in_doubt')

    def test_sixteen_hostile_connections_end_in_time(self):
        node = self.node()
        session = node.login()
        head = (f'POST /console/api/login HTTP/1.1\r\nHost: 127.0.0.1:{node.admin}\r\n'
                f'Origin: {node.origin()}\r\nContent-Type: application/json\r\n').encode()
        plugs = []
        for number in range(16):
            plug = node.plug()
            # A body that never comes, one that is huge, a header without an end, half a line.
            plug.sendall([head + b'Content-Length: 100000\r\n\r\n{',
                          head + b'Content-Length: 99999999999\r\n\r\n',
                          head + b'X: ' + b'a' * 20000,
                          b'POST /console/api/lo'][number % 4])
            plugs.append(plug)

        def is_served():
            try:
                return node.get('/livez').status == 200 and session.user() == 'default'
            except (ConnectionError, OSError, console_node.http.client.HTTPException):
                return False
        servers.until(is_served, 'an answer', PATIENCE)

    def test_bytes_that_are_no_request(self):
        node = self.node()
        for junk in (b'\0' * 100, b'GET /console/ HTTP/9.9\r\n\r\n',
                     b'POST /console/api/login\r\n\r\n',
                     b'GET /console/%00%2e%2e/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
                     b'GET /console/../metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
                     b'POST /console/api/login HTTP/1.1\r\nContent-Length: 5\r\n'
                     b'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
                     b'GET /console/ HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n'):
            plug = node.plug()
            plug.sendall(junk)
            plug.shutdown(socket.SHUT_WR)
            answer = b''.join(iter(lambda: plug.recv(65536), b''))
            if answer:
                self.assertRegex(answer.split(b'\r\n')[0], rb'HTTP/1\.[01] (400|403|404)', junk)
        self.assertEqual(node.get('/livez').status, 200)

    def test_clients_that_leave_before_the_answer(self):
        node = self.node()
        session = node.login()
        body = json.dumps({'cursor': '0'}).encode()
        request = (f'POST /console/api/scan HTTP/1.1\r\nHost: 127.0.0.1:{node.admin}\r\n'
                   f'Origin: {node.origin()}\r\nContent-Type: application/json\r\n'
                   f'Cookie: {session.cookie}\r\nX-Semel-Csrf: {session.csrf}\r\n'
                   f'Content-Length: {len(body)}\r\n\r\n').encode() + body
        for _ in range(100):
            plug = socket.create_connection(('127.0.0.1', node.admin))
            plug.sendall(request)
            plug.close()
        self.assertEqual(session.user(), 'default')

    def test_shutdown_with_open_sessions_and_a_waiting_action(self):
        node = self.acting()
        client = self.doubt(node)
        sessions = [node.login() for _ in range(3)]
        claim = sessions[0].key('payments', 'p-1').json()['claim']
        client('CLIENT', 'PAUSE', 60000, 'WRITE')
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            sessions[0].act('forget', 'payments', 'p-1', claim)))
        thread.start()
        other = node.client()
        servers.until(lambda: other('CLIENT', 'LIST').count(b'name=console') == 3, 'sessions',
                      PATIENCE)
        self.assertEqual(node.stop(), 0)
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())


def main():
    global SEMEL
    SEMEL = sys.argv.pop(1)
    unittest.main()


if __name__ == '__main__':
    main()
