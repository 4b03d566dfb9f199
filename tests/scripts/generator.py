"""Random scripts over random keys: case(source, name). The same `source` makes the same case.

Left out is what two right servers may answer differently: time, addresses, the order of tables that
are not lists, and math.random without a seed.
"""

from cases import Case, Script

KEYS = ('k:a', 'k:b', 'k:c', 'h:a', 'h:b', 'none')
STRINGS = ("''", "'x'", "'abc'", "'10'", "'-3'", "'1.5'", "'0x1F'", "' 7 '", "'a b c'", "'key:42'",
           "'\\0\\255'", "'ünï'", "'{\"a\":[1,2]}'", "'aXbXc'", "'%d'", "'OK'")
NUMBERS = ('0', '1', '2', '3', '7', '10', '-1', '-5', '0.5', '1.5', '-2.25', '100', '1e3', '2^31',
           '2^53', '1e15', '1e20', '0.1', '1/3', '255')
PATTERNS = ("'%a+'", "'%d'", "'X'", "'(%w)(%w)'", "'.-'", "'^%s*(.-)%s*$'", "'[a-c]'", "'[^b]+'",
            "'%s'", "'.'", "'()'", "'b*'", "'%w+:(%d+)'")


class Writer:
    """One script. Names of locals: n numbers, s strings, t lists, v anything, f functions."""

    def __init__(self, source):
        self.random = source
        self.lines = []
        self.indent = 0
        self.names = {'n': [], 's': [], 't': [], 'v': [], 'f': []}
        self.count = 0
        self.budget = source.choice((3, 6, 10, 16))

    def pick(self, *items):
        return self.random.choice(items)

    def chance(self, share):
        return self.random.random() < share

    def line(self, text):
        self.lines.append('  ' * self.indent + text)

    def fresh(self, kind):
        self.count += 1
        return f'{kind}{self.count}'

    # expressions; `depth` is how many more may lie in each other
    def number(self, depth=2):
        known = self.names['n']
        if depth == 0 or self.chance(0.3):
            return self.pick(*known) if known and self.chance(0.6) else self.pick(*NUMBERS)
        kind = self.random.randrange(12)
        one = lambda: self.number(depth - 1)  # noqa: E731
        if kind < 4:
            sign = self.pick('+', '-', '*', '/', '%')
            # NaN differs in its sign on one side, and not on the other.
            right = self.pick('3', '-2', '0.5') if sign in '/%' else one()
            return f'({one()} {sign} {right})'
        if kind == 4:
            return f'#{self.list_name()}'
        if kind == 5:
            return f'math.{self.pick("floor", "ceil", "abs")}({one()})'
        if kind == 6:
            return f'math.{self.pick("max", "min")}({one()}, {one()})'
        if kind == 7:
            return f'(tonumber({self.string(depth - 1)}) or {one()})'
        if kind == 8:
            return f'string.len({self.string(depth - 1)})'
        if kind == 9:
            bits = self.pick('band', 'bor', 'bxor')
            return f'bit.{bits}({self.random.randrange(1 << 31)}, {self.random.randrange(256)})'
        if kind == 10:
            # Not 0: Lua 5.1 takes -0 and 0 of one function for the same constant.
            return f'-{self.pick(*NUMBERS[1:])}' if self.chance(0.5) else f'(-{one()} + 1)'
        return f'select("#", {self.anything(depth - 1)}, {self.anything(depth - 1)})'

    def string(self, depth=2):
        known = self.names['s']
        if depth == 0 or self.chance(0.3):
            return self.pick(*known) if known and self.chance(0.6) else self.pick(*STRINGS)
        kind = self.random.randrange(14)
        one = lambda: self.string(depth - 1)  # noqa: E731
        small = self.random.randrange(-4, 6)
        if kind < 3:
            return f'({one()} .. {self.pick(self.string, self.number)(depth - 1)})'
        if kind == 3:
            return f'tostring({self.plain(depth - 1)})'
        if kind == 4:
            return f'string.sub({one()}, {small}, {self.random.randrange(-3, 8)})'
        if kind == 5:
            return f'string.{self.pick("upper", "lower", "reverse")}({one()})'
        if kind == 6:
            return f'string.rep({one()}, {self.random.randrange(4)})'
        if kind == 7:
            form = self.pick("'%d'", "'%5.2f'", "'%x'", "'%g'", "'%s'", "'%05d'", "'%-6s|'", "'%q'")
            value = one() if 's' in form or 'q' in form else str(self.random.randrange(-99, 9999))
            if form == "'%x'":
                value = value.lstrip('-')
            return f'string.format({form}, {value})'
        if kind == 8:
            change = self.pick("'-'", "'<%0>'", "function(c) return c .. c end", "{a = 'A', X = 1}")
            return f'(string.gsub({one()}, {self.pick(*PATTERNS)}, {change}))'
        if kind == 9:
            return f'(string.match({one()}, {self.pick(*PATTERNS)}) or {one()})'
        if kind == 10:
            return f'table.concat({self.list_of_plain(depth - 1)}, {self.pick(*STRINGS)})'
        if kind == 11:
            return f'cjson.encode({self.pick(self.list_of_plain, self.string)(depth - 1)})'
        if kind == 12:
            return f'redis.sha1hex({one()})'
        return self.pick('type', 'tostring') + f'({self.plain(depth - 1)})'

    def condition(self, depth=2):
        kind = self.random.randrange(8)
        if kind < 3:
            compare = self.pick('<', '>', '<=', '>=', '==', '~=')
            of = self.pick(self.number, self.string)
            return f'{of(depth - 1)} {compare} {of(depth - 1)}'
        if kind == 3:
            return f'redis.call("EXISTS", {self.key()}) == {self.pick(0, 1)}'
        if kind == 4:
            return f'not {self.value()}'
        if kind == 5 and depth:
            return f'({self.condition(depth - 1)}) {self.pick("and", "or")} ' \
                   f'({self.condition(depth - 1)})'
        if kind == 6:
            return f'type({self.value()}) == {self.pick(*map(repr, ("string", "table", "number")))}'
        return f'#{self.list_name()} > {self.random.randrange(4)}'

    def plain(self, depth=1):
        """What has one text."""
        words = lambda _: self.pick('true', 'false', 'nil')  # noqa: E731
        return self.pick(self.number, self.string, words)(depth)

    def anything(self, depth=2):
        kind = self.random.randrange(7)
        if kind == 0 and depth:
            return self.table(depth - 1)
        if kind == 1:
            return self.value()
        if kind == 2:
            return f'({self.condition(1)} and {self.number(1)} or {self.string(1)})'
        return self.plain(min(depth, 2))

    def list_of_plain(self, depth=1):
        items = [self.pick(self.number, self.string)(max(0, depth - 1))
                 for _ in range(self.random.randrange(5))]
        return '{' + ', '.join(items) + '}'

    def table(self, depth=2):
        kind = self.random.randrange(10)
        if kind == 0:
            return '{ok = ' + self.string(1) + '}'
        if kind == 1:
            return '{err = ' + self.string(1) + '}'
        if kind == 2:
            return '{double = ' + self.number(1) + '}'
        if kind == 3:
            return '{map = {[' + self.pick(self.string, self.number)(1) + '] = ' \
                   + self.anything(depth - 1 if depth else 0) + '}}'
        if kind == 4:
            return '{set = {[' + self.string(1) + '] = true}}'
        items = [self.anything(depth - 1 if depth else 0) for _ in range(self.random.randrange(5))]
        return '{' + ', '.join(items) + '}'

    def list_name(self):
        return self.pick('KEYS', 'ARGV', *self.names['t'])

    def value(self):
        known = self.names['v'] + self.names['n'] + self.names['s'] + self.names['t']
        return self.pick('nil', 'KEYS[1]', 'ARGV[1]', 'ARGV[9]', 'redis', *known)

    # commands
    def key(self):
        kind = self.random.randrange(6)
        if kind < 2:
            return f'KEYS[{self.random.randrange(1, 4)}]'
        if kind == 2:
            return f'"k:" .. {self.pick("string.char(97 + %d)" % self.random.randrange(3), "1")}'
        return repr(self.pick(*KEYS))

    def argument(self):
        return self.pick(self.string, self.number, lambda _: 'ARGV[1]', lambda _: 'ARGV[2]')(1)

    def small(self):
        return str(self.random.randrange(-3, 20))

    def command(self):
        """Words of a call, as Lua."""
        key, argument, small = self.key, self.argument, self.small
        ttl = lambda: str(self.random.choice((100, 5000, 100000)))  # noqa: E731
        field = lambda: repr(self.pick('f', 'g', '1', 'x y'))  # noqa: E731
        forms = (
            lambda: ("'GET'", key()), lambda: ("'SET'", key(), argument()),
            lambda: ("'SET'", key(), argument(), "'NX'", "'GET'", "'EX'", ttl()),
            lambda: ("'SET'", key(), argument(), repr(self.pick('NX', 'XX', 'GET', 'KEEPTTL'))),
            lambda: ("'set'", key(), argument(), "'EX'", self.pick(ttl(), small())),
            lambda: ("'INCR'", key()), lambda: ("'INCRBY'", key(), self.pick(small(), argument())),
            lambda: ("'DECRBY'", key(), small()), lambda: ("'INCRBYFLOAT'", key(), self.number(0)),
            lambda: ("'APPEND'", key(), argument()), lambda: ("'STRLEN'", key()),
            lambda: ("'GETRANGE'", key(), small(), small()),
            lambda: ("'SETRANGE'", key(), small(), argument()),
            lambda: ("'GETDEL'", key()), lambda: ("'GETSET'", key(), argument()),
            lambda: ("'GETEX'", key(), "'EX'", ttl()), lambda: ("'SETNX'", key(), argument()),
            lambda: ("'DEL'", key(), key()), lambda: ("'UNLINK'", key()),
            lambda: ("'EXISTS'", key(), key()), lambda: ("'TYPE'", key()),
            lambda: ("'EXPIRE'", key(), self.pick(ttl(), ttl(), small())),
            lambda: ("'EXPIRE'", key(), ttl(), repr(self.pick('NX', 'XX', 'GT', 'LT'))),
            lambda: ("'PEXPIRE'", key(), '100000'), lambda: ("'PERSIST'", key()),
            lambda: ("'TTL'", key()), lambda: ("'MGET'", key(), key(), key()),
            lambda: ("'MSET'", key(), argument(), key(), argument()),
            lambda: ("'MSETNX'", key(), argument(), key(), argument()),
            lambda: ("'RENAME'", key(), key()), lambda: ("'RENAMENX'", key(), key()),
            lambda: ("'COPY'", key(), key(), *(("'REPLACE'",) if self.chance(0.5) else ())),
            lambda: ("'HSET'", key(), field(), argument()),
            lambda: ("'HSET'", key(), field(), argument(), field(), argument()),
            lambda: ("'HGET'", key(), field()), lambda: ("'HGETALL'", key()),
            lambda: ("'HMGET'", key(), field(), field()), lambda: ("'HDEL'", key(), field()),
            lambda: ("'HINCRBY'", key(), field(), small()), lambda: ("'HLEN'", key()),
            lambda: ("'HINCRBYFLOAT'", key(), field(), self.number(0)),
            lambda: ("'HEXISTS'", key(), field()), lambda: ("'HSETNX'", key(), field(), argument()),
            lambda: ("'HKEYS'", key()), lambda: ("'HVALS'", key()),
            lambda: ("'HSTRLEN'", key(), field()), lambda: ("'DBSIZE'",), lambda: ("'PING'",),
            lambda: ("'ECHO'", argument()), lambda: ("'PUBLISH'", "'c'", argument()),
            lambda: ("'TOUCH'", key()),
            lambda: (repr(self.pick('NOTHING', 'GET', 'MULTI', 'EVAL', 'SET', 'CONFIG')),),
            lambda: ("'EXPIRETIME'", "'none'"), lambda: ("'HSCAN'", "'h:a'", '0'),
            lambda: ("'SWAPDB'", '0', '0'), lambda: ("'SELECT'", self.pick('0', '0', '99')),
        )
        return ', '.join(self.random.choice(forms)())

    def call(self):
        return f'redis.{self.pick("call", "call", "pcall")}({self.command()})'

    # statements
    def block(self, lines):
        saved = {kind: list(names) for kind, names in self.names.items()}
        self.indent += 1
        for _ in range(lines):
            self.statement()
        self.indent -= 1
        self.names = saved

    def local(self, kind, text):
        name = self.fresh(kind)
        self.line(f'local {name} = {text}')
        self.names[kind].append(name)

    def statement(self):
        if self.budget <= 0:
            return
        self.budget -= 1
        self.random.choice((
            self.make_number, self.make_string, self.make_list, self.make_value, self.make_value,
            self.plain_call, self.plain_call, self.branch, self.count_loop, self.while_loop,
            self.each_loop, self.insert, self.guarded, self.function, self.use_function,
            self.assign, self.sort, self.seeded, self.coroutine, self.wild, self.dialect))()

    def make_number(self):
        self.local('n', self.number())

    def make_string(self):
        self.local('s', self.string())

    def make_list(self):
        self.local('t', self.list_of_plain(2))

    def make_value(self):
        self.local('v', self.call() if self.chance(0.7) else self.anything())

    def plain_call(self):
        self.line(self.call())

    def branch(self):
        self.line(f'if {self.condition()} then')
        self.block(self.random.randrange(1, 3))
        if self.chance(0.5):
            self.line('else')
            self.block(1)
        self.line('end')

    def count_loop(self):
        name = self.fresh('i')
        step = self.pick('', '', ', 2', ', -1')
        self.line(f'for {name} = {self.pick("1", "3", "-1")}, {self.pick("2", "4", "0")}{step} do')
        self.names['n'].append(name)
        self.block(self.random.randrange(1, 3))
        self.names['n'].remove(name)
        self.line('end')

    def while_loop(self):
        name = self.fresh('i')
        self.line(f'local {name} = 0')
        repeat = self.chance(0.4)
        self.line('repeat' if repeat else f'while {name} < 3 do')
        self.indent += 1
        self.line(f'{name} = {name} + 1')
        if self.chance(0.3):
            self.line(f'if {self.condition(1)} then break end')
        self.indent -= 1
        self.block(1)
        self.line(f'until {name} > 2' if repeat else 'end')

    def each_loop(self):
        key, value = self.fresh('i'), self.fresh('v')
        # A copy: a list that grows in its own loop has no end.
        self.line(f'for {key}, {value} in ipairs({{unpack({self.list_name()}, 1, 3)}}) do')
        self.names['n'].append(key)
        self.names['v'].append(value)
        self.block(1)
        self.names['n'].remove(key)
        self.names['v'].remove(value)
        self.line('end')

    def insert(self):
        names = self.names['t']
        if not names:
            return self.make_list()
        kind = self.random.randrange(4)
        name = self.pick(*names)
        if kind == 0:
            self.line(f'table.insert({name}, {self.plain()})')
        elif kind == 1:
            self.line(f'table.insert({name}, 1, {self.string()})')
        elif kind == 2:
            self.line(f'{name}[#{name} + 1] = {self.plain()}')
        else:
            self.line(f'table.remove({name}{self.pick("", ", 1")})')
        return None

    def guarded(self):
        ok, what = self.fresh('v'), self.fresh('v')
        self.line(f'local {ok}, {what} = pcall(function()')
        self.block(2)
        self.indent += 1
        self.line(f'return {self.anything(1)}' if self.chance(0.6) else f'error({self.failure()})')
        self.indent -= 1
        self.line('end)')
        self.names['v'] += [ok, what]

    def failure(self):
        return self.pick(self.string(1), "{err = 'MY own'}", "'text', 0", 'nil', "'level', 2",
                         "redis.error_reply('X y')")

    def function(self):
        name, one, two = self.fresh('f'), self.fresh('p'), self.fresh('p')
        self.line(f'local function {name}({one}, {two})')
        self.names['v'] += [one, two]
        self.block(2)
        self.indent += 1
        self.line(f'return {self.anything(1)}, {self.pick(one, two)}')
        self.indent -= 1
        self.names['v'] = [v for v in self.names['v'] if v not in (one, two)]
        self.line('end')
        self.names['f'].append(name)

    def use_function(self):
        if not self.names['f']:
            return self.make_value()
        return self.local('v', f'{self.pick(*self.names["f"])}({self.plain()}, {self.anything(1)})')

    def assign(self):
        kind = self.pick('n', 's')
        if self.names[kind]:
            make = self.number if kind == 'n' else self.string
            name = self.pick(*self.names[kind])
            if not name.startswith('i'):
                self.line(f'{name} = {make(1)}')

    def sort(self):
        items = ', '.join(str(self.random.randrange(50)) for _ in range(self.random.randrange(9)))
        name = self.fresh('t')
        self.line(f'local {name} = {{{items}}}')
        self.line(f'table.sort({name}{self.pick("", ", function(a, b) return a > b end")})')
        self.names['t'].append(name)

    def seeded(self):
        self.line(f'math.randomseed({self.random.randrange(1000)})')
        self.local('n', f'math.random({self.pick("10", "1, 6", "1000")})')

    def coroutine(self):
        name = self.fresh('v')
        self.line(f'local {name} = coroutine.wrap(function(a) local b = coroutine.yield(a) '
                  f'return {self.anything(1)}, b end)')
        self.line(f'{name}({self.plain()})')
        self.local('v', f'{name}({self.plain()})')

    def wild(self):
        """What fails more often than not."""
        self.line(self.random.choice((
            lambda: f'local x = {self.value()}.field',
            lambda: f'local x = {self.value()} + {self.value()}',
            lambda: f'local x = {self.value()} .. {self.value()}',
            lambda: f'local x = {self.value()} < {self.value()}',
            lambda: f'error({self.failure()})',
            lambda: 'made_up = 1', lambda: 'local x = made_up',
            lambda: f'assert({self.value()}, "asserted")',
            lambda: f'local x = #{self.value()}',
            lambda: f'local x = ({self.value()})(1)',
            lambda: f'redis.call({self.value()})',
            lambda: f'redis.call("SET", "k:a", {self.value()})'))())

    def dialect(self):
        self.line(f'redis.setresp({self.pick(2, 3)})')

    def script(self):
        while self.budget > 0:
            self.statement()
        values = self.names['v'] + self.names['n'] + self.names['s'] + self.names['t']
        kind = self.random.randrange(5)
        if kind == 0 or not values:
            self.line(f'return {self.anything()}')
        elif kind == 1:
            self.line(f'return {self.pick(*values)}')
        else:
            shown = self.random.sample(values, min(len(values), 6))
            self.line('return {' + ', '.join(shown + [self.anything(1)]) + '}')
        return '\n'.join(self.lines)


def state(source):
    """Commands that make the keys a script meets."""
    found = []
    for key in KEYS[:3]:
        kind = source.randrange(5)
        if kind < 3:
            value = source.choice(('10', '-3', '1.5', 'text', '', 'a\x00b', '9223372036854775807'))
            found.append(['SET', key, value] + (['EX', '1000'] if source.random() < 0.4 else []))
        elif kind == 3:
            found.append(['HSET', key, 'f', '1', 'g', 'x'])
    for key in KEYS[3:5]:
        if source.random() < 0.6:
            found.append(['HSET', key, 'f', source.choice(('1', 'x', '2.5')), '1', 'v'])
    return found


def case(source, name, _):
    text = Writer(source).script()
    keys = [key.encode() for key in source.sample(KEYS, source.choice((3, 3, 3, 3, 0, 1, 2)))]
    args = [source.choice((b'', b'1', b'-7', b'2.5', b'abc', b'\x00\xff', b'100000'))
            for _ in range(source.choice((2, 2, 2, 3, 0, 1)))]
    return Case(name, state(source) + [Script(text, keys, args)], {})
