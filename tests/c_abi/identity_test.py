#!/usr/bin/env python3
"""The table of identity (tests/identity/cases.json) by the functions of semel.h:
identity_test.py LIBRARY CASES ERROR_CODES"""

import ctypes
import hashlib
import json
import re
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_ubyte, c_void_p



def names_of_errors():
    with open(sys.argv[3], encoding='utf-8') as file:
        rows = re.findall(r'^SEMEL_X\((\w+), *(\d+),', file.read(), re.MULTILINE)
    return {int(number): name for name, number in rows}


class Buffer(Structure):
    _fields_ = [('data', c_void_p), ('length', c_size_t)]


class Bytes(Structure):
    _fields_ = [('data', c_char_p), ('length', c_size_t)]


class Fingerprint(Structure):
    _fields_ = [('algorithm', c_ubyte), ('digest', c_ubyte * 16)]


class Call(Structure):
    _fields_ = [('size', c_size_t)] + [
        (name + tail, kind) for name in ('operation', 'tenant', 'user', 'arguments')
        for tail, kind in (('', c_char_p), ('_length', c_size_t))]


NAMES = names_of_errors()
library = ctypes.CDLL(sys.argv[1])
library.semel_format_key.argtypes = [c_char_p, c_size_t, POINTER(Bytes), POINTER(Bytes), c_size_t,
                                     POINTER(Buffer)]
library.semel_identity_json.argtypes = [c_char_p, c_size_t, POINTER(Buffer)]
library.semel_fingerprint_json.argtypes = [c_char_p, c_size_t, POINTER(Fingerprint)]
library.semel_fingerprint_of.argtypes = [c_char_p, c_size_t, POINTER(Fingerprint)]


def text_of(call):
    """What `call` puts into a buffer, and the error's name."""
    buffer = Buffer()
    code = call(byref(buffer))
    if code:
        assert not buffer.data
        return None, NAMES[code]
    text = ctypes.string_at(buffer.data, buffer.length)
    library.semel_buffer_free(byref(buffer))
    return text, None


def identity(case):
    call = Call()
    call.size = ctypes.sizeof(Call)
    scope = case['scope'] or {}
    for name, value in (('operation', case['operation']), ('tenant', scope.get('tenant', '')),
                        ('user', scope.get('user', '')), ('arguments', case['arguments'])):
        data = value.encode()
        setattr(call, name, data)
        setattr(call, name + '_length', len(data))
    made = text_of(lambda out: library.semel_identity_text(byref(call), out))
    if made[0] is not None:
        prints = Fingerprint(), Fingerprint()
        assert library.semel_fingerprint_identity(byref(call), byref(prints[0])) == 0
        assert library.semel_fingerprint_of(made[0], len(made[0]), byref(prints[1])) == 0
        assert prints[0].algorithm == 8 and bytes(prints[0].digest) == bytes(prints[1].digest)
    return made


def payload(case):
    data = case['json'].encode('utf-8', 'surrogatepass')
    made = text_of(lambda out: library.semel_identity_json(data, len(data), out))
    if made[0] is not None:
        made_of = Fingerprint()
        assert library.semel_fingerprint_json(data, len(data), byref(made_of)) == 0
        assert made_of.algorithm == 6
    return made


def key_of(row):
    names = list(row['fields'])
    values = [(row['fields'][name] or '').encode() for name in names]
    lists = [(Bytes * len(names))(*(Bytes(each, len(each)) for each in given))
             for given in ([name.encode() for name in names], values)]
    form = row['format'].encode()
    return text_of(lambda out: library.semel_format_key(form, len(form), lists[0], lists[1],
                                                        len(names), out))


def main():
    with open(sys.argv[2], encoding='utf-8') as file:
        table = json.load(file)
    wrong = 0

    def check(name, made, expected, error):
        nonlocal wrong
        text, why = made
        if (text, why) != (None if error else expected.encode(), error):
            wrong += 1
            print(f'{name}: {text!r} {why}, not {expected!r} {error}', file=sys.stderr)

    for case in table['cases']:
        if case['kind'] == 'identity' and case['scope'] in ({}, {'tenant': ''}):
            continue  # in C an empty tenant is none
        made = identity(case) if case['kind'] == 'identity' else payload(case)
        check(case['name'], made, case.get('canonical'), case.get('error'))
        if made[0] is not None and case['kind'] == 'identity':
            assert hashlib.sha256(made[0]).hexdigest() == case['key'], case
    for row in table['formats']:
        check(row['format'], key_of(row), row.get('key'), row.get('error'))
    print(f"{len(table['cases'])} cases, {len(table['formats'])} formats, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
