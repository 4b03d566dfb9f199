#!/usr/bin/env python3
"""How a gateway logs in to the nodes of its store: passwords, rights and certificates, and what
becomes of requests when they change: store_login_test.py PROGRAM [unittest's arguments].
"""

import fcntl
import json
import os
import pty
import shutil
import subprocess
import sys
import termios
import threading
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import store_test  # noqa: E402
from features_test import signed  # noqa: E402
from harness import WITHIN  # noqa: E402
from stores import Relay, seconds_of, wait_until  # noqa: E402
import group  # noqa: E402  (stores has found the folder)
import resp  # noqa: E402


class Case(store_test.Case):
    def write(self, name, text):
        path = os.path.join(self.directory.name, name)
        # Whole or not at all: a gateway may read it at any time.
        with open(path + '.new', 'w', encoding='ascii') as file:
            file.write(text)
        os.rename(path + '.new', path)
        return path

    def detail(self, reply):
        self.assertEqual((reply.status, reply.problem), (503, 'store-unavailable'))
        return json.loads(reply.body)['detail']


class Rights(Case):
    """A user with the rights that docs/gateway.md names, and no others."""

    def page_rights(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, '..', '..', 'docs', 'gateway.md'), encoding='utf-8') as page:
            text = page.read()
        line = next(each for each in text.splitlines() if each.startswith('The user needs `'))
        return line.split('`')[1], line.split('`')[5]

    def start_both(self, rights, *flags, settings=''):
        users = os.path.join(self.directory.name, 'users.acl')
        with open(users, 'w', encoding='ascii') as file:
            file.write(f'user default on nopass ~* &* +@all\nuser gw on >pw {rights}\n')
        password = os.path.join(self.directory.name, 'password')
        with open(password, 'w', encoding='ascii') as file:
            file.write('pw\n')
        self.node = self.start_node('--aclfile', users, *flags)
        return f'store-user = "gw"\nstore-password-file = "{password}"\n{settings}'

    def test_the_rights_of_the_page_are_enough_for_each_guard_and_for_resolve(self):
        rights, more = self.page_rights()
        settings = self.start_both(f'{rights} {more}')
        gateway = self.start_gateway(self.node.address, settings=settings)
        for target in ('/pay/1', '/click'):
            self.assertEqual(gateway.request(target=target, body=b'1', key='1').status, 201)
        token = gateway.request('GET', '/token').body.split(b'"')[3].decode()
        form = {'Semel-Form-Token': token}
        self.assertEqual(gateway.request(target='/form', body=b'f', fields=form).status, 201)
        fields = signed('POST', '/hook', '', b'1', 'n')
        self.assertEqual(gateway.request('POST', '/hook', b'1', fields).status, 201)
        self.assertEqual(gateway.request(target='/pay/1?do=close', body=b'2', key='2').status, 502)
        key = next(key for key in self.node.keys() if key.endswith('|2')).replace('|', '%7C')
        self.assertEqual(gateway.admin('POST', f'/resolve?route=pay&as=released&key={key}',
                                       {'Semel-Admin': 'yes'}).status, 200)

    def test_a_missing_right_is_named_at_the_start(self):
        rights, _ = self.page_rights()
        settings = self.start_both(rights.replace('+semel.namespace', ''))
        self.assertIn('NOPERM', self.refused(self.node.address, settings=settings))


class Passwords(Case):
    def test_a_wrong_password_ends_the_start_at_once(self):
        node = self.start_node('--requirepass', 'right')
        seconds, text = seconds_of(lambda: self.refused(node.address))
        self.assertIn('NOAUTH', text)
        password = self.write('password', 'wrong\n')
        line = f'store-password-file = "{password}"\n'
        more, text = seconds_of(lambda: self.refused(node.address, settings=line))
        self.assertIn('WRONGPASS', text)
        self.assertLess(max(seconds, more), 5)
        self.write('password', 'right\n')
        gateway = self.start_gateway(node.address, settings=line)
        self.assertEqual(gateway.request(target='/pay/1', body=b'1', key='1').status, 201)

    def test_a_file_without_a_password_is_named(self):
        for text, word in (('', 'no password can be read'), ('\n', 'no characters'),
                           ('x' * 4097, 'too many characters')):
            path = self.write('password', text)
            said = self.refused('127.0.0.1:1', settings=f'store-password-file = "{path}"\n')
            self.assertIn(word, said)
            self.assertIn(path, said)
        said = self.refused('127.0.0.1:1', settings='store-password-file = "/none"\n')
        self.assertIn("'/none'", said)
        said = self.refused('127.0.0.1:1', settings='store-password-file = "/dev/zero"\n')
        self.assertIn('too many', said)

    def operator(self, *words, password):
        """As the default user, whose password is the gateway's."""
        with resp.Client(self.node.port, WITHIN) as client:
            client.ask('AUTH', password)
            return client.ask(*words)

    def start_both(self):
        self.node = self.start_node('--requirepass', 'first')
        path = self.write('password', 'first\n')
        return self.start_gateway(self.node.address, settings=f'store-password-file = "{path}"\n')

    def pay(self, gateway, key):
        return gateway.request(target='/pay/1', body=key.encode(), key=key)

    def test_a_password_that_changes_at_the_node_is_taken_from_the_file(self):
        gateway = self.start_both()
        self.assertEqual(self.pay(gateway, 'a').status, 201)
        self.operator('CONFIG', 'SET', 'requirepass', 'second', password='first')
        # Connections that have logged in stay so, as in Redis.
        self.assertEqual(self.pay(gateway, 'b').status, 201)
        self.operator('CLIENT', 'KILL', 'TYPE', 'normal', password='second')
        detail = self.detail(self.pay(gateway, 'c'))
        self.assertEqual(detail, 'the store does not answer')
        self.assertEqual(self.effects(b'c'), 0)
        ready = gateway.admin('GET', '/readyz')
        self.assertEqual(ready.status, 503)
        self.assertIn(b'WRONGPASS', ready.body)
        # A file that cannot be used is no reason to end, or to forget the password.
        for text in ('', 'wrong\n'):
            self.write('password', text)
            self.assertEqual(self.pay(gateway, 'c').status, 503)
        self.write('password', 'second\n')
        wait_until(lambda: self.pay(gateway, 'c').status == 201, 'the new password is used')
        self.assertEqual(self.effects(b'c'), 1)
        self.assertTrue(self.pay(gateway, 'a').is_replay)
        self.assertEqual(gateway.admin('GET', '/readyz').status, 200)

    def test_a_password_that_the_file_has_first_is_not_seen_by_clients(self):
        gateway = self.start_both()
        self.write('password', 'second\n')
        for number in range(3):
            if number == 1:
                self.operator('CONFIG', 'SET', 'requirepass', 'second', password='first')
            if number > 0:
                self.operator('CLIENT', 'KILL', 'TYPE', 'normal', password='second')
            self.assertEqual(self.pay(gateway, f'k{number}').status, 201)

    def test_a_pipe_that_gave_the_password_is_not_waited_for(self):
        self.node = self.start_node('--requirepass', 'first')
        path = os.path.join(self.directory.name, 'pipe')
        os.mkfifo(path)
        writer = threading.Thread(target=self.write_pipe, args=(path,))
        writer.start()
        gateway = self.start_gateway(self.node.address,
                                     settings=f'store-password-file = "{path}"\n')
        writer.join(WITHIN)
        self.assertEqual(self.pay(gateway, 'a').status, 201)
        self.operator('CONFIG', 'SET', 'requirepass', 'second', password='first')
        self.operator('CLIENT', 'KILL', 'TYPE', 'normal', password='second')
        self.assertEqual(self.pay(gateway, 'b').status, 503)
        self.assertEqual(gateway.request('GET', '/other').status, 200)  # its thread goes on
        self.operator('CONFIG', 'SET', 'requirepass', 'first', password='second')
        wait_until(lambda: self.pay(gateway, 'b').status == 201, 'the old password is right again')

    @staticmethod
    def write_pipe(path):
        with open(path, 'w', encoding='ascii') as file:
            file.write('first\n')

    def test_a_doubt_is_ended_with_the_new_password(self):
        gateway = self.start_both()
        reply = gateway.request(target='/pay/1?do=close', body=b'd', key='d')
        self.assertEqual(reply.status, 502)
        self.operator('CONFIG', 'SET', 'requirepass', 'second', password='first')
        key = self.operator('KEYS', 'gw.*', password='second')[0].decode().split(':', 1)[1]
        target = f'/resolve?route=pay&as=released&key={key.replace("|", "%7C")}'
        self.assertEqual(gateway.admin('POST', target, {'Semel-Admin': 'yes'}).status, 400)
        self.write('password', 'second\n')
        self.assertEqual(gateway.admin('POST', target, {'Semel-Admin': 'yes'}).status, 200)


class Authority:
    """Signs certificates by the program `openssl`."""

    def __init__(self, place, name):
        self.place = os.path.join(place, name)
        os.mkdir(self.place)
        self.cert, self.key = self.file('ca.pem'), self.file('ca.key')
        self.run('req', '-x509', *self.new_key(self.key), '-out', self.cert, '-days', '2',
                 '-subj', f'/CN={name}')

    def file(self, name):
        return os.path.join(self.place, name)

    @staticmethod
    def run(*words):
        subprocess.run(['openssl', *words], check=True, capture_output=True, timeout=WITHIN)

    @staticmethod
    def new_key(path):
        return ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', path)

    def issue(self, name, days=2, names='IP:127.0.0.1'):
        """The files of a certificate and its key. One of -1 days has expired."""
        cert, key, asked = (self.file(f'{name}.{end}') for end in ('pem', 'key', 'csr'))
        terms = self.file(f'{name}.ext')
        with open(terms, 'w', encoding='ascii') as file:
            file.write(f'subjectAltName={names}\n')
        self.run('req', '-new', *self.new_key(key), '-out', asked, '-subj', f'/CN={name}')
        self.run('x509', '-req', '-in', asked, '-CA', self.cert, '-CAkey', self.key,
                 '-CAcreateserial', '-days', str(days), '-extfile', terms, '-out', cert)
        return cert, key


@unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
class Certificates(Case):
    def setUp(self):
        super().setUp()
        self.ours = Authority(self.directory.name, 'ours')
        self.others = Authority(self.directory.name, 'others')
        self.client = self.ours.issue('client')

    def start_tls(self, server=None):
        """A node that asks for certificates of ours. A copy of its own, which a test replaces."""
        self.served = [os.path.join(self.directory.name, name) for name in ('cert', 'key')]
        self.serve(server or self.ours.issue('server'))
        self.tls_port = group.free_ports(1)[0]
        self.node = self.start_node(
            '--tls-port', str(self.tls_port), '--tls-cert-file', self.served[0],
            '--tls-key-file', self.served[1], '--tls-ca-cert-file', self.ours.cert,
            '--tls-reload', 'no')
        self.address = f'127.0.0.1:{self.tls_port}'

    def serve(self, files):
        for file, copy in zip(files, self.served):
            shutil.copy(file, copy)

    @staticmethod
    def settings_of(ca, client=None):
        text = f'store-tls = true\nstore-ca = "{ca}"\n'
        if client:
            text += f'store-cert = "{client[0]}"\nstore-key = "{client[1]}"\n'
        return text

    def pay(self, gateway, key):
        return gateway.request(target='/pay/1', body=key.encode(), key=key)

    def test_both_sides_show_certificates(self):
        self.start_tls()
        gateway = self.start_gateway(self.address,
                                     settings=self.settings_of(self.ours.cert, self.client))
        self.assertEqual(self.pay(gateway, '1').status, 201)
        self.assertTrue(self.pay(gateway, '1').is_replay)
        self.node.kill()
        self.node.start()
        self.assertTrue(self.pay(gateway, '1').is_replay)
        self.assertEqual(self.effects(b'1'), 1)

    def test_a_certificate_that_a_node_does_not_take_is_named_at_the_start(self):
        self.start_tls()
        for client, word in ((None, 'certificate required'),
                             (self.others.issue('stranger'), 'unknown ca'),
                             (self.ours.issue('late', days=-1), 'certificate expired')):
            with self.subTest(word=word):
                settings = self.settings_of(self.ours.cert, client)
                seconds, text = seconds_of(lambda settings=settings: self.refused(
                    self.address, settings=settings))
                self.assertIn(word, text)
                self.assertLess(seconds, 5)  # at once, and not when a node is not found

    def test_a_node_with_a_certificate_that_does_not_hold_is_not_used(self):
        for files in (self.others.issue('stranger'), self.ours.issue('late', days=-1),
                      self.ours.issue('other', names='IP:127.0.0.2,DNS:localhost')):
            with self.subTest(files=files[0]):
                self.start_tls(files)
                settings = self.settings_of(self.ours.cert, self.client)
                self.assertIn('certificate verify failed',
                              self.refused(self.address, settings=settings))
                self.node.kill()
        # The last one has this name.
        self.node.start()
        gateway = self.start_gateway(f'localhost:{self.tls_port}', settings=settings)
        self.assertEqual(self.pay(gateway, '1').status, 201)

    def test_files_that_do_not_belong_together_are_named(self):
        self.start_tls()
        other = self.ours.issue('second')
        nothing = self.write('nothing', 'nothing')
        for client, word in (((self.client[0], other[1]), 'store-key'),
                             ((self.client[1], self.client[1]), 'store-cert'),
                             ((self.client[0], nothing), 'store-key'),
                             (('/none', self.client[1]), 'store-cert')):
            settings = self.settings_of(self.ours.cert, client)
            self.assertIn(word, self.refused(self.address, settings=settings))
        self.assertIn('store-ca', self.refused(self.address,
                                               settings=self.settings_of(nothing, self.client)))

    def test_a_key_with_a_password_is_refused_and_asked_for_at_no_terminal(self):
        locked = os.path.join(self.directory.name, 'locked')
        Authority.run('ec', '-in', self.client[1], '-aes256', '-passout', 'pass:secret',
                      '-out', locked)
        config = self.write('locked.toml', '[gateway]\n' + self.settings_of(
            self.ours.cert, (self.client[0], locked)))
        terminal, side = pty.openpty()
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.close, side)

        def take_terminal():
            fcntl.ioctl(side, termios.TIOCSCTTY, 0)
        ended = subprocess.run(
            [store_test.PROGRAM, 'gateway', '--config', config, '--listen', '127.0.0.1:0',
             '--upstream', 'http://127.0.0.1:1', '--store-node', '127.0.0.1:1'],
            stdin=side, stderr=subprocess.PIPE, timeout=WITHIN, check=False,
            start_new_session=True, preexec_fn=take_terminal)
        self.assertIn(b'store-key', ended.stderr)
        self.assertNotEqual(ended.returncode, 0)

    def test_a_node_that_shows_another_certificate_while_it_runs_is_not_asked(self):
        self.start_tls()
        gateway = self.start_gateway(self.address,
                                     settings=self.settings_of(self.ours.cert, self.client))
        self.assertEqual(self.pay(gateway, '1').status, 201)
        mine = self.ours.issue('again')
        for files, status in ((self.others.issue('stranger'), 503), (mine, 201)):
            self.serve(files)
            self.assertEqual(self.node.ask('CONFIG', 'SET', 'tls-cert-file', self.served[0]),
                             b'OK')
            self.node.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
            if status == 503:
                self.assertEqual(self.detail(self.pay(gateway, '2')), 'the store does not answer')
                self.assertIn(b'certificate verify failed', gateway.admin('GET', '/readyz').body)
                self.assertEqual(self.effects(b'2'), 0)
            else:
                wait_until(lambda: self.pay(gateway, '2').status == 201, 'the node is used again')
        self.assertEqual(self.effects(b'2'), 1)
        self.assertTrue(self.pay(gateway, '1').is_replay)

    def test_plain_and_tls_ports_that_are_mixed_up_are_refused(self):
        self.start_tls()
        self.refused(self.node.address, settings=self.settings_of(self.ours.cert, self.client))
        self.refused(self.address)

    def test_a_silent_handshake_is_given_up(self):
        self.start_tls()
        relay = Relay(self.tls_port)
        self.addCleanup(relay.stop)
        relay.receive = lambda stream: stream.read()  # takes all, and passes nothing on
        settings = self.settings_of(self.ours.cert, self.client) + 'connect-timeout = "300ms"\n'
        seconds, text = seconds_of(lambda: self.refused(relay.address, settings=settings))
        self.assertIn('TLS with 127.0.0.1', text)
        self.assertLess(seconds, WITHIN)


class TlsNode(group.Node):
    """Serves clients by TLS, at the address that the others know, and the test on another port."""

    def __init__(self, owner, number, options=()):
        super().__init__(owner, number, options)
        self.tls_port = group.free_ports(1)[0]

    def addresses(self):
        return f'127.0.0.1:{self.group.peers[self.number]},127.0.0.1:{self.tls_port}'

    def words(self):
        return [*super().words(), '--tls-port', str(self.tls_port)]


class TlsGroup(group.Group):
    def prepare(self):
        options = self.nodes[0].options
        self.nodes = [TlsNode(self, number, options) for number in range(self.founders)]


@unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
class CertificatesOfGroups(Case):
    settings = Case.settings.replace('"3s"', '"8s"')

    def test_a_follower_leads_to_the_leader_by_tls(self):
        ours = Authority(self.directory.name, 'ours')
        cert, key = ours.issue('server')
        client = ours.issue('client')
        nodes = TlsGroup(store_test.PROGRAM, 3, ('--tls-cert-file', cert, '--tls-key-file', key,
                                                 '--tls-ca-cert-file', ours.cert))
        self.addCleanup(nodes.end)
        leader = nodes.wait_leader()
        nodes.wait_complete()
        follower = next(node for node in nodes.nodes if node is not leader)
        settings = Certificates.settings_of(ours.cert, client)
        one = self.start_gateway(f'127.0.0.1:{follower.tls_port}', settings=settings)
        every = self.start_gateway(*(f'127.0.0.1:{node.tls_port}' for node in nodes.nodes),
                                   settings=settings)
        for gateway in (one, every):
            self.assertEqual(gateway.request(target='/pay/1', body=b'1', key='1').status, 201)
        leader.kill()
        nodes.wait_leader()
        reply = every.request(target='/pay/1', body=b'2', key='2')
        self.assertEqual(reply.status, 201)
        self.assertTrue(every.request(target='/pay/1', body=b'1', key='1').is_replay)
        self.assertEqual([self.effects(b'1'), self.effects(b'2')], [1, 1])


if __name__ == '__main__':
    store_test.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
