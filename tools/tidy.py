#!/usr/bin/env python3
"""The style rules a machine can hold: tools/tidy.py [--format] [--root DIR]

Looks at the files git tracks or would track, prints `file:line: what is wrong` and ends with 1 if
anything is. With --format it asks clang-format instead; ends with 77 where that is not installed.
Each rule has a snippet in tests/tools/tidy_test.py.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tidy_classes  # noqa: E402
import tidy_lex  # noqa: E402
import tidy_rooms  # noqa: E402
import tidy_words  # noqa: E402

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
FORMAT_VERSION = '14'  # of clang-format; others break lines elsewhere
COMMENT_REACH = 4  # lines above a statement in which its `mo:` comment may begin
RATCHET = 'tools/tidy_ratchet.json'

# Which room may include which. Standard headers are for all, base for all but those that are or
# stand for users (NO_BASE); `os` stands for the system's own.
NO_BASE = ('include', 'examples')
PARTS = {
    'base': {'project': ('base/',), 'foreign': ()},
    'include': {'project': ('semel/',), 'foreign': ()},
    'engine': {'project': ('semel/', 'engine/'), 'foreign': ('os', 'xxhash.h')},
    'patterns': {'project': ('semel/', 'patterns/'), 'foreign': ('os', 'xxhash.h', 'cxxabi.h')},
    'replication': {'project': ('semel/', 'engine/', 'storage/log/', 'replication/'),
                    'foreign': ('os', 'xxhash.h')},
    'replication/transport': {'project': ('semel/', 'replication/'),
                              'foreign': ('os', 'boost/asio', 'openssl/', 'xxhash.h')},
    'replication/parts': {'project': ('semel/', 'engine/', 'storage/log/', 'replication/'),
                          'foreign': ('os', 'boost/asio')},
    'storage': {'project': ('semel/', 'storage/'), 'foreign': ('os', 'rocksdb/', 'xxhash.h')},
    'bindings': {'project': ('semel/', 'semel.h', 'bindings/'), 'foreign': ('cxxabi.h',)},
    'lua_compat': {'project': ('semel/', 'lua_compat/', 'net/resp/'),
                   'foreign': ('lua.hpp', 'openssl/')},
    # Libraries of functions are decided alike by a node by itself and by a group; what a group's
    # clients request is a command of its log.
    # Lists, sets and their like have rules that only Redis' commands use so far.
    'net': {'project': ('semel/', 'net/', 'lua_compat/', 'engine/core/namespace_terms.hpp',
                        'engine/logged/library_table.hpp',
                        'engine/logged/command.hpp', 'engine/api/eviction_calls.hpp',
                        'engine/object_api/object_calls.hpp', 'engine/object_api/hash_fields.hpp',
                        'engine/object_api/whole_record.hpp',
                        'engine/object_api/object_waits.hpp', 'engine/waits/attempt.hpp',
                        'engine/objects/object_edit.hpp', 'engine/objects/object_reader.hpp',
                        'engine/replica/own_state.hpp',
                        'engine/kinds/element_keys.hpp', 'engine/types/'),
            'foreign': ()},
    'net/group': {'project': ('semel/', 'net/', 'replication/'), 'foreign': ('os',)},
    'net/server': {'project': ('semel/', 'net/'), 'foreign': ('os', 'boost/asio', 'openssl/')},
    'net/follow': {'project': ('semel/', 'net/', 'engine/object_api/whole_record.hpp'),
                   'foreign': ('boost/asio',)},
    'gateway': {'project': ('semel/', 'gateway/', 'net/settings/'), 'foreign': ('openssl/',)},
    'gateway/proxy': {'project': ('semel/', 'gateway/', 'net/admin/'),
                      'foreign': ('os', 'boost/asio', 'boost/beast', 'openssl/')},
    'gateway/shared': {'project': ('semel/', 'gateway/'),
                       'foreign': ('os', 'boost/asio', 'boost/beast', 'openssl/')},
    'gateway/store': {'project': ('semel/', 'gateway/'),
                      'foreign': ('os', 'boost/asio', 'boost/beast', 'openssl/')},
    'net/console': {'project': ('semel/', 'net/'), 'foreign': ('boost/json/', 'boost/asio/ip/')},
    'examples': {'project': ('semel/', 'examples/'),
                 'foreign': ('semel/', 'rocksdb/', 'amqp', 'boost/asio', 'boost/beast')},
    'tools': {'project': ('semel/', 'engine/', 'gateway/', 'net/', 'tools/'),
              'foreign': ('os', 'CLI/', 'fmt/', 'boost/json', 'xxhash.h', 'zlib.h', 'zstd.h')},
    'bench/instructions': {'project': ('semel/', 'net/', 'bench/instructions/'),
                           'foreign': ('os',)},
    'bench': {'project': ('semel/', 'engine/', 'bench/'),
              'foreign': ('os', 'CLI/', 'fmt/', 'boost/', 'libcuckoo/', 'nghttp2/', 'rocksdb/',
                          'tbb/', 'oneapi/', 'urcu', 'xxhash.h')},
    'tests/consumer': {'project': (), 'foreign': ('semel/',)},
    'packaging/conan': {'project': (), 'foreign': ('semel/',)},
    'tests': {'project': ('semel/', 'engine/', 'patterns/', 'storage/', 'replication/', 'net/',
                          'lua_compat/', 'gateway/', 'tools/', 'bindings/', 'semel.h', 'tests/'),
              'foreign': ('os', 'boost/asio', 'catch2/', 'boost/context/', 'lua.hpp', 'CLI/',
                          'fmt/', 'openssl/', 'rocksdb/', 'sanitizer/', 'xxhash.h')},
}
# Files that may see more than their part: the one public header that shows a third party's types,
# those that read and write the node's configuration, its side that faces the operator, and programs
# outside that need the system's calls.
PARTS_OF_FILES = {
    'include/semel/patterns/json_codec.hpp': {'project': ('semel/',), 'foreign': ('boost/json/',)},
    'tests/patterns/json_codec_test.cpp': {'project': ('semel/', 'tests/'),
                                           'foreign': ('boost/describe/', 'catch2/')},
    'tests/patterns/identity_test.cpp': {'project': ('semel/', 'base/', 'tests/'),
                                         'foreign': ('boost/json/', 'catch2/')},
    'include/semel/rocksdb.hpp': {'project': ('semel/',), 'foreign': ('rocksdb/',)},
    # What a step has left is decided by the engine, for a group's log.
    'patterns/steps.cpp': {'project': ('semel/', 'engine/claims/memos.hpp'), 'foreign': ()},
    # Who waits for a permit stands in the lines of all its slots.
    'patterns/holders/permit_wait.cpp': {
        'project': ('semel/', 'patterns/', 'engine/claims/claim_lines.hpp'), 'foreign': ()},
    'net/node/ticker.cpp': {'project': ('semel/', 'net/'), 'foreign': ('os',)},
    'net/node/batch.cpp': {'project': ('semel/', 'net/', 'engine/api/bounded_apply.hpp'),
                           'foreign': ()},
    'tools/semel/cluster/cluster_directory.cpp': {
        'project': ('semel/', 'net/', 'replication/', 'tools/'),
        'foreign': ('os', 'CLI/', 'fmt/', 'boost/json/')},
    'tools/semel/cluster/group_client.cpp': {'project': ('semel/', 'net/', 'tools/'),
                                             'foreign': ('os', 'openssl/')},
    'examples/group_node.cpp': {'project': (), 'foreign': ('os', 'semel/')},
    'examples/replicated_service.cpp': {'project': (), 'foreign': ('os', 'semel/')},
    'tests/consumer/group/main.cpp': {'project': (), 'foreign': ('os', 'semel/')},
    'tests/consumer/replication/main.cpp': {'project': (), 'foreign': ('os', 'semel/')},
    'net/acl/password.cpp': {'project': ('semel/', 'net/'), 'foreign': ('openssl/',)},
    'net/admin/admin_guard.cpp': {'project': ('semel/', 'net/'), 'foreign': ('boost/asio/ip/',)},
    'net/admin/admin_http.hpp': {'project': ('semel/', 'net/'),
                                 'foreign': ('boost/asio/', 'boost/beast/')},
    'net/admin/admin_session.hpp': {'project': ('semel/', 'net/'),
                                    'foreign': ('boost/asio/', 'boost/beast/')},
    'net/admin/admin_server.cpp': {'project': ('semel/', 'net/'),
                                   'foreign': ('os', 'boost/asio/', 'boost/beast/')},
    'net/admin/log.cpp': {'project': ('semel/', 'net/'),
                          'foreign': ('fmt/', 'spdlog/', 'xxhash.h')},
    'net/admin/log_line.cpp': {'project': ('semel/', 'net/'), 'foreign': ('os', 'fmt/')},
    'net/admin/process_metrics.cpp': {'project': ('semel/', 'net/'), 'foreign': ('os',)},
    'net/admin/systemd.cpp': {'project': ('semel/', 'net/'), 'foreign': ('os',)},
    'net/scripts/fibre.cpp': {'project': ('semel/', 'net/'),
                      'foreign': ('boost/context/', 'sanitizer/')},
    'net/scripts/script_text.cpp': {'project': ('semel/', 'net/', 'lua_compat/'),
                            'foreign': ('openssl/',)},
    'net/config/flags.cpp': {'project': ('semel/', 'net/'), 'foreign': ('CLI/',)},
    'net/config/redis_start.cpp': {'project': ('semel/', 'net/'), 'foreign': ('os', 'glob.h')},
    'net/config/rewrite.cpp': {'project': ('semel/', 'net/'), 'foreign': ('os',)},
    'base/toml.hpp': {'project': (), 'foreign': ('toml++/',)},
    'gateway/config/settings_check.cpp': {
        'project': ('semel/', 'gateway/', 'net/settings/', 'net/admin/admin_guard.hpp'),
        'foreign': ()},
    'gateway/config/policy_file.cpp': {'project': ('semel/', 'gateway/', 'net/settings/'),
                                       'foreign': ('toml++/',)},
    'base/random.hpp': {'project': (), 'foreign': ('os',)},
    'bindings/c/wait.cpp': {'project': ('semel/', 'semel.h', 'bindings/'), 'foreign': ('os',)},
    'patterns/json/boost_json.cpp': {'project': (), 'foreign': ('boost/json/',)},
    'patterns/json/json_tree.cpp': {'project': ('semel/', 'patterns/'),
                                    'foreign': ('boost/json/',)},
    'patterns/tokens/signed_digests.cpp': {'project': ('semel/', 'patterns/'),
                                           'foreign': ('openssl/',)},
}
OS_HEADER = re.compile(r'(sys|linux|netinet|arpa)/|'
                       r'(unistd|fcntl|netdb|nss|poll|pthread|sched|signal|spawn|dlfcn|cpuid|errno|'
                       r'dirent|execinfo|'
                       r'[a-z]?mmintrin|x86intrin|ucontext|locale|malloc|stdlib|time)\.h$')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.MULTILINE)

# The rooms, from the lowest up: a file includes only files of its own room and of rooms that stand
# before it in this list. So the arrows between rooms have one direction, and there is no cycle of
# rooms. Which part may see which at all is the table above.
ROOMS = (
    'base', 'include', 'include/semel', 'include/semel/patterns',
    'engine/rules', 'engine/kinds', 'engine/table', 'engine/objects', 'engine/hashes',
    'engine/types',
    'engine/memory', 'engine/time', 'engine/logged',
    'engine/decisions', 'engine/keys', 'engine/core', 'engine/upkeep',
    'engine/waits',
    'engine/api', 'engine/object_api',
    'engine/claims', 'engine/replica',
    'patterns/json', 'patterns/tokens', 'patterns/holders', 'patterns',
    'storage/log', 'storage/journal', 'storage/archive', 'storage/cold', 'storage/joint',
    'storage/backup', 'storage/start', 'storage/files', 'storage/sync', 'storage/drain',
    'storage', 'storage/repair',
    'replication/core', 'replication/state', 'replication/log', 'replication/transport',
    'replication/proposals', 'replication/parts', 'replication/node',
    'net/resp', 'net/time', 'net/stats', 'net/acl', 'net/settings', 'net/rdb',
    'lua_compat/runtime', 'lua_compat/libraries', 'lua_compat/interpreter', 'lua_compat/matcher',
    'net/session', 'net/events', 'net/commands', 'net/claims', 'net/scripts', 'net/cluster',
    'net/handlers', 'net/objects', 'net/strings', 'net/hashes', 'net/sets',
    'net/sorted_sets',
    'net/lists', 'net/streams', 'net/dump',
    'net/node', 'net/follow', 'net/group', 'net/config', 'net/server', 'net/admin', 'net/console',
    'gateway/rules', 'gateway/guard', 'gateway/config', 'gateway/shared', 'gateway/store',
    'gateway/proxy',
    'bindings/c',
    'tools/semel/shared', 'tools/semel/records', 'tools/semel/dedup/blocks',
    'tools/semel/dedup', 'tools/semel/storage', 'tools/semel/demo',
    'tools/semel/node', 'tools/semel/redis_server', 'tools/semel/cluster', 'tools/semel/cli',
    'tools/semel/transfer',
    'tools/semel/gateway', 'tools/semel/help',
    'tools/semel',
)
ROOM_PARTS = ('base', 'include', 'engine', 'patterns', 'storage', 'replication', 'net',
              'lua_compat', 'gateway', 'bindings',
              'tools')
# A unit is a header with its source. The public headers stand side by side for their users' sake.
ROOM_UNITS_MAX = 20
ROOM_UNITS_MORE = {'include/semel': 34, 'include/semel/patterns': 24}
# What is not yet as it should be: it may become less, never more.
INCLUDE_RATCHET = 'tools/include_ratchet.json'

CLOCK_OWNERS = ('base/stopwatch.hpp', 'engine/time/clock.cpp', 'net/time/ticks.cpp',
                'storage/log/stopwatch.hpp', 'bench/', 'tools/')
# (pattern, advice, where it is looked for, where it is allowed)
BANNED = [
    (r'\b(sleep_for|sleep_until|usleep|nanosleep)\b', 'wait for a condition, not for time', (), ()),
    (r'(?<![\w.>])s?rand\s*\(', 'seeded randomness: take the generator as an argument', (), ()),
    (r'\b(steady|system|high_resolution)_clock::now\b|\b(clock_gettime|gettimeofday)\b',
     'take the time from a semel::Clock', (), CLOCK_OWNERS),
    (r'(?<!\w)assert\s*\(', 'SEMEL_ASSERT or static_assert', (), ()),
    (r'\bstd::endl\b', "write '\\n'; flush where it is meant", (), ()),
    (r'(?<!std::)\bquoted\s*\(', 'newer headers find std::quoted by argument: rename it', (), ()),
    # A codec can say no only so.
    (r'\bthrow\b', 'our code throws nothing: return a Result', ('engine/', 'include/'),
     ('include/semel/patterns/json_codec.hpp',)),
    # What is asked of a command stands in its row.
    (r'\brow(?:\(\)|\[\w+\])?(?:\.|->)(?:name|handler)\s*[!=]=(?!\s*\w+(?:\.|->)name)|'
     r'\bhandler\s*[!=]=|[!=]=\s*(?:&\s*)?handlers::|\bfind_(?:sub)?command\([^;{]*"|'
     r'\bstd::(?:ranges::)?find\([^;]*\brow(?:\.|->)name',
     'a command is not tested by its name: give its row a fact, net/commands/command_table.def',
     ('net/claims/', 'net/commands/', 'net/events/', 'net/handlers/', 'net/node/', 'net/scripts/',
      'net/session/'), ()),
]

ATOMIC_CALL = re.compile(r'(?:\.|->)\s*(load|store|exchange|compare_exchange_(?:weak|strong)|'
                         r'fetch_(?:add|sub|and|or|xor)|test_and_set)\s*\(')
ATOMIC_NAME = re.compile(r'\bstd::atomic(?:_flag\b|<[^;{}()]*?>)\s+(\w+)\s*[;{=(]')
ORDER = re.compile(r'\bmemory_order(?:_|::)(relaxed|consume|acquire|release|acq_rel|seq_cst)\b')
LABEL = re.compile(r'\[([a-z][a-z0-9_]*\.[a-z][a-z0-9_]*)\]')
BOTH_SIDES = {'acq_rel', 'seq_cst'}


class Source:
    """One file, read once."""

    def __init__(self, root, path):
        self.path = path
        self.text = (root / path).read_text(encoding='utf-8')
        self.lines = self.text.split('\n')
        self.is_cpp = path.endswith(('.cpp', '.hpp'))
        self.code, self.comments = tidy_lex.split(self.text) if self.is_cpp else ('', '')
        self.index = tidy_lex.Lines(self.text)

    def line(self, offset):
        return self.index.of(offset)


class Tidy:
    def __init__(self, root):
        self.root = Path(root)
        self.findings = []
        self.labels = {}  # label -> [(path, line, orders or None)]
        paths = tracked(self.root)
        self.paths = paths
        self.sources = [Source(self.root, p) for p in paths if is_text(self.root, p)]

    def report(self, path, line, message):
        self.findings.append((path, line, message))

    def run(self):
        for source in self.sources:
            self.check_text(source)
            if source.is_cpp:
                self.check_cpp(source)
            if source.path.endswith('.md'):
                self.check_page(source)
        self.check_functions()
        self.check_classes()
        self.check_words()
        self.check_rooms()
        self.check_labels()
        self.check_build()
        return sorted(self.findings)

    # --- any text -------------------------------------------------------------------------------

    def check_text(self, source):
        path = source.path
        is_page = path.endswith(('.md', '.json', '.def')) or Path(path).name == 'LICENSE'
        for number, line in enumerate(source.lines, 1):
            if line != line.rstrip():
                self.report(path, number, 'trailing white space')
            if len(line) > COLUMNS_MAX and not is_page:
                self.report(path, number, f'{len(line)} columns; the limit is {COLUMNS_MAX}')
            if re.search(r'\b(TO[D]O|FIX[M]E)\b', line):
                self.report(path, number, 'unfinished work belongs into an issue, not into a mark')
        if source.text and not source.text.endswith('\n'):
            self.report(path, len(source.lines), 'no newline at the end')
        count = source.text.count('\n')
        if count > FILE_LINES_MAX and not is_page:
            self.report(path, FILE_LINES_MAX, f'{count} lines; the limit is {FILE_LINES_MAX}')
        if path.endswith(('.cpp', '.hpp', '.def', '.py')):
            if not re.fullmatch(r'[a-z0-9_]+\.[a-z]+', Path(path).name):
                self.report(path, 1, 'file names are snake_case')

    def check_page(self, source):
        outside = re.sub(r'^(```|~~~).*?^\1[^\n]*$', lambda m: tidy_lex.blank(m.group()),
                         source.text, flags=re.MULTILINE | re.DOTALL)
        titles = [m.start() for m in re.finditer(r'^# ', outside, re.MULTILINE)]
        if len(titles) != 1:
            line = source.line(titles[1]) if titles else 1
            self.report(source.path, line, f'{len(titles)} titles (# ...); a page has one')
        if source.path == 'CHANGELOG.md':
            self.check_changelog(source)

    def check_changelog(self, source):
        groups = ('Safety', 'Performance', 'Features', 'Internals')
        version = group = None
        for number, line in enumerate(source.lines, 1):
            if line.startswith('## '):
                version, group = line, None
                if not re.fullmatch(r'## \d+\.\d+\.\d+ (unreleased|\d{4}-\d\d-\d\d)', line):
                    self.report(source.path, number, 'write `## 1.2.3 2026-01-31` or `unreleased`')
            elif line.startswith('### '):
                if line[4:] not in groups:
                    self.report(source.path, number, 'a group is one of ' + ', '.join(groups))
                elif group and groups.index(line[4:]) <= groups.index(group):
                    self.report(source.path, number, 'the groups\' order is ' + ', '.join(groups))
                group = line[4:] if line[4:] in groups else group
            elif line.startswith('- ') and not group:
                self.report(source.path, number, 'an entry belongs into a group of a version')
        if not version:
            self.report(source.path, 1, 'no version')

    # --- C++ ------------------------------------------------------------------------------------

    def check_cpp(self, source):
        is_header = source.path.endswith('.hpp')
        if is_header and not re.search(r'^#pragma once$', source.text, re.MULTILINE):
            self.report(source.path, 1, 'a header begins with #pragma once')
        for match in re.finditer(r'\busing\s+namespace\b', source.code if is_header else ''):
            self.report(source.path, source.line(match.start()), 'using namespace in a header')
        for pattern, advice, only, allowed in BANNED:
            if only and not source.path.startswith(only) or source.path.startswith(allowed or '\0'):
                continue
            for match in re.finditer(pattern, source.code):
                self.report(source.path, source.line(match.start()),
                            f'{match.group().rstrip("( ")}: {advice}')
        self.check_includes(source)
        self.check_atomic_calls(source)
        if not source.path.startswith(('bench/', 'examples/', 'tests/')):
            self.check_orders(source)

    def check_includes(self, source):
        folders = source.path.split('/')
        part = (PARTS_OF_FILES.get(source.path) or PARTS.get('/'.join(folders[:2]))
                or PARTS.get(folders[0]))
        if part is None:
            self.report(source.path, 1, 'no such part: name it in the include table of tidy.py')
            return
        project = part['project'] + (() if folders[0] in NO_BASE else ('base/',))
        for match in INCLUDE.finditer(source.text):
            if not source.code[match.start():].lstrip().startswith('#'):
                continue  # in a comment
            bracket, target = match.groups()
            line = source.line(match.start())
            if bracket == '"':
                if not target.startswith(project):
                    self.report(source.path, line, f'"{target}": this part includes only '
                                + ', '.join(project) + ' (root-relative)')
            elif re.fullmatch(r'[a-z_]+', target):
                pass  # the standard library
            elif not (target.startswith(tuple(f for f in part['foreign'] if f != 'os') or '\0')
                      or ('os' in part['foreign'] and OS_HEADER.match(target))):
                self.report(source.path, line, f'<{target}> is not for this part')

    def check_atomic_calls(self, source):
        for match in ATOMIC_CALL.finditer(source.code):
            opening = match.end() - 1
            closing = tidy_lex.close_of(source.code, opening)
            arguments = source.code[opening + 1:closing]
            if is_no_atomic(source.code, match, arguments, closing):
                continue
            if not re.search(r'memory_order|\b\w*order\w*\b', arguments):
                self.report(source.path, source.line(match.start()),
                            f'{match.group(1)} without a memory order')
        for name in set(ATOMIC_NAME.findall(source.code)):
            # The last letter shows a member; other names could be a local of the same name.
            before = r'(?<!\w)' if name.endswith('_') else r'(?:\.|->)'
            hidden = (rf'{before}{name}\s*(?:[-+|&^]?=(?!=)|\+\+|--)'
                      rf'|(?:\+\+|--)\s*(?:[\w.]|->)*{before}{name}\b')
            for match in re.finditer(hidden, source.code):
                start = max(source.code.rfind(c, 0, match.start()) for c in ';{}')
                if re.search(r'\bstd::atomic', source.code[start + 1:match.start()]):
                    continue  # the declaration
                self.report(source.path, source.line(match.start()),
                            f'operator on the atomic {name}: name the call and its memory order')

    def check_orders(self, source):
        """Each order has its `mo:` comment; all but relaxed name the pair they belong to."""
        explained = set()
        statements = {}
        for match in ORDER.finditer(source.code):
            begin = max(source.code.rfind(c, 0, match.start()) for c in ';{}') + 1
            begin += len(source.code[begin:]) - len(source.code[begin:].lstrip())
            statements.setdefault(begin, []).append(match)
        for begin, uses in statements.items():
            first, last = source.line(begin), source.line(end_of(source.code, uses[-1].start()))
            where, text = self.comment_for(source, first, last)
            orders = {use.group(1) for use in uses}
            at = source.line(uses[0].start())
            if text is None:
                self.report(source.path, at, 'a memory order without a `// mo:` comment')
                continue
            explained |= where
            labels = LABEL.findall(text)
            if orders != {'relaxed'} and not labels:
                self.report(source.path, at, '`mo:` comment names no pair [area.name]')
            for label in set(labels):
                self.labels.setdefault(label, []).append((source.path, at, orders))
        # The far end of a pair may be a system call or a lock: its comment has no order beside it.
        comments = source.comments.split('\n')
        for number, comment in enumerate(comments, 1):
            if 'mo:' in comment and number not in explained:
                for label in set(LABEL.findall(comment)):
                    self.labels.setdefault(label, []).append((source.path, number, BOTH_SIDES))

    @staticmethod
    def comment_for(source, first, last):
        """Lines and text of the `mo:` comment of a statement: beside it, or above within reach."""
        comments = source.comments.split('\n')
        beside = [n for n in range(first, last + 1) if 'mo:' in comments[n - 1]]
        if beside:
            until = beside[-1]
            while until < len(comments) and not source.code.split('\n')[until].strip() \
                    and comments[until].strip():
                until += 1  # a trailing comment that goes on in the next line
            lines = range(beside[0], max(last, until) + 1)
            return set(lines), ' '.join(comments[n - 1] for n in lines)
        for start in range(first - 1, max(first - 1 - COMMENT_REACH, 0), -1):
            if 'mo:' in comments[start - 1]:
                above = start
                while above > 1 and 'mo:' in comments[above - 2]:
                    above -= 1  # one line each for success and failure
                lines = range(above, first)
                return set(lines), ' '.join(comments[n - 1] for n in lines)
        return set(), None

    def check_labels(self):
        for label, ends in sorted(self.labels.items()):
            path, line, _ = ends[0]
            gives = any(orders & ({'release'} | BOTH_SIDES) for _, _, orders in ends)
            takes = any(orders & ({'acquire', 'consume'} | BOTH_SIDES) for _, _, orders in ends)
            if len(ends) < 2 or not gives or not takes:
                self.report(path, line, f'[{label}] has only one end: name the other one with it')

    # --- the whole tree -------------------------------------------------------------------------

    def check_functions(self):
        ratchet_file = self.root / RATCHET
        allowed = json.loads(ratchet_file.read_text()) if ratchet_file.exists() else {}
        longest = {}
        for source in self.sources:
            for name, first, last in tidy_lex.functions(source.code):
                begin = source.line(first)
                length = source.line(last) - begin + 1
                key = f'{source.path}:{name}'
                if length > longest.get(key, (0, 0))[0]:
                    longest[key] = (length, begin)
        for key, (length, begin) in longest.items():
            path, name = key.split(':', 1)
            limit = max(FUNCTION_LINES_MAX, allowed.get(key, 0))
            if length > limit:
                self.report(path, begin, f'{name} has {length} lines; the limit is {limit}')
        for key, limit in allowed.items():
            length = longest.get(key, (0, 0))[0]
            if length <= FUNCTION_LINES_MAX:
                self.report(RATCHET, 1, f'{key} no longer needs its entry: remove it')
            elif length < limit:
                self.report(RATCHET, 1, f'{key} has shrunk: lower its entry to {length}')

    def check_classes(self):
        ratchet_file = self.root / tidy_classes.RATCHET
        ratchet = json.loads(ratchet_file.read_text()) if ratchet_file.exists() else {}
        texts = [(source.path, source.text) for source in self.sources]
        for path, message in tidy_classes.findings(texts, ratchet):
            self.report(path, 1, message)

    def check_words(self):
        ratchet_file = self.root / tidy_words.RATCHET
        ratchet = json.loads(ratchet_file.read_text()) if ratchet_file.exists() else {}
        texts = tidy_words.texts_of(self.root, self.paths)
        for path, line, message in tidy_words.findings(texts, ratchet):
            self.report(path, line, message)

    def check_rooms(self):
        """Rooms are small, arrows between them go one way, and no units include each other."""
        units = tidy_rooms.Units(s for s in self.sources if s.path.startswith(
            tuple(f'{part}/' for part in ROOM_PARTS)))
        for room, names in sorted(units.rooms().items()):
            limit = ROOM_UNITS_MORE.get(room, ROOM_UNITS_MAX)
            if len(names) > limit:
                self.report(units.path(names[0]), 1,
                            f'{room} has {len(names)} units; the limit is {limit}')
            if room not in ROOMS:
                self.report(units.path(names[0]), 1, f'{room}: name it in the rooms of tidy.py')
        ratchet_file = self.root / INCLUDE_RATCHET
        known = json.loads(ratchet_file.read_text()) if ratchet_file.exists() else {}
        self.hold_ratchet(known.get('upwards', []), units.upwards(ROOMS), units,
                          '{0} includes {1}, whose room comes later in ROOMS')
        self.hold_ratchet(known.get('cycles', []), units.in_cycles(), units,
                          '{0} includes {1}, which includes it in turn, perhaps by others')

    def hold_ratchet(self, known, found, units, message):
        found = {f'{above} -> {below}': (above, below) for above, below in found}
        for arrow, (above, below) in sorted(found.items()):
            if arrow not in known:
                self.report(units.path(above), 1, message.format(above, below))
        for arrow in known:
            if arrow not in found:
                self.report(INCLUDE_RATCHET, 1, f'{arrow} is no more: remove it')

    def check_build(self):
        lists = {s.path: s.text for s in self.sources if s.path.endswith('CMakeLists.txt')}
        for source in self.sources:
            if not source.path.endswith('.cpp') or '/' not in source.path:
                continue
            folder = Path(source.path).parent
            while str(folder) != '.' and f'{folder}/CMakeLists.txt' not in lists:
                folder = folder.parent
            text = lists.get(f'{folder}/CMakeLists.txt', '')
            name = os.path.relpath(source.path, folder)
            if not re.search(rf'(?<![\w./]){re.escape(name)}(?![\w.])', text):
                self.report(source.path, 1, 'in no CMakeLists.txt: build it or delete it')


def is_no_atomic(code, match, arguments, closing):
    """Calls of the same names on other things: Engine::store(db) gives a value, an atomic's store
    gives none; an atomic's exchange has two arguments."""
    if match.group(1) == 'store':
        start = max(code.rfind(c, 0, match.start()) for c in ';{}') + 1
        before = code[start:match.start()]
        return (not arguments.strip() or code[closing + 1:].lstrip().startswith('.')
                or '=' in before or re.search(r'\breturn\b', before)
                or before.count('(') > before.count(')'))
    return match.group(1) == 'exchange' and arguments.count(',') > 2


def end_of(code, offset):
    """Where the statement around `offset` ends, as far as punctuation tells."""
    found = re.compile(r'[;{}]').search(code, offset)
    return found.start() if found else offset


def tracked(root):
    """Files git tracks or would track; all files where there is no git."""
    listing = None
    if shutil.which('git'):
        listing = subprocess.run(
            ['git', '-C', str(root), 'ls-files', '-z', '-co', '--exclude-standard'],
            capture_output=True, check=False)
    if listing and listing.returncode == 0:
        paths = listing.stdout.decode().split('\0')
    else:
        paths = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, names in os.walk(root) for name in names]
        paths = [p for p in paths
                 if not p.startswith(('build/', '.git/')) and 'node_modules/' not in p]
    return sorted({p for p in paths if p and (root / p).is_file()})


def is_text(root, path):
    """Sources, pages, lists and scripts; pictures and data are not ours to judge."""
    if path.endswith(('.cpp', '.hpp', '.def', '.py', '.md', '.cmake', '.in', '.json', '.sh')):
        return True
    name = Path(path).name
    if name in ('CMakeLists.txt', 'LICENSE', '.gitignore', '.clang-format', '.clang-tidy', 'setup'):
        return True
    with open(root / path, 'rb') as file:
        return file.read(2) == b'#!'


def check_format(root):
    program = shutil.which('clang-format-14') or shutil.which('clang-format')
    if not program:
        print('format: skipped, clang-format is not installed')
        return 77
    said = subprocess.run([program, '--version'], capture_output=True, text=True,
                          check=False).stdout
    version = re.search(r'version (\d+)', said)
    if not version or version[1] != FORMAT_VERSION:
        print(f'format: skipped, other versions than {FORMAT_VERSION} format otherwise; this is '
              f'{said.strip()}')
        return 77
    files = [p for p in tracked(root) if p.endswith(('.cpp', '.hpp'))]
    verdict = subprocess.run([program, '--dry-run', '-Werror', '--style=file', *files], cwd=root,
                             check=False).returncode if files else 0
    print(f'format: {len(files)} files, {"as they should be" if verdict == 0 else "see above"}')
    return 1 if verdict else 0


def main():
    parser = argparse.ArgumentParser(description='Checks the style rules.')
    parser.add_argument('--root', type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument('--format', action='store_true', help='run clang-format instead')
    arguments = parser.parse_args()
    if arguments.format:
        return check_format(arguments.root)
    tidy = Tidy(arguments.root)
    findings = tidy.run()
    for path, line, message in findings:
        print(f'{path}:{line}: {message}')
    print(f'tidy: {len(tidy.sources)} files, {len(findings)} findings')
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
