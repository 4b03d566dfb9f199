"""Pages of the headers, made of what Doxygen has read: pages(XML, ROOT) -> {path: Markdown}.

A page for each header, in the order of its declarations. A declaration without a comment belongs to
the one above it, as in the headers.
"""

import html
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PARTS = (
    ('Core', ('engine', 'claims', 'claim', 'policies', 'store', 'op', 'hashes', 'section', 'types',
              'result', 'options', 'limits', 'stats', 'clock', 'cached_clock', 'process',
              'codec', 'version')),
    ('Patterns', ('patterns/',)),
    ('Durability', ('storage', 'storage_tools', 'journal', 'memory_journal', 'cold',
                    'cold_directory', 'rocksdb', 'replication')),
    ('Redis in process', ('local_redis', 'group_node')),
)
MEMBERS = ('function', 'variable', 'typedef', 'define', 'enum', 'friend')


def text_of(element):
    """The paragraphs of a comment, as HTML: `code` is code."""
    if element is None:
        return ''
    paragraphs = []
    for para in element.iter('para'):
        if not any(child.tag == 'para' for child in para):
            words = re.sub(r'\s+', ' ', ''.join(para.itertext())).strip()
            if words:
                paragraphs.append(re.sub(r'`([^`]+)`', r'<code>\1</code>',
                                         html.escape(words, quote=False)))
    return ''.join(f'<p>{words}</p>\n' for words in paragraphs)


def tidy(code):
    """As clang-format would have it, and without what the reader knows: semel::."""
    code = re.sub(r'\b(semel::)+', '', code)
    code = re.sub(r'< (?=[^ =<])', '<', code)
    code = re.sub(r'(?<=[^ =<>]) >', '>', code)
    code = re.sub(r' ([&*]+) ?(?=[\w.])', r'\1 ', re.sub(r'\s+', ' ', code))
    return re.sub(r'(?<=\w)=(?=[\w{])', ' = ', code).strip()


def plain(element, name):
    found = element.find(name)
    return '' if found is None else ' '.join(''.join(found.itertext()).split())


def template_of(member):
    found = member.find('templateparamlist')
    if found is None:
        return ''
    parts = [f"{plain(p, 'type')} {plain(p, 'declname')}".strip() for p in found.iter('param')]
    return f"template <{', '.join(parts)}>\n"


def signature(member):
    kind, name = member.get('kind'), plain(member, 'name')
    if kind == 'define':
        params = [plain(p, 'defname') for p in member.iter('param')]
        return f"#define {name}({', '.join(params)})" if params else f'#define {name}'
    if kind == 'typedef':
        if plain(member, 'definition').startswith('using'):
            return tidy(f"using {name} = {plain(member, 'type')}") + ';'
        return tidy(f"typedef {plain(member, 'type')} {name}{plain(member, 'argsstring')}") + ';'
    words = f"{plain(member, 'type')} {name}{plain(member, 'argsstring')}"
    if member.get('static') == 'yes' and not words.startswith('static'):
        words = 'static ' + words
    if member.get('explicit') == 'yes' and not words.startswith('explicit'):
        words = 'explicit ' + words
    start = plain(member, 'initializer')
    if kind == 'variable' and start and len(start) < 60:
        words += (' ' if start.startswith('=') else '') + start
    return template_of(member) + tidy(words.replace('[[nodiscard]]', '')) + ';'


def comment_of(member):
    """A comment of one line is a brief description to Doxygen."""
    return (text_of(member.find('briefdescription')) +
            text_of(member.find('detaileddescription')))


def row(code, member):
    words = comment_of(member)
    return f'<tr><td><code>{html.escape(code)}</code></td><td>{words}</td></tr>\n'


def enum_block(member):
    name = plain(member, 'name')
    name = '' if name.startswith('@') else name
    head = f"enum {'class ' if member.get('strong') == 'yes' else ''}{name}".strip()
    values = [plain(value, 'name') for value in member.findall('enumvalue')]
    if values in ([], ['SEMEL_X']):  # of a table of macros
        return [f'```cpp\n{head};\n```\n\nIts values are in [errors](../errors.md).\n']
    rows = ''.join(row(f"{plain(v, 'name')} {plain(v, 'initializer')}".strip(), v)
                   for v in member.findall('enumvalue'))
    return [f'```cpp\n{head}\n```\n', f'<table>\n{rows}</table>\n']


def blocks_of(members):
    """Declarations with their comments; fields as one table."""
    out, code, words, fields = [], [], '', []

    def flush():
        if code:
            out.append('```cpp\n' + '\n'.join(code) + '\n```\n')
            out.append(f'<div class="semel-words">\n{words}</div>\n' if words else '')
            code.clear()
        if fields:
            out.append('<table>\n' + ''.join(fields) + '</table>\n')
            fields.clear()

    for member in members:
        comment = comment_of(member)
        if member.get('kind') == 'enum':
            flush()
            out += enum_block(member)[:1] + [comment] + enum_block(member)[1:]
        elif member.get('kind') == 'variable' and member.get('static') != 'yes':
            if code:
                flush()
            fields.append(row(signature(member).rstrip(';'), member))
        else:
            if comment or fields:
                flush()
                words = comment
            elif not code:
                words = ''
            code.append(signature(member))
    flush()
    return [block for block in out if block]


def line_of(element):
    return int(element.find('location').get('line'))


def c_head(text):
    """The comment at the head of the C header: words, a program, and terms with what they mean."""
    out = []
    for block in html.escape(text, quote=False).split('\n\n'):
        if block.startswith('  '):
            out.append(f'<pre><code>{block}</code></pre>')
        elif re.match(r'[A-Z]\w+ {2,}', block):
            terms = re.split(r'^([A-Z]\w+) {2,}', block, flags=re.M)[1:]
            out += [f'<p><strong>{term}</strong> {" ".join(words.split())}</p>'
                    for term, words in zip(terms[::2], terms[1::2])]
        else:
            out.append(f'<p>{" ".join(block.split())}</p>')
    return '\n'.join(out)


class Headers:
    def __init__(self, folder, root):
        self.root = root
        self.scopes = {}   # header -> [compound]
        self.members = {}  # header -> {id: member}
        for path in sorted(Path(folder).glob('*.xml')):
            if path.name != 'index.xml' and path.name != 'Doxyfile.xml':
                self.read(ElementTree.parse(path).getroot().find('compounddef'))

    def read(self, compound):
        name = plain(compound, 'compoundname')
        if 'detail' in name.split('::'):
            return
        if compound.get('kind') in ('class', 'struct'):
            if compound.get('prot') != 'private':
                self.scopes.setdefault(compound.find('location').get('file'), []).append(compound)
        elif compound.get('kind') in ('namespace', 'file'):
            for member in compound.iter('memberdef'):
                if 'detail' not in plain(member, 'qualifiedname').split('::'):
                    header = member.find('location').get('file')
                    self.members.setdefault(header, {})[member.get('id')] = member

    def head_of(self, header):
        """What the comment at the head of a header says; its first line is the page's sentence."""
        text = (self.root / 'include' / header).read_text()
        if text.startswith('/*'):
            lines = text[2:].split('*/')[0].split('\n')
            return c_head('\n'.join(re.sub(r'^ [*] ?', '', line) for line in lines).strip())
        lines = text.split('\n')
        words = []
        for line in lines:
            if not line.startswith('//'):
                break
            words.append(line[2:].strip())
        text = html.escape(' '.join(words).split('Source:')[0].strip(), quote=False)
        return '<p>' + re.sub(r'`([^`]+)`', r'<code>\1</code>', text) + '</p>' if text else ''

    def scope_block(self, compound):
        name = plain(compound, 'compoundname').replace('semel::', '')
        shown = [m for m in compound.iter('memberdef')
                 if m.get('prot') == 'public' and m.get('kind') in MEMBERS[:-1]
                 and not re.search(r'= ?delete', plain(m, 'argsstring'))]
        shown.sort(key=line_of)
        return [f'## {name}\n', comment_of(compound)] + blocks_of(shown)

    def page(self, header):
        out = [f'# {header}\n', self.head_of(header) + '\n',
               f'```cpp\n#include <{header}>\n```\n']
        free = sorted(self.members.get(header, {}).values(), key=line_of)
        free = [m for m in free if not plain(m, 'name').startswith(('SEMEL_X', 'SEMEL_TRY_JOIN'))]
        scopes = sorted(self.scopes.get(header, []), key=line_of)
        if not free and not scopes:
            return None
        out += [block for scope in scopes for block in self.scope_block(scope)]
        if free:
            out += ['## Functions and names\n'] + blocks_of(free)
        return '\n'.join(block for block in out if block)


def errors_page(root):
    """The table of error codes."""
    text = (root / 'include/semel/error_codes.def').read_text()
    rows = re.findall(r'^SEMEL_X\((\w+), +(\d+), +(\w+), +"(\w+)", +"(.*)"\)', text, re.M)
    lines = '\n'.join(f'| `{name}` | {number} | {retry.replace("_", " ")} | `{prefix}` | {words} |'
                      for name, number, retry, prefix, words in rows)
    return ('# Errors\n\nNames, numbers and sentences are those of `semel/error_codes.def`. '
            'Numbers are never reused. *Retry* says what may follow: never, the same call fails '
            'again; later, room may come back; read first, the call may have been applied, so look '
            'before it is repeated.\n\n'
            '| name | number | retry | first word of a node\'s reply | sentence |\n'
            f'|---|---|---|---|---|\n{lines}\n')


def pages(folder, root):
    """({path: Markdown}, nav of the C++ headers)"""
    headers = Headers(folder, root)
    known = {}
    for path in sorted((root / 'include').rglob('*.hpp')) + [root / 'include/semel.h']:
        header = str(path.relative_to(root / 'include'))
        page = headers.page(header)
        if page:
            known[header] = page
    found, nav, left = {}, [], set(known) - {'semel.h'}
    for title, names in PARTS:
        entries = []
        for name in names:
            chosen = sorted(h for h in left if h == f'semel/{name}.hpp' or
                            (name.endswith('/') and h.startswith(f'semel/{name}')))
            left -= set(chosen)
            entries += chosen
        nav.append({title: [{h.split('/')[-1]: path_of(h)} for h in entries]})
    if left:
        nav.append({'Others': [{h.split('/')[-1]: path_of(h)} for h in sorted(left)]})
    for header, page in known.items():
        found[path_of(header)] = page
    found['api/errors.md'] = errors_page(root)
    return found, nav


def path_of(header):
    return 'api/c/semel.md' if header == 'semel.h' else f'api/cpp/{Path(header).stem}.md'
