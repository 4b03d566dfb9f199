#!/usr/bin/env python3
"""The HTTP gateway beside nginx as a plain proxy: tools/bench gateway [--quick] [--json FILE]

Question: what does a request cost that is passed on, and what does a guard add to its latency?
Method:   one thread each of gateway and nginx on processor 0; wrk and the upstream, an nginx that
          answers by itself, on the others. Rounds alternate; the median counts.
Compare:  nginx with proxy_pass and a pool of connections, in the same run.
Report:   requests a second of small GETs over 32 connections; p50 and p99 of a POST on one
          connection, passed and guarded, with the store in memory, logged and synced.
Every reply is checked to be 2xx, and every guarded request to have been granted a key of its own.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'gateway'))
from harness import Gateway, new_directory  # noqa: E402
import servers  # noqa: E402  (harness has found the folder)

ROUTES = '''
[[route]]
name = "pay"
methods = ["POST"]
path = "/pay"
guard = "idempotency-key"
'''
NGINX = '''
worker_processes 1;
pid {dir}/{name}.pid;
error_log {dir}/{name}.err;
daemon off;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  keepalive_requests 100000000;
  {body}
}}
'''
UPSTREAM = '''server {{ listen 127.0.0.1:{port};
  location / {{ return 200 "hello, small reply of the upstream\\n"; }} }}'''
PROXY = '''upstream up {{ server 127.0.0.1:{upstream};
  keepalive 64; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port};
  location / {{ proxy_pass http://up; proxy_http_version 1.1;
  proxy_set_header Connection ""; proxy_set_header X-Forwarded-For $remote_addr; }} }}'''
KEYS = '''
local seed, n = os.getenv("KEY_SEED"), 0
request = function()
  n = n + 1
  return wrk.format("POST", "/pay", {["Authorization"] = "alice",
    ["Idempotency-Key"] = seed .. "-" .. n, ["Content-Type"] = "application/json"}, '{"amount":5}')
end
'''


def pinned(core):
    return ['taskset', '-c', str(core)] if (os.cpu_count() or 1) > 1 else []


class Nginx:
    def __init__(self, directory, name, body, core, port):
        self.port = port
        config = os.path.join(directory, name + '.conf')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(NGINX.format(dir=directory, name=name, body=body))
        self.process = subprocess.Popen([*pinned(core), 'nginx', '-p', directory, '-c', config],
                                        stderr=subprocess.DEVNULL)
        import socket
        for _ in range(500):
            try:
                socket.create_connection(('127.0.0.1', port), 1).close()
                return
            except OSError:
                time.sleep(0.01)  # a poll interval
        raise RuntimeError(f'{name} does not listen')

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


def load(port, path, connections, seconds, script=None, seed='0'):
    """What wrk measured: requests, requests a second, p50 and p99 in ms."""
    command = [*pinned((os.cpu_count() or 1) - 1), 'wrk', '-t1', f'-c{connections}',
               f'-d{seconds}s', '--latency']
    if script:
        command += ['-s', script]
    output = subprocess.run([*command, f'http://127.0.0.1:{port}{path}'], capture_output=True,
                            text=True, check=True, env={**os.environ, 'KEY_SEED': seed}).stdout
    if 'Non-2xx' in output or 'Socket errors' in output:
        sys.exit(f'bench: wrong replies\n{output}')

    def ms(percent):
        value, unit = re.search(rf'{percent}%\s+([\d.]+)(us|ms|s)', output).groups()
        return float(value) * {'us': 0.001, 'ms': 1, 's': 1000}[unit]
    return {'requests': int(re.search(r'(\d+) requests in', output).group(1)),
            'rate': float(re.search(r'Requests/sec:\s+([\d.]+)', output).group(1)),
            'p50': ms(50), 'p99': ms(99)}


def median(runs, what):
    return statistics.median(run[what] for run in runs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--semel', required=True)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--json')
    arguments = parser.parse_args()
    seconds, rounds = (1, 1) if arguments.quick else (4, 5)
    last = (os.cpu_count() or 1) - 1
    figures = {}
    with new_directory() as directory:
        script = os.path.join(directory, 'keys.lua')
        with open(script, 'w', encoding='utf-8') as file:
            file.write(KEYS)
        ports = servers.free_ports(2)
        upstream = Nginx(directory, 'upstream', UPSTREAM.format(port=ports[0]), last, ports[0])
        between = PROXY.format(port=ports[1], upstream=ports[0])
        proxy = Nginx(directory, 'proxy', between, 0, ports[1])
        try:
            gets = {'nginx': [], 'gateway': []}
            posts = {'nginx passed': [], 'passed': []}
            gateway = start(arguments.semel, ports[0], directory, 'plain', [])
            try:
                for _ in range(rounds):
                    for name, port in (('nginx', proxy.port), ('gateway', gateway.port)):
                        gets[name].append(load(port, '/small', 32, seconds))
                    posts['nginx passed'].append(load(proxy.port, '/x', 1, seconds, script))
            finally:
                gateway.end()
            # The same requests on a gateway without a guard, and with each kind of store.
            for name, flags in (('passed', None), ('guarded, in memory', []),
                                ('guarded, logged', ['--durability', 'logged']),
                                ('guarded, synced', ['--durability', 'synced'])):
                posts[name] = []
                for i in range(rounds):
                    posts[name].append(guarded(arguments.semel, ports[0], directory,
                                               f'{name[-6:].strip()}{i}', flags, seconds, script))
        finally:
            proxy.stop()
            upstream.stop()
    for name, runs in gets.items():
        figures[f'GET, {name}'] = {k: median(runs, k) for k in ('rate', 'p50', 'p99')}
    for name, runs in posts.items():
        figures[f'POST, {name}'] = {k: median(runs, k) for k in ('rate', 'p50', 'p99')}
    report(figures, arguments.json)


def start(semel, upstream, directory, name, flags, routes=ROUTES):
    own = os.path.join(directory, name)
    os.mkdir(own)
    settings = 'threads = 1\nmemory = "1gb"\nupstream-connections = 64\n'
    # No log: nginx writes none, either.
    return Gateway(semel, upstream, routes, own, flags, settings, has_log=False, under=pinned(0))


def guarded(semel, upstream, directory, name, flags, seconds, script):
    store = os.path.join(directory, name, 'store')
    stored = flags is not None and flags
    gateway = start(semel, upstream, directory, name,
                    ['--store', store, *flags] if stored else [],
                    ROUTES if flags is not None else '')
    try:
        run = load(gateway.port, '/pay', 1, seconds, script, name)
        if flags is not None:
            granted = gateway.wait_for_metric(
                'semel_gateway_requests_total{route="pay",outcome="granted"}', run['requests'])
            if granted < run['requests']:
                sys.exit(f'bench: {run["requests"]} requests, but {granted:.0f} keys granted')
    finally:
        gateway.end()
    shutil.rmtree(os.path.join(directory, name))
    return run


def report(figures, path):
    for name, figure in figures.items():
        print(f'{name:28} {figure["rate"]:10.0f} /s   p50 {figure["p50"]:7.3f} ms   '
              f'p99 {figure["p99"]:7.3f} ms')
    ratio = figures['GET, gateway']['rate'] / figures['GET, nginx']['rate']
    print(f'small GETs, gateway to nginx: {ratio:.2f} (goal 0.70)')
    for kind in ('in memory', 'logged', 'synced'):
        added = figures[f'POST, guarded, {kind}']['p99'] - figures['POST, passed']['p99']
        goal = '' if kind == 'synced' else ' (goal 1 ms)'
        print(f'p99 that a guard adds, {kind}: {added:.3f} ms{goal}')
    if path:
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(figures, file, indent=1)


if __name__ == '__main__':
    main()
