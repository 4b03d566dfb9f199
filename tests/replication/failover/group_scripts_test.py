#!/usr/bin/env python3
"""Scripts that a group of nodes does not know: group_scripts_test.py --program semel [unittest
arguments]. Each runs at one node, and all nodes are told what has become of its keys."""
import argparse
import random
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import group_test  # noqa: E402
from resp import Client, Failed  # noqa: E402

COUNT = ("local n = tonumber(redis.call('GET', KEYS[1]) or '0') + 1 "
         "redis.call('SET', KEYS[1], n) return n")
LIMIT = ("local n = redis.call('INCR', KEYS[1]) "
         "if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end "
         "if n > tonumber(ARGV[2]) then return 0 end return 1")
DELETE_OWN = ("local v = redis.call('get', KEYS[1]) "
              "if not v then return -1 end "
              "if v ~= ARGV[1] then return 0 end "
              "redis.call('del', KEYS[1]) return 1")
BUCKET = """
local rate, room, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local at = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(at[1]) or room
tokens = math.min(room, tokens + (now - (tonumber(at[2]) or now)) * rate / 1000)
local taken = 0
if tokens >= wanted then tokens = tokens - wanted taken = wanted end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(room / rate * 1000))
return taken
"""
# What comes to another result wherever and whenever it runs.
CHANCE = """
local time = redis.call('TIME')
local t = {}
for i = 1, 40 do t[tostring({}) .. i] = i end
local order = {}
for name, i in pairs(t) do order[#order + 1] = i end
redis.call('HSET', KEYS[1], 'time', time[1] .. '.' .. time[2], 'order', table.concat(order, ','),
           'place', tostring(t), 'chance', math.random(1e9),
           'field', tostring(redis.call('HRANDFIELD', KEYS[2])))
redis.call('SET', KEYS[3], tostring(function() end), 'PX', 600000 + math.random(1000))
return redis.call('HGET', KEYS[1], 'place')
"""


class ScriptTest(group_test.GroupTest):
    def setUp(self):
        group_test.program = program
        super().setUp()

    def state(self, node):
        """What this node has itself: every key with its value and its end."""
        found = {}
        with node.client(seconds=20) as connection:
            connection.ask('READONLY')
            for db in (0, 3):
                connection.ask('SELECT', db)
                for key in sorted(connection.ask('KEYS', '*')):
                    kind = connection.ask('TYPE', key)
                    value = (connection.ask('GET', key) if kind == b'string' else
                             sorted(zip(*[iter(connection.ask('HGETALL', key))] * 2)))
                    found[db, key] = kind, value, connection.ask('PEXPIRETIME', key)
        return found

    def check_alike(self):
        """All nodes have the same, once they have the newest of it."""
        leader = self.group.wait_leader()
        mark = str(random.random())
        leader.ask('SET', 'mark', mark)
        for node in self.group.nodes:
            self.assertTrue(self.group.has_seen(node, 'mark', mark))
        states = [self.state(node) for node in self.group.nodes]
        for each in states[1:]:
            self.assertEqual(each, states[0])
        return states[0]

    def together(self, count, work):
        """`work(number)` on so many threads; their exceptions are raised here."""
        failures = []

        def run(number):
            try:
                work(number)
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if failures:
            raise failures[0]


class Effects(ScriptTest):
    def test_the_scripts_of_the_articles(self):
        sha = {text: self.lead('SCRIPT', 'LOAD', text)
               for text in (COUNT, LIMIT, DELETE_OWN, BUCKET)}
        for name in ('EVAL', 'EVALSHA'):
            def run(text, *words, name=name):
                return self.lead(name, sha[text] if name == 'EVALSHA' else text, *words)
            key = name.lower()
            self.assertEqual([run(COUNT, 1, f'{key}:n') for _ in range(3)], [1, 2, 3])
            self.assertEqual([run(LIMIT, 1, f'{key}:l', 600, 2) for _ in range(4)], [1, 1, 0, 0])
            self.assertGreater(self.lead('PTTL', f'{key}:l'), 590000)
            self.lead('SET', f'{key}:o', 'me')
            self.assertEqual([run(DELETE_OWN, 1, f'{key}:o', who) for who in ('you', 'me', 'me')],
                             [0, 1, -1])
            self.assertEqual([run(BUCKET, 1, f'{key}:b', '0.001', 5, 2) for _ in range(3)],
                             [2, 2, 0])
            self.assertTrue(self.lead('HGET', f'{key}:b', 'tokens').startswith(b'1'))
        found = self.check_alike()
        self.assertEqual(found[0, b'eval:n'], (b'string', b'3', -1))
        self.assertNotIn((0, b'eval:o'), found)

    def test_what_comes_by_chance_is_alike_on_all_nodes(self):
        """It is not, if each node runs the script by itself."""
        self.lead('HSET', 'many', *[word for i in range(100) for word in (f'f{i}', i)])
        for i in range(20):
            place = self.lead('EVAL', CHANCE, 3, f'h{i}', 'many', f's{i}')
            self.assertEqual(self.lead('HGET', f'h{i}', 'place'), place)
        found = self.check_alike()
        self.assertEqual(len(found), 42)
        self.assertEqual(len({str(found[0, f'h{i}'.encode()]) for i in range(20)}), 20)

    def test_every_kind_of_change_is_an_effect(self):
        self.lead('MSET', 'a', 1, 'b', 2, 'gone', 3, 'moved', 4, 'kept', 5)
        self.lead('EXPIRE', 'kept', 1000)
        self.lead('HSET', 'h', 'x', 1, 'y', 2, 'z', 3)
        self.lead('PEXPIRE', 'h', 100000)
        self.lead('HSET', 'becomes', 'x', 1)
        script = """
            redis.call('RENAME', 'a', 'A')
            redis.call('COPY', 'b', 'B', 'DB', '3')
            redis.call('MOVE', 'moved', 3)
            redis.call('DEL', 'gone', 'becomes')
            redis.call('SET', 'becomes', 'a string')
            redis.call('APPEND', 'b', 'more')
            redis.call('PERSIST', 'kept')
            redis.call('HDEL', 'h', 'x')
            redis.call('HINCRBY', 'h', 'y', 5)
            redis.call('PERSIST', 'h')
            redis.call('HSET', 'new', 'f', 'v')
            redis.call('PEXPIREAT', 'new', 4102444800000)
            redis.call('SET', 'short', 1, 'PX', 1)
            redis.call('INCR', 'short')
            redis.call('SET', 'past', 1, 'PXAT', 1)
            redis.call('SETEX', 'dead', 100, 1)
            redis.call('EXPIRE', 'dead', -1)
            redis.call('SELECT', 3)
            redis.call('SET', 'there', 'x')
            return redis.call('GET', 'B')"""
        self.assertEqual(self.lead('EVAL', script, 0), b'2')
        self.assertEqual(self.lead('GET', 'there'), None)  # the client's database is its own
        self.soon(self.leader, 0, 'EXISTS', 'short')  # also what was changed behind its end
        found = self.check_alike()
        found.pop((0, b'mark'))
        self.assertEqual(found, {
            (0, b'A'): (b'string', b'1', -1), (0, b'b'): (b'string', b'2more', -1),
            (3, b'B'): (b'string', b'2', -1), (3, b'moved'): (b'string', b'4', -1),
            (0, b'becomes'): (b'string', b'a string', -1), (0, b'kept'): (b'string', b'5', -1),
            (0, b'h'): (b'hash', [(b'y', b'7'), (b'z', b'3')], -1),
            (0, b'new'): (b'hash', [(b'f', b'v')], 4102444800000),
            (3, b'there'): (b'string', b'x', -1)})

    def test_a_script_that_fails_keeps_what_it_did_before(self):
        """As in Redis. It is one step all the same."""
        failed = self.lead('EVAL', "redis.call('SET', 'a', 1) redis.call('HGET', 'a', 'f')", 0)
        self.assertIn('WRONGTYPE', failed)
        self.assertEqual(self.lead('GET', 'a'), b'1')
        self.assertEqual(self.lead('EVAL', "redis.call('INCR', 'a') "
                                           "return {redis.pcall('HGET', 'a', 'f')['err'] ~= nil, "
                                           "redis.call('GET', 'a')}", 0), [1, b'2'])
        self.assertIn('user_script', self.lead('EVAL', "error('x')", 0))
        self.check_alike()

    def test_what_cannot_be_carried_is_refused_by_name_and_does_nothing(self):
        self.lead('SEMEL.CLAIM', 'pay', 'x')
        for words in ("'SEMEL.CLAIM', 'pay', 'y'", "'SEMEL.GETCLAIM', 'pay', 'x'",
                      "'SEMEL.CAS', 'a', 0, 'v'", "'SEMEL.GET', 'a'", "'SEMEL.NAMESPACES'",
                      "'KEYS', '*'", "'SCAN', 0", "'DBSIZE'", "'RANDOMKEY'", "'FLUSHALL'",
                      "'SWAPDB', 0, 1", "'GET', 'pay:x'"):
            for call in ('call', 'pcall'):
                reply = self.lead('EVAL', f"redis.call('SET', 'a', 1) redis.{call}({words}) "
                                          "redis.call('SET', 'b', 1) return 1", 0)
                self.assertTrue(str(reply).startswith('ERR in a group a script that'), reply)
                self.assertIn('nothing of it was carried out', reply)
        self.assertEqual(self.lead('EXISTS', 'a', 'b'), 0)
        self.lead('MULTI')
        self.lead('EVAL', COUNT, 1, 'n')
        self.assertTrue(self.lead('EXEC').startswith('ERR in a group'))

    def test_a_known_script_with_other_arguments_runs_once_too(self):
        """Where it is no operation of Semel's, the interpreter runs it, and not on every node."""
        unlock = ("if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) "
                  "else return 0 end")
        self.lead('SET', 'lock', 'me')
        self.assertIn('user_script', self.lead('EVAL', unlock, 0))
        self.assertIn('Number of keys', self.lead('EVAL', unlock, 2, 'lock'))
        self.assertEqual(self.lead('EVAL', unlock, 1, 'lock', 'me', 'more'), 1)

    def test_bounds(self):
        many = "for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'k' .. i, ARGV[2]) end return 1"
        self.assertEqual(self.lead('EVAL', many, 0, 4096, 'v'), 1)
        for words in ((4097, 'v'), (50, 'x' * (1 << 20)), (200, 'x' * (1 << 20))):
            self.lead('FLUSHALL')
            reply = self.lead('EVAL', many, 0, *words)
            self.assertRegex(str(reply), 'at most 4096 keys|ERR value exceeds|OOM')
            self.assertEqual(self.lead('DBSIZE'), 0)
        wide = "for i = 1, 40000 do redis.call('HSET', 'h' .. i % 9, i, i) end"
        self.assertRegex(self.lead('EVAL', wide, 0), 'too many keys')
        self.assertEqual(self.lead('EVAL', COUNT, 1, 'n'), 1)
        self.check_alike()

    def test_messages_are_published_once(self):
        node = self.others[0]
        self.ask(node, 'SUBSCRIBE', 'news')
        self.lead('SUBSCRIBE', 'news')
        connection = Client(self.group.ports[self.leader.number], 10)
        self.addCleanup(connection.close)
        script = ("redis.call('SET', 'a', 1) redis.call('PUBLISH', 'news', 'one') "
                  "return redis.call('PUBLISH', 'news', 'two')")
        self.assertEqual(connection.ask('EVAL', script, 0), 1)
        for each in (node, self.leader):
            self.assertEqual([self.connections[each].reply()[2] for _ in range(2)],
                             [b'one', b'two'])

    def test_watchers_see_an_effect_and_listeners_hear_of_it(self):
        self.lead('CONFIG', 'SET', 'notify-keyspace-events', 'KEA')
        self.lead('WATCH', 'n')
        listener = Client(self.group.ports[self.leader.number], 10)
        self.addCleanup(listener.close)
        listener.ask('SUBSCRIBE', '__keyevent@0__:set')
        with self.leader.client(seconds=10) as other:
            other.ask('EVAL', COUNT, 1, 'n')
        self.assertEqual(listener.reply()[2], b'n')
        self.lead('MULTI')
        self.lead('SET', 'n', 5)
        self.assertIsNone(self.lead('EXEC'))
        self.assertEqual(self.lead('GET', 'n'), b'1')

    def test_replies_come_in_order_and_as_asked_for(self):
        with self.leader.client(seconds=20) as connection:
            self.assertEqual(connection.all([
                ('SET', 'n', 5), ('EVAL', COUNT, 1, 'n'), ('GET', 'n'), ('EVAL', COUNT, 1, 'n'),
                ('INCR', 'n'), ('EVAL', 'return ARGV[1]', 0, 'x'), ('PING',)]),
                [b'OK', 6, b'6', 7, 8, b'x', b'PONG'])
            for words in (('CLIENT', 'REPLY', 'SKIP'), ('EVAL', COUNT, 1, 'n')):
                connection.send(*words)
            self.assertEqual(connection.ask('GET', 'n'), b'9')

    def test_rights_hold_inside(self):
        self.lead('ACL', 'SETUSER', 'few', 'on', '>p', '+@all', '-@dangerous', '~few:*')
        with self.leader.client(seconds=20) as connection:
            connection.ask('AUTH', 'few', 'p')
            self.assertEqual(connection.ask('EVAL', COUNT, 1, 'few:n'), 1)
            with self.assertRaisesRegex(Failed, 'NOPERM'):
                connection.ask('EVAL', COUNT, 1, 'n')
            # Also what Semel knows as one operation, and whose key is none of KEYS.
            for text in ("local n = redis.call('INCR', 'n') return n + 1",
                         "return redis.call('INCR', 'n')"):
                with self.assertRaisesRegex(Failed, "can't access"):
                    connection.ask('EVAL', text, 0)
            self.assertEqual(connection.ask('EVAL', DELETE_OWN, 1, 'few:n', '1'), 1)
            connection.ask('MULTI')
            connection.ask('EVAL', "return redis.call('INCR', 'n')", 0)
            with self.assertRaisesRegex(Failed, 'ERR in a group'):
                connection.ask('EXEC')
        self.assertEqual(self.lead('EXISTS', 'n', 'few:n'), 0)

    def test_one_that_takes_long_stops_no_group_and_can_be_killed(self):
        self.lead('CONFIG', 'SET', 'busy-reply-threshold', 20)
        term = self.term()
        with self.leader.client(seconds=30) as connection:
            connection.send('EVAL', "redis.call('SET', 'a', 1) while true do end", 0)
            end = time.monotonic() + 20
            while not str(self.lead('GET', 'x')).startswith('BUSY'):
                self.assertLess(time.monotonic(), end)
            waits_until = time.monotonic() + 1  # several election timeouts
            while time.monotonic() < waits_until:
                self.assertTrue(str(self.lead('GET', 'x')).startswith('BUSY'))
            self.assertEqual(self.lead('SCRIPT', 'KILL'), b'OK')  # it has not written yet
            with self.assertRaisesRegex(Failed, 'SCRIPT KILL; nothing of it was carried out'):
                connection.reply()
            self.assertEqual(self.lead('EXISTS', 'a'), 0)
            self.assertEqual(connection.ask('EVAL', COUNT, 1, 'n'), 1)
            # One that ends by itself has its effect.
            slow = ("redis.call('SET', 'a', 1) local i = 0 while i < 6e6 do i = i + 1 end "
                    "return redis.call('INCR', 'a')")
            self.assertEqual(connection.ask('EVAL', slow, 0), 2)
        self.lead('CONFIG', 'SET', 'script-time-max', 50)
        self.assertIn('nothing of it was carried out',
                      self.lead('EVAL', "redis.call('DEL', 'a') while true do end", 0))
        self.assertEqual(self.lead('GET', 'a'), b'2')
        self.assertEqual(self.term(), term)

    def term(self):
        status = self.lead('SEMEL.GROUP', 'STATUS')
        return status[status.index(b'term') + 1]

    def test_a_client_that_goes_leaves_its_turn_to_others(self):
        for _ in range(30):
            gone = [Client(self.group.ports[self.leader.number], 10) for _ in range(5)]
            for each in gone:
                each.send('EVAL', COUNT, 1, 'n')
            for each in gone:
                each.close()
        before = int(self.lead('GET', 'n') or 0)
        self.assertGreater(self.lead('EVAL', COUNT, 1, 'n'), before)

    def test_writes_by_others_come_between_and_nothing_is_lost(self):
        def work(number):
            with self.leader.client(seconds=60) as connection:
                for _ in range(100):
                    if number % 2 == 0:
                        connection.ask('INCR', 'n')
                        continue
                    while True:
                        try:
                            connection.ask('EVAL', COUNT, 1, 'n')
                            break
                        except Failed as error:  # nothing was done
                            self.assertIn('nothing of it was carried out', str(error))

        self.together(8, work)
        self.assertEqual(self.lead('GET', 'n'), b'800')
        self.check_alike()


class Everywhere(ScriptTest):
    options = ('--cluster-forward', 'yes')

    @staticmethod
    def count(connection, sha):
        words = ('EVALSHA', sha)
        while True:
            try:
                return connection.ask(*words, 1, 'n')
            except Failed as error:
                if 'NOSCRIPT' in str(error):
                    words = ('EVAL', COUNT)
                elif 'nothing of it was carried out' not in str(error):  # others were faster
                    raise

    def test_each_of_many_takes_effect_once(self):
        sha = self.lead('EVAL', COUNT, 1, 'n') and self.lead('SCRIPT', 'LOAD', COUNT)

        def work(number):
            with self.group.nodes[number % 3].client(seconds=60) as connection:
                for i in range(30):
                    self.count(connection, sha)
                    connection.ask('EVAL', BUCKET, 1, f'b{i % 3}', 5, 10, 1)
                    self.assertEqual(
                        connection.ask('EVAL', LIMIT, 1, f'own:{number}', 600, 1000), 1)

        self.together(16, work)
        self.assertEqual(self.lead('GET', 'n'), b'481')
        found = self.check_alike()
        self.assertEqual({found[0, f'own:{i}'.encode()][1] for i in range(16)}, {b'30'})

    def test_who_only_reads_sees_what_was_acknowledged(self):
        look = "return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])}"
        for i in range(100):
            self.soon(self.leader, b'OK', 'MSET', 'a', i, 'b', i)
            for node in self.others:
                self.assertEqual(self.ask(node, 'EVAL', look, 2, 'a', 'b'),
                                 [str(i).encode()] * 2)

    def test_a_leader_that_ends_leaves_nothing_half(self):
        """Two keys that every script counts together; what was acknowledged is there."""
        both = ("local n = tonumber(redis.call('GET', KEYS[1]) or '0') + 1 "
                "redis.call('SET', KEYS[1], n) redis.call('HSET', KEYS[2], 'n', n, ARGV[1], n) "
                "return n")
        for node in self.group.nodes:
            self.soon(node, b'OK', 'SET', 'warm', 1)
        known, unknown = [], []
        over = threading.Event()

        def work(number):
            done = 0
            while not over.is_set():
                node = self.group.nodes[(number + done) % 3]
                done += 1
                try:
                    with node.client(seconds=10) as connection:
                        for _ in range(50):
                            if over.is_set():
                                return
                            known.append(connection.ask('EVAL', both, 2, 'n', 'h', f'{number}'))
                except Failed as error:
                    if 'CLUSTERDOWN' not in str(error):
                        unknown.append(str(error))
                except (OSError, EOFError):
                    unknown.append('cut off')

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for each in threads:
            each.start()
        try:
            for _ in range(3):
                wanted = len(known) + 200
                end = time.monotonic() + 60
                while len(known) < wanted:
                    self.assertLess(time.monotonic(), end, unknown)
                    time.sleep(0.005)
                leader = self.group.wait_leader()
                leader.kill()
                self.group.wait_leader()
                leader.start()
        finally:
            over.set()
            for each in threads:
                each.join()
        self.assertEqual(len(set(known)), len(known))  # no number twice
        self.group.wait_complete()
        found = self.check_alike()
        count = int(found[0, b'n'][1])
        self.assertEqual(dict(found[0, b'h'][1])[b'n'], str(count).encode())
        self.assertGreaterEqual(count, len(known))
        self.assertLessEqual(count, len(known) + len(unknown))
        self.assertLessEqual(max(known), count)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument('--program', required=True)
    given, rest = parser.parse_known_args()
    program = given.program
    unittest.main(argv=[sys.argv[0], *rest])
