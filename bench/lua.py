#!/usr/bin/env python3
"""Scripts on the node, beside its own commands and redis-server.

Question: what does a script cost that is known, beside the command that it means; what does one
          cost that must be interpreted; are both processors used where scripts name their keys?
Method:   as bench/node.py; pipeline 16, 50 connections, all by semel_node_load, which knows each
          reply beforehand. Rows with two threads run unpinned, with the client beside them;
          `cores` is what the server used of them by its own accounting.
Compare:  our plain SET NX GET PX for the known script; redis-server 7.0.15 for the same script.
Report:   a table of ratios; every reply is checked, and how many keys there are afterwards.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sides import Sides, middle, run_bench  # noqa: E402

# The seed of it all, as it stands in a thousand programs.
SEED = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])"
# Not among the known scripts: it must be interpreted. Five commands, two keys, both named.
FIVE = """
local seen = redis.call('INCR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], seen)
local last = redis.call('HGET', KEYS[2], ARGV[1])
local alive = redis.call('EXISTS', KEYS[1], KEYS[2])
if tonumber(last) == seen and alive == 2 then return 'right' end
return 'wrong'
"""
# The same, with a name that is made inside: it could touch any key.
COMPUTED = FIVE.replace('KEYS[2]', "(KEYS[1] .. ':h')")
CLAIMED = {'reply': '$-1\r\n', 'reply_again': '$1\r\nv\r\n'}
RIGHT = {'reply': '$5\r\nright\r\n'}
PLAIN = 'SET {key} v NX GET PX 3600000'


class Bench(Sides):
    def run_side(self, which, script, call, keys, count, threads, expected):
        """One run: `call` is a request in which {sha} is that of `script`."""
        server = self.start(which, threads=threads)
        try:
            sha = ''
            if script:
                sha = server.ask('SCRIPT', 'LOAD', script).decode()
            found = self.load(server, core=1 if threads == 1 else None, work='call', pipeline=16,
                              operations=count, keys=count // 2,
                              request=call.replace('{sha}', sha), **expected)
            size = server.ask('DBSIZE')
            if size != keys:
                raise SystemExit(f'{which} has {size} keys instead of {keys} after {call}')
            return found
        finally:
            server.end()

    def compare(self, title, sides, count, keys, expected, goals):
        """`sides`: {name: (server, script, call, threads)}, ours first."""
        found = {name: [] for name in sides}
        for _ in range(self.options.rounds):
            for name, (which, script, call, threads) in sides.items():
                found[name].append(self.run_side(which, script, call, keys, count, threads,
                                                 expected))
        ours, theirs = found.values()
        self.add(title, middle(ours, 'rate'), middle(theirs, 'rate'), 'op/s', goals[0])
        self.add(title + ', CPU', middle(ours, 'cpu_us'), middle(theirs, 'cpu_us'), 'us/op',
                 goals[1])
        self.add(title + ', cores', middle(ours, 'cores'), middle(theirs, 'cores'), 'cores',
                 goals[2] if len(goals) > 2 else '')

    def known(self, count):
        call = 'EVALSHA {sha} 1 {key} v 3600000'
        self.compare('known script to plain command', {
            'script': ('semel', SEED, call, 1), 'plain': ('semel', '', PLAIN, 1)},
            count, count // 2, CLAIMED, ('>= 0.9x', '<= 1.1x'))
        self.compare('known script to redis-server', {
            'semel': ('semel', SEED, call, 1), 'redis': ('redis', SEED, call, 1)},
            count, count // 2, CLAIMED, ('>= 3x', '<= 0.33x'))

    def interpreted(self, count):
        named = 'EVALSHA {sha} 2 {key} {key}:h f 3600000'
        made = 'EVALSHA {sha} 1 {key} f 3600000'
        keys = count // 2 * 2
        for threads in (1, 2):
            words = f'5 calls, keys named, {threads} thread' + 's' * (threads - 1)
            self.compare(words, {'semel': ('semel', FIVE, named, threads),
                                 'redis': ('redis', FIVE, named, threads)},
                         count, keys, RIGHT, ('>= 1.0x', '<= 1.0x', '> 1' if threads == 2 else ''))
        self.compare('5 calls, a key computed, 1 thread', {
            'semel': ('semel', COMPUTED, made, 1), 'redis': ('redis', COMPUTED, made, 1)},
            count, keys, RIGHT, ('>= 1.0x', '<= 1.0x'))


def work(bench, runs, scale):
    if runs('known'):
        bench.known(2_000_000 // scale)
    if runs('interpreted'):
        bench.interpreted(500_000 // scale)


if __name__ == '__main__':
    sys.exit(run_bench('lua', __doc__, 'known, interpreted', Bench, work))
