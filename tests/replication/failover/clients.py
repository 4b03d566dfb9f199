"""Clients of a group under faults. Owners ask until somebody answers, and want to be the only ones.
Writers do what they like with a few keys, and record what they see (histories.py)."""
import random
import threading
import time

from group import PATIENCE
from resp import Client, Failed
from histories import Recorded

LEASE_MS = 600_000
SHORT_MS = 400
CALLS_OF_A_KEY = 150
UNKNOWN_OF_A_KEY = 4
# Errors after which nothing was changed, and nothing will be.
NOT_TAKEN = ('CLUSTERDOWN', 'BUSY too many entries of the log', 'ERR the engine is closing')
# What of a reply is a time that depends on when it was given.
TIMES = ('remaining_ms', 'retry_after_ms', 'lease_remaining_ms', 'unique_remaining_ms',
         'result_remaining_ms', 'failure_remaining_ms')
NUMBERS = ('epoch', 'attempt', 'attempts', 'takeover', 'late', 'poison', 'result_expired')


class Caller(threading.Thread):
    """One connection, to whoever leads."""

    def __init__(self, world, number):
        super().__init__(daemon=True)
        self.world = world
        self.number = number
        self.chance = random.Random(f'{world.seed} {number}')
        self.connection = None
        self.place = self.chance.choice(world.group.places())
        self.acknowledged = 0
        self.unknown = 0

    def attempt(self, *words):
        """yes and the reply, no (nothing was changed), or unknown."""
        self.world.may_ask.wait(PATIENCE)
        try:
            if self.connection is None:
                self.connection = Client(self.place, 1)
        except OSError:
            self.leave()
            return 'no', None
        try:
            reply = self.connection.ask(*words)
            self.acknowledged += 1
            self.world.acknowledged(time.monotonic())
            return 'yes', reply
        except Failed as error:
            text = str(error)
            if text.startswith('MOVED '):
                host, port = text.split()[2].rsplit(':', 1)
                self.leave((host, int(port)))
                return 'no', None
            self.leave()
            if text.startswith(NOT_TAKEN):
                return 'no', None
            if not text.startswith('TRYAGAIN'):
                raise
        except (OSError, ConnectionError, ValueError):
            self.leave()
        self.unknown += 1
        return 'unknown', None

    def leave(self, place=None):
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        places = self.world.group.places()
        known = places.index(self.place) if self.place in places else -1  # one that was added
        self.place = place or places[(known + 1) % len(places)]
        if place is None:
            time.sleep(0.005)  # nobody may lead now

    def run(self):
        try:
            while not self.world.is_over:
                self.work()
        except Exception as error:  # pylint: disable=broad-except  # told by the world
            self.world.find(f'client {self.number}: {error!r}')


def as_map(reply):
    return dict(zip([name.decode() for name in reply[::2]], reply[1::2]))


class Owner(Caller):
    """Claims one key after the other, with others who want the same."""

    def insist(self, *words):
        """The reply of whoever leads. Asked again, with the same words, until there is one."""
        while not self.world.is_over:
            is_known, reply = self.attempt(*words)
            if is_known == 'yes':
                return True, reply
        return False, None

    def work(self):
        key = self.world.next_key()
        mine = f'{self.number}:{key}'
        if key % 2 == 0:
            name = f'set:{key}'
            is_known, found = self.insist('SET', name, mine, 'NX', 'GET')
            owner = mine if found is None else found.decode()
        else:
            name = f'pay:{key}'
            is_known, found = self.insist(
                'SEMEL.CLAIM', 'pay', str(key), 'LEASE', LEASE_MS,
                'CLAIM-ID', f'{self.number:016x}{key:016x}', 'OWNER', mine)
            if is_known:
                answer = as_map(found)
                # Asked again with the same id, what was granted is granted still.
                is_mine = answer['outcome'] in (b'granted', b'regranted')
                owner = mine if is_mine else answer['owner'].decode()
        if is_known:
            self.world.told(name, owner)


class Keys:
    """Those that writers use now: a few of each kind, each for a while."""

    KINDS = ('text', 'text', 'counter', 'claim', 'claim', 'lease', 'token', 'ending')

    def __init__(self):
        self.lock = threading.Lock()
        self.all = []
        self.slots = [self.fresh(kind) for kind in self.KINDS]

    def fresh(self, kind):
        history = Recorded(kind, f'{kind}-{len(self.all)}')
        self.all.append(history)
        return history

    def one(self, chance):
        """A key to do something with. What was used enough, or has too many calls of which nobody
        knows what became of them, is replaced by a new one."""
        with self.lock:
            slot = chance.randrange(len(self.slots))
            history = self.slots[slot]
            if len(history.calls) >= CALLS_OF_A_KEY or history.unknown >= UNKNOWN_OF_A_KEY:
                history = self.slots[slot] = self.fresh(history.kind)
            return history


class Writer(Caller):
    """Calls about keys that others use as well, each recorded."""

    def __init__(self, world, number):
        super().__init__(world, number)
        self.count = 0
        self.epochs = {}  # that were granted here, by key
        self.identities = {}  # that were used here, by key

    def work(self):
        history = self.world.keys.one(self.chance)
        self.count += 1
        verbs = {'text': self.text, 'ending': self.text, 'counter': self.counter}
        verbs.get(history.kind, self.claim)(history)

    def record(self, history, words, request, shape=lambda reply: reply):
        called = time.monotonic_ns()
        what, reply = self.attempt(*request)
        if what == 'no':
            return None
        if what == 'yes':
            reply = shape(reply)
            if isinstance(reply, dict) and reply.get('outcome') == 'busy':
                return None
        elif words[0] in ('get', 'getclaim'):
            return None  # nobody has seen it, and it changes nothing
        history.add(words, called, what == 'yes', reply)
        return reply

    def text(self, history):
        key = history.key
        value = f'{self.number}.{self.count}'
        ends = [SHORT_MS] if history.kind == 'ending' else []
        verb = self.chance.choices(('setnxget', 'get', 'del', 'getdel', 'set'),
                                   (8, 6, 2, 1, 0 if ends else 1))[0]
        words, request = {
            'setnxget': (['setnxget', value, *ends],
                         ('SET', key, value, 'NX', 'GET', *(['PX', *ends] if ends else []))),
            'get': (['get'], ('GET', key)),
            'del': (['del'], ('DEL', key)),
            'getdel': (['getdel'], ('GETDEL', key)),
            'set': (['set', value], ('SET', key, value))}[verb]
        self.record(history, words, request, plain)

    def counter(self, history):
        verb = self.chance.choices(('incr', 'get', 'del'), (10, 5, 1))[0]
        self.record(history, [verb], (verb.upper(), history.key), plain)

    def claim(self, history):
        space, key = history.kind, history.key
        known = self.epochs.setdefault(key, [])
        if known and self.chance.random() < 0.5:
            return self.finish(history, self.chance.choice(known[-2:]))
        verb = self.chance.choices(('claim', 'getclaim', 'forget'), (12, 4, 1))[0]
        if space == 'token' and self.chance.random() < 0.2:
            verb = 'issue'
        if verb != 'claim':
            command = f'SEMEL.{verb.upper()}'
            self.record(history, [verb], (command, space, key),
                        as_map_of(space) if verb == 'getclaim' else int)
            return None
        used = self.identities.setdefault(key, [])
        if not used or self.chance.random() < 0.7:
            used.append(f'{self.number:016x}{self.count:016x}')
        identity = used[-1]
        lease = SHORT_MS if space == 'lease' else LEASE_MS
        reply = self.record(history, ['claim', identity, lease],
                            ('SEMEL.CLAIM', space, key, 'LEASE', lease, 'CLAIM-ID', identity,
                             'OWNER', identity), as_map_of(space))
        if reply is not None and reply['outcome'] in ('granted', 'regranted'):
            known.append(reply['epoch'])
        return None

    def finish(self, history, epoch):
        space, key = history.kind, history.key
        text = f'{self.number}.{self.count}'
        verb = self.chance.choices(('complete', 'fail', 'renew', 'release'), (4, 3, 2, 2))[0]
        lease = SHORT_MS if space == 'lease' else LEASE_MS
        how = self.chance.choice(('keep', 'release', 'release'))
        words, more = {
            'complete': (['complete', epoch, text], [text]),
            'fail': (['fail', epoch, text, how], [text, how.upper()]),
            'renew': (['renew', epoch, lease], ['LEASE', lease]),
            'release': (['release', epoch], [])}[verb]
        self.record(history, words, (f'SEMEL.{verb.upper()}', space, key, epoch, *more),
                    as_map_of(space))


def plain(reply):
    return reply.decode(errors='backslashreplace') if isinstance(reply, bytes) else reply


def as_map_of(space):
    """A shape of replies: without times, which must be within what the lease allows."""
    most = SHORT_MS if space == 'lease' else LEASE_MS

    def shape(reply):
        found = {}
        answer = as_map(reply)
        left = answer.get('lease_remaining_ms',
                          answer.get('remaining_ms') if 'outcome' in answer else None)
        if left is not None and int(left) > most:
            raise ValueError(f'a lease of {most} ms has {int(left)} left')
        for name, value in answer.items():
            if name in NUMBERS:
                found[name] = int(value)
            elif name not in (*TIMES, 'fingerprint', 'algorithm'):
                found[name] = plain(value)
        return found
    return shape
