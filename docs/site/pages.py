"""From the tree's Markdown to the site's: where a file's page is, links, includes, and the few
places where Python-Markdown wants another form than GitHub."""

import posixpath
import re

# Pages that live elsewhere in the tree.
ELSEWHERE = {
    'README.md': 'overview.md',
    'CHANGELOG.md': 'changelog.md',
    'CONTRIBUTING.md': 'contributing.md',
    'SECURITY.md': 'security.md',
    'bench/RESULTS.md': 'results.md',
}
# Pages that include these, once they are there.
CLIENTS = {f'clients/{name}/README.md': f'start/{name}.md' for name in ('java', 'go', 'node')}
LINK = re.compile(r'(!?\[[^\]]*\])\(([^)\s]+)\)')
INCLUDE = re.compile(r'^\[[^\]]*\]\(([^)#\s]+)(?:#([^)\s]+))?\) <!-- include -->$', re.M)
FENCE = re.compile(r'^( *)(```+|~~~+)')
ITEM = re.compile(r'^ *([-*+]|\d+[.)]) ')
LANGUAGES = {'.cpp': 'cpp', '.hpp': 'cpp', '.py': 'python', '.h': 'c'}


def slug(heading, separator='-'):
    """The anchor of a heading, as GitHub makes it."""
    del separator
    return re.sub(r'[^\w -]', '', re.sub(r'<[^>]*>', '', heading).lower()).replace(' ', '-')


def page_of(path, root):
    """The page of a file of the tree, by its path from the root; None if there is no such file."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    target = root / path
    if path in CLIENTS and target.exists():
        return CLIENTS[path]
    if path == 'docs/decisions':
        return 'decisions/index.md'
    if path.startswith('docs/'):
        return path[len('docs/'):] if target.exists() else None
    if target.is_file():
        return path if target.suffix in ('.svg', '.png') else f'source/{path}.md'
    return None


def outside_code(text, change):
    """`change` applied to what is between fences of code."""
    out, inside, part = [], None, []
    for line in text.split('\n'):
        fence = FENCE.match(line)
        if inside is None and fence:
            out.append(change('\n'.join(part)) if part else None)
            part, inside = [line], fence.group(2)
        elif inside is not None:
            part.append(line)
            if fence and fence.group(2) == inside and line.strip() == inside:
                out.append('\n'.join(part))
                part, inside = [], None
        else:
            part.append(line)
    if part:
        out.append(change('\n'.join(part)) if inside is None else '\n'.join(part))
    return '\n'.join(piece for piece in out if piece is not None)


def relink(text, origin, page, root):
    """Links of the file `origin` as they are seen from `page`."""
    def one(match):
        words, target = match.groups()
        if re.match(r'[a-z]+:|#', target):
            return match.group(0)
        path, _, anchor = target.partition('#')
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        found = page_of(path, root)
        if found is None:
            return match.group(0)  # mkdocs says that it leads nowhere
        found = posixpath.relpath(found, posixpath.dirname(page) or '.')
        return f'{words}({found}{"#" + anchor if anchor else ""})'
    return outside_code(text, lambda part: LINK.sub(one, part))


def links_of(text, origin):
    """The files of the tree that a file links to."""
    found = set()

    def collect(part):
        for _, target in LINK.findall(part):
            path = target.partition('#')[0]
            if path and not re.match(r'[a-z]+:', target):
                found.add(posixpath.normpath(posixpath.join(posixpath.dirname(origin), path)))
        return part
    outside_code(text, collect)
    return found


def section(text, anchor):
    """What stands under a heading, up to the next one of its level or a higher one."""
    lines, inside, level, taken = text.split('\n'), False, 0, []
    for line in lines:
        if FENCE.match(line):
            inside = not inside
        heading = None if inside else re.match(r'(#+) (.*)', line)
        if heading and level and len(heading.group(1)) <= level:
            break
        if level:
            taken.append(line)
        elif heading and slug(heading.group(2)) == anchor:
            level = len(heading.group(1))
    return '\n'.join(taken).strip('\n') if level else None


def include(text, origin, page, root):
    """A line that is a link and `<!-- include -->` becomes what it links to: a section, or a page
    without its first heading. Of a file that is not there yet nothing is left."""
    def one(match):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match.group(1)))
        if not (root / path).is_file():
            return ''
        words = (root / path).read_text()
        words = section(words, match.group(2)) if match.group(2) else \
            re.sub(r'\A# .*\n', '', words)
        if words is None:
            raise ValueError(f'{origin}: no heading {match.group(2)} in {path}')
        return relink(words, path, page, root)
    return INCLUDE.sub(one, text)


TABS = re.compile(r'<!-- tabs -->\n(.*?)<!-- end of tabs -->', re.S)
TAB = re.compile(r'\*\*(.+?)\*\*\n\n(```.*?\n```)', re.S)


def tabs(text):
    """Blocks of code that each have a name in bold before them, as tabs of these names."""
    def one(match):
        found = TAB.findall(match.group(1))
        return '\n\n'.join(f'=== "{name}"\n\n    ' + code.replace('\n', '\n    ')
                           for name, code in found)
    return TABS.sub(one, text)


def for_python_markdown(text):
    """A list and a table may follow a line of text at once; lists inside of lists need 4 spaces."""
    def change(part):
        out, in_list = [], False
        for line in part.split('\n'):
            before = out[-1] if out else ''
            if ITEM.match(line):
                if before.strip() and not in_list:
                    out.append('')
                in_list = True
                spaces = len(line) - len(line.lstrip())
                line = ' ' * (4 * ((spaces + 1) // 2)) + line.lstrip() if spaces else line
            elif line.startswith('|') and before.strip() and not before.startswith('|'):
                out.append('')
                in_list = False
            elif line.strip() and not line.startswith(' ') and not before.strip():
                in_list = False
            out.append(line)
        return '\n'.join(out)
    return outside_code(text, change)
