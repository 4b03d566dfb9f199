"""Black-box tests of `semel redis-server`: redis_server_test.py PATH_OF_SEMEL [unittest arguments].

What programs that start a redis-server rely on. Nothing sleeps for a guessed time. The long form
(tools/prove launchers --long) starts a thousand instances one after another.
"""

import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from resp import Client, Failed  # noqa: E402
from servers import CannotStart, Server, free_ports, until  # noqa: E402

SEMEL = ''


def is_there(pid):
    """Whether the process runs; a zombie does not."""
    try:
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='ascii')
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(')')[2].split()[0] not in 'ZX'


def processes_in(folder):
    """Those whose working directory is there or below."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / 'cwd').startswith(str(folder)):
                found.append(entry.name)
        except OSError:  # it has ended, or is another user's
            pass
    return found


class Redis(Server):
    """Started as a launcher does: ready when its output has the words that all of them look for."""

    name = 'semel redis-server'

    def __init__(self, folder, *flags, words=None, environment=None):
        super().__init__(folder, environment)
        self.port = free_ports(1)[0]
        self.flags = flags
        self.started_by = words or [SEMEL, 'redis-server']

    def words(self):
        return [*self.started_by, *[str(flag).replace('{port}', str(self.port))
                                    for flag in self.flags]]

    def is_ready(self):
        return self.out.exists() and 'Ready to accept connections' in self.out.read_text()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def redis(self, *flags, **options):
        server = Redis(tempfile.mkdtemp(dir=self.folder), *(flags or ('--port', '{port}')),
                       **options)
        self.addCleanup(server.end)
        return server.start()

    def run_once(self, *arguments, words=None, **options):
        return subprocess.run([*(words or [SEMEL, 'redis-server']), *map(str, arguments)],
                              capture_output=True, text=True, timeout=20, check=False,
                              cwd=self.folder, **options)

    def link(self):
        path = self.folder / 'redis-server'
        if not path.is_symlink():
            path.symlink_to(SEMEL)
        return str(path)

    # --- words that launchers read ----------------------------------------------------------

    def test_the_version_is_in_redis_form_also_by_the_name_of_a_link(self):
        form = r'Redis server v=\d+\.\d+\.\d+ sha=[0-9a-f]{8}:0 malloc=\S+ bits=64 build=\w+\n'
        for words in ([SEMEL, 'redis-server'], [self.link()]):
            for flag in ('-v', '--version'):
                done = self.run_once(flag, words=words)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stdout, f'^{form}$')

    def test_the_help_names_the_flags_that_differ(self):
        text = self.run_once('--help').stdout
        for word in ('--strict', '--test-clock', '--port', 'redis.conf'):
            self.assertIn(word, text)
        self.assertIn('redis-server', subprocess.run([SEMEL, '--help'], capture_output=True,
                                                     text=True, check=False).stdout)

    def test_the_log_goes_to_standard_output_in_redis_form(self):
        server = self.redis()
        lines = server.out.read_text().splitlines()
        for line in lines:
            self.assertRegex(line, rf'^{server.pid}:M \d\d \w{{3}} \d{{4}} '
                                   r'\d\d:\d\d:\d\d\.\d{3} [.*#-] ')
        self.assertTrue(lines[-1].endswith(' * Ready to accept connections'), lines[-1])
        self.assertEqual(server.log(), '')

    def test_info_and_config_have_what_launchers_look_for(self):
        conf = self.folder / 'redis.conf'
        conf.write_text('port 1\nsave 900 1\n')
        server = self.redis(conf, '--port', '{port}', '--appendonly', 'yes')
        client = server.client()
        self.addCleanup(client.close)
        info = dict(line.split(':', 1) for line in client('INFO').decode().splitlines()
                    if ':' in line)
        self.assertRegex(info['redis_version'], r'^\d+\.\d+\.\d+$')
        self.assertEqual(info['process_id'], str(server.pid))
        self.assertEqual(info['tcp_port'], str(server.port))
        self.assertEqual(info['config_file'], str(conf))
        self.assertEqual(info['executable'], SEMEL)
        self.assertEqual((info['loading'], info['redis_mode'], info['role']),
                         ('0', 'standalone', 'master'))

        def value(name):
            return client('CONFIG', 'GET', name)[1].decode()
        self.assertEqual(value('port'), str(server.port))
        self.assertEqual(value('save'), '900 1')
        self.assertEqual(value('appendonly'), 'yes')
        self.assertEqual(value('dir'), str(server.folder))
        self.assertEqual(client('CONFIG', 'SET', 'save', ''), b'OK')
        self.assertEqual(value('save'), '')

    # --- starting and ending ----------------------------------------------------------------

    def test_port_auto_is_a_free_one_that_the_ready_file_names(self):
        ready = self.folder / 'there'
        server = self.redis('--port', 'auto', '--ready-file', ready)
        port = int(re.search(r'^port=(\d+)$', ready.read_text(), re.M)[1])
        with Client((server.host, port), 20, server.form) as client:
            self.assertEqual(client('PING'), b'PONG')
            self.assertIn(f'tcp_port:{port}', client('INFO', 'server').decode())

    def test_a_node_that_is_used_as_a_cache_and_by_scripts_is_as_redis_server(self):
        client = self.redis('--port', '{port}', '--maxmemory', '8mb', '--maxmemory-policy',
                            'allkeys-lru').client()
        self.addCleanup(client.close)
        for number in range(12):
            client('SET', f'key:{number}', b'x' * (1 << 20))
        self.assertEqual(client('EVAL', 'return redis.call("set",KEYS[1],1)', '1', 'k'), b'OK')

    def test_the_clock_and_faults_are_the_tests_unless_it_is_said(self):
        client = self.redis().client()
        self.addCleanup(client.close)
        client('SET', 'k', 'v', 'PX', '60000')
        self.assertEqual(client('SEMEL.CLOCK', 'ADVANCE', '60000'), b'OK')
        self.assertIsNone(client('GET', 'k'))
        self.assertEqual(client('SEMEL.FAULT', 'ADD', 'ERROR', 'ERR no', 'COMMAND', 'get'), 1)
        with self.assertRaisesRegex(Failed, 'ERR no'):
            client('GET', 'k')
        without = self.redis('--port', '{port}', '--test-clock', 'no').client()
        self.addCleanup(without.close)
        for words in (('SEMEL.CLOCK', 'NOW'), ('SEMEL.FAULT', 'LIST')):
            with self.assertRaisesRegex(Failed, 'needs a node started with test-clock'):
                without(*words)

    def test_a_fault_is_over_when_its_client_reads_an_end(self):
        server = self.redis()
        planter = server.client()
        self.addCleanup(planter.close)
        planter('SEMEL.FAULT', 'ADD', 'DROP-REPLY', 'COMMAND', 'set')
        client = server.client()
        self.addCleanup(client.close)
        with self.assertRaises(ConnectionError):
            client('SET', 'k', 'v')
        self.assertEqual(planter('GET', 'k'), b'v')
        planter('SEMEL.FAULT', 'ADD', 'DELAY', '50', 'COMMAND', 'get')
        self.assertEqual(planter('GET', 'k'), b'v')

    def test_shutdown_ends_it_at_once_also_while_a_request_is_delayed(self):
        for words in (('SHUTDOWN',), ('SHUTDOWN', 'NOSAVE')):
            server = self.redis()
            client = server.client()
            self.addCleanup(client.close)
            client('SEMEL.FAULT', 'ADD', 'DELAY', '60000', 'COMMAND', 'get')
            client.send('GET', 'k')
            with server.client() as other:
                with self.assertRaises((ConnectionError, OSError)):
                    other(*words)
            self.assertEqual(server.wait(8), 0)

    def test_it_ends_by_a_signal_and_its_pid_file_goes(self):
        pidfile = self.folder / 'redis.pid'
        server = self.redis('--port', '{port}', '--pidfile', pidfile)
        self.assertEqual(pidfile.read_text(), f'{server.pid}\n')
        self.assertEqual(server.stop(), 0)
        self.assertFalse(pidfile.exists())

    def test_a_daemon_has_a_pid_file_a_log_file_and_no_terminal(self):
        port = free_ports(1)[0]
        conf = self.folder / 'redis.conf'
        conf.write_text(f'daemonize yes\ndir {self.folder}\npidfile redis.pid\nlogfile redis.log\n'
                        f'port {port}\n')
        done = self.run_once(conf)
        self.assertEqual((done.returncode, done.stdout), (0, ''), done.stderr)
        log = self.folder / 'redis.log'
        until(lambda: log.exists() and 'Ready to accept' in log.read_text(), 'the daemon serves')
        pid = int((self.folder / 'redis.pid').read_text())
        try:
            self.assertEqual(os.getsid(pid), pid)
            self.assertEqual(os.readlink(f'/proc/{pid}/fd/1'), '/dev/null')
            with Client(('127.0.0.1', port), 20) as client:
                self.assertEqual(client.ask('PING'), b'PONG')
            os.kill(pid, signal.SIGTERM)
            until(lambda: not is_there(pid), 'the daemon ends')
            self.assertFalse((self.folder / 'redis.pid').exists())
        finally:
            if is_there(pid):
                os.kill(pid, signal.SIGKILL)

    def test_a_unix_socket_is_enough(self):
        path = self.folder / 'redis.sock'
        self.redis('--port', '0', '--unixsocket', path, '--unixsocketperm', '700')
        with socket.socket(socket.AF_UNIX) as plain:
            plain.settimeout(20)
            plain.connect(str(path))
            plain.sendall(b'PING\r\n')
            self.assertEqual(plain.recv(64), b'+PONG\r\n')
        self.assertEqual(path.stat().st_mode & 0o777, 0o700)

    def test_directives_come_from_standard_input(self):
        port = free_ports(1)[0]
        done = self.run_once('-', '--no-such-directive', '1', '--strict',
                             input=f'port {port}\nno-such-line 2\n')
        self.assertEqual(done.returncode, 2)
        self.assertIn('standard input:2', done.stderr)
        self.assertIn('no-such-directive', done.stderr)

    def test_a_renamed_command_has_its_new_name_alone_for_clients_and_scripts(self):
        conf = self.folder / 'redis.conf'
        conf.write_text('rename-command FLUSHALL ""\nrename-command CONFIG admin-config\n'
                        'rename-command SET put\n', encoding='ascii')
        server = self.redis(conf, '--port', '{port}')
        self.assertIn(b'ADMIN-CONFIG', server.ask('admin-config', 'HELP')[0])
        with self.assertRaisesRegex(Failed, 'Try ADMIN-CONFIG HELP'):
            server.ask('admin-config', 'nosuch')
        listed = server.ask('COMMAND', 'LIST')
        self.assertEqual(len({b'set', b'config|get', b'flushall'} & set(listed)), 2)
        for words in (('FLUSHALL',), ('CONFIG', 'GET', 'port'), ('SET', 'a', '1')):
            with self.assertRaisesRegex(Failed, 'unknown command'):
                server.ask(*words)
        self.assertEqual(server.ask('PUT', 'a', '1'), b'OK')
        self.assertEqual(server.ask('admin-config', 'GET', 'port')[0], b'port')
        self.assertEqual(server.ask('EVAL', "return redis.call('put', KEYS[1], '2')", '1', 'a'),
                         b'OK')
        for script in ("return redis.call('set', KEYS[1], ARGV[1])",
                       "return redis.call('flushall')"):
            with self.assertRaisesRegex(Failed, 'Unknown Redis command'):
                server.ask('EVAL', script, '1', 'a', '3')
        self.assertEqual(server.ask('GET', 'a'), b'2')
        self.assertEqual(server.ask('ACL', 'SETUSER', 'u', '+set'), b'OK')  # by its own name
        for words, reason in ((('nosuch', 'x'), 'No such command'),
                              (('get', 'SET'), 'already exists'),
                              (('semel.claims', ''), 'No such command'), (('get',), 'arguments')):
            done = self.run_once('--port', 'auto', '--rename-command', *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(reason, done.stderr)

    def title(self, server):
        line = pathlib.Path(f'/proc/{server.process.pid}/cmdline').read_bytes()
        return line.rstrip(b'\0').decode()

    def test_the_title_of_the_process_is_that_of_its_template(self):
        server = self.redis('--port', '{port}', words=[self.link()])
        self.assertEqual(self.title(server), f'{self.link()} 127.0.0.1:{server.port}')
        self.assertEqual(server.ask('CONFIG', 'SET', 'proc-title-template',
                                    'T {port}/{tls-port} {{x}{server-mode} '), b'OK')
        self.assertEqual(self.title(server), f'T {server.port}/0 {{x}}')
        for wrong in ('{no}', '{port', ''):
            with self.assertRaisesRegex(Failed, 'template format is invalid'):
                server.ask('CONFIG', 'SET', 'proc-title-template', wrong)
        self.assertEqual(self.title(server), f'T {server.port}/0 {{x}}')
        server.ask('CONFIG', 'SET', 'proc-title-template', 'x' * 4096)
        self.assertRegex(self.title(server), '^x{20,}$')  # what there is room for
        self.assertEqual(server.ask('CONFIG', 'SET', 'proc-title-template', '{port}'), b'OK')
        port = free_ports(1)[0]
        self.assertEqual(server.ask('CONFIG', 'SET', 'port', port), b'OK')
        self.assertEqual(self.title(server), str(port))
        plain = self.redis('--port', '{port}', '--set-proc-title', 'no')
        self.assertIn('\0redis-server\0--port\0', self.title(plain))
        done = self.run_once('--port', 'auto', '--proc-title-template', '{no}')
        self.assertEqual(done.returncode, 2)
        self.assertIn('template format is invalid', done.stderr)

    def test_debug_sleep_makes_others_wait(self):
        server = self.redis('--port', '{port}', '--enable-debug-command', 'yes')
        with socket.create_connection(('127.0.0.1', server.port)) as sleeper:
            sleeper.sendall(b'DEBUG SLEEP 0.5\r\n')
            slowest = 0
            while not select.select([sleeper], [], [], 0)[0]:
                asked = time.monotonic()
                self.assertEqual(server.ask('PING'), b'PONG')
                slowest = max(slowest, time.monotonic() - asked)
            self.assertEqual(sleeper.recv(64), b'+OK\r\n')
            self.assertGreater(slowest, 0.3)

    def test_what_is_ignored_is_named_once_on_standard_error(self):
        server = self.redis('--port', '{port}', '--no-such-directive', '1', '--appendonly', 'yes',
                            '--hz', '100', '--cluster-enabled', 'yes')
        lines = server.log().splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.assertIn('no-such-directive', lines[0])
        self.assertIn('cluster-enabled', lines[1])
        self.assertEqual(lines[2], 'semel redis-server: without effect here: appendonly, hz')

    def test_it_starts_on_all_addresses_and_serves_this_machine_alone(self):
        server = self.redis('--port', '{port}', '--bind', '0.0.0.0')
        self.assertEqual(server.ask('PING'), b'PONG')

    def test_a_start_that_cannot_be_ends_with_a_reason(self):
        for arguments, reason in ((('--port', 'x'), 'port'), (('/no/such.conf',), 'No such file'),
                                  (('--dir', '/no/such/dir'), '/no/such/dir'),
                                  (('--sentinel',), 'sentinel'), (('--port',), 'arguments')):
            done = self.run_once(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(reason, done.stderr)
        with socket.socket() as plug:
            plug.bind(('127.0.0.1', 0))
            plug.listen()
            server = Redis(tempfile.mkdtemp(dir=self.folder), '--port', plug.getsockname()[1])
            self.addCleanup(server.clean)
            with self.assertRaisesRegex(CannotStart, 'in use'):
                server.start()

    def test_instances_one_after_another_leave_nothing(self):
        count = int(os.environ.get('SEMEL_INSTANCES', '20'))
        temporary = self.folder / 'temporary'
        temporary.mkdir()
        for number in range(count):
            server = self.redis('--port', '{port}', '--save', '', '--pidfile', 'redis.pid',
                                '--unixsocket', self.folder / 'redis.sock',
                                environment={'TMPDIR': str(temporary)})
            self.assertEqual(server.ask('PING'), b'PONG', f'instance {number}')
            with server.client() as client:
                with self.assertRaises((ConnectionError, OSError)):
                    client('SHUTDOWN', 'NOSAVE')
            self.assertEqual(server.wait(20), 0)
            self.assertEqual(server.log(), '')
            with socket.socket() as plug:  # a launcher may give its port to the next one
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                plug.bind((server.host, server.port))
            self.assertEqual(sorted(os.listdir(server.folder)), ['stderr', 'stdout'])
            shutil.rmtree(server.folder)
            self.assertEqual(os.listdir(self.folder), ['temporary'])
            self.assertEqual(os.listdir(temporary), [])
            self.assertEqual(processes_in(self.folder), [])
        print(f'{count} instances, one after another', file=sys.stderr)

    def test_its_own_memory_is_small(self):
        server = self.redis()
        server.ask('PING')
        status = pathlib.Path(f'/proc/{server.pid}/status').read_text(encoding='ascii')
        # Without the pages of its program and libraries, which all instances share.
        self.assertLess(int(re.search(r'RssAnon:\s+(\d+) kB', status)[1]), 8 << 10)


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    SEMEL = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
