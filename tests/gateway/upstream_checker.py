"""Compares what clients have sent through a gateway with what the server behind it has read."""

import collections
import re
import threading
import urllib.parse

from odd_requests import FORGED, IDENTIFYING

OWN_STATUSES = (408, 501)  # of the gateway, also where its reply is to HEAD
MAYBE_READ = ('upstream', 'gone')  # outcomes after which nobody knows
Sent = collections.namedtuple('Sent', 'request outcome status')


def normal(path):
    path = re.sub(r';[^/]*', '', path)
    return re.sub(r'/+', '/', path)


def compare(request, record):
    """What the upstream has read otherwise than it was sent; empty: nothing."""
    fields = record['fields']
    if record['method'] != request.method:
        return f"read as {record['method']}"
    if record['body'] not in (None, request.digest):
        return 'read with another body'
    sent = normal(urllib.parse.unquote(request.target.split('?')[0], 'latin-1')).encode('latin-1')
    # A server has its text from bytes, as they are or as UTF-8.
    read = [normal(record['path'].encode(coding, 'replace').decode('latin-1')).encode('latin-1')
            for coding in ('latin-1', 'utf-8')]
    if sent not in read:
        return f"read with the path {record['path']}"
    for name in IDENTIFYING:
        sent = ','.join(value.strip() for value in request.values(name))
        got = ','.join(part.strip() for part in fields.get(name, '').split(','))
        if sent != got:
            return f'read with {name} {got}'
    forged = [name for name, value in fields.items() if FORGED in value]
    if forged:
        return f'forged: {forged}'
    if record['handler'] != 'other' and not fields.get('semel-fencing-token', '').isdigit():
        return f"ran {record['handler']} without a guard"
    return ''


class Checker:
    """All that was sent to one server, and the differences. Used by several threads."""

    def __init__(self, name, is_broken=False):
        self.name = name
        self.is_broken = is_broken  # connections to the server are
        self.sent = {}  # by its proof
        self.cut_heads = {}  # by its proof: the bytes of it that the server got
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.differences = []

    def note(self, request, reply):
        """A request that was sent, and its reply; None: there is none."""
        outcome = self.outcome_of(request, reply)
        if outcome not in ('refused', 'gone') and request.must_be_refused:
            self.differ(request, 'has more than one reading, and was passed on')
        with self.lock:
            self.sent[request.proof] = Sent(request, outcome, reply and reply.status)
            self.counts[outcome] += 1
            self.counts['sent'] += 1

    def outcome_of(self, request, reply):
        if reply is None:
            return 'gone'
        if 'x-mirror' in reply.fields:
            if reply.is_replay:
                return 'replayed'
            if reply.fields['x-mirror'][0] != request.proof:
                self.differ(request, f"got the reply of {reply.fields['x-mirror'][0]}")
            return 'served'
        is_problem = reply.fields.get('content-type') == ['application/problem+json']
        problem = reply.problem if is_problem and reply.body else ''
        is_own = (is_problem or reply.status in OWN_STATUSES) and reply.status not in (502, 504)
        return 'refused' if is_own and not problem.startswith('upstream-') else 'upstream'

    def differ(self, request, text):
        with self.lock:
            self.differences.append(f'{self.name}: {text}: {request and request.data[:400]}')

    def check(self, records):
        """At the end, with all that the server has read."""
        whole = collections.defaultdict(list)
        # A short proof may be the beginning of several.
        for record in sorted(records, key=lambda each: len(each['id'] or ''), reverse=True):
            sent = self.sent.get(record['id'])
            text = compare(sent.request, record) if sent else 'nobody has sent it'
            if text and self.was_cut(record):
                self.counts['cut'] += 1
                continue
            whole[record['id']].append(record)
            if text:
                self.differ(sent and sent.request, f'{text}: {record}')
            self.counts['guarded'] += 'semel-fencing-token' in record['fields']
        for proof, sent in self.sent.items():
            self.check_count(sent, len(whole[proof]))
        self.check_payments(each for group in whole.values() for each in group)
        self.counts['records'] += len(records)

    def was_cut(self, record):
        """Some servers take a head for whole when its connection ends in the middle of it."""
        start = record['method'].encode() + b' '
        for proof, head in self.cut_heads.items():
            if proof.startswith(record['id'] or '') and head.startswith(start):
                del self.cut_heads[proof]
                return True
        return False

    def check_count(self, sent, count):
        least = 1 if sent.outcome == 'served' else 0
        most = 0 if sent.outcome in ('refused', 'replayed') or sent.request.must_be_refused else 1
        if self.is_broken and sent.request.is_repeatable:
            most *= 2
        if not least <= count <= most:
            self.differ(sent.request, f'{sent.outcome} ({sent.status}), and read {count} times')

    def check_payments(self, records):
        """No key has paid twice, unless it was released: a connection was broken (on-broken)."""
        released = {key for sent in self.sent.values()
                    if sent.outcome == 'upstream' or (self.is_broken and sent.outcome == 'gone')
                    for key in sent.request.values('idempotency-key')}
        paid = collections.Counter(
            (each['fields'].get('authorization'), each['fields'].get('idempotency-key'))
            for each in records if each['handler'] == 'pay')
        for (who, key), count in paid.items():
            if count > 1 and key not in released:
                self.differ(None, f'{who} ran {key} {count} times')
