#!/usr/bin/env python3
"""The node beside redis-server: rates, processor time, memory, tails.

Question: what does a command cost a server that everybody can talk to, and what does a key?
Method:   one server at a time on one processor, the client on the other; rates by redis-benchmark
          (50 connections), pairs and tails by semel_node_load; processor time of the server from
          /proc, so that the client's share does not hide it. Median of the rounds, servers in turn.
Compare:  redis-server, without persistence, and with appendonly everysec against `logged`.
Report:   a table of ratios; every run's results are checked.
"""

import os
import socket
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sides import Sides, middle, run_bench  # noqa: E402

SET = ['SET', 'key:__rand_int__', 'v', 'NX', 'GET', 'PX', '3600000']
CLAIM = "return redis.call('SET',KEYS[1],ARGV[1],'NX','GET','PX',ARGV[2])"
COMPLETE = "return redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2])"


class Bench(Sides):
    def rates(self, title, count, pipeline, command, goals, durable=False, prepare=None):
        found = {'semel': [], 'redis': []}
        for _ in range(self.options.rounds):
            for which in found:
                server = self.start(which, durable)
                try:
                    if prepare:
                        prepare(server)
                    found[which].append(self.redis_benchmark(server, count, pipeline, command))
                    size = server.ask('DBSIZE')
                    if size == 0:
                        raise SystemExit(f'{which} has no keys after {title}')
                finally:
                    server.end()
        ours, theirs = found['semel'], found['redis']
        self.add(title, middle(ours, 0), middle(theirs, 0), 'op/s', goals[0])
        self.add(title + ', CPU', middle(ours, 1), middle(theirs, 1), 'us/op', goals[1])

    def pairs(self, count):
        ours, theirs = [], []
        for _ in range(self.options.rounds):
            server = self.start('semel')
            ours.append(self.load(server, work='claim', operations=count, pipeline=16))
            server.end()
            server = self.start('redis')
            shas = [server.ask('SCRIPT', 'LOAD', text).decode()
                    for text in (CLAIM, COMPLETE)]
            theirs.append(self.load(server, work='script', operations=count, pipeline=16,
                                    claim_sha=shas[0], complete_sha=shas[1]))
            server.end()
        self.add('claim and complete, pairs, pipeline 16', middle(ours, 'rate'),
                 middle(theirs, 'rate'), 'pair/s', '>= 2x')
        self.add('claim and complete, pairs, CPU', middle(ours, 'cpu_us'),
                 middle(theirs, 'cpu_us'), 'us/pair')

    def memory(self, count):
        bytes_a_key = {}
        for which in ('semel', 'redis'):
            server = self.start(which)
            empty = server.rss()
            self.load(server, work='fill', operations=count, pipeline=64)
            bytes_a_key[which] = (server.rss() - empty) / count
            server.end()
        self.add(f'memory a key, {count:,} keys', bytes_a_key['semel'], bytes_a_key['redis'],
                 'bytes', '<= 0.5x')

    def expiry(self, count, seconds):
        """All keys end while GETs of other keys come at half of what redis-server can take."""
        server = self.start('redis')
        self.load(server, work='fill', operations=100_000, pipeline=16)
        rate = self.load(server, work='get', operations=300_000, keys=100_000,
                         pipeline=1)['rate'] / 2
        server.end()
        found = {}
        for which in ('semel', 'redis'):
            server = self.start(which)
            ttl = int(seconds * 1000) + (30_000 if not self.options.quick else 3_000)
            began = time.time()
            self.load(server, work='fill', operations=count, pipeline=64, ttl_ms=ttl)
            self.load(server, work='fill', operations=1000, pipeline=64)  # these stay
            time.sleep(max(0, began + ttl / 1000 - 2 - time.time()))
            run = self.load(server, work='get', keys=1000, pipeline=1, rate=rate,
                            operations=int(rate * (2 if self.options.quick else 20)))
            left = server.ask('DBSIZE')
            print(f'  {which}: {left} keys left', flush=True)
            found[which] = run
            server.end()
        self.add(f'p99.9 while {count:,} keys end, {rate:,.0f} GET/s', found['semel']['p999_us'],
                 found['redis']['p999_us'], 'us', '<= 0.5x')
        self.add('p99 of the same', found['semel']['p99_us'], found['redis']['p99_us'], 'us')

    def start_up(self):
        found = {'semel': [], 'redis': []}
        rss = {}
        for _ in range(15):
            for which, times in found.items():
                server = self.start(which)
                times.append(server.ready_ms)
                rss[which] = server.rss()
                server.end()
        self.add('spawn to PONG, median of 15', statistics.median(found['semel']),
                 statistics.median(found['redis']), 'ms', '<= 10 ms')
        self.add('idle memory', rss['semel'] / 1e6, rss['redis'] / 1e6, 'MB', '<= 20 MB')

    def idle(self, count):
        p99, each = {}, {}
        for which in ('semel', 'redis'):
            server = self.start(which)
            if which == 'redis':
                server.ask('CONFIG', 'SET', 'maxclients', '19500')
            alone = self.load(server, work='fill', operations=200_000, pipeline=1, connections=1)
            before = server.rss()
            clients = []
            for _ in range(count):
                clients.append(socket.create_connection(('127.0.0.1', server.port)))
            clients[-1].sendall(b'PING\r\n')
            clients[-1].recv(16)
            each[which] = (server.rss() - before) / count
            beside = self.load(server, work='fill', operations=200_000, pipeline=1, connections=1)
            p99[which] = beside['p99_us'] / alone['p99_us']
            for client in clients:
                client.close()
            server.end()
        self.add(f'memory of an idle connection, {count:,}', each['semel'], each['redis'], 'bytes',
                 '<= 4096')
        self.add('p99 beside them, to alone', p99['semel'], p99['redis'], 'ratio', '<= 1.2')


def work(bench, runs, scale):
    if runs('rates'):
        bench.rates('SET NX GET PX, pipeline 1', 400_000 // scale, 1, SET,
                    ('>= 1.0x', '<= 0.8x'))
        bench.rates('SET NX GET PX, pipeline 16', 2_000_000 // scale, 16, SET,
                    ('>= 2x', '<= 0.3x'))
        bench.rates('SET NX GET PX, pipeline 64', 4_000_000 // scale, 64, SET,
                    ('>= 3x', '<= 0.2x'))
    if runs('counters'):
        def fill(server):
            bench.load(server, work='fill', operations=1_000_000 // scale, pipeline=64)
        bench.rates('GET hits, pipeline 16', 2_000_000 // scale, 16,
                    ['-r', str(1_000_000 // scale), 'GET', 'key:__rand_int__'],
                    ('>= 2x', ''), prepare=fill)
        bench.rates('INCR, pipeline 16', 2_000_000 // scale, 16,
                    ['-r', '1000000', 'INCR', 'counter:__rand_int__'], ('>= 2x', ''))
    if runs('pairs'):
        bench.pairs(1_000_000 // scale)
    if runs('durable'):
        for pipeline, count, goals in ((1, 400_000, ('>= 1.0x', '<= 0.8x')),
                                       (16, 2_000_000, ('>= 2x', '<= 0.3x')),
                                       (64, 4_000_000, ('>= 3x', '<= 0.2x'))):
            bench.rates(f'logged against everysec, pipeline {pipeline}', count // scale,
                        pipeline, SET, goals, durable=True)
    if runs('start'):
        bench.start_up()
    if runs('idle'):
        bench.idle(19_000 // scale)
    if runs('memory'):
        bench.memory(10_000_000 // scale)
    if runs('expiry'):
        bench.expiry(10_000_000 // scale, 60 if not bench.options.quick else 1)


if __name__ == '__main__':
    sys.exit(run_bench('node', __doc__,
                       'rates, counters, pairs, memory, expiry, start, idle, durable', Bench, work))
