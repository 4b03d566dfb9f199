"""The Python package as a source distribution: pure Python, for a system that has libsemel.so.0.

It is the files and a PKG-INFO, so no build tool is needed to make it.
"""

import re
import tomllib

from archives import write_tar
from facts import tracked

LEFT_OUT = ('tests/', 'examples/', 'prove.py', 'requirements-', 'build_wheel.py')


def described(text, facts):
    """pyproject.toml, with what a registry shows."""
    urls = (f'[project.urls]\nHomepage = "{facts.url}"\nDocumentation = "{facts.url}#readme"\n'
            f'Changelog = "{facts.url}/blob/main/CHANGELOG.md"\n')
    return re.sub(r'^\[tool\.setuptools\]$', f'{urls}\n[tool.setuptools]', text, count=1,
                  flags=re.M)


def package_info(text):
    project = tomllib.loads(text)['project']
    lines = ['Metadata-Version: 2.1', f'Name: {project["name"]}', f'Version: {project["version"]}',
             f'Summary: {project["description"]}', f'License: {project["license"]["text"]}',
             f'Requires-Python: {project["requires-python"]}']
    lines += [f'Project-URL: {name}, {url}' for name, url in project['urls'].items()]
    return '\n'.join(lines) + '\n'


def make(facts, out):
    files = {name: data for name, data in tracked('bindings/python').items()
             if not name.startswith(LEFT_OUT)}
    project = described(files['pyproject.toml'].decode(), facts)
    files['pyproject.toml'] = project.encode()
    files['PKG-INFO'] = package_info(project).encode()
    files['LICENSE'] = facts.licence_text
    name = f'semel-{facts.version}'
    target = out / f'{name}.tar.gz'
    write_tar(target, {f'{name}/{path}': data for path, data in files.items()}, facts.epoch)
    return [target]
