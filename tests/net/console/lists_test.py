"""The console's lists of keys and decisions over HTTP: lists_test.py PATH_OF_SEMEL [unittest ..].

Words of these tests: slice - what one call returns; walk - all slices, from cursor 0 to cursor 0.
"""

import json
import sys
import threading
import unittest

from console_node import ConsoleNode

SEMEL = ''
ROWS = 100  # console_limits::page_rows
STEP = 64  # more than a step of the scan may bring beyond it


class Case(unittest.TestCase):
    def node(self, *arguments):
        return ConsoleNode(self, SEMEL, *arguments)

    def walk(self, session, call, rows, **fields):
        """All rows of all slices, and how many slices there were."""
        found, cursor, slices = [], '0', 0
        while True:
            answer = session.post(call, {**fields, 'cursor': cursor})
            self.assertEqual(answer.status, 200, answer.body)
            found += answer.json()[rows]
            cursor = answer.json()['cursor']
            slices += 1
            if cursor == '0':
                return found, slices

    def keys(self, session, **fields):
        return {row['key']: row for row in self.walk(session, 'keys', 'rows', **fields)[0]}

    def decisions(self, session, **fields):
        return self.walk(session, 'decisions', 'decisions', **fields)[0]


def filled(node):
    """A client of a node with a claim in each state."""
    client = node.client()
    client('SEMEL.NAMESPACE', 'payments', 'AS', 'payment')
    client('SEMEL.NAMESPACE', 'jobs', 'AS', 'message', 'ATTEMPTS-MAX', '1')
    client('SEMEL.NAMESPACE', 'tokens', 'AS', 'token')
    client('SEMEL.CLAIM', 'payments', 'held', 'OWNER', 'worker-1')
    epoch = client('SEMEL.CLAIM', 'payments', 'doubt', 'OWNER', 'worker-2')[3]
    client('SEMEL.FAIL', 'payments', 'doubt', epoch, 'IN-DOUBT')
    epoch = client('SEMEL.CLAIM', 'payments', 'done')[3]
    client('SEMEL.COMPLETE', 'payments', 'done', epoch, 'r')
    epoch = client('SEMEL.CLAIM', 'jobs', 'failed')[3]
    client('SEMEL.FAIL', 'jobs', 'failed', epoch, 'KEEP')
    client('SEMEL.CLAIM', 'jobs', 'over', 'LEASE', '1000', 'OWNER', 'other')
    client('SEMEL.CLAIM', 'jobs', 'late', 'LEASE', '1000')
    client('SEMEL.ISSUE', 'tokens', 'issued')
    client('SEMEL.CLOCK', 'ADVANCE', '1000')
    client('SEMEL.CLAIM', 'jobs', 'late')  # beyond the limit of attempts
    client('SET', 'payments:string', 'no claim')
    return client


class Keys(Case):
    def test_a_filter_of_each_kind(self):
        node = self.node('--test-clock')
        filled(node)
        session = node.login()
        states = {key: row['state'] for key, row in self.keys(session).items()}
        self.assertEqual(states, {'held': 'held', 'doubt': 'in_doubt', 'done': 'done',
                                  'failed': 'failed', 'over': 'over', 'late': 'poison',
                                  'issued': 'issued'})
        for state in states.values():
            self.assertEqual([key for key, of in states.items() if of == state],
                             list(self.keys(session, state=state)), state)
        for fields, wanted in (({'namespace': 'tokens'}, {'issued'}),
                               ({'namespace': 'payments', 'prefix': 'do'}, {'doubt', 'done'}),
                               ({'prefix': 'h'}, {'held'}),
                               ({'owner': 'worker-'}, {'held', 'doubt'}),
                               ({'owner': 'worker-1', 'prefix': 'h'}, {'held'}),
                               ({'namespace': 'nowhere'}, set()), ({'prefix': 'x' * 65536}, set())):
            self.assertEqual(set(self.keys(session, **fields)), wanted, fields)

    def test_time_left_and_age(self):
        node = self.node('--test-clock')
        client = node.client()
        client('SEMEL.CLOCK', 'FREEZE')
        client('SEMEL.CLAIM', 'orders', 'old', 'LEASE', '60000')
        client('SEMEL.CLOCK', 'ADVANCE', '10000')
        client('SEMEL.CLAIM', 'orders', 'new', 'LEASE', '60000')
        session = node.login()
        rows = self.keys(session)
        self.assertEqual((rows['old']['age_ms'], rows['old']['remaining_ms']), (10000, 50000))
        self.assertEqual((rows['new']['age_ms'], rows['new']['remaining_ms']), (0, 60000))
        for fields, wanted in (({'age_min_ms': '10000'}, {'old'}), ({'age_min_ms': '10001'}, set()),
                               ({'left_min_ms': '50001'}, {'new'}),
                               ({'left_max_ms': '50000'}, {'old'}),
                               ({'left_max_ms': '49999'}, set())):
            self.assertEqual(set(self.keys(session, **fields)), wanted, fields)

    def test_an_age_that_is_not_known_is_a_long_one(self):
        node = self.node('--decision-log-size', '0')
        node.client()('SEMEL.CLAIM', 'orders', 'o-1')
        row = self.keys(node.login(), age_min_ms='86400000')['o-1']
        self.assertIsNone(row['age_ms'])

    def test_pages_are_bounded_and_miss_no_key(self):
        node = self.node()
        client = node.client()
        names = [f'k-{i}' for i in range(20_000)]
        for start in range(0, len(names), 5000):
            part = names[start:start + 5000]
            client('SEMEL.CLAIMS', 'orders', 'KEYS', len(part), *part)
        session = node.login()
        first = session.post('keys', {'cursor': '0'}).json()
        self.assertIn(len(first['rows']), range(ROWS, ROWS + STEP))
        rows, slices = self.walk(session, 'keys', 'rows')
        self.assertEqual({row['key'] for row in rows}, set(names))
        self.assertGreater(slices, 100)
        # A filter that few keys pass ends a slice by the records that were looked at; each step of
        # the scan looks at some more than it is asked for.
        rows, slices = self.walk(session, 'keys', 'rows', prefix='k-1999')
        self.assertEqual(len({row['key'] for row in rows}), 11)
        self.assertIn(slices, range(2, 60))

    def test_hostile_keys(self):
        node = self.node()
        client = node.client()
        keys = [b'<script>alert(1)</script>', b'\xff\xfe\x00', 'a\u202eb'.encode(), b'\\x41',
                b'x' * (64 * 1024 - len('orders:'))]
        for key in keys:
            client('SEMEL.CLAIM', 'orders', key, 'OWNER', b'<b>\xff')
        session = node.login()
        rows = self.keys(session)
        self.assertEqual(len(rows), len(keys))
        for key, row in rows.items():
            self.assertEqual(row['owner'], '<b>\\xff')
            self.assertEqual(session.key('orders', key).json()['key'], key)
        self.assertEqual(list(self.keys(session, prefix='\\xff')), ['\\xff\\xfe\\x00'])
        self.assertEqual(len(self.keys(session, owner='<b>\\xff')), len(keys))

    def test_long_keys_are_bounded_and_counted(self):
        node = self.node('--maxmemory', '256mb')
        client = node.client()
        for number in range(200):
            client('SEMEL.CLAIM', 'orders', b'\0' * 60_000 + str(number).encode())
        session = node.login()
        cursor, shown, left_out = '0', 0, 0
        while True:
            answer = session.post('keys', {'cursor': cursor})
            self.assertLess(len(answer.body), 1 << 20)
            slice_ = answer.json()
            shown, left_out = shown + len(slice_['rows']), left_out + slice_['left_out']
            cursor = slice_['cursor']
            if cursor == '0':
                break
        self.assertGreaterEqual(shown + left_out, 200)

    def test_what_is_refused(self):
        node = self.node()
        session = node.login()
        for fields in ({'cursor': 'x'}, {'cursor': ''}, {'cursor': '-1'}, {'cursor': '1' * 40},
                       {'cursor': 7}, {'cursor': str((1 << 63) - 1)}, {'state': 'nothing'},
                       {'prefix': '\\'}, {'prefix': 1}, {'owner': '\\x4'}, {'namespace': []},
                       {'left_min_ms': ''}, {'left_max_ms': '-1'}, {'age_min_ms': 5},
                       {'age_min_ms': '9' * 19}):
            self.assertEqual(session.post('keys', fields).word(), (400, 'bad_request'), fields)
        for fields in ({'cursor': 'x'}, {'namespace': 3}):
            self.assertEqual(session.post('decisions', fields).word(), (400, 'bad_request'))
        for call in ('keys', 'decisions'):
            for headers in ({'Origin': 'http://evil.example'}, {'X_Semel_Csrf': None},
                            {'Host': 'evil.example'}, {'Content-Type': 'text/plain'}):
                self.assertEqual(session.post(call, **headers).word(), (403, 'refused'), headers)


class Decisions(Case):
    def test_the_newest_of_all_keys_with_their_reasons(self):
        node = self.node('--test-clock')
        filled(node)
        session = node.login()
        all_ = self.decisions(session)
        about = {(each['key'], each['outcome']) for each in all_}
        self.assertLessEqual({('held', 'granted'), ('done', 'granted'), ('done', 'ok'),
                              ('late', 'poison'), ('issued', 'ok')}, about)
        self.assertEqual([each['call'] for each in all_ if each['key'] == 'issued'], ['issue'])
        for each in all_:
            self.assertTrue(each['why'], each)
        self.assertEqual({each['namespace'] for each in self.decisions(session, namespace='jobs')},
                         {'jobs'})
        self.assertEqual(self.decisions(session, namespace='nowhere'), [])

    def test_a_slice_has_a_hundred_at_most_and_the_newest(self):
        node = self.node('--test-clock')
        client = node.client()
        names = [f'k-{i}' for i in range(1000)]
        client('SEMEL.CLAIMS', 'orders', 'KEYS', len(names), *names)
        client('SEMEL.CLOCK', 'ADVANCE', '1000')
        client('SEMEL.CLAIM', 'orders', 'newest')
        session = node.login()
        found, cursor = [], '0'
        while True:
            slice_ = session.post('decisions', {'cursor': cursor}).json()
            times = [each['last_unix_ms'] for each in slice_['decisions']]
            self.assertLessEqual(len(times), 100)
            self.assertEqual(times, sorted(times, reverse=True))
            found += slice_['decisions']
            cursor = slice_['cursor']
            if cursor == '0':
                break
        newest = max(found, key=lambda each: each['last_unix_ms'])
        self.assertEqual(newest['key'], 'newest')

    def test_without_a_decision_log_it_says_so(self):
        node = self.node('--decision-log-size', '0')
        node.client()('SEMEL.CLAIM', 'orders', 'o-1')
        self.assertEqual(node.login().post('decisions').word(), (409, 'no_decisions'))


class Rights(Case):
    def test_rights_are_those_of_the_user(self):
        node = self.node()
        client = node.client()
        client('SEMEL.CLAIM', 'orders', 'o-1', 'OWNER', 'a')
        client('SEMEL.CLAIM', 'payments', 'p-1', 'OWNER', 'a')
        client('ACL', 'SETUSER', 'reader', 'on', '>r', '%R~orders:*', '+semel.getclaim',
               '+semel.explain', '+semel.inflight')
        client('ACL', 'SETUSER', 'unexplained', 'on', '>u', '~*', '+semel.getclaim',
               '+semel.inflight')
        client('ACL', 'SETUSER', 'none', 'on', '>n', '~*', '+semel.getclaim', '+semel.explain')
        reader = node.login('reader', 'r')
        self.assertEqual(list(self.keys(reader)), ['o-1'])
        self.assertEqual(list(self.keys(reader, namespace='payments')), [])
        self.assertEqual([each['key'] for each in self.decisions(reader)], ['o-1'])
        unexplained = node.login('unexplained', 'u')
        self.assertEqual([row['age_ms'] for row in self.keys(unexplained).values()], [None, None])
        self.assertEqual(self.decisions(unexplained), [])
        none = node.login('none', 'n')
        for call in ('keys', 'decisions'):
            self.assertEqual(none.post(call).word(), (403, 'no_permission'))
        # What changes holds at once.
        client('ACL', 'SETUSER', 'reader', 'resetkeys', '%R~payments:*')
        self.assertEqual(list(self.keys(reader)), ['p-1'])


class Attacks(Case):
    def test_sixteen_at_once(self):
        node = self.node()
        client = node.client()
        names = [f'k-{i}' for i in range(5000)]
        client('SEMEL.CLAIMS', 'orders', 'KEYS', len(names), *names)
        session = node.login()
        found, refused = [], []

        def one(number):
            try:
                call, rows = (('keys', 'rows'), ('decisions', 'decisions'))[number % 2]
                found.append(len(self.walk(session, call, rows, prefix='k')[0]))
            except Exception as error:  # an admin port takes 16 connections, and says no to more
                refused.append(repr(error))
        threads = [threading.Thread(target=one, args=(number,)) for number in range(15)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(refused, [])
        self.assertEqual(len(found), 15)
        self.assertEqual(node.get('/livez').status, 200)

    def test_clients_that_leave_before_the_answer(self):
        node = self.node()
        session = node.login()
        for number in range(60):
            body = json.dumps({'cursor': '0', 'prefix': 'x' * 60_000}).encode()
            plug = node.plug()
            plug.sendall((f'POST /console/api/{("keys", "decisions")[number % 2]} HTTP/1.1\r\n'
                          f'Host: 127.0.0.1:{node.admin}\r\nOrigin: {node.origin()}\r\n'
                          f'Content-Type: application/json\r\nCookie: {session.cookie}\r\n'
                          f'X-Semel-Csrf: {session.csrf}\r\n'
                          f'Content-Length: {len(body)}\r\n\r\n').encode() + body[:number * 1000])
            plug.close()
        self.assertEqual(session.user(), 'default')

    def test_with_a_full_memory(self):
        node = self.node('--maxmemory', '8mb')
        client = node.client()
        client('SEMEL.CLAIM', 'orders', 'o-1')
        number = 0
        while not client('SET', f'fill-{number}', b'v' * 4000).startswith(b'OOM'):
            number += 1
        session = node.login()
        self.assertEqual(list(self.keys(session)), ['o-1'])
        self.assertEqual([each['outcome'] for each in self.decisions(session)], ['granted'])


class Courses(Case):
    def test_namespaces_show_no_key_and_need_no_login(self):
        node = self.node()
        node.client()('SEMEL.CLAIM', 'orders', 'secret-key', 'OWNER', 'secret-owner')
        answer = node.get('/console/api/namespaces')
        self.assertEqual(answer.status, 200)
        self.assertNotIn(b'secret', answer.body)
        self.assertEqual(set(answer.json()), {'minutes', 'namespaces'})
        self.assertEqual(node.get('/console/api/namespaces', Host='evil.example').status, 403)


def main():
    global SEMEL
    SEMEL = sys.argv.pop(1)
    unittest.main()


if __name__ == '__main__':
    main()
