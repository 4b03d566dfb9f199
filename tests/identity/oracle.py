#!/usr/bin/env python3
"""An implementation of docs/identity.md of its own, by which the bytes of cases.json are made and
checked: oracle.py checks the file, oracle.py --write fills in what is computed."""

import argparse
import base64
import hashlib
import json
import pathlib
import sys

CASES = pathlib.Path(__file__).with_name('cases.json')
PLACES_MAX = 10000  # decimal places in front of the point and behind it


class Refused(Exception):
    pass


class Number(str):
    """The literal of a number."""


def members(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise Refused('a name twice')
    return dict(pairs)


def parse(text):
    def constant(word):
        raise Refused(word)

    try:
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=constant,
                          object_pairs_hook=members)
    except json.JSONDecodeError as wrong:
        raise Refused(str(wrong)) from wrong


def number(literal):
    """Its exact decimal value, laid out as ECMAScript lays out a double."""
    sign = '-' if literal.startswith('-') else ''
    mantissa, _, exponent = literal.lower().lstrip('-').partition('e')
    whole, _, fraction = mantissa.partition('.')
    digits = (whole + fraction).lstrip('0')
    bare = digits.rstrip('0')
    if not bare:
        return '0'
    if len(exponent.lstrip('+-0')) > 18:
        raise Refused('exponent')
    last = int(exponent or '0') - len(fraction) + len(digits) - len(bare)  # place of the last digit
    point = len(bare) + last  # digits in front of the point
    if point > PLACES_MAX or last < -PLACES_MAX:
        raise Refused('exponent')
    if 0 < point <= 21:
        body = bare.ljust(point, '0') if point >= len(bare) else bare[:point] + '.' + bare[point:]
    elif -6 < point <= 0:
        body = '0.' + '0' * -point + bare
    else:
        body = bare[0] + ('.' + bare[1:] if len(bare) > 1 else '') + 'e%+d' % (point - 1)
    return sign + body


def string(value):
    try:
        value.encode()
    except UnicodeEncodeError as wrong:
        raise Refused('surrogate') from wrong
    return json.dumps(value, ensure_ascii=False)


def canonical(value):
    if value is None:
        return 'null'
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, Number):
        return number(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, list):
        return '[' + ','.join(map(canonical, value)) + ']'
    inside = list(value.items())
    if len(inside) == 1 and inside[0][0] == '$set' and isinstance(inside[0][1], list):
        elements = sorted(map(canonical, inside[0][1]), key=str.encode)
        return '{"$set":[' + ','.join(elements) + ']}'
    if len(inside) == 1 and inside[0][0] == '$map' and isinstance(inside[0][1], list) and all(
            isinstance(pair, list) and len(pair) == 2 for pair in inside[0][1]):
        pairs = sorted(((canonical(k), canonical(v)) for k, v in inside[0][1]),
                       key=lambda pair: pair[0].encode())
        if len({key for key, _ in pairs}) != len(pairs):
            raise Refused('a key twice')
        return '{"$map":[' + ','.join(f'[{k},{v}]' for k, v in pairs) + ']}'
    inside.sort(key=lambda member: member[0].encode('utf-16-be', 'surrogatepass'))
    return '{' + ','.join(string(n) + ':' + canonical(v) for n, v in inside) + '}'


def of_case(case):
    """The three computed members, or none where it is refused."""
    if case['kind'] == 'identity':
        scope = case['scope']
        if not case['operation'] or len(case['operation'].encode()) > 512:
            raise Refused('operation')
        if scope is not None and (not scope or not all(scope.values())
                                  or not set(scope) <= {'tenant', 'user'}):
            raise Refused('scope')
        text = '[' + ','.join([canonical(case['operation']), canonical(scope),
                               canonical(parse(case['arguments']))]) + ']'
    else:
        text = canonical(parse(case['json']))
    digest = hashlib.sha256(text.encode()).hexdigest()
    made = {'canonical': text, 'sha256': digest[:32]}
    if case['kind'] == 'identity':
        made['key'] = digest
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--write', action='store_true')
    write = parser.parse_args().write
    table = json.loads(CASES.read_text(encoding='utf-8'))
    wrong = 0
    for case in table['cases']:
        try:
            made = of_case(case)
            if 'error' in case:
                made = {'error': 'not refused'}
        except Refused:
            made = {'error': case.get('error', 'refused')}
        if any(case.get(name) != value for name, value in made.items()):
            wrong += 1
            if not write:
                print(f"{case['name']}: {made}", file=sys.stderr)
            case.update(made)
    for value in table['values']:
        if 'json' in value and canonical(parse(value['json'])) != value['json']:
            wrong += 1
            print(f"{value['name']}: not canonical", file=sys.stderr)
        if value['type'] == 'bytes':
            assert json.loads(value['json'])['$bytes'] == base64.b64encode(
                bytes.fromhex(value['value'])).decode(), value
    if write:
        CASES.write_text(json.dumps(table, ensure_ascii=True, indent=1) + '\n', encoding='utf-8')
    print(f"{len(table['cases'])} cases, {len(table['values'])} values, {wrong} wrong")
    return 0 if write or not wrong else 1


if __name__ == '__main__':
    sys.exit(main())
