"""Dialogues and transcripts as text; the format is in README.md beside this file."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'clients'))
import target  # noqa: E402,F401
from resp import encode  # noqa: E402  (target has found the folder)

HERE = Path(__file__).resolve().parent
DIALOGUES = HERE / 'dialogues'
GOLDEN = HERE / 'golden'

LINE = re.compile(r'([a-z])([<>]) (.*)')
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"(?= |$)|([^ "]+)(?= |$)')
SIGNS = {'r': b'\r', 'n': b'\n', '\\': b'\\', '"': b'"'}


class BadText(Exception):
    pass


def unescape(text):
    out = b''
    at = 0
    while at < len(text):
        if text[at] != '\\':
            out += text[at].encode('ascii')
            at += 1
        elif text[at + 1:at + 2] == 'x':
            out += bytes.fromhex(text[at + 2:at + 4])
            at += 4
        elif text[at + 1:at + 2] in SIGNS:
            out += SIGNS[text[at + 1]]
            at += 2
        else:
            raise BadText(f'no escape: {text[at:at + 2]!r}')
    return out


def escape(data):
    named = {10: '\\n', 13: '\\r', 92: '\\\\'}
    return ''.join(named.get(b) or (chr(b) if 32 <= b < 127 else f'\\x{b:02x}') for b in data)


def words_of(text):
    words = []
    at = 0
    while at < len(text):
        match = WORD.match(text, at)
        if not match:
            raise BadText(f'no words: {text[at:]!r}')
        quoted, plain = match.groups()
        words.append(unescape(quoted) if quoted is not None else plain.encode('ascii'))
        at = match.end() + 1
    return words


class Step:
    """One line: what `client` says, or receives."""

    def __init__(self, number, line, client, words=None, reply=None):
        self.number = number
        self.line = line
        self.client = client
        self.words = words
        self.reply = reply


def read(path):
    """(dialect or None, steps)"""
    dialect = None
    steps = []
    for number, line in enumerate(path.read_text(encoding='ascii').split('\n'), 1):
        match = LINE.fullmatch(line)
        try:
            if line.startswith('dialect '):
                dialect = int(line.split()[1])
            elif match and match.group(2) == '>':
                steps.append(Step(number, line, match.group(1), words=words_of(match.group(3))))
            elif match:
                steps.append(Step(number, line, match.group(1), reply=unescape(match.group(3))))
            elif line and not line.startswith('#'):
                raise BadText('neither a remark nor a step')
        except (BadText, ValueError) as error:
            raise BadText(f'{path.name}:{number}: {error}: {line}') from error
    return dialect, steps


def greet(client, dialect):
    """HELLO, whose reply is not compared; an ECHO shows where it ends."""
    end = b'$3\r\nend\r\n'
    client.plug.sendall(encode('HELLO', dialect) + encode('ECHO', 'end'))
    heard = b''
    while not heard.endswith(end):
        piece = client.plug.recv(4096)
        if not piece:
            raise OSError('the connection was closed')
        heard += piece
