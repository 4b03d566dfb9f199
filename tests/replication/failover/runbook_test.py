#!/usr/bin/env python3
"""The runbook of docs/replication.md, played: runbook_test.py --program semel [unittest arguments].

Each test is one of its sections, with the same commands."""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
import group as groups  # noqa: E402
from group import Group  # noqa: E402
from resp import Client, Failed  # noqa: E402

program = None
PATIENCE = 40


# Not so short that a busy machine changes leaders.
COMMON = ('--admin-port', 0, '--cluster-election-timeout', 400, '--cluster-heartbeat', 50)


class Runbook(unittest.TestCase):
    options = COMMON

    def setUp(self):
        self.group = Group(program, 3, self.options)
        self.addCleanup(self.group.end)
        self.leader = self.group.wait_leader()

    connection = None  # of insist()

    # --- words of the runbook ---------------------------------------------------------------------

    def semel(self, *words, code=0):
        done = self.run_semel(words, code)
        return done.stdout + done.stderr

    def run_semel(self, words, code):
        done = subprocess.run([program, 'cluster', *map(str, words)], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, f'{words}\n{done.stdout}{done.stderr}')
        return done

    def at(self, node):
        return f'127.0.0.1:{self.group.ports[node.number]}'

    def both_addresses(self, node):
        return f'127.0.0.1:{self.group.peers[node.number]},{self.at(node)}'

    def directory(self, node):
        return self.group.place / str(node.number)

    def status(self, node):
        # That another node could not be asked stands beside it.
        return json.loads(self.run_semel(('status', '--at', self.at(node), '--json'), 0).stdout)

    def get(self, node, path):
        """(code, text) of a page of the port for health and metrics; (0, ''): it is not open."""
        found = re.findall(r'for="health and metrics" address=(\S+)', node.log())
        try:
            with urllib.request.urlopen(f'http://{found[-1]}{path}', timeout=5) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, IndexError):
            return 0, ''

    def metric(self, node, name):
        found = re.search(rf'^{re.escape(name)} (\S+)$', self.get(node, '/metrics')[1],
                          re.MULTILINE)
        return float(found.group(1)) if found else None

    def until(self, is_so, what):
        end = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), end, f'{what}\n{self.group.said()}')
            time.sleep(0.02)

    def ready(self, node):
        self.until(lambda: self.get(node, '/readyz') == (200, 'ok\n'), 'ready')

    def begin_new(self):
        """A node that waits to be added."""
        self.group.grow()
        node = self.group.nodes[-1]
        node.start()
        self.until(lambda: 'event=serving' in node.log(), 'a new node')
        return node

    def insist(self, *words):
        """The reply of whoever leads. Asked again, with the same words, until there is one."""
        end = time.monotonic() + PATIENCE
        while True:
            self.assertLess(time.monotonic(), end, words)
            try:
                if self.connection is None:
                    leader = self.group.wait_leader()
                    self.connection = Client(self.group.ports[leader.number], 10)
                return self.connection.ask(*words)
            except Failed as error:
                if not str(error).startswith(('MOVED', 'TRYAGAIN', 'CLUSTERDOWN')):
                    raise
            except (OSError, ConnectionError):
                pass
            self.hang_up()

    def hang_up(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def claim(self, count):
        """Acknowledged claims: their owners by key."""
        found = {}
        for i in range(count):
            reply = self.insist('SEMEL.CLAIM', 'pay', f'order:{i}', 'LEASE', 600000, 'CLAIM-ID',
                                f'{i:032x}', 'OWNER', f'owner {i}')
            self.assertIn(reply[1], (b'granted', b'regranted'))
            found[f'order:{i}'] = f'owner {i}'
        self.hang_up()
        self.leader = self.group.wait_leader()
        return found

    def owners(self, keys):
        """As the leader knows them."""
        found = {}
        for key in keys:
            reply = self.insist('SEMEL.GETCLAIM', 'pay', key)
            found[key] = dict(zip(reply[::2], reply[1::2])).get(b'owner', b'').decode()
        self.hang_up()
        return found


class Members(Runbook):
    def test_a_node_dies_and_is_replaced(self):
        claimed = self.claim(50)
        dead = next(node for node in self.group.nodes if node is not self.leader)
        dead.kill()
        shutil.rmtree(self.directory(dead))
        new = self.begin_new()
        any_node = next(node for node in self.group.nodes[:3] if node is not dead)
        at = ('--at', self.at(any_node))
        self.assertIn('done', self.semel('add', *at, 4, self.both_addresses(new)))
        self.assertIn('done', self.semel('promote', *at, 4))
        self.assertIn('3 members', self.semel('remove', *at, dead.number + 1))
        self.ready(new)
        shown = self.status(new)
        self.assertEqual([each['role'] for each in shown['members']], ['voter'] * 3)
        self.assertIn(4, [each['id'] for each in shown['members']])
        # On a busy machine another node may win an election meanwhile.
        said = [self.semel('transfer', *at, 4)]
        while 'node 4 leads' not in said[-1] and len(said) < 5:
            said.append(self.semel('transfer', *at, 4))
        self.assertIn('node 4 leads', said[-1])
        self.until(lambda: self.group.leader() is new, 'node 4 leads')
        self.assertEqual(self.owners(claimed), claimed)
        self.assertIn('event=group_members', new.log())
        self.assertIn('event=group_role', new.log())
        self.assertIn('done', self.semel('demote', *at, self.leader.number + 1))
        text = self.semel('status', *at)
        self.assertRegex(text, r'node 4 leads')
        self.assertRegex(text, r'(?m)^ +4  voter +leads')
        self.assertRegex(text, r'(?m)^ +\d  standby +connected')

    def test_an_added_node_that_has_lost_its_disk_is_replaced(self):
        """Started again by the same command no leader lets it in, and its vote counts nowhere."""
        claimed = self.claim(20)
        lost = self.begin_new()
        at = ('--at', self.at(self.leader))
        self.assertIn('done', self.semel('add', *at, 4, self.both_addresses(lost)))
        self.assertIn('done', self.semel('promote', *at, 4))
        self.ready(lost)
        lost.kill()
        shutil.rmtree(self.directory(lost))
        lost.start()
        told = 'the log of node 4 is not the one that the group knows'
        self.until(lambda: told in self.leader.log() or told in lost.log(), 'it is refused')
        self.assertEqual(self.get(lost, '/readyz')[0], 503)
        self.assertIn('done', self.semel('remove', *at, 4))
        lost.kill()
        new = self.begin_new()
        self.assertIn('done', self.semel('add', *at, 5, self.both_addresses(new)))
        self.assertIn('done', self.semel('promote', *at, 5))
        self.ready(new)
        self.assertEqual(self.owners(claimed), claimed)

    def test_nodes_restart_one_after_the_other(self):
        counts = {'answered': 0, 'refused': 0}
        ends = threading.Event()

        def work():
            ports, at = self.group.ports[:3], 0
            while not ends.is_set():
                try:
                    with contextlib.closing(Client(ports[at % 3], 2)) as connection:
                        connection.ask('SET', f'k{counts["answered"]}', 'v')
                    counts['answered'] += 1
                except (OSError, Failed, ConnectionError):
                    counts['refused'] += 1
                    at += 1

        worker = threading.Thread(target=work)
        worker.start()
        self.addCleanup(worker.join)
        self.addCleanup(ends.set)
        for node in self.group.nodes:
            self.assertEqual(node.stop(PATIENCE), 0)
            before = node.log().count('event=serving')
            node.start()
            self.until(lambda: node.log().count('event=serving') > before, 'it serves')
            self.ready(node)
        answered = counts['answered']
        self.until(lambda: counts['answered'] > answered, 'it is answered on')
        self.assertGreater(answered, 0)

    def test_a_group_is_upgraded_when_all_nodes_are_there(self):
        at = ('--at', self.at(self.group.nodes[0]))
        self.assertEqual(self.semel('upgrade', *at), 'the group uses feature level 5\n')
        shown = self.status(self.leader)
        self.assertEqual(shown['feature_level'], 5)
        self.assertEqual([each['feature_level'] for each in shown['members']], [5] * 3)
        away = next(node for node in self.group.nodes[1:] if node is not self.leader)
        away.kill()
        said = self.semel('upgrade', *at, '--wait', '2s', code=1)
        self.assertIn(f'node {away.number + 1} is not connected', said)
        self.semel('upgrade', *at, 3, code=2)

    def test_what_is_asked_wrongly_is_refused(self):
        at = ('--at', self.at(self.group.nodes[0]))
        for words in (('status',), ('status', '--at', 'x'), ('status', *at, '--wait', 'soon'),
                      ('status', *at, '--cacert', '/etc/hosts'), ('add', *at, 4),
                      ('add', *at, 4, '127.0.0.1:1,x'), ('add', *at, 0, '127.0.0.1:1'),
                      ('add', *at, 'x', '127.0.0.1:1'), ('add', *at, 4, 'a b:1'),
                      ('add', *at, 4, '127.0.0.1:1\n'), ('promote', *at, 9), ('remove', *at),
                      ('remove', *at, 9), ('transfer', *at, 9), ('nothing',), ()):
            self.semel(*words, code=2)
        closed = f'127.0.0.1:{self.group.peers[0]}'  # it speaks another protocol
        self.semel('status', '--at', closed, '--wait', '2s', code=1)
        self.group.nodes[2].kill()
        self.semel('status', '--at', self.at(self.group.nodes[2]), code=1)
        self.semel('status', *at, '--password-file', '/nowhere', code=1)
        self.semel('status', *at, '--tls', '--wait', '2s', code=1)
        self.assertEqual(len(self.status(self.group.nodes[0])['members']), 3)
        # Too early, for ever: the node that is added does not run.
        self.group.grow()
        self.semel('add', *at, 4, self.both_addresses(self.group.nodes[3]))
        self.assertIn('not in time', self.semel('promote', *at, 4, '--wait', '500ms', code=1))


class Strangers(unittest.TestCase):
    """What is asked is no node, or one that means no good."""

    def ask(self, *replies, words=('promote', 4), wait='500ms'):
        """What `semel cluster` says of a server that answers so, `%d` being its own port."""
        plug = socket.create_server(('127.0.0.1', 0))
        port = plug.getsockname()[1]
        asked = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    peer = plug.accept()[0]
                    with contextlib.suppress(OSError):
                        for reply in replies:
                            while peer.recv(65536):
                                asked.append(1)
                                peer.sendall(reply.replace(b'%d', b'%d' % port))
                    if not replies:
                        time.sleep(1)
                    peer.close()

        threading.Thread(target=serve, daemon=True).start()
        name, *rest = words
        began = time.monotonic()
        done = subprocess.run([program, 'cluster', name, '--at', f'127.0.0.1:{port}', '--wait',
                               wait, *map(str, rest)], capture_output=True, text=True,
                              timeout=30)
        plug.close()
        self.assertLess(time.monotonic() - began, 10)
        return done.returncode, done.stderr, len(asked)

    def test_they_are_not_believed_for_ever(self):
        code, said, asked = self.ask(b'-MOVED 1 127.0.0.1:%d\r\n')
        self.assertEqual(code, 1, said)
        self.assertLess(asked, 20)
        for reply, wanted in ((b'-MOVED 1 nobody\r\n', 2), (b'-MOVED\r\n', 2), (b'-ERR no\r\n', 2),
                              (b'-TRYAGAIN x\r\n', 1), (b'-CLUSTERDOWN x\r\n', 1),
                              (b'HTTP/1.1 200 OK\r\n\r\n', 1), (b'*-1\r\n', 1),
                              (b'$99999999\r\nx', 1), (b'\0' * 2000, 1)):
            # What is refused at once is not waited for.
            code, said, _ = self.ask(reply, wait='9s' if wanted == 2 else '500ms')
            self.assertEqual(code, wanted, (reply, said))
        self.assertEqual(self.ask()[0], 1)
        for reply in (b'*0\r\n', b':1\r\n', b'*2\r\n$7\r\nmembers\r\n:1\r\n', b'+OK\r\n',
                      b'*2\r\n$7\r\nmembers\r\n*1\r\n*1\r\n*0\r\n'):
            code, said, _ = self.ask(reply, words=('status',))
            self.assertIn(code, (0, 1), (reply, said))


class Password(Runbook):
    options = (*COMMON, '--requirepass', 'se cret')

    def setUp(self):
        self.group = Group(program, 3, self.options)
        self.addCleanup(self.group.end)
        for node in self.group.nodes:
            self.ready(node)

    def test_the_password_comes_from_a_file(self):
        file = self.group.place / 'password'
        file.write_text('se cret\n')
        at = ('--at', self.at(self.group.nodes[0]))
        self.assertIn('NOAUTH', self.semel('status', *at, code=2))
        self.assertIn('leads', self.semel('status', *at, '--password-file', file))
        done = self.semel('transfer', *at, '--password-file', file, '--user', 'default')
        self.assertRegex(done, r'node \d leads')
        file.write_text('another\n')
        self.assertIn('WRONGPASS', self.semel('status', *at, '--password-file', file, code=1))


class QuorumLost(Runbook):
    def lose(self, kept):
        """Two of three nodes with their directories; that of one is put aside."""
        for node in self.group.nodes:
            node.end()
        lost = [node for node in self.group.nodes if node is not kept]
        shutil.move(self.directory(lost[0]), self.group.place / 'aside')
        shutil.rmtree(self.directory(lost[1]))
        return lost[0]

    def recovery(self, node, *more):
        return ('recover', '--force-single', '--dir', self.directory(node), '--cluster-id',
                'beef', '--node-id', node.number + 1, *more)

    def restart(self, node, *options):
        """As a member of the new group, where it is one."""
        node.options = (*self.options, '--cluster-id', 'beef', *options)
        node.start()

    def test_one_node_goes_on_alone_and_others_are_added(self):
        claimed = self.claim(300)
        kept = self.leader
        aside = self.lose(kept)
        text = self.semel(*self.recovery(kept), code=2)
        self.assertIn('LOST', text)
        self.assertIn('Nothing was changed', text)
        self.assertIn('only member of cluster beef', self.semel(*self.recovery(kept, '--yes')))
        self.assertIn('needs another', self.semel(*self.recovery(kept, '--yes'), code=2))
        self.restart(kept)
        self.until(lambda: self.group.leader() is kept, 'it leads alone')
        self.ready(kept)
        self.assertEqual([each['id'] for each in self.status(kept)['members']], [kept.number + 1])
        self.assertEqual(self.owners(claimed), claimed)
        # A node of the old group comes back, with its directory.
        shutil.move(self.group.place / 'aside', self.directory(aside))
        aside.start()
        self.until(lambda: 'event=group_peer_refused' in kept.log(), 'it is refused')
        self.assertIn('of another cluster', kept.log())
        code, why = self.get(aside, '/readyz')
        self.assertEqual((code, 'leader' in why), (503, True), why)
        aside.kill()
        # Empty directories and new numbers, one after the other.
        for _ in range(2):
            self.group.grow()
            node = self.group.nodes[-1]
            self.restart(node)
            self.until(lambda: 'event=serving' in node.log(), 'a new node')
            at = ('--at', self.at(kept))
            self.semel('add', *at, node.number + 1, self.both_addresses(node))
            self.semel('promote', *at, node.number + 1)
            self.ready(node)
        self.assertEqual([each['role'] for each in self.status(kept)['members']], ['voter'] * 3)
        kept.kill()
        self.assertEqual(self.owners(claimed), claimed)

    def test_a_directory_in_use_or_of_something_else_is_refused(self):
        node = self.leader
        self.assertIn('is locked', self.semel(*self.recovery(node, '--yes'), code=1))
        place = self.group.place
        storage = place / 'storage'
        (storage / 'log').mkdir(parents=True)
        (storage / 'mark').write_bytes(b'x')
        for directory in (storage, place, '/nowhere', '/dev/null'):
            self.semel('recover', '--force-single', '--dir', directory, '--cluster-id', 'beef',
                       '--yes', code=2)
        self.assertEqual(sorted(each.name for each in storage.iterdir()), ['log', 'mark'])
        self.lose(node)
        good = ('recover', '--force-single', '--dir', self.directory(node))
        for words in ((*good, '--cluster-id', 'feed'), (*good, '--cluster-id', 'xyz'),
                      (*good, '--cluster-id', '0'), (*good, '--cluster-id', '12345678901234567'),
                      (*good, '--cluster-id', 'beef', '--address', 'x'), good,
                      (*good, '--cluster-id', 'beef', '--node-id', 9),
                      ('recover', '--dir', self.directory(node), '--cluster-id', 'beef')):
            self.semel(*words, '--yes', code=2)
        if os.geteuid() == 0 and shutil.which('setpriv'):
            # Another user may not read it, or not write it.
            for mode in (0o700, 0o755):
                os.chmod(place, 0o755)
                os.chmod(self.directory(node), mode)
                done = subprocess.run(
                    ['setpriv', '--reuid', '65534', '--clear-groups', program, 'cluster',
                     *map(str, self.recovery(node, '--yes'))], capture_output=True, text=True)
                self.assertIn(done.returncode, (1, 2), done.stdout + done.stderr)
        self.semel(*self.recovery(node, '--yes'))

    def test_a_full_disk_leaves_the_node_as_it_was(self):
        node = self.leader
        claimed = self.claim(20)
        self.lose(node)
        small = self.group.place / 'small'
        small.mkdir()
        # Only this command sees it; there is room for the old log, and not for a new segment.
        used = sum(each.stat().st_size for each in self.directory(node).rglob('*'))
        script = (f'mount -t tmpfs -o size={used + (8 << 20)} none "$1" && '
                  'cp -a --sparse=never "$2" "$1/d" && shift 2 && '
                  '{ "$@" --dir "$0"; echo "code $?"; ls "$0"; }')
        words = [program, 'cluster', 'recover', '--force-single', '--cluster-id', 'beef', '--yes']
        done = subprocess.run(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script,
                               small / 'd', small, self.directory(node), *words],
                              capture_output=True, text=True)
        if 'code' not in done.stdout:
            self.skipTest(f'no mounts here: {done.stderr}')
        self.assertIn('code 1', done.stdout, done.stderr)
        self.assertIn('No space left', done.stderr)
        self.assertNotIn('recover', done.stdout.split('code 1')[1])
        self.semel(*self.recovery(node, '--yes'))
        self.restart(node)
        self.until(lambda: self.group.leader() is node, 'it leads alone')
        self.assertEqual(self.owners(claimed), claimed)


class DiskFull(Runbook):
    def test_a_disk_fills_and_gets_space(self):
        if subprocess.run(['unshare', '--mount', 'true'], capture_output=True).returncode != 0:
            self.skipTest('no mounts here')
        # A fourth node, on a small disk that it alone sees.
        self.group.grow()
        node = self.group.nodes[-1]
        small = self.group.place / 'small'
        small.mkdir()
        script = ('mount -t tmpfs -o size=40m none "$1" && mkdir "$1/d" && ln -s "$1/d" "$2" && '
                  'head -c 20m /dev/zero > "$1/ballast" && shift 2 && exec "$@"')
        wrapper = self.group.place / 'wrapper'
        wrapper.write_text('#!/bin/sh\nexec unshare --mount --propagation private sh -c \''
                           + script + f"' sh {small} {self.directory(node)} {program} \"$@\"\n")
        wrapper.chmod(0o755)
        self.group.program = str(wrapper)
        node.start()
        self.group.program = program
        self.until(lambda: 'event=serving' in node.log(), 'a new node')
        at = ('--at', self.at(self.leader))
        self.semel('add', *at, 4, self.both_addresses(node))
        self.semel('promote', *at, 4)
        self.ready(node)
        self.addCleanup(self.hang_up)
        value = b'x' * 100000
        for i in range(300):
            self.assertEqual(self.insist('SET', f'k{i % 10}', value), b'OK')
        self.until(lambda: self.metric(node, 'semel_group_disk_full') == 1, 'the disk is full')
        self.until(lambda: 'event=group_disk_full' in node.log(), 'the log says so')
        self.assertEqual(self.insist('SET', 'while', 'full'), b'OK')
        Path(f'/proc/{node.pid}/root{small}/ballast').unlink()
        self.until(lambda: self.metric(node, 'semel_group_disk_full') == 0, 'there is space')
        self.until(lambda: 'event=group_disk_has_space' in node.log(), 'the log says so')
        match = self.metric(self.group.wait_leader(), 'semel_group_commit_index')
        self.until(lambda: self.metric(node, 'semel_group_applied_index') >= match, 'it follows')
        self.assertLess(abs(self.metric(node, 'semel_group_clock_off_seconds')), 60)


class Ready(Runbook):
    def test_a_node_without_a_leader_and_one_that_lags_are_not_ready(self):
        for node in self.group.nodes:
            self.ready(node)
        others = [node for node in self.group.nodes if node is not self.leader]
        for node in others:
            node.kill()
        self.until(lambda: self.get(self.leader, '/readyz')[0] == 503, 'no leader')
        self.assertIn('leader', self.get(self.leader, '/readyz')[1])
        self.assertEqual(self.get(self.leader, '/livez')[0], 200)
        self.assertEqual(self.metric(self.leader, 'semel_group_leader'), 0)
        for node in others:
            node.start()
        for node in self.group.nodes:
            self.ready(node)
        leader = self.group.wait_leader()
        page = self.get(leader, '/metrics')[1]
        self.assertEqual(len(re.findall(r'(?m)^semel_group_member_match_index\{', page)), 2)
        self.assertGreater(self.metric(leader, 'semel_group_log_bytes'), 0)
        self.assertEqual(self.metric(leader, 'semel_group_votes'), 1)

    def test_a_node_that_was_away_is_not_ready_until_it_has_caught_up(self):
        node = next(node for node in self.group.nodes if node is not self.leader)
        node.kill()
        self.addCleanup(self.hang_up)
        for i in range(3000):
            self.insist('SET', f'k{i % 10}', i)
        node.options = (*self.options, '--cluster-ready-lag', 0)
        seen = set()
        node.start()
        end = time.monotonic() + PATIENCE
        while (state := self.get(node, '/readyz')) != (200, 'ok\n'):
            seen.add(re.sub(r'\d+', 'N', state[1].strip()))
            self.assertLess(time.monotonic(), end, seen)
        self.assertIn(self.metric(node, 'semel_group_lag_entries'), (0, 1))
        self.assertLessEqual(seen, {
            '', 'starting', 'the group has no leader, or it is not known',
            'this node lags behind by N entries, and cluster-ready-lag is N'})


class Certificates(Runbook):
    """Nodes with certificates between them."""

    def setUp(self):
        self.place = Path(subprocess.run(['mktemp', '-d'], capture_output=True, text=True,
                                         check=True).stdout.strip())
        self.addCleanup(shutil.rmtree, self.place)
        self.authority('old')
        for number in (1, 2, 3):
            self.certify('old', number)
        shutil.copy(self.place / 'old.pem', self.place / 'ca.pem')
        self.begin()

    def openssl(self, *words):
        subprocess.run(['openssl', *map(str, words)], cwd=self.place, check=True,
                       capture_output=True)

    def authority(self, name):
        self.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                     '-nodes', '-days', 2, '-subj', f'/CN={name}', '-keyout', f'{name}.key', '-out',
                     f'{name}.pem')

    def certify(self, authority, number):
        (self.place / 'ext').write_text(f'subjectAltName=URI:semel://{0xfeed:016x}/{number}\n')
        self.openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                     '-subj', f'/CN=node {number}', '-keyout', f'{number}.key.new', '-out', 'csr')
        self.openssl('x509', '-req', '-in', 'csr', '-CA', f'{authority}.pem', '-CAkey',
                     f'{authority}.key', '-CAcreateserial', '-days', 2, '-extfile', 'ext', '-out',
                     f'{number}.pem.new')
        for kind in ('key', 'pem'):
            os.replace(self.place / f'{number}.{kind}.new', self.place / f'{number}.{kind}')

    def begin(self):
        outer = self
        plain = Group.__init__

        class Certified(Group):
            def __init__(self):
                start = groups.Node.start

                def with_certificates(node):
                    number = node.number + 1
                    node.options = (*outer.options, '--tls-reload', 'no',
                                    '--cluster-tls-cert-file', outer.place / f'{number}.pem',
                                    '--cluster-tls-key-file', outer.place / f'{number}.key',
                                    '--cluster-tls-ca-cert-file', outer.place / 'ca.pem')
                    start(node)
                groups.Node.start = with_certificates
                outer.addCleanup(setattr, groups.Node, 'start', start)
                plain(self, program, 3)

        self.group = Certified()
        self.addCleanup(self.group.end)
        self.leader = self.group.wait_leader()

    def test_certificates_are_renewed_without_a_restart(self):
        # A new authority: first all nodes trust both, then each gets its new certificate.
        self.authority('new')
        both = (self.place / 'old.pem').read_text() + (self.place / 'new.pem').read_text()
        (self.place / 'ca.pem').write_text(both)
        self.reload()
        for number in (1, 2, 3):
            self.certify('new', number)
        self.reload()
        shutil.copy(self.place / 'new.pem', self.place / 'ca.pem')
        self.reload()
        # One that begins anew has only the new ones; it is let in, and lets others in.
        node = next(node for node in self.group.nodes if node is not self.leader)
        node.kill()
        node.start()
        self.until(lambda: node.log().count('event=serving') == 2, 'it serves')
        self.ready(node)
        # What cannot be used stays out.
        (self.place / '1.pem').write_text('nonsense')
        first = self.group.nodes[0]
        first.signal(signal.SIGHUP)
        self.until(lambda: 'event=group_tls_not_loaded' in first.log(), 'it is refused')
        self.ready(first)

    def reload(self):
        before = {node: node.log().count('event=group_tls_loaded') for node in self.group.nodes}
        for node in self.group.nodes:
            node.signal(signal.SIGHUP)
        for node, count in before.items():
            self.until(lambda: node.log().count('event=group_tls_loaded') > count, 'loaded')


class Founding(unittest.TestCase):
    def test_a_group_is_made_by_init(self):
        place = Path(subprocess.run(['mktemp', '-d'], capture_output=True, text=True,
                                    check=True).stdout.strip())
        self.addCleanup(shutil.rmtree, place)

        def init(*words):
            return subprocess.run([program, 'cluster', 'init', *map(str, words)],
                                  capture_output=True, text=True)

        good = ('--dir', place / 'd', '--node-id', 1, '--cluster-id', 'c0ffee', '--peer',
                '1=127.0.0.1:7101,127.0.0.1:7001', '--peer', '2=127.0.0.1:7102')
        for wrong in (good[:-4], good[2:], (*good[:2], *good[4:]), (*good[:4], *good[6:]),
                      (*good, '--peer', '3=x'), (*good, '--peer', '3=127.0.0.1:1,x'),
                      (*good, '--peer', '1=127.0.0.1:7'), (*good, '--node-id', 2),
                      ('--config', place / 'nowhere')):
            done = init(*wrong)
            self.assertEqual(done.returncode, 2, f'{wrong}: {done}')
            self.assertFalse((place / 'd' / 'vote').exists() and (place / 'd/log').is_dir()
                             and any((place / 'd/log').iterdir()), wrong)
            shutil.rmtree(place / 'd', ignore_errors=True)
        self.assertIn('node 1 of a new group', init(*good).stdout)
        again = init(*good)
        self.assertEqual((again.returncode, 'has a group already' in again.stderr), (2, True))


if __name__ == '__main__':
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument('--program', required=True)
    given, rest = parser.parse_known_args()
    program = given.program
    unittest.main(argv=[sys.argv[0], *rest])
