"""Where the program semel is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class SemelNotFound(RuntimeError):
    """There is no program semel; the text says where it was looked for."""


def find_binary() -> str:
    """The program: what SEMEL_BINARY names, `semel` on the PATH, or the one in this package."""
    named = os.environ.get('SEMEL_BINARY')
    if named:
        if not os.access(named, os.X_OK):
            raise SemelNotFound(f'SEMEL_BINARY is {named}, which is not a program')
        return named
    own = Path(__file__).resolve().parent / 'bin' / 'semel'
    found = shutil.which('semel') or (str(own) if os.access(own, os.X_OK) else None)
    if found is None:
        raise SemelNotFound('no program semel: name it in SEMEL_BINARY, or put it on the PATH')
    return found
