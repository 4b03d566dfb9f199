"""Two servers that are asked the same, and what is held against what."""

import copy
import re
import sys

from cases import Script, sha_of
from resp import RAW, encode  # cases has found the folder

REPLY_SECONDS = 60
TTL_SKEW_MS = 3000
TIME_SKEW_MS = 20_000
FUNCTION_HEAD = '#!lua name=wrapped\nredis.register_function("wrapped", function(KEYS, ARGV)\n'
FUNCTION_TAIL = '\nend)'
ADDRESS = re.compile(rb'0x[0-9a-f]{4,16}')
# Deviations that no single case stands for, in this order: (pattern, what both become, why).
DEVIATIONS = (
    (re.compile(rb'\d\.\d{13}e[-+]\d+'), lambda found: b'%.10e' % float(found[0]),
     'LuaJIT rounds what lies between two texts of 14 digits up, C to the even one'),
    (re.compile(rb'^-?\d+(\.\d+)?e\+\d+$'), lambda found: b'%d' % int(float(found[0])),
     'the shortest text of a double, as redis-server has it since 7.2'),
    (re.compile(rb'-?(?=[\d.]{16,})\d+\.\d+(e[-+]?\d+)?|^-?\d{16,}$'),
     lambda found: repr(float(found[0])).encode(),
     'the same, of one with a fraction or beyond 2^53'),
    (re.compile(rb"field '\?' \((an? \w+ value)\)"), rb'\1',
     'LuaJIT has no name for an element whose place is a number'),
)
# What a text of a script is replaced by, where both then say the same: (pattern, text, why).
CAUSES = (
    (re.compile(r'(?<![\w.])0(?= [*/] )|(?<= [*/] )0(?![\w.])|\(([\d.^]+) - \1\)'), "tonumber('0')",
     'Lua 5.1 keeps 0 and -0 as one constant of a function, the first that it meets: after '
     '`0 / -2`, which it computes when it compiles, redis-server sends -0 for each 0'),
    (re.compile(r"'\\0\\255'"), r"'\\1\\255'", 'a zero byte is no part of a number'),
)
OTHER_DATABASES = ('1', '2', '9')

sys.setrecursionlimit(20_000)  # parsed() is as deep as a reply


class Silent(Exception):
    """A server that does not answer, or has closed."""


def wire(server, dialect, seconds=REPLY_SECONDS):
    """One connection; replies are bytes, as they came."""
    client = server.client(RAW, seconds)
    if dialect == 3:
        client.ask('HELLO', 3)
    return client


def send(client, requests):
    client.raw(b''.join(encode(*words) for words in requests))


def parsed(data, at=0):
    """((kind, value), end) of a reply's bytes; value: bytes, or a list."""
    end = data.index(b'\r\n', at)
    kind, head = data[at:at + 1], data[at + 1:end]
    at = end + 2
    if kind in b'$=!' and int(head) >= 0:
        size = int(head)
        return (kind, data[at:at + size]), at + size + 2
    if kind in b'*~>%' and int(head) >= 0:
        items = []
        for _ in range(int(head) * (2 if kind == b'%' else 1)):
            item, at = parsed(data, at)
            items.append(item)
        return (kind, items), at
    return (kind, head), at


def plain(reply):
    """Without what two processes cannot have in common: addresses of tables and functions, and the
    order of a map."""
    kind, value = reply
    if isinstance(value, list):
        items = [plain(item) for item in value]
        if kind == b'%':
            pairs = sorted(zip(items[::2], items[1::2]), key=repr)
            items = [item for pair in pairs for item in pair]
        return kind, items
    return kind, ADDRESS.sub(b'0xADDRESS', value)


def without_deviations(reply):
    kind, value = reply
    if isinstance(value, list):
        return kind, [without_deviations(item) for item in value]
    for pattern, replacement, _ in DEVIATIONS:
        value = pattern.sub(replacement, value)
    return kind, value


def without_order(reply):
    """A map that a script has as a table, and returns in RESP2: its pairs in no order."""
    kind, value = reply
    if not isinstance(value, list):
        return reply
    items = [without_order(item) for item in value]
    if len(items) % 2 == 0:
        items = [item for each in sorted(zip(items[::2], items[1::2]), key=repr) for item in each]
    return kind, items


def without_causes(case):
    """The case without what is listed in CAUSES. None: it has nothing of that."""
    def changed(text):
        for pattern, replacement, _ in CAUSES:
            text = pattern.sub(replacement, text)
        return text
    other = copy.copy(case)
    other.steps = [Script(changed(step.text), step.keys, step.args)
                   if isinstance(step, Script) else step for step in case.steps]
    return other if other.text() != case.text() else None


def same(one, other):
    return one == other or plain(parsed(one)[0]) == plain(parsed(other)[0])


def about_same(one, other):
    """The same but for times, which may differ by what passes between the two servers."""
    return are_close(parsed(one)[0], parsed(other)[0])


def are_close(one, other):
    if isinstance(one[1], list) and isinstance(other[1], list):
        return one[0] == other[0] and len(one[1]) == len(other[1]) and \
            all(map(are_close, one[1], other[1]))
    if one == other or not one[0] == other[0] == b':':
        return one == other
    least, most = sorted((int(one[1]), int(other[1])))
    # Counters are nowhere near these.
    if least > 2 * TIME_SKEW_MS and most < 10**12:
        return most - least < TIME_SKEW_MS
    return 250 < least and most <= 500 and most - least < TIME_SKEW_MS // 1000


def same_ttl(one, other):
    if one == other:
        return True
    first, second = int(one[1:-2]), int(other[1:-2])
    return first >= 0 and second >= 0 and abs(first - second) <= TTL_SKEW_MS


def same_hash(one, other):
    """redis-server keeps the order of small hashes of short fields and values only."""
    if same(one, other):
        return True
    first, second = parsed(one)[0][1], parsed(other)[0][1]
    if not isinstance(first, list) or not isinstance(second, list):
        return False
    pairs = [sorted(zip(each[::2], each[1::2])) for each in (first, second)]
    is_small = len(first) <= 2 * 128 and all(len(text) <= 64 for _, text in first)
    return pairs[0] == pairs[1] and not is_small


def requests_of(script, way):
    """(requests, how many of them at the end are worth a comparison)"""
    tail = [len(script.keys), *script.keys, *script.args]
    text = script.text
    if way in ('eval', 'eval3'):
        return [['EVAL', text, *tail]], 1
    if way == 'eval_ro':
        return [['EVAL_RO', text, *tail]], 1
    if way in ('evalsha', 'evalsha_ro'):
        name = 'EVALSHA' if way == 'evalsha' else 'EVALSHA_RO'
        return [['SCRIPT', 'LOAD', text], [name, sha_of(text), *tail]], 2
    if way == 'multi':
        return [['MULTI'], ['EVAL', text, *tail], ['EXEC']], 3
    if way == 'library':
        return [['FUNCTION', 'LOAD', 'REPLACE', text]], 1
    call = 'FCALL' if way == 'fcall' else 'FCALL_RO'
    return [['FUNCTION', 'LOAD', 'REPLACE', FUNCTION_HEAD + text + FUNCTION_TAIL],
            [call, 'wrapped', *tail], ['FUNCTION', 'FLUSH']], 3


class Difference(Exception):
    pass


class Pair:
    """`servers`: two targets, the first of which is the measure."""

    def __init__(self, servers):
        self.servers = servers
        self.deviations = 0  # replies that differed as DEVIATIONS say
        self.wires = {dialect: [wire(server, dialect) for server in servers] for dialect in (2, 3)}

    def close(self):
        for clients in self.wires.values():
            for client in clients:
                client.close()

    def ask(self, dialect, requests):
        """[(reply of one, reply of the other)]"""
        for client in self.wires[dialect]:
            send(client, requests)
        found = []
        for number, client in enumerate(self.wires[dialect]):
            replies = []
            for words in requests:
                try:
                    replies.append(client.reply())
                except OSError as error:
                    raise Silent(f'{self.servers[number].name} to {str(words)[:300]}: {error}') \
                        from error
            found.append(replies)
        return list(zip(*found))

    def run(self, case, way):
        """Raises Difference. Returns how many replies were compared."""
        name, dialect = way
        requests = [['FLUSHALL']] + [['FUNCTION', 'FLUSH']] * (name == 'library')
        for step in case.steps:
            asked = requests_of(step, name)[0] if isinstance(step, Script) else [step]
            if asked[0][0] == 'SCRIPT' and asked[0] in requests:
                asked = asked[1:]  # it is loaded
            requests += asked
        ahead = len(requests)
        databases = [()]
        if 'select' in case.text().lower():
            databases += [(number,) for number in OTHER_DATABASES]
        for database in databases:
            requests += [['SELECT', *database]] if database else []
            requests += [['KEYS', '*']]
        if len(databases) > 1:
            requests += [['SELECT', '0']]
        replies = self.ask(dialect, requests)
        for words, (one, other) in list(zip(requests, replies))[:ahead]:
            if not self.agree(case, one, other):
                raise Difference(f'{words[0]}: {one[:600]!r}\n   not: {other[:600]!r}')
        self.compare_keys(dialect, databases, [pair for words, pair in zip(requests, replies)
                                               if words[0] == 'KEYS'][-len(databases):])
        return ahead

    def agree(self, case, one, other):
        if case.has_times:
            return about_same(one, other)
        return same(one, other) or self.deviates(one, other, 'setresp' in case.text())

    def deviates(self, one, other, has_maps=False):
        """Whether they differ only as is listed."""
        both = [without_deviations(plain(parsed(each)[0])) for each in (one, other)]
        if has_maps and both[0] != both[1]:  # the order of `pairs`
            both = [without_order(each) for each in both]
        listed = both[0] == both[1] and self.servers[0].name != self.servers[1].name
        self.deviations += listed
        return listed

    def compare_keys(self, dialect, databases, replies):
        for database, (one, other) in zip(databases, replies):
            keys = [sorted(item[1] for item in parsed(each)[0][1]) for each in (one, other)]
            if keys[0] != keys[1]:
                raise Difference(f'keys of {database or 0}: {keys[0]}\n   not: {keys[1]}')
            if keys[0]:
                self.compare_values(dialect, database, keys[0])

    def compare_values(self, dialect, database, keys):
        requests = [['SELECT', *database]] if database else []
        for key in keys:
            requests += [['TYPE', key], ['GET', key], ['HGETALL', key], ['PTTL', key]]
        if database:
            requests += [['SELECT', '0']]
        for words, (one, other) in zip(requests, self.ask(dialect, requests)):
            judge = {'PTTL': same_ttl, 'HGETALL': same_hash}.get(words[0], same)
            if not judge(one, other) and not self.deviates(one, other):
                raise Difference(f'then {words}: {one[:600]!r}\n   not: {other[:600]!r}')
