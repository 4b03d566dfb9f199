#!/usr/bin/env python3
"""Pages for man out of what the program says of itself, so that they cannot differ from it.

manual.py PROGRAM DIR writes DIR/semel.1 and a page for each subcommand, DIR/semel-NAME.1.
"""

import re
import subprocess
import sys
from pathlib import Path


def helped(program, *words):
    """What `program WORDS --help` prints; the same on every machine."""
    # In a wide terminal or none, the text is folded the same; man folds it again.
    text = subprocess.run([program, *words, '--help'], capture_output=True, text=True, timeout=60,
                          check=True).stdout
    text = re.sub(r'(\w+ of the\s+memory), [\d.]+ [KMGT]iB here', r'\1', text)
    if 'here' in text and re.search(r'iB\s+here', text):
        raise SystemExit(f'the help of {" ".join(words)} tells of this machine')
    return text


def roff(text):
    """Text that roff leaves as it is."""
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return re.sub(r"^(?=[.'])", r'\\&', text, flags=re.MULTILINE)


def items(lines):
    """Lines `  what    text` and those that go on in the second column, as (what, text). What is
    too long for its column has its text in the next line."""
    found = []
    for line in lines:
        match = re.fullmatch(r'  (\S.*?)(?:\s{2,}(\S.*))?', line)
        long = re.fullmatch(r'  (-\S+ (?:\S+ \.\.\.|\S+)) (\S.*)', line)
        if match and not match.group(2) and long:
            match = long
        if match and not line.startswith('   '):
            found.append([match.group(1), match.group(2) or ''])
        elif line.strip() and found:
            found[-1][1] = f'{found[-1][1]} {line.strip()}'.strip()
    return found


def section(title, lines):
    body = [line for line in lines if line.strip()]
    out = [f'.SH {roff(title).upper()}']
    listed = items(body)
    if listed and all(line.startswith('  ') for line in body):
        for what, text in listed:
            out += ['.TP', f'.B {roff(what)}', roff(text) or '\\&']
    else:
        out += verbatim(lines)
    return out


def verbatim(lines):
    """Paragraphs; what is indented stays as it is, an `Exit codes` or `Window:` becomes bold."""
    out = []
    for paragraph in re.split(r'\n\s*\n', '\n'.join(lines).strip('\n')):
        rows = paragraph.split('\n')
        if any(row.startswith('  ') for row in rows):
            plain = [row for row in rows if not row.startswith('  ')]
            out += ['.PP', *map(roff, plain), '.nf', '.RS']
            out += [roff(row[2:]) for row in rows if row.startswith('  ')]
            out += ['.RE', '.fi']
        else:
            out += ['.PP', *map(roff, rows)]
    return out


def split(lines):
    """Of a help: its sections, `Title:` at the left with indented lines below it, as [(title,
    lines)], and the other lines."""
    sections, rest = [], []
    is_inside = False
    for line in lines:
        heading = re.fullmatch(r'([A-Za-z]\w*):', line)
        if heading and heading.group(1) != 'Examples':
            is_inside = True
            sections.append((heading.group(1), []))
        elif is_inside and (not line.strip() or line.startswith(' ')):
            sections[-1][1].append(line)
        else:
            is_inside = False
            rest.append(line)
    return sections, rest


def page(name, text, version, others):
    lines = text.split('\n')
    about = lines[0].rstrip('.')
    usage = lines[1].removeprefix('Usage: ')
    words = usage[:len(name)]  # the name may have a hyphen of its own
    if words.replace(' ', '-') != name or not about:
        raise SystemExit(f'{name}: this help begins otherwise: {lines[:2]}')
    about = about[0].lower() + about[1:] if name != 'semel' else 'do the same work once'
    out = [f'.TH {name.upper()} 1 "" "Semel {version}" "User Commands"', '.SH NAME',
           f'{roff(name)} \\- {roff(about)}', '.SH SYNOPSIS',
           f'.B {roff(words)}', roff(usage[len(words):].strip())]
    if name == 'semel':
        out += ['.SH DESCRIPTION', roff(lines[0])]
    sections, rest = split(lines[2:])
    for title, held in sections:
        out += section(title, held)
    if any(line.strip() for line in rest):
        out += ['.SH NOTES', *verbatim(rest)]
    out += ['.SH SEE ALSO', ',\n'.join(f'.BR {roff(other)} (1)' for other in others
                                       if other != name).replace(',\n', ' ,\n')]
    return '\n'.join(out) + '\n'


def below(program, *words):
    """The words of each subcommand, and of each that it has itself."""
    listed = re.search(r'^Subcommands:\n((?:  .*\n)+)', helped(program, *words), re.MULTILINE)
    found = []
    for what, _ in items(listed.group(1).split('\n')) if listed else ():
        found += [[*words, what], *below(program, *words, what)]
    return found


def main():
    program, folder = sys.argv[1], Path(sys.argv[2])
    version = subprocess.run([program, '--version'], capture_output=True, text=True, timeout=60,
                             check=True).stdout.split()[-1]
    subcommands = below(program)
    names = ['semel', *('-'.join(['semel', *words]) for words in subcommands)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in zip(names, ([], *subcommands)):
        (folder / f'{name}.1').write_text(page(name, helped(program, *words), version, names),
                                          encoding='utf-8')
    print(f'manual: {len(names)} pages')


if __name__ == '__main__':
    main()
