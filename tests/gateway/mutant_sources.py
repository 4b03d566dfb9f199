#!/usr/bin/env python3
"""Writes a copy of two of the gateway's sources with planted faults, for proof_upstreams.py.

mutant_sources.py ROOT FOLDER: the copies are FOLDER/*.cpp. Which fault there is, is chosen when the
program starts (SEMEL_MUTANT=n, counted from 1). Each text that is replaced must occur once.
"""

import pathlib
import sys

# By name: what is between two systems when the mend of a request smuggling is left out.
FAULTS = ('a request with a body is repeated with its head alone',
          'so it is, and the connection that owes the body is pooled')
EDITS = (
    ('gateway/proxy/incoming.cpp', 'return !has_body(framing_of_request(in)) &&',
     'return (mutant() >= 1 ? in.parser.is_done() : !has_body(framing_of_request(in))) &&'),
    ('gateway/proxy/upstream_pool.cpp', 'return account.is_settled() && buffer.size() == 0',
     'return (mutant() >= 2 || account.is_settled()) && buffer.size() == 0'),
)
CHOICE = '''#include <cstdlib>
namespace {
int mutant() {
  static const int chosen = [] {
    const char* const text = std::getenv("SEMEL_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return chosen;
}
}  // namespace
'''


def main():
    root, folder = map(pathlib.Path, sys.argv[1:])
    for name, old, new in EDITS:
        text = (root / name).read_text(encoding='utf-8')
        if text.count(old) != 1:
            sys.exit(f'mutant_sources.py: {name} has {text.count(old)} times: {old}')
        target = folder / pathlib.Path(name).name
        target.write_text(CHOICE + text.replace(old, new), encoding='utf-8')


if __name__ == '__main__':
    main()
