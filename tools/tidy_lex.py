"""Enough of a C++ reader for tidy.py: what is code, what is comment, where functions begin and end.

Not a parser. It knows comments, strings, raw strings, digit separators and braces, and nothing of
types or templates; rules built on it must be able to live with that.
"""

import bisect
import functools
import re

LITERAL = re.compile(
    r'(?P<line>//[^\n]*(?:\\\n[^\n]*)*)'
    r'|(?P<block>/\*.*?\*/)'
    r'|(?P<raw>R"(?P<fence>[^()\s\\]{0,16})\(.*?\)(?P=fence)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<separator>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))"
    r"|(?P<char>'(?:\\.|[^'\\\n])+')",
    re.DOTALL)
DIRECTIVE = re.compile(r'^[ \t]*#[^\n]*(?:\\\n[^\n]*)*', re.MULTILINE)
SCOPE = re.compile(r'(?:inline\s+)?namespace\b|extern\b(?!.*\))|(?:typedef\s+)?'
                   r'(?:class|struct|union|enum)\b')
INITIALISERS = re.compile(r'\)[\w\s]*:(?!:)')


def blank(text):
    return re.sub(r'[^\n]', ' ', text)


@functools.lru_cache(maxsize=None)  # each file is asked for by several rules
def split(text):
    """Returns (code, comments): both as long as text, with all that is neither blanked out.

    Quotes of strings stay in code, so that an empty argument and a string are not the same.
    """
    code, comments, at = [], [], 0
    for match in LITERAL.finditer(text):
        between, found = text[at:match.start()], match.group()
        code.append(between)
        comments.append(blank(between))
        if match.lastgroup == 'line' or match.lastgroup == 'block':
            code.append(blank(found))
            comments.append(found)
        else:
            inside = '_' if match.lastgroup == 'separator' else '"' + blank(found[1:-1]) + '"'
            code.append(inside)
            comments.append(blank(found))
        at = match.end()
    code.append(text[at:])
    comments.append(blank(text[at:]))
    return ''.join(code), ''.join(comments)


class Lines:
    """Turns offsets into line numbers, counted from 1."""

    def __init__(self, text):
        self._starts = [0] + [i + 1 for i, c in enumerate(text) if c == '\n']

    def of(self, offset):
        return bisect.bisect_right(self._starts, offset)


def close_of(code, opening):
    """Offset of the bracket that closes the one at `opening`, or the end of the text."""
    pairs = {'(': ')', '{': '}', '[': ']'}
    begin, end, depth = code[opening], pairs[code[opening]], 0
    for i in range(opening, len(code)):
        if code[i] == begin:
            depth += 1
        elif code[i] == end:
            depth -= 1
            if depth == 0:
                return i
    return len(code) - 1


def without_templates(header):
    """Drops template parameter lists, attributes and alignas, whose words mislead."""
    header = re.sub(r'\[\[.*?\]\]|alignas\s*\([^)]*\)', ' ', header, flags=re.DOTALL)
    while match := re.search(r'\btemplate\s*<', header):
        depth, i = 0, match.end() - 1
        while i < len(header):
            depth += {'<': 1, '>': -1}.get(header[i], 0)
            i += 1
            if depth == 0:
                break
        header = header[:match.start()] + ' ' + header[i:]
    return header.strip()


def name_of(header):
    """The name in front of the parameter list."""
    match = re.search(r'(operator\s*[^\w\s(]+|operator\s*\(\s*\)|~?[\w:~]+)\s*\(', header)
    return re.sub(r'\s', '', match.group(1)) if match else '?'


def functions(code):
    """Yields (name, first offset, last offset) of each function; lambdas and local classes belong
    to the function they are in."""
    code = DIRECTIVE.sub(lambda m: blank(m.group()), code)
    at = start = 0
    while at < len(code):
        char = code[at]
        if char == '(':
            at = close_of(code, at)
        elif char in ';}':
            start = at + 1
        elif char == ':' and re.search(r'\b(public|private|protected)\s*$', code[start:at]):
            start = at + 1
        elif char == '{':
            raw = code[start:at]
            header = without_templates(raw)
            if SCOPE.match(header):
                start = at + 1
            else:
                end = close_of(code, at)
                follows = code[end + 1:].lstrip()[:1]
                if INITIALISERS.search(header) and follows in (',', '{'):
                    pass  # member{value} of a constructor's initialiser list
                elif '(' in header and not header.endswith('='):
                    yield name_of(header), start + len(raw) - len(raw.lstrip()), end
                    start = end + 1
                at = end
        at += 1
