#!/usr/bin/env python3
"""What a node needs to compile each construct of Lua: compile_growth.py [--program SEMEL] [PART]..

Each construct is repeated until its text has 2 MB or takes a second, twice as often each time; the
node loads it with SCRIPT LOAD, and the processor time of its process is read. A line shows the
largest text that was compiled, its time for a byte, and by what the time grew when the size was
doubled. A text that the node refuses ends a line, with the reason. Fails if a text, compiled or
refused, took more than BYTE_US_MAX for a byte beyond TIME_FREE.
"""

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cases import target  # noqa: E402
from resp import TEXTS, ErrorReply  # noqa: E402  (target has found the folder)
from servers import CannotStart  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TEXT_BYTES = 2 << 20
FIRST = 1_000
TIME_MAX = 1.0
TIME_FREE = 0.3  # seconds: a bound may let as much through
BYTE_US_MAX = 1.0


def numbered(form, count):
    return ' '.join(form.replace('#', str(i)) for i in range(count))


def names(prefix, count):
    return ','.join(f'{prefix}{i}' for i in range(count))


def nested(depth, body):
    """`body` in as many functions, each with 190 locals."""
    head = ' '.join(f'local {names(f"v{d}_", 190)} f = function()' for d in range(depth))
    return f'{head} {body}{" end" * depth}'


def deep(opening, closing, count, depth=150):
    return (opening * depth + closing * depth + ' ') * max(1, count // depth)


# By name: a text of `n` repetitions.
CONSTRUCTS = {
    'goto and its label': lambda n: numbered('goto l# ::l#::', n),
    'goto forward': lambda n: 'do goto x end ' * n + '::x::',
    'goto backward': lambda n: '::x:: ' + 'do goto x end ' * n,
    'labels': lambda n: numbered('::l#:: a()', n),
    'labels in blocks': lambda n: 'do ::l:: end ' * n,
    'break': lambda n: 'while a do ' + 'if a then break end ' * n + 'end',
    'break in blocks': lambda n: 'while a do ' + 'do break end ' * n + 'end',
    'break in a for': lambda n: 'for i = 1, 2 do ' + 'if a then break end ' * n + 'end',
    'break, a repeat each': lambda n: 'repeat break until a ' * n,
    'break, many loops': lambda n: ('while a do ' + 'do break end ' * 1000 + 'end ') * (n // 1000),
    'locals before break': lambda n: 'while a do ' + 'do local b end ' * n +
                                     'if a then break end ' * (n // 4) + 'end',
    'locals before goto': lambda n: 'do local b end ' * n + 'do goto x end ' * 900 + '::x::',
    'elseif': lambda n: 'if a then b() ' + 'elseif a then b() ' * n + 'end',
    'elseif and break': lambda n: 'while a do if x then ' + 'elseif x then break ' * n + 'end end',
    'and': lambda n: 'x = a ' + 'and a ' * n,
    'or': lambda n: 'x = a ' + 'or a ' * n,
    'and or': lambda n: 'x = a ' + 'and a or b ' * n,
    'not and': lambda n: 'x = a ' + 'and not a ' * n,
    'condition and': lambda n: 'if a ' + 'and a == b ' * n + 'then b() end',
    'while or': lambda n: 'while a ' + 'or a ' * n + 'do end',
    'and in arguments': lambda n: 'f(a and b) ' * n,
    'if': lambda n: 'if a then b() end ' * n,
    'if else': lambda n: 'if a then b() else c() end ' * n,
    'if else nested': lambda n: deep('if a then b() else ', 'end ', n),
    'comparisons': lambda n: 'x = a < b ' * n,
    'comparisons in conditions': lambda n: 'if a < b then end ' * n,
    'while': lambda n: 'while a do b() end ' * n,
    'repeat': lambda n: 'repeat until a ' * n,
    'for': lambda n: 'for i = 1, 2 do end ' * n,
    'for in': lambda n: 'for k in a do end ' * n,
    'return in blocks': lambda n: 'do return 1 end ' * n,
    'return in deep blocks': lambda n: 'f = function() ' + 'do ' * n + 'do return 1 end ' * n,
    'blocks': lambda n: 'do end ' * n,
    'blocks nested': lambda n: deep('do ', 'end ', n),
    'functions': lambda n: 'a = function() end ' * n,
    'functions by name': lambda n: numbered('function f#(a, b) return a + b end', n),
    'functions nested': lambda n: deep('f = function() ', 'end ', n),
    'methods': lambda n: 'function a.b.c:d() return self end ' * n,
    'local functions': lambda n: 'do local function f() return f end end ' * n,
    'parameters': lambda n: f'a = function({names("p", 190)}) end ' * max(1, n // 190),
    'locals in blocks': lambda n: 'do local a, b = 1, 2 end ' * n,
    'locals used': lambda n: f'local {names("l", 190)} ' + numbered('l# = l#', 190) +
                             ' l1 = l189' * n,
    'names beside locals': lambda n: f'local {names("l", 190)} ' + 'g = h ' * n,
    'names in nested functions': lambda n: nested(60, 'g = h ' * n),
    'upvalues': lambda n: f'local {names("u", 59)} f = function() ' + 'u1 = u58 ' * n + 'end',
    'upvalues through functions': lambda n: f'local {names("u", 59)} ' + 'f = function() ' * 60 +
                                            'u1 = u58 ' * n + 'end ' * 60,
    'upvalues of closures': lambda n: f'local {names("u", 190)} ' +
                                      numbered('f = function() return u1, u99, u189 end', n),
    'constants, numbers': lambda n: numbered('a = #.5', n),
    'constants, texts': lambda n: numbered('a = "s#"', n),
    'globals': lambda n: numbered('g# = 1', n),
    'table, list': lambda n: 'a = {' + '1,' * n + '}',
    'table, nils': lambda n: 'a = {' + 'nil,' * n + '}',
    'table, calls': lambda n: 'a = {' + 'f(),' * n + '}',
    'table, names': lambda n: 'a = {' + numbered('k# = 1,', n) + '}',
    'table, numbers': lambda n: 'a = {' + numbered('[#001] = 1,', n) + '}',
    'table, from the end': lambda n: 'a = {' + ''.join(f'[{n - i}]=1,' for i in range(n)) + '}',
    'table, texts alike': lambda n: 'a = {' + numbered(f'["{"a" * 20}#{"b" * 60}"]=1,', n) + '}',
    'tables nested': lambda n: 'a = ' + deep('{', '}', n).strip().replace(' ', ' a = '),
    'tables': lambda n: 'a = {1, x = 2} ' * n,
    'brackets': lambda n: 'a = ' + deep('(', '1)', 150).replace('1)' * 150, '1' + ')' * 150) +
                          ' b()' * n,
    'calls': lambda n: 'a() ' * n,
    'calls of calls': lambda n: 'a' + '()' * n,
    'calls with texts': lambda n: 'f"x" ' * n,
    'calls of methods': lambda n: 'a' + ':b()' * n,
    'calls with varargs': lambda n: 'f(...) ' * n,
    'indices': lambda n: 'a = b' + '.c' * n,
    'indices in brackets': lambda n: 'a = b' + '[1]' * n,
    'assignments of many': lambda n: (','.join(['x[1]'] * 90) + ',x = 1 ') * max(1, n // 90),
    'concatenation': lambda n: ('a = b ' + '.. b ' * 150) * max(1, n // 150),
    'arithmetic': lambda n: 'a = b ' + '+ b ' * n,
    'arithmetic of constants': lambda n: 'a = 1 ' + '+ 1 ' * n,
    'powers': lambda n: ('a = ' + 'b ^ ' * 150 + '1 ') * max(1, n // 150),
    'escapes': lambda n: 'a = "' + '\\n' * n + '"',
    'escapes by number': lambda n: 'a = "' + '\\065' * n + '"',
    'lines in a text': lambda n: 'a = "' + '\\\n' * n + '"',
    'long comment': lambda n: '--[====[' + ']===]' * n + ']====]',
    'comments': lambda n: '--[[]]' * n,
    'comments, not long ones': lambda n: '--[====\n' * n,
    'long text': lambda n: 'a = [====[' + ']===]' * n + ']====]',
    'brackets in a long text': lambda n: 'a = [[ ' + '[[' * n + ']]',
    'digits': lambda n: 'a = ' + '1' * n,
    'digits of a fraction': lambda n: 'a = 0.' + '0' * n + '1',
    'hexadecimal digits': lambda n: 'a = 0x' + 'f' * n,
    'numbers': lambda n: 'a=1.25e10 ' * n,
    'numbers, large': lambda n: 'a=9e300 ' * n,
    'numbers, small': lambda n: 'a=1e-308 ' * n,
    'numbers of 300 digits': lambda n: ('a=' + '1' * 300 + ' ') * n,
    'numbers of 49 digits': lambda n: ('a=' + '1' * 49 + ' ') * n,
    'hexadecimal exponents': lambda n: 'a = 0x1p1000 ' * n,
    'long name': lambda n: 'a' * n + ' = 1',
    'lines': lambda n: '\n' * n,
    'calls of redis': lambda n: "redis.call('set', KEYS[1], ARGV[1]) " * n,
}


class Compiler(target.SemelTarget):
    def start(self, ready=True):
        super().start(ready)
        self.loader = self.client(TEXTS, 600)
        return self

    def cpu_seconds(self):
        tasks = Path(f'/proc/{self.pid}/task').glob('*/schedstat')
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9

    def load(self, text):
        """(seconds of the processor, the error or None)"""
        before = self.cpu_seconds()
        reply = self.loader.ask('SCRIPT', 'LOAD', text)
        seconds = self.cpu_seconds() - before
        self.loader.ask('SCRIPT', 'FLUSH')
        return seconds, reply if isinstance(reply, ErrorReply) else None


def measure(node, name, make):
    """Whether it is within the bound."""
    size, rows, refused, worst = FIRST, [], '', 0.0
    while True:
        text = make(size)
        if len(text) > TEXT_BYTES:
            break
        seconds, error = node.load(text)
        worst = max(worst, (seconds - TIME_FREE) / len(text) * 1e6)
        if error:
            refused = f'; {len(text)} bytes in {seconds:.3f} s: {error.split("): ", 1)[-1][:90]}'
            while len(text) < TEXT_BYTES // 2:
                size *= 2
                text = make(size)
            seconds, _ = node.load(text)  # what is refused costs as well
            worst = max(worst, (seconds - TIME_FREE) / len(text) * 1e6)
            break
        rows.append((len(text), seconds))
        if seconds > TIME_MAX:
            break
        size *= 2
    length, seconds = rows[-1] if rows else (1, 0.0)
    growth = seconds / max(rows[-2][1], 1e-4) if len(rows) > 1 else 0
    is_good = worst <= BYTE_US_MAX
    print(f'{name:28} {length:8} bytes {seconds:7.3f} s {seconds / length * 1e6:7.3f} us/byte '
          f'x{growth:4.1f}{refused}{"" if is_good else "  TOO MUCH"}', flush=True)
    return is_good


def main():
    parser = argparse.ArgumentParser(description='The time that constructs of Lua take to compile.')
    parser.add_argument('--program', default=ROOT / 'build/release/tools/semel/semel')
    parser.add_argument('parts', nargs='*', metavar='PART', help='of the names of constructs')
    arguments = parser.parse_args()
    chosen = [name for name in CONSTRUCTS
              if not arguments.parts or any(part in name for part in arguments.parts)]
    with Compiler(arguments.program, '--script-memory-max', '1gb') as node:
        bad = [name for name in chosen if not measure(node, name, CONSTRUCTS[name])]
    print(f'compile-growth: {len(chosen)} constructs, {len(bad)} cost more than {BYTE_US_MAX} us '
          f'a byte{": " if bad else ""}{", ".join(bad)}')
    return 1 if bad or not chosen else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except CannotStart as problem:
        sys.exit(f'compile-growth: {problem}')
