"""What mkdocs does not look at: check.py SITE ROOT

Links and anchors of the pages as they were written, that nothing is fetched from elsewhere, that
Markdown did not stay Markdown, figures and error texts of two pages, and sizes. External links
are counted, not fetched. First each check must find a planted fault.
"""

import errno
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

MEBIBYTE = 1 << 20
SITE_MAX = 14 * MEBIBYTE     # without the reference of headers
PAGE_MAX = 5 * MEBIBYTE // 8
PICTURE_MAX = 16 << 10
FETCHED = {'script': 'src', 'img': 'src', 'iframe': 'src', 'source': 'src', 'link': 'href'}


class Page(html.parser.HTMLParser):
    """Links, anchors and what a browser fetches by itself."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.anchors, self.texts = [], [], set(), []
        self.paths = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ('id', 'name') if attrs.get(name))
        if tag == 'a' and attrs.get('href') is not None:
            self.links.append(attrs['href'])
        if tag in FETCHED and attrs.get(FETCHED[tag]):
            if tag != 'link' or attrs.get('rel') not in ('canonical', 'prev', 'next'):
                self.fetched.append(attrs[FETCHED[tag]])
        if tag not in ('br', 'hr', 'img', 'input', 'link', 'meta'):
            self.paths.append(tag)

    def handle_endtag(self, tag):
        while self.paths and self.paths.pop() != tag:
            pass

    def handle_data(self, data):
        if not {'code', 'pre', 'script', 'style', 'title'} & set(self.paths):
            self.texts.append((self.paths[-1] if self.paths else '', data))


def is_external(target):
    return bool(urlsplit(target).scheme or urlsplit(target).netloc)


def check_links(site, pages):
    wrong, counts = [], {'links': 0, 'anchors': 0, 'external': 0}
    for path, page in pages.items():
        if path.name == '404.html':
            continue
        for target in page.links + page.fetched:
            if target.startswith(('data:', 'javascript:')):
                continue
            if is_external(target):
                counts['external'] += 1
                continue
            counts['links'] += 1
            parts = urlsplit(target)
            found = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not found.is_file():
                wrong.append(f'{path.relative_to(site)}: {target} leads nowhere')
            elif parts.fragment and found in pages and parts.fragment != '__top':
                counts['anchors'] += 1
                if unquote(parts.fragment) not in pages[found].anchors:
                    wrong.append(f'{path.relative_to(site)}: no anchor {target}')
    return wrong, counts


def check_fetched(site, pages):
    return [f'{path.relative_to(site)}: fetches {target}' for path, page in pages.items()
            for target in page.fetched if is_external(target) and not target.startswith('data:')]


def check_markdown(site, pages):
    """A table or list that was not read as one, or a fence that was not closed."""
    wrong = []
    for path, page in pages.items():
        for tag, text in page.texts:
            if re.search(r'\|---|^\| .* \|$|^\s*```|^[-*] \S', text, re.M) and tag in ('p', 'li'):
                wrong.append(f'{path.relative_to(site)}: not read as Markdown: {text.strip()[:60]}')
    return wrong


def check_navigation(names, nav):
    """mkdocs warns of a page that is in no navigation, and a warning ends the build. Here it is
    seen without mkdocs."""
    listed = set(re.findall(r'[\w/-]+\.md$', nav, re.M))
    return [f'{name} is not below nav in docs/site/mkdocs.yml' for name in names
            if name not in listed]


def numbers_of(cells):
    return [cell for cell in cells if re.fullmatch(r'[\d,]*\.?\d+x?', cell)]


def check_figures(page, results):
    """Each row of figures on the comparison page is a row of bench/RESULTS.md."""
    rows = [[cell.strip() for cell in line.strip('|').split('|')]
            for line in results.split('\n') if line.startswith('|')]
    wrong, seen = [], 0
    for line in page.partition('## Figures')[2].split('\n'):
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        figures = numbers_of(cells)
        if not line.startswith('|') or not figures:
            continue
        seen += 1
        if not any(row[0] == cells[0] and set(figures) <= set(row) for row in rows):
            wrong.append(f'compare.md: not in bench/RESULTS.md: {line}')
    return wrong if seen else ['compare.md: no figures']


def words_of(root):
    """What the sources say: their literals, those in pieces put together; and what the system
    says."""
    text = [os.strerror(number) for number in errno.errorcode]
    for folder in ('include', 'engine', 'storage', 'net', 'replication', 'lua_compat', 'patterns',
                   'tools/semel', 'bindings'):
        for path in sorted((root / folder).rglob('*')):
            if path.suffix in ('.cpp', '.hpp', '.def', '.py'):
                source = re.sub(r'"\s*\n\s*"', '', path.read_text())
                text.append(source.replace('\\"', '"'))
    return '\n'.join(text)


def check_errors(page, words):
    """Each text in the first column of troubleshooting stands in the sources, piece by piece."""
    wrong, seen = [], 0
    for line in page.partition('## Replies of a node')[2].split('\n'):
        if not line.startswith('| `'):
            continue
        for text in re.findall(r'`([^`]+)`', line.split(' | ')[0]):
            seen += 1
            # The first word of a reply may be written apart from its sentence.
            pieces = re.sub(r'^[A-Z]{2,} (?=.)', '', text).split('..')
            if not all(piece.strip(" '") in words for piece in pieces):
                wrong.append(f'troubleshooting.md: no source says {text!r}')
    return wrong if seen else ['troubleshooting.md: no errors']


def check_ranking(answers, wanted):
    """Each guide is among the first three pages for the words that people type."""
    return [f'search: {query!r} finds {page} not in the first three: {found[:5]}'
            for (query, page), found in zip(wanted.items(), answers) if page not in found[:3]]


def search(site, queries):
    """Pages in the order of the site's own search; None: there is no Node.js."""
    node = shutil.which('node') or shutil.which('nodejs')
    if node is None:
        return None
    done = subprocess.run([node, str(Path(__file__).with_name('ranking.js')), str(site), *queries],
                          capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def size_of(site, chosen):
    return sum(path.stat().st_size for path in site.rglob('*')
               if path.is_file() and chosen(path.relative_to(site).as_posix()))


def check_sizes(site, pictures):
    size = size_of(site, lambda name: not name.startswith('api/'))
    wrong = [f'the site without its reference has {size} bytes'] if size > SITE_MAX else []
    for path in site.rglob('*.html'):
        if path.stat().st_size > PAGE_MAX:
            wrong.append(f'{path.relative_to(site)} has {path.stat().st_size} bytes')
    wrong += [f'{path.name} has {path.stat().st_size} bytes' for path in pictures.glob('*.svg')
              if path.stat().st_size > PICTURE_MAX]
    return wrong, size


def read(site):
    return {path.resolve(): Page(path.read_text()) for path in sorted(site.rglob('*.html'))}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder).resolve()
        (site / 'a.html').write_text(
            '<a href="b.html">x</a><a href="#no">x</a><a href="https://x.org">x</a>'
            '<script src="https://cdn.org/x.js"></script><p>| a | b |\n|---|---|</p><h2 id="y">')
        pages = read(site)
        wrong, counts = check_links(site, pages)
        found = (len(wrong), counts['external'], len(check_fetched(site, pages)),
                 len(check_markdown(site, pages)),
                 len(check_navigation(['a.md', 'b.md'], 'nav:\n  - b.md\n')),
                 len(check_figures('## Figures\n| x | 2.0 |', '| x | 2.1 |')),
                 len(check_errors('## Replies of a node\n| `ERR wrong thing` | y |', '"right"')),
                 len(check_ranking([['a', 'b', 'c', 'd'], ['d']], {'x': 'd', 'y': 'd'})))
        if found != (2, 2, 1, 1, 1, 1, 1, 1):
            sys.exit(f'check: planted faults are not found: {found}')


def main():
    site, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    self_test()
    pages = read(site)
    wrong, counts = check_links(site, pages)
    too_large, size = check_sizes(site, root / 'docs/pictures')
    wrong += check_fetched(site, pages) + check_markdown(site, pages) + too_large
    names = [path.relative_to(root / 'docs').as_posix() for path in (root / 'docs').rglob('*.md')
             if path.parent.name not in ('decisions', 'site')]
    wrong += check_navigation(sorted(names), (root / 'docs/site/mkdocs.yml').read_text())
    wrong += check_figures((root / 'docs/compare.md').read_text(),
                           (root / 'bench/RESULTS.md').read_text())
    wrong += check_errors((root / 'docs/troubleshooting.md').read_text(), words_of(root))
    ranking = json.loads(Path(__file__).with_name('ranking.json').read_text())
    answers = search(site, list(ranking))
    if answers is None:
        print('docs: the search is not asked, there is no Node.js')
    else:
        wrong += check_ranking(answers, ranking)
    if not (site / 'search/search_index.js').is_file():
        wrong.append('no index to search without a server')
    for line in wrong:
        print(f'docs: ERROR: {line}')
    print(f"docs: {len(pages)} pages, {counts['links']} links, {counts['anchors']} anchors, "
          f"{counts['external']} external links not fetched, {size / MEBIBYTE:.1f} MiB without the "
          f'reference, {len(wrong)} errors')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
