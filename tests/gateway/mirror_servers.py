"""Real servers that write down what they have parsed: mirrors/ behind Werkzeug, gunicorn, nginx,
Express and Spring with Tomcat, and a strict reader of our own. Their packages are installed into a
folder, once. One that cannot be had is a Missing, whose text says what is missing.
"""

import hashlib
import json
import os
import shutil
import subprocess
import threading
import urllib.parse

from raw_upstream import RawUpstream
from stores import free_ports, until

HERE = os.path.dirname(os.path.abspath(__file__))
WITHIN = 60  # seconds for a server to come up
INSTALLED_WITHIN = 240


class Missing(Exception):
    pass


class Packages:
    """What the servers need, in `folder`: installed again when its list has changed."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)

    def once(self, name, sources, commands):
        """The folder with what the commands have made there of the sources, files and folders."""
        place = os.path.join(self.folder, name)
        files = [os.path.join(folder, file) for source in sources
                 for folder, _, names in os.walk(source) for file in sorted(names)]
        wanted = hashlib.sha256()
        for path in [*filter(os.path.isfile, sources), *files]:
            with open(path, 'rb') as file:
                wanted.update(path.encode() + file.read())
        stamp = os.path.join(place, 'installed')
        if os.path.exists(stamp):
            with open(stamp, encoding='utf-8') as file:
                if file.read() == wanted.hexdigest():
                    return place
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for source in sources:
            if os.path.isdir(source):
                shutil.copytree(source, place, dirs_exist_ok=True)
            else:
                shutil.copy(source, place)
        for command in commands:
            self.run(command, place, name)
        with open(stamp, 'w', encoding='utf-8') as file:
            file.write(wanted.hexdigest())
        return place

    @staticmethod
    def run(command, place, name):
        own = os.path.join(place, command[0])
        program = own if os.path.exists(own) else shutil.which(command[0])
        if not program:
            raise Missing(command[0])
        try:
            made = subprocess.run([program, *command[1:]], cwd=place, capture_output=True,
                                  text=True, check=False, timeout=INSTALLED_WITHIN)
        except subprocess.TimeoutExpired:
            raise Missing(f'{name} within {INSTALLED_WITHIN} s') from None
        if made.returncode:
            raise Missing(f'{name}: {command[0]}: {(made.stderr + made.stdout)[-200:].strip()}')

    def python(self):
        """An interpreter with Flask and gunicorn."""
        place = self.once('python', [os.path.join(HERE, 'mirrors', 'requirements.txt')], [
            ['python3', '-m', 'venv', 'venv'],
            ['venv/bin/python', '-m', 'pip', 'install', '--disable-pip-version-check', '--quiet',
             '--no-input', '--retries', '1', '--timeout', '20', '--only-binary', ':all:',
             '--no-deps', '--requirement', 'requirements.txt']])
        return os.path.join(place, 'venv', 'bin', 'python')

    def express(self):
        mirrors = os.path.join(HERE, 'mirrors')
        return self.once('express', [os.path.join(mirrors, name) for name in (
            'mirror_express.js', 'package.json', 'package-lock.json')],
            [['npm', 'ci', '--no-audit', '--no-fund', '--ignore-scripts']])

    def spring(self):
        return self.once('spring', [os.path.join(HERE, 'spring')], [
            ['mvn', '--batch-mode', '--no-transfer-progress', '--quiet', 'compile',
             'dependency:copy-dependencies', '-DoutputDirectory=target/packages']])


class Process:
    """A server in a process of its own, whose records are the lines of a file."""

    def __init__(self, command, directory, port=None, environment=()):
        self.log = os.path.join(directory, f'mirror{port or 0}.log')
        with open(self.log, 'w', encoding='utf-8'):
            pass
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=directory, env={**os.environ, 'MIRROR_LOG': self.log, **dict(environment)})
        self.port = port or self.announced()

    def announced(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                return int(line)
        raise RuntimeError(f'{self.process.args[0]} ended with {self.process.wait()}')

    def records(self):
        with open(self.log, encoding='utf-8') as file:
            return [json.loads(line) for line in file if line.endswith('\n')]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def accepts(port):
    import socket
    try:
        socket.create_connection(('127.0.0.1', port), 1).close()
    except OSError:
        return False
    return True


def werkzeug(directory, packages):
    return Process([packages.python(), os.path.join(HERE, 'mirrors', 'mirror_wsgi.py')], directory)


def gunicorn(directory, packages):
    port = free_ports(1)[0]
    server = Process([packages.python(), '-m', 'gunicorn', '--bind', f'127.0.0.1:{port}',
                      '--threads', '8', '--keep-alive', '30', '--chdir',
                      os.path.join(HERE, 'mirrors'), '--worker-tmp-dir', directory,
                      'mirror_wsgi:served'], directory, port)
    until(lambda: accepts(port), 'gunicorn listens', WITHIN)
    return server


def express(directory, packages):
    place = packages.express()
    return Process(['node', os.path.join(place, 'mirror_express.js')], directory)


def spring(directory, packages):
    target = os.path.join(packages.spring(), 'target')
    return Process(['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xmx256m', '-cp',
                    f'{target}/classes:{target}/packages/*', 'mirror.Mirror', '--server.port=0',
                    '--server.address=127.0.0.1', '--logging.level.root=off'], directory)


NGINX = '''
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.err;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b;
  fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e;
  upstream shop {{ server 127.0.0.1:{shop}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{port};
    proxy_http_version 1.1;
    location / {{ proxy_pass http://shop; proxy_set_header Connection ""; }}
    location ~ ^/payments(/|$) {{
      proxy_pass http://shop; proxy_set_header Connection ""; proxy_set_header X-Proxy-Route pay;
    }}
  }}
}}
'''


class Nginx:
    """nginx in front of gunicorn: its choice of a location is part of the record."""

    def __init__(self, program, directory, packages):
        self.shop = gunicorn(directory, packages)
        self.port = free_ports(1)[0]
        config = os.path.join(directory, 'nginx.conf')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(NGINX.format(dir=directory, port=self.port, shop=self.shop.port))
        self.server = Process([program, '-c', config, '-e', f'{directory}/nginx.err'], directory,
                              self.port)
        until(lambda: accepts(self.port), 'nginx listens', WITHIN)

    def records(self):
        return self.shop.records()

    def stop(self):
        self.server.stop()
        self.shop.stop()


def nginx(directory, packages):
    program = shutil.which('nginx') or shutil.which('nginx', path='/usr/sbin')
    if not program:
        raise Missing('nginx')
    return Nginx(program, directory, packages)


class Strict:
    """The reader of raw_upstream.py: it answers GET, HEAD and OPTIONS before it reads a body."""

    def __init__(self, *_):
        self.upstream = RawUpstream(self.reply)
        self.port = self.upstream.port
        self.lock = threading.Lock()

    def reply(self, method, _target, at):
        proof = self.upstream.requests[at].fields.get('x-proof', ['-'])[0]
        text = b'' if method == 'HEAD' else b'{}'
        return (b'HTTP/1.1 200 OK\r\nX-Mirror: %s\r\nContent-Length: %d\r\n\r\n%s' %
                (proof.encode('latin-1'), len(text), text))

    def records(self):
        made = []
        for seen in self.upstream.requests:
            path = urllib.parse.unquote(seen.target.split('?')[0])
            is_pay = path == '/payments' or path.startswith('/payments/')
            handler = 'pay' if is_pay and seen.method == 'POST' else 'other'
            is_read = seen.method not in self.upstream.early
            if is_read and not seen.is_whole:
                continue  # the connection broke within it
            made.append({'id': seen.fields.get('x-proof', [None])[0], 'method': seen.method,
                         'path': path, 'handler': handler,
                         'body': hashlib.sha1(seen.body).hexdigest() if is_read else None,
                         'fields': {name: ','.join(values)
                                    for name, values in seen.fields.items()}})
        return made

    def stop(self):
        self.upstream.stop()


SERVERS = {'strict': Strict, 'werkzeug': werkzeug, 'gunicorn': gunicorn, 'nginx': nginx,
           'express': express, 'spring': spring}
