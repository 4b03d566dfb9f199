#!/usr/bin/env python3
"""This build beside an earlier one: what work since then has done to a node and to calls.

Question: is a node, or an engine in a program, slower than before, by more than 3 %?
Method:   both builds in turn, in rounds, on one processor; rates and the server's processor time
          as bench/node.py has them; calls in process by one program that is compiled with the
          headers and the library of each (bench/engine/calls.cpp).
Compare:  the build of another commit. The decision log is younger than some of them: claims are
          measured without it, too.
Report:   a table of ratios, each the median of those within a round; every reply is checked.
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group_bench import GroupBench  # noqa: E402
from node import SET  # noqa: E402
from sides import pinned, run_bench  # noqa: E402

NO_LOG = ('--decision-log-size', '0')


class Bench(GroupBench):
    def builds(self, works, options=()):
        """`works`: [(title, count, what(server, count) -> (rate, CPU), durable)]"""
        for title, count, what, durable in works:
            found = {'semel': [], 'before': []}
            for turn in range(self.options.rounds):
                for which in sorted(found, reverse=turn % 2 == 1):
                    server = self.start(which, durable,
                                        options=options if which == 'semel' else ())
                    try:
                        found[which].append(what(server, count))
                        if server.ask('DBSIZE') == 0:
                            raise SystemExit(f'{which} has no keys after {title}')
                    finally:
                        server.end()
            rates, times = ([[run[at] for run in found[which]] for which in ('semel', 'before')]
                            for at in (0, 1))
            self.row(title, *rates, self.options.commit, 'op/s', '>= 0.97x')
            self.row(title + ', CPU', *times, self.options.commit, 'us/op')

    def string(self, pipeline, command):
        return lambda server, count: self.redis_benchmark(server, count, pipeline, command)

    def reads(self, server, count):
        self.load(server, work='fill', operations=count // 4, pipeline=64)
        return self.redis_benchmark(server, count, 16, ['-r', str(count // 4), 'GET',
                                                        'key:__rand_int__'])

    def pairs(self, server, count):
        found = self.load(server, work='claim', operations=count, pipeline=16)
        return found['rate'], found['cpu_us']

    def calls(self):
        found = {which: {} for which in ('ours', 'before')}
        for turn in range(self.options.rounds):
            for which in sorted(found, reverse=turn % 2 == 1):
                program = os.path.join(self.options.calls, which)
                run = subprocess.run([*pinned(1), program], capture_output=True, text=True,
                                     check=True, timeout=600)
                for line in run.stdout.splitlines():
                    name, ns = line.split()
                    found[which].setdefault(name.replace('-', ' '), []).append(float(ns))
        for name, ns in found['ours'].items():
            self.row('in process: ' + name, ns, found['before'][name], self.options.commit, 'ns',
                     '<= 1.03x')


def work(bench, runs, scale):
    if runs('calls'):
        bench.calls()
    if runs('node'):
        bench.builds([('SET NX GET PX, pipeline 1', 200_000 // scale, bench.string(1, SET), False),
                      ('SET NX GET PX, pipeline 16', 2_000_000 // scale, bench.string(16, SET),
                       False),
                      ('SET NX GET PX, pipeline 64', 4_000_000 // scale, bench.string(64, SET),
                       False),
                      ('GET, pipeline 16', 2_000_000 // scale, bench.reads, False),
                      ('INCR, pipeline 16', 2_000_000 // scale,
                       bench.string(16, ['-r', '1000000', 'INCR', 'counter:__rand_int__']), False),
                      ('logged SET, pipeline 16', 2_000_000 // scale, bench.string(16, SET),
                       True)])
    if runs('claims'):
        count = 1_000_000 // scale
        bench.builds([('claim and complete, pairs', count, bench.pairs, False)])
        bench.builds([('claim and complete, without decision log', count, bench.pairs, False)],
                     options=NO_LOG)


def arguments(parser):
    parser.add_argument('--before', required=True, help="the earlier build's semel")
    parser.add_argument('--commit', required=True, help='what the earlier build is of')
    parser.add_argument('--calls', required=True, help='where the programs ours and before are')


if __name__ == '__main__':
    sys.exit(run_bench('before', __doc__, 'calls, node, claims', Bench, work, arguments))
