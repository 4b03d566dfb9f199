"""The client for Go as a module: what a proxy of modules serves, in the folders that it has.

In the tree the module is called semel/client, which no host has. A release calls it as its place in
the repository is called, and so do its imports.
"""

import json
import re
import time

from archives import write_zip
from facts import tracked

NAME_IN_TREE = 'semel/client'


def escaped(path):
    """As proxies write a path: capital letters with a mark before them."""
    return re.sub('[A-Z]', lambda found: '!' + found[0].lower(), path)


def renamed(name, data, module):
    if not name.endswith(('.go', '.md', '.mod')):
        return data
    text = data.decode()
    text = text.replace(f'"{NAME_IN_TREE}"', f'"{module}"')
    text = re.sub(rf'^module {NAME_IN_TREE}$', f'module {module}', text, flags=re.M)
    return text.replace(f'go doc {NAME_IN_TREE}', f'go doc {module}').encode()


def make(facts, out):
    files = {name: renamed(name, data, facts.go_module)
             for name, data in tracked('clients/go').items() if not name.startswith('newest.')}
    files['LICENSE'] = facts.licence_text
    tag = f'v{facts.version}'
    folder = out / 'go' / escaped(facts.go_module) / '@v'
    folder.mkdir(parents=True, exist_ok=True)
    moment = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(facts.epoch))
    (folder / f'{tag}.info').write_text(json.dumps({'Version': tag, 'Time': moment}) + '\n')
    (folder / f'{tag}.mod').write_bytes(files['go.mod'])
    (folder / 'list').write_text(tag + '\n')
    write_zip(folder / f'{tag}.zip',
              {f'{facts.go_module}@{tag}/{name}': data for name, data in files.items()},
              facts.epoch)
    return [folder / f'{tag}.zip']
