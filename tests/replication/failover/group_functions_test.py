#!/usr/bin/env python3
"""Libraries of functions in a group of nodes: group_functions_test.py --program semel [unittest
arguments]. They are a part of the group's state; a call runs at one node."""
import argparse
import random
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import group_scripts_test  # noqa: E402
from resp import Failed  # noqa: E402

program = None


def library(name, *functions, code=''):
    """Each function counts its key, and says which library it is of."""
    return f'#!lua name={name}\n{code}\n' + ''.join(f"""
redis.register_function('{each}', function(keys, args)
  redis.call('INCR', keys[1])
  return '{name}:' .. (args[1] or '')
end)""" for each in functions)


READS = """#!lua name=reads
redis.register_function{function_name='look', description='what it is', flags={'no-writes'},
  callback=function(keys) return redis.call('GET', keys[1]) end}
redis.register_function('both', function(keys)
  redis.call('SET', keys[1], redis.call('TIME')[1] .. math.random(1e9) .. tostring({}))
  return redis.call('GET', keys[1]) end)
"""


class FunctionTest(group_scripts_test.ScriptTest):
    def setUp(self):
        group_scripts_test.program = program
        super().setUp()
        self.when_upgraded()

    def when_upgraded(self):
        """The first leader raises the level of features when all members have met, and the others
        hear of it a moment later."""
        self.soon(self.leader, b'OK', 'FUNCTION', 'FLUSH')
        end = time.monotonic() + 20
        for node in self.others:
            while 'feature level' in str(self.ask(node, 'FUNCTION', 'FLUSH')):
                self.assertLess(time.monotonic(), end)

    def libraries(self, node):
        return [self.ask(node, 'FUNCTION', 'LIST', 'WITHCODE'),
                self.ask(node, 'FUNCTION', 'STATS')[2:], self.ask(node, 'FUNCTION', 'DUMP')]

    def check_alike(self):
        found = super().check_alike()
        libraries = [self.libraries(node) for node in self.group.nodes]
        for each in libraries[1:]:
            self.assertEqual(each, libraries[0])
        return found

    def names(self, node):
        return [each[1].decode() for each in self.ask(node, 'FUNCTION', 'LIST')]


class AtTheLeader(FunctionTest):
    def test_libraries_come_and_go_on_all_nodes(self):
        self.assertEqual(self.lead('FUNCTION', 'LOAD', library('one', 'f', 'g')), b'one')
        self.assertEqual(self.lead('FCALL', 'f', 1, 'n', 'x'), b'one:x')
        self.assertEqual(self.lead('FCALL', 'G', 1, 'n'), b'one:')
        self.assertEqual(self.lead('GET', 'n'), b'2')
        self.assertEqual(self.lead('FUNCTION', 'LOAD', READS), b'reads')
        self.assertEqual(self.lead('FCALL_RO', 'look', 1, 'n'), b'2')
        self.assertEqual(self.lead('FCALL', 'look', 1, 'n'), b'2')
        both = self.lead('FCALL', 'both', 1, 'chance')
        self.assertEqual(self.lead('GET', 'chance'), both)
        self.assertIn('Can not execute a script with write flag', self.lead('FCALL_RO', 'f', 0))
        self.check_alike()
        for node in self.group.nodes:
            self.assertEqual(self.names(node), ['one', 'reads'])
        dump = self.lead('FUNCTION', 'DUMP')
        self.assertEqual(self.lead('FUNCTION', 'LOAD', 'REPLACE', library('one', 'h')), b'one')
        self.assertEqual(self.lead('FCALL', 'f', 1, 'n'), 'ERR Function not found')
        self.assertEqual(self.lead('FCALL', 'h', 1, 'n'), b'one:')
        self.assertEqual(self.lead('FUNCTION', 'DELETE', 'reads'), b'OK')
        self.assertEqual(self.lead('FUNCTION', 'DELETE', 'reads'), 'ERR Library not found')
        self.check_alike()
        self.assertEqual(self.lead('FUNCTION', 'RESTORE', dump),
                         'ERR Library one already exists')
        self.assertEqual(self.lead('FUNCTION', 'RESTORE', dump, 'REPLACE'), b'OK')
        self.assertEqual(self.lead('FCALL', 'f', 1, 'n'), b'one:')
        self.assertEqual(self.lead('FUNCTION', 'DUMP'), dump)
        self.assertEqual(self.lead('FUNCTION', 'LOAD', library('more', 'h')), b'more')
        self.assertEqual(self.lead('FUNCTION', 'RESTORE', dump, 'FLUSH'), b'OK')
        self.check_alike()
        self.assertEqual(self.lead('FUNCTION', 'DUMP'), dump)
        self.assertEqual(self.lead('FUNCTION', 'FLUSH', 'ASYNC'), b'OK')
        self.check_alike()
        self.assertEqual([self.names(node) for node in self.group.nodes], [[], [], []])
        self.assertEqual(self.lead('FCALL', 'f', 1, 'n'), 'ERR Function not found')

    def test_what_is_wrong_is_said_as_by_a_node_by_itself(self):
        self.lead('FUNCTION', 'LOAD', library('one', 'f'))
        before = self.libraries(self.leader)
        for words, error in (
                (('LOAD', library('one', 'g')), "ERR Library 'one' already exists"),
                (('LOAD', library('two', 'F')), 'ERR Function F already exists'),
                (('LOAD', 'REPLACE', library('two', 'f')), 'ERR Function f already exists'),
                (('LOAD', library('two')), 'ERR No functions registered'),
                (('LOAD', 'no shebang'), 'ERR Missing library metadata'),
                (('LOAD', '#!lua name=a-b\nx'), 'ERR Library names can only contain'),
                (('LOAD', '#!js name=a\nx'), "ERR Engine 'js' not found"),
                (('LOAD', '#!lua name=a\nthis is no Lua'), 'ERR Error'),
                (('LOAD', '#!lua name=a\nerror("x")'), 'ERR Error'),
                (('LOAD', 'NX', library('two', 'g')), 'ERR Unknown option given'),
                (('RESTORE', 'x'), 'ERR DUMP payload version or checksum are wrong'),
                (('FLUSH', 'now'), 'ERR FUNCTION FLUSH only supports'),
                (('DELETE', 'two'), 'ERR Library not found')):
            self.assertTrue(str(self.lead('FUNCTION', *words)).startswith(error), words)
        self.check_alike()
        self.assertEqual(self.libraries(self.leader), before)

    def test_other_nodes_say_who_leads_and_read_what_they_have(self):
        self.lead('FUNCTION', 'LOAD', READS)
        self.lead('SET', 'n', 5)
        self.check_alike()
        for node in self.others:
            for words in (('FUNCTION', 'LOAD', library('one', 'f')), ('FUNCTION', 'FLUSH'),
                          ('FUNCTION', 'DELETE', 'reads'), ('FCALL', 'both', 1, 'n'),
                          ('FCALL_RO', 'look', 1, 'n')):
                self.assertTrue(self.ask(node, *words).startswith('MOVED'), words)
            self.ask(node, 'READONLY')
            self.soon(node, b'5', 'FCALL_RO', 'look', 1, 'n')
            self.assertEqual(self.names(node), ['reads'])

    def test_in_a_transaction_they_are_refused(self):
        self.lead('FUNCTION', 'LOAD', library('one', 'f'))
        for words in (('FCALL', 'f', 1, 'n'), ('FUNCTION', 'FLUSH'),
                      ('FUNCTION', 'LOAD', library('two', 'g'))):
            self.lead('MULTI')
            self.lead('SET', 'n', 1)
            self.lead(*words)
            self.assertTrue(self.lead('EXEC').startswith('ERR in a group a transaction'), words)
        self.assertEqual(self.lead('EXISTS', 'n'), 0)
        self.assertEqual(self.names(self.leader), ['one'])
        for words in (('FUNCTION', 'LIST'), ('FUNCTION', 'STATS'), ('FUNCTION', 'DUMP')):
            self.lead('MULTI')
            self.lead(*words)
            self.assertEqual(len(self.lead('EXEC')), 1)

    def test_replies_come_in_order_and_as_asked_for(self):
        with self.leader.client(seconds=20) as connection:
            self.assertEqual(connection.all([
                ('SET', 'n', 1), ('FUNCTION', 'LOAD', library('one', 'f')), ('INCR', 'n'),
                ('FCALL', 'f', 1, 'n'), ('FUNCTION', 'DELETE', 'one'), ('GET', 'n')]),
                [b'OK', b'one', 2, b'one:', b'OK', b'3'])
            for words in (('CLIENT', 'REPLY', 'SKIP'), ('FUNCTION', 'LOAD', library('a', 'f')),
                          ('CLIENT', 'REPLY', 'SKIP'), ('FUNCTION', 'LOAD', 'nothing')):
                connection.send(*words)
            self.assertEqual(connection.ask('FCALL', 'f', 1, 'n'), b'a:')

    def test_rights(self):
        self.lead('ACL', 'SETUSER', 'few', 'on', '>p', '+@all', '-function|load', '-function|flush',
                  '~few:*')
        self.lead('FUNCTION', 'LOAD', library('one', 'f'))
        with self.leader.client(seconds=20) as connection:
            connection.ask('AUTH', 'few', 'p')
            for words in (('FUNCTION', 'LOAD', library('two', 'g')), ('FUNCTION', 'FLUSH'),
                          ('FCALL', 'f', 1, 'n')):
                with self.assertRaisesRegex(Failed, 'NOPERM'):
                    connection.ask(*words)
            self.assertEqual(connection.ask('FCALL', 'f', 1, 'few:n'), b'one:')
            self.lead('FUNCTION', 'LOAD', "#!lua name=two\nredis.register_function('other', "
                                          "function() return redis.call('SET', 'n', 1) end)")
            with self.assertRaisesRegex(Failed, "can't access"):
                connection.ask('FCALL', 'other', 0)
        self.assertEqual(self.lead('EXISTS', 'n'), 0)

    def test_a_setting_is_that_of_the_node_which_runs_it(self):
        self.lead('FUNCTION', 'LOAD', READS)
        for setting in ('known', 'off'):
            self.lead('CONFIG', 'SET', 'scripts', setting)
            for words in (('FUNCTION', 'LOAD', library('one', 'f')), ('FCALL', 'both', 1, 'n'),
                          ('FCALL_RO', 'look', 1, 'n'),
                          ('FUNCTION', 'RESTORE', self.lead('FUNCTION', 'DUMP'), 'REPLACE')):
                self.assertIn("scripts'", self.lead(*words))
            self.assertEqual(self.names(self.leader), ['reads'])
        self.lead('CONFIG', 'SET', 'scripts', 'any')
        self.assertIsNone(self.lead('FCALL_RO', 'look', 1, 'n'))
        self.check_alike()

    def test_library_code_has_bounds(self):
        term = self.term()
        began = time.monotonic()
        self.assertIn('ERR Error', self.lead('FUNCTION', 'LOAD', '#!lua name=a\nwhile true do end'))
        self.assertLess(time.monotonic() - began, 5)
        many = "for i = 1, 10001 do redis.register_function('f' .. i, function() end) end"
        self.assertIn('10000', self.lead('FUNCTION', 'LOAD', library('a', code=many)))
        grows = 'local t = {} while true do t[#t + 1] = string.rep("x", 1e6) .. #t end'
        self.assertIn('ERR', self.lead('FUNCTION', 'LOAD', library('a', code=grows)))
        calls = "redis.call('SET', 'n', 1)"
        self.assertIn('ERR', self.lead('FUNCTION', 'LOAD', library('a', 'f', code=calls)))
        # One request in size. What is beyond is refused by whoever is asked.
        big = library('big', 'f', code='--' + 'x' * (9 << 20))
        self.assertIn('at most 8388608', self.lead('FUNCTION', 'LOAD', big))
        # A description is not in the code: it counts all the same.
        wide = ("redis.register_function{function_name='f', callback=function() end, "
                "description=string.rep('x', 9000000)}")
        self.assertRegex(self.lead('FUNCTION', 'LOAD', library('wide', code=wide)),
                         'at most 8388608|ERR')
        self.assertEqual(self.names(self.leader), [])
        self.assertEqual(self.term(), term)
        self.assertTrue(all(node.is_alive() for node in self.group.nodes))

    def term(self):
        status = self.lead('SEMEL.GROUP', 'STATUS')
        return status[status.index(b'term') + 1]

    def test_what_registers_something_else_each_time_is_not_found_there(self):
        chance = ("math.randomseed(tonumber(tostring({}):match('0x(%x+)'), 16)) "
                  "redis.register_function('f' .. math.random(1e9), function() return 1 end) "
                  "redis.register_function('g', function() return 2 end)")
        name = self.lead('FUNCTION', 'LOAD', library('chance', code=chance))
        if name != b'chance':  # where chance is the same each time there is nothing to look at
            self.assertIn('ERR', name)
            return
        self.assertEqual(self.lead('FCALL', 'g', 0), 2)
        self.check_alike()

    def test_one_that_takes_long_is_killed_by_its_own_command(self):
        self.lead('CONFIG', 'SET', 'busy-reply-threshold', 20)
        self.lead('FUNCTION', 'LOAD', "#!lua name=long\nredis.register_function('forever', "
                                      "function() redis.call('SET', 'a', 1) while true do end end)")
        with self.leader.client(seconds=30) as connection:
            connection.send('FCALL', 'forever', 0)
            end = time.monotonic() + 20
            while not str(self.lead('GET', 'x')).startswith('BUSY'):
                self.assertLess(time.monotonic(), end)
            running = self.lead('FUNCTION', 'STATS')[1]
            self.assertEqual(running[:2], [b'name', b'forever'])
            self.assertTrue(self.lead('FUNCTION', 'LOAD', library('a', 'f')).startswith('BUSY'))
            self.assertTrue(self.lead('SCRIPT', 'KILL').startswith('BUSY'))
            self.assertEqual(self.ask(self.others[0], 'FUNCTION', 'STATS')[1], None)
            self.assertTrue(self.ask(self.others[0], 'FUNCTION', 'KILL').startswith('NOTBUSY'))
            self.assertEqual(self.lead('FUNCTION', 'KILL'), b'OK')
            with self.assertRaisesRegex(Failed, 'FUNCTION KILL; nothing of it was carried out'):
                connection.reply()
        self.assertEqual(self.lead('EXISTS', 'a'), 0)


class Everywhere(FunctionTest):
    options = ('--cluster-forward', 'yes')

    def test_each_node_loads_and_calls(self):
        for number, node in enumerate(self.group.nodes):
            name = f'of{number}'
            self.soon(node, name.encode(), 'FUNCTION', 'LOAD', 'REPLACE',
                      library(name, f'f{number}'))
            # Who has loaded it has it.
            self.assertEqual(self.ask(node, 'FCALL', f'f{number}', 1, 'n'), f'{name}:'.encode())
            self.assertEqual(self.ask(node, 'FUNCTION', 'LOAD', library(name, 'x')),
                             f"ERR Library '{name}' already exists")
        self.check_alike()
        for node in self.group.nodes:
            for number in range(3):
                self.assertEqual(self.ask(node, 'FCALL', f'f{number}', 1, 'n'),
                                 f'of{number}:'.encode())
        self.assertEqual(self.lead('GET', 'n'), b'12')
        self.assertEqual(self.ask(self.others[0], 'FUNCTION', 'DELETE', 'of2'), b'OK')
        self.assertEqual(self.ask(self.others[0], 'FCALL', 'f2', 1, 'n'), 'ERR Function not found')
        self.check_alike()

    def test_what_only_reads_runs_where_it_is_asked_for(self):
        """Not on every node, as it comes in the log: one that never ends would stop them all."""
        self.lead('FUNCTION', 'LOAD', READS)
        self.lead('FUNCTION', 'LOAD', "#!lua name=long\nredis.register_function{function_name="
                                      "'forever', flags={'no-writes'}, "
                                      "callback=function() while true do end end}")
        self.lead('SET', 'n', 7)
        self.check_alike()
        node = self.others[0]
        ran = self.runs()
        for i in range(20):
            self.lead('SET', 'n', i)
            self.assertEqual(self.ask(node, 'FCALL_RO', 'look', 1, 'n'), str(i).encode())
            text = "return redis.call('GET', KEYS[1]) .. ARGV[1]"
            self.assertEqual(self.ask(node, 'EVAL_RO', text, 1, 'n', 'x'), f'{i}x'.encode())
        ran = [after - before for before, after in zip(ran, self.runs())]
        # Again where something has changed since it began.
        self.assertGreaterEqual(ran[node.number], 40)
        self.assertEqual(sum(ran), ran[node.number])
        for node in (self.leader, node):
            self.check_that_one_without_an_end_stops_nobody(node)
        self.check_alike()
        # Of reads alone, at the node that leads.
        end = time.monotonic() + 20
        reply = None
        while reply != [[1, 2]]:
            self.assertLess(time.monotonic(), end, reply)
            leader = self.group.wait_leader()
            self.ask(leader, 'MULTI')
            self.ask(leader, 'EVAL_RO', 'return {1, 2}', 0)
            reply = self.ask(leader, 'EXEC')

    def check_that_one_without_an_end_stops_nobody(self, node):
        self.ask(node, 'CONFIG', 'SET', 'busy-reply-threshold', 20)
        other = self.others[1]
        for words, kill in ((('FCALL_RO', 'forever', 0), 'FUNCTION'),
                            (('EVAL_RO', 'while true do end', 0), 'SCRIPT')):
            with node.client(seconds=30) as connection:
                connection.send(*words)
                end = time.monotonic() + 20
                while not str(self.ask(node, 'GET', 'x')).startswith('BUSY'):
                    self.assertLess(time.monotonic(), end)
                self.assertEqual(self.ask(other, 'SET', 'n', 'others go on'), b'OK')
                self.assertEqual(self.ask(node, kill, 'KILL'), b'OK')
                with self.assertRaisesRegex(Failed, 'KILL'):
                    connection.reply()
            for words in (('EVAL_RO', 'while true do end', 0), ('FCALL_RO', 'forever', 0)):
                self.ask(node, 'MULTI')
                self.ask(node, 'SET', 'n', 1)
                self.ask(node, *words)
                self.assertTrue(self.ask(node, 'EXEC').startswith('ERR in a group a transaction'))
        self.assertTrue(all(each.is_alive() for each in self.group.nodes))

    def runs(self):
        """How often each node has carried these commands out."""
        return [sum(map(int, re.findall(rb'cmdstat_(?:eval_ro|fcall_ro):calls=(\d+)',
                                        self.ask(node, 'INFO', 'commandstats'))))
                for node in self.group.nodes]

    def test_many_change_and_call_at_all_nodes(self):
        """Afterwards all nodes have the same libraries and keys."""
        calls = [0] * 16

        def work(number):
            chance = random.Random(number)
            with self.group.nodes[number % 3].client(seconds=60) as connection:
                for i in range(40):
                    name = f'lib{chance.randrange(5)}'
                    own = f'own{number}_{i}'
                    words = chance.choice([
                        ('FUNCTION', 'LOAD', library(name, f'f{name}', own)),
                        ('FUNCTION', 'LOAD', 'REPLACE', library(name, f'f{name}', own)),
                        ('FUNCTION', 'LOAD', 'REPLACE', library(name, f'F{name}', 'shared')),
                        ('FUNCTION', 'DELETE', name),
                        ('FUNCTION', 'FLUSH') if chance.randrange(8) == 0 else ('PING',),
                        ('FUNCTION', 'RESTORE', connection.ask('FUNCTION', 'DUMP'), 'REPLACE')])
                    for request in (words, ('FCALL', f'f{name}', 1, f'n{number}')):
                        try:
                            if connection.ask(*request) == f'{name}:'.encode():
                                calls[number] += 1
                        except Failed as error:
                            self.assertRegex(str(error), 'already exists|not found')

        self.together(16, work)
        found = self.check_alike()
        self.assertGreater(sum(calls), 50)
        for number, count in enumerate(calls):
            if count:
                self.assertEqual(found[0, f'n{number}'.encode()][1], str(count).encode())

    def test_a_leader_that_ends_leaves_every_library_that_was_acknowledged(self):
        for round_ in range(3):
            leader = self.group.wait_leader()
            node = next(each for each in self.group.nodes if each is not leader)
            name = f'r{round_}'
            self.soon(node, name.encode(), 'FUNCTION', 'LOAD', 'REPLACE', library(name, f'f{name}'))
            leader.kill()
            self.assertEqual(self.ask(node, 'FCALL', f'f{name}', 1, 'n'), f'{name}:'.encode())
            self.connections = {}
            leader.start()
            self.group.wait_complete()
        self.leader = self.group.wait_leader()
        self.assertEqual(self.lead('GET', 'n'), b'3')
        self.check_alike()
        self.assertEqual(self.names(self.leader), ['r0', 'r1', 'r2'])

    def test_a_change_under_way_counts_once_when_the_leader_ends(self):
        """Without REPLACE a second time would be an error."""
        over = threading.Event()
        failures = []

        def work(number):
            node = self.others[number % 2]
            with node.client(seconds=60) as connection:
                for i in range(10_000):
                    if over.is_set():
                        return
                    name = f'w{number}_{i}'
                    try:
                        if connection.ask('FUNCTION', 'LOAD', library(name, f'f{name}')) != \
                                name.encode():
                            failures.append(name)
                    except Failed as error:
                        failures.append(str(error))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        time.sleep(0.3)
        self.leader.kill()
        end = time.monotonic() + 30
        while self.group.leader() is None:
            self.assertLess(time.monotonic(), end)
        time.sleep(0.3)
        over.set()
        for each in threads:
            each.join()
        self.assertEqual(failures, [])
        self.connections = {}
        self.leader.start()
        self.group.wait_complete()
        self.assertGreater(len(self.names(self.group.wait_leader())), 4)
        self.check_alike()


class Large(FunctionTest):
    """Requests of several MiB may be late: then they are asked again."""
    options = ('--cluster-forward', 'yes')

    def test_all_libraries_have_a_bound_and_are_alike_at_it(self):
        large = [library(f'l{i:02}', f'f{i}', code='--' + 'x' * (3 << 20)) for i in range(22)]
        for i in range(21):
            self.soon(self.leader, f'l{i:02}'.encode(), 'FUNCTION', 'LOAD', 'REPLACE', large[i])
        self.soon(self.leader, 'ERR all libraries would exceed 67108864 bytes',
                  'FUNCTION', 'LOAD', large[21])
        self.soon(self.leader, b'l00', 'FUNCTION', 'LOAD', 'REPLACE', large[0])
        self.soon(self.leader, b'l20:', 'FCALL', 'f20', 1, 'n')
        self.check_alike()
        self.soon(self.leader, b'OK', 'FUNCTION', 'FLUSH')
        self.check_alike()
        # All of a dump are one request.
        for i in range(3):
            self.soon(self.leader, f'l{i:02}'.encode(), 'FUNCTION', 'LOAD', 'REPLACE', large[i])
        self.assertIn('at most 8388608',
                      self.lead('FUNCTION', 'RESTORE', self.lead('FUNCTION', 'DUMP'), 'REPLACE'))
        self.check_alike()
        self.assertTrue(all(node.is_alive() for node in self.group.nodes))


class Beginning(unittest.TestCase):
    def test_without_the_level_that_they_need_they_are_refused(self):
        class Two(group_scripts_test.group_test.Group):
            """The third member has never been there: nobody knows what it knows."""
            def prepare(self):
                self.nodes[2].start = lambda: None

        group = Two(program, 3, ('--cluster-forward', 'yes'))
        self.addCleanup(group.end)
        leader = group.wait_leader()
        for node in group.nodes[:2]:
            for words in (('LOAD', library('one', 'f')), ('FLUSH',), ('DELETE', 'one')):
                with self.assertRaisesRegex(Failed, '^ERR functions need feature level 2, the '
                                                    'group uses 1: .*cluster upgrade'):
                    node.ask('FUNCTION', *words)
            with self.assertRaisesRegex(Failed, 'ERR Function not found'):
                node.ask('FCALL', 'f', 0, seconds=10)
        del group.nodes[2].start
        group.nodes[2].start()
        end = time.monotonic() + 60
        while True:
            try:
                self.assertEqual(leader.ask('FUNCTION', 'LOAD', library('one', 'f')), b'one')
                return
            except Failed as error:
                self.assertIn('feature level 2', str(error))
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)


class Lives(FunctionTest):
    """Beside other work leaders change: every node takes every request."""
    options = ('--cluster-forward', 'yes')

    def operate(self, *words):
        end = time.monotonic() + 60
        while (reply := self.ask(self.group.wait_leader(), 'SEMEL.GROUP', *words)) != b'OK':
            self.assertLess(time.monotonic(), end, reply)

    def loaded(self):
        """What is there before nodes end: libraries, one that was replaced, one that is gone."""
        self.lead('FUNCTION', 'LOAD', READS)
        self.lead('FUNCTION', 'LOAD', library('one', 'f'))
        self.lead('FUNCTION', 'LOAD', 'REPLACE', library('one', 'g'))
        self.lead('FUNCTION', 'LOAD', library('gone', 'f'))
        self.lead('FUNCTION', 'DELETE', 'gone')
        return self.libraries(self.leader)

    def restart_all(self):
        self.connections = {}
        for node in self.group.nodes:
            node.kill()
        for node in self.group.nodes:
            node.start()
        self.group.wait_complete()
        self.leader = self.group.wait_leader()

    def fill_log(self):
        """Until there is a snapshot, and the log before it is gone."""
        value = 'x' * 1_000_000
        for _ in range(150):
            self.soon(self.leader, b'OK', 'SET', 'k', value)
        end = time.monotonic() + 60
        while not all(list(node.directory.glob('snapshot-*[0-9a-f]')) for node in self.group.nodes):
            self.assertLess(time.monotonic(), end)
            self.soon(self.leader, b'OK', 'SET', 'k', value)

    def test_they_are_there_after_a_restart_from_the_log(self):
        before = self.loaded()
        self.restart_all()
        self.check_alike()
        self.assertEqual(self.libraries(self.leader), before)
        self.assertEqual(self.lead('FCALL', 'g', 1, 'n'), b'one:')

    def test_the_node_that_is_left_has_them(self):
        self.loaded()
        self.fill_log()
        self.lead('FUNCTION', 'LOAD', library('behind', 'h'))
        after = self.libraries(self.leader)
        self.connections = {}
        for node in self.group.nodes:
            node.kill()
        left = self.leader
        subprocess.run([program, 'cluster', 'recover', '--force-single', '--yes', '--dir',
                        str(left.directory), '--cluster-id', 'beef', '--node-id',
                        str(left.number + 1)], check=True, capture_output=True, timeout=60)
        left.options = (*self.options, '--cluster-id', 'beef')
        left.start()
        self.assertIs(self.group.wait_leader(), left)
        self.assertEqual(self.libraries(left), after)
        self.assertEqual(self.lead('FCALL', 'h', 1, 'n'), b'behind:')
        self.lead('FUNCTION', 'DELETE', 'behind')
        self.assertEqual(self.lead('FUNCTION', 'LOAD', library('new', 'f')), b'new')

    def test_they_are_in_snapshots(self):
        before = self.loaded()
        self.fill_log()
        self.lead('FUNCTION', 'LOAD', library('behind', 'h'))
        after = self.libraries(self.leader)
        self.restart_all()
        self.check_alike()
        self.assertEqual(self.libraries(self.leader), after)
        self.lead('FUNCTION', 'DELETE', 'behind')
        self.assertEqual(self.libraries(self.leader), before)
        # A node that joins begins with the snapshot.
        self.fill_log()
        self.group.grow()
        new = self.group.nodes[3]
        new.start()
        address = f'127.0.0.1:{self.group.peers[3]},127.0.0.1:{self.group.ports[3]}'
        self.operate('ADD', 4, address)
        self.operate('PROMOTE', 4)
        self.connections = {}
        self.check_alike()
        self.assertEqual(self.libraries(new), before)
        self.assertIn('event=group_snapshot', (self.group.place / '3.log').read_text())
        self.ask(new, 'READONLY')
        self.lead('SET', 'n', 3)
        self.soon(new, b'3', 'FCALL_RO', 'look', 1, 'n')


class FullMemory(FunctionTest):
    options = ('--maxmemory', 33554432, '--cluster-forward', 'yes')

    def test_at_the_limit_none_is_loaded_and_those_that_are_there_go(self):
        self.lead('FUNCTION', 'LOAD', library('one', 'f'))
        reply = b'OK'
        for i in range(400):
            reply = self.lead('SET', f'k{i}', 'x' * 200_000)
            if reply != b'OK':
                break
        self.assertTrue(reply.startswith('OOM'), reply)
        self.assertTrue(self.lead('FUNCTION', 'LOAD', library('two', 'g')).startswith('OOM'))
        self.assertEqual(self.lead('FUNCTION', 'DELETE', 'one'), b'OK')
        self.assertEqual(self.lead('FUNCTION', 'FLUSH'), b'OK')
        self.lead('FLUSHALL')
        self.soon(self.leader, b'two', 'FUNCTION', 'LOAD', 'REPLACE', library('two', 'g'))
        # Libraries count as well.
        loaded = 0
        while loaded < 60:
            reply = self.lead('FUNCTION', 'LOAD', 'REPLACE',
                              library(f'l{loaded}', f'f{loaded}', code='--' + 'x' * (1 << 20)))
            if str(reply).startswith('OOM'):
                break
            loaded += reply == f'l{loaded}'.encode()  # another one was late
        self.assertGreater(loaded, 15)
        self.assertLess(loaded, 40)
        self.assertTrue(str(self.lead('SET', 'k', 'x' * 100_000)).startswith('OOM'))
        self.soon(self.leader, b'OK', 'FUNCTION', 'FLUSH')
        self.soon(self.leader, b'OK', 'SET', 'k', 'x' * 100_000)
        self.check_alike()


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--program', required=True)
    own, others = parser.parse_known_args()
    program = own.program
    unittest.main(argv=[sys.argv[0], *others])
