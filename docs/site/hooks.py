"""What the site has beyond the pages of docs/: pages of the rest of the tree, the reference of
headers, the list of decisions, and pictures that follow the reader's colours."""

import os
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import pages  # noqa: E402
import reference  # noqa: E402

XML = Path(os.environ.get('SEMEL_DOXYGEN_XML', ROOT / 'build/docs/doxygen/xml'))
ORIGINS = {page: path for path, page in pages.ELSEWHERE.items()}
made = {}  # page -> Markdown
# What the search shows first and last; docs/site/ranking.json holds it to that.
GUIDES = ('patterns', 'keys', 'identity', 'gateway', 'redis-for-tests', 'moving', 'guarantees',
          'troubleshooting')
INSIDE = ('architecture', 'changelog', 'contributing', 'disk-format', 'memory-model', 'results',
          'replication-wire', 'testing', 'overview')


def title_of(path):
    return re.match(r'# (.*)', path.read_text()).group(1)


def decisions():
    return sorted((ROOT / 'docs/decisions').glob('*.md'))


def source_pages():
    """Files that pages link to, as pages."""
    linked = set()
    for path in [*(ROOT / 'docs').rglob('*.md'), *(ROOT / name for name in pages.ELSEWHERE),
                 *ROOT.glob('clients/*/README.md')]:
        linked |= pages.links_of(path.read_text(), path.relative_to(ROOT).as_posix())
    for path in sorted(linked):
        page = pages.page_of(path, ROOT) if not path.startswith('..') else None
        if page and page.startswith('source/'):
            text = (ROOT / path).read_text()
            language = pages.LANGUAGES.get(Path(path).suffix, 'text')
            yield page, (f'---\nsearch:\n  exclude: true\n---\n# {Path(path).name}\n\n`{path}`\n\n'
                         f'````{language}\n{text}````\n')


def on_config(config):
    config.mdx_configs.setdefault('toc', {})['slugify'] = pages.slug
    version = re.search(r'#define SEMEL_VERSION "([^"]+)"',
                        (ROOT / 'include/semel/version.hpp').read_text()).group(1)
    config.site_name = f'Semel {version}'
    made.clear()
    made.update(source_pages())
    for page, path in ORIGINS.items():
        made[page] = (ROOT / path).read_text()
    rows = ''.join(f'- [{title_of(path)}]({path.name})\n' for path in decisions())
    made['decisions/index.md'] = (
        '# Decisions\n\nWhat was chosen, from what options, with what it costs and how it is '
        f'tested.\n\n{rows}')
    headers, nav = reference.pages(XML, ROOT)
    made.update(headers)
    made['api/python.md'] = '# Python\n\n::: semel\n'
    made['api/python-aio.md'] = '# Python: asyncio\n\n::: semel.aio\n'
    made['api/index.md'] = (
        '# Reference\n\nFrom the headers and docstrings, which are the contracts: '
        '[C++](cpp/engine.md), [C](c/semel.md), [Python](python.md) and '
        '[its asyncio](python-aio.md), [errors](errors.md). '
        'Commands of a node: [claims](../claims-on-the-wire.md), '
        '[those of Redis](../compatibility.md). '
        'Settings and metrics: [operations](../operations.md).\n')
    lists = {
        'API': ['api/index.md', {'Errors': 'api/errors.md'}, {'C': 'api/c/semel.md'},
                {'Python': 'api/python.md'}, {'Python: asyncio': 'api/python-aio.md'},
                {'C++': nav}],
        'Decisions': ['decisions/index.md',
                      *(f'decisions/{path.name}' for path in decisions())]}
    for section in config.nav:
        for entry in next(iter(section.values())):
            for name in lists.keys() & (entry if isinstance(entry, dict) else {}):
                entry[name] = lists[name]
    return config


def on_files(files, config):
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    for path in ('bench/results.svg',):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    for file in files.documentation_pages():
        if file.src_uri.startswith('source/'):
            file.inclusion = file.inclusion.NOT_IN_NAV
    return files


def search_weight(uri):
    """A page that explains comes before one that lists, and both before one about the inside."""
    if uri.startswith(('api/', 'decisions/', *(f'{name}.md' for name in INSIDE))):
        return 0.001
    return 4 if uri.startswith(('start/', *(f'{name}.md' for name in GUIDES))) else 1


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    page.meta.setdefault('search', {}).setdefault('boost', search_weight(uri))
    if uri.startswith(('api/', 'source/')):
        return markdown
    origin = ORIGINS.get(uri, 'docs/' + uri)
    if uri != 'decisions/index.md':
        # Its own links first: those of what is included are relinked from where they stand.

        text = pages.INCLUDE.sub('\0', markdown)
        links = [match.group(0) for match in pages.INCLUDE.finditer(markdown)]
        text = pages.relink(text, origin, uri, ROOT)
        for link in links:
            text = text.replace('\0', pages.include(link, origin, uri, ROOT), 1)
        markdown = text
    return pages.for_python_markdown(pages.tabs(markdown))


def on_page_content(html, page, config, files):
    """A picture of ours becomes part of the page, so that it takes the page's colours."""
    def one(match):
        words, name = match.group(1), match.group(2)
        svg = (ROOT / 'docs/pictures' / name).read_text()
        svg = svg[svg.index('<svg'):].replace('<svg', f'<svg role="img" aria-label="{words}"', 1)
        return f'<div class="semel-picture" data-search-exclude>{svg}</div>'
    return re.sub(r'<img alt="([^"]*)" src="(?:\.\./)*pictures/([\w-]+\.svg)" ?/?>', one, html)


def on_post_build(config):
    """Nothing that a reader's browser would not ask for."""
    site = Path(config.site_dir)
    for path in [*site.rglob('*.map'), *site.glob('assets/javascripts/lunr/**/*.js'),
                 *site.glob('sitemap.xml*')]:
        path.unlink()
