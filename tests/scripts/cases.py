"""Cases as text; the format is in README.md beside this file."""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'transcripts'))
from transcript import target, words_of  # noqa: E402,F401

HERE = Path(__file__).resolve().parent
CORPUS = HERE / 'corpus'

# How a script reaches the server: (name, dialect). Each case goes all of these ways, or those that
# it names.
WAYS = (('eval', 2), ('evalsha', 3), ('multi', 2), ('fcall', 3))
OTHER_WAYS = {'eval_ro': 2, 'evalsha_ro': 3, 'fcall_ro': 2, 'eval3': 3, 'library': 2}
DIRECTIVES = ('keys', 'args', 'as', 'needs', 'fresh', 'differs')


class BadCase(Exception):
    pass


class Script:
    def __init__(self, text, keys, args):
        self.text = text
        self.keys = keys
        self.args = args


class Case:
    """`steps` are lists of words (a command) and Scripts, in order."""

    def __init__(self, name, steps, options):
        self.name = name
        self.steps = steps
        self.ways = options.get('as')
        self.needs = [w.decode() for w in options.get('needs', [])]
        self.fresh = 'fresh' in options
        self.differs = options.get('differs')
        self.has_times = 'times' in options  # replies may differ by what passes between the two

    def text(self):
        return '\n'.join(s.text if isinstance(s, Script) else '> ' + repr(s) for s in self.steps)


def way_of(name):
    known = dict(WAYS) | OTHER_WAYS
    if name not in known:
        raise BadCase(f'no way {name}')
    return name, known[name]


def parse(name, lines):
    """One paragraph."""
    steps = []
    options = {}
    given = {'keys': [], 'args': []}
    script = []

    def close():
        if script:
            steps.append(Script('\n'.join(script), given['keys'], given['args']))
            script.clear()
            given.update(keys=[], args=[])

    for line in lines:
        word, _, rest = line.partition(' ')
        if line.startswith('# '):
            continue
        if word == '>':
            close()
            steps.append(words_of(rest))
        elif word in ('keys', 'args'):
            close()
            given[word] = words_of(rest)
        elif word == 'as':
            options['as'] = [way_of(w.decode()) for w in words_of(rest)]
        elif word == 'differs':
            options['differs'] = rest
        elif word in DIRECTIVES:
            options[word] = words_of(rest) if rest else []
        else:
            script.append(line)
    close()
    if not any(isinstance(s, Script) for s in steps):
        raise BadCase('a case without a script')
    return Case(name, steps, options)


def paragraphs(text):
    """(number of the first line, lines)"""
    found = []
    start = None
    for number, line in enumerate(text.split('\n') + [''], 1):
        if line and start is None:
            start = (number, [])
            found.append(start)
        if line:
            start[1].append(line)
        else:
            start = None
    return found


def read(path):
    cases = []
    for number, lines in paragraphs(path.read_text(encoding='utf-8')):
        try:
            if all(line.startswith('# ') for line in lines):
                continue
            if 'each' in lines:  # options and commands, which all have, and then a case a line
                head = [line for line in lines if line.split(' ')[0] in DIRECTIVES + ('>',)]
                for at, line in enumerate(lines, number):
                    if line not in head + ['each'] and not line.startswith('# '):
                        cases.append(parse(f'{path.stem}:{at}', head + [line]))
            else:
                cases.append(parse(f'{path.stem}:{number}', lines))
        except (BadCase, ValueError) as error:
            raise BadCase(f'{path.name}:{number}: {error}') from error
    return cases


def sha_of(text):
    return hashlib.sha1(text.encode('utf-8')).hexdigest()
