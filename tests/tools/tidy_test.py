#!/usr/bin/env python3
"""Tests of tools/tidy.py: for each rule a snippet that breaks it and one that does not.

Words: a tree is a folder of a few files; a finding is one line of tidy's; `broken` must have the
finding, `sound` must have none.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'tools'))
import tidy  # noqa: E402
import tidy_classes  # noqa: E402
import tidy_lex  # noqa: E402
import tidy_words  # noqa: E402

UNFINISHED = 'TO' + 'DO'


def findings(files):
    """Runs tidy over a tree of {path: text}; a .cpp brings its own CMakeLists.txt entry."""
    files = dict(files)
    for path in [p for p in files if p.endswith('.cpp')]:
        folder, name = path.rsplit('/', 1)
        files.setdefault(f'{folder}/CMakeLists.txt', '')
        if 'unlisted' not in name:
            files[f'{folder}/CMakeLists.txt'] += f'add_library(x {name})\n'
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return [f'{p}:{n}: {m}' for p, n, m in tidy.Tidy(root).run()]


class TidyTest(unittest.TestCase):
    def sound(self, path, text):
        self.assertEqual(findings({path: text}), [])

    def broken(self, path, text, message, line=None):
        found = findings({path: text})
        where = f'{path}:{line}: ' if line else f'{path}:'
        self.assertTrue(any(f.startswith(where) and message in f for f in found), found)

    def header(self, text):
        return '#pragma once\n' + text

    # --- rooms ---------------------------------------------------------------------------------

    def tree_broken(self, files, message):
        found = findings(files)
        self.assertTrue(any(message in f for f in found), found)

    def test_a_room_includes_only_rooms_below_it(self):
        low, high = 'engine/rules/a.hpp', 'engine/core/b.hpp'
        files = {low: self.header(''), high: self.header('#include "engine/rules/a.hpp"\n')}
        self.assertEqual(findings(files), [])
        files = {low: self.header('#include "engine/core/b.hpp"\n'), high: self.header('')}
        self.tree_broken(files, 'whose room comes later in ROOMS')

    def test_units_do_not_include_each_other_by_header_and_source(self):
        # Only the source of a includes b again: still a cycle of two units.
        files = {'engine/core/a.hpp': self.header(''),
                 'engine/core/b.hpp': self.header('#include "engine/core/a.hpp"\n'),
                 'engine/core/a.cpp': '#include "engine/core/b.hpp"\n'}
        self.tree_broken(files, 'which includes it in turn')
        files['engine/core/a.cpp'] = '#include "engine/core/a.hpp"\n'
        self.assertEqual(findings(files), [])

    def test_a_known_cycle_may_stay_but_its_entry_goes_with_it(self):
        ratchet = ('{"cycles": ["engine/core/a -> engine/core/b",'
                   ' "engine/core/b -> engine/core/a"]}\n')
        files = {'engine/core/a.hpp': self.header('#include "engine/core/b.hpp"\n'),
                 'engine/core/b.hpp': self.header('#include "engine/core/a.hpp"\n'),
                 'tools/include_ratchet.json': ratchet}
        self.assertEqual(findings(files), [])
        files['engine/core/b.hpp'] = self.header('')
        self.tree_broken(files, 'is no more: remove it')

    def test_a_room_has_at_most_20_units_and_is_named(self):
        room = {f'engine/core/u{n}.hpp': self.header('') for n in range(20)}
        self.assertEqual(findings(room), [])
        room['engine/core/u20.hpp'] = self.header('')
        self.tree_broken(room, '21 units')
        self.tree_broken({'engine/cellar/a.hpp': self.header('')}, 'name it in the rooms')

    # --- text -----------------------------------------------------------------------------------

    def test_trailing_white_space_is_found(self):
        self.broken('engine/core/a.cpp', 'int a;\nint b; \n', 'trailing white space', 2)

    def test_a_file_ends_with_a_newline(self):
        self.broken('engine/core/a.cpp', 'int a;', 'no newline at the end')

    def test_a_line_has_at_most_100_columns(self):
        self.sound('engine/core/a.cpp', '//' + 'x' * 98 + '\n')
        self.broken('engine/core/a.cpp', '//' + 'x' * 99 + '\n', '101 columns')

    def test_columns_are_characters_not_bytes(self):
        self.sound('engine/core/a.cpp', '//' + 'é' * 98 + '\n')

    def test_a_file_has_at_most_700_lines(self):
        self.sound('engine/core/a.cpp', 'int a;\n' * 700)
        self.broken('engine/core/a.cpp', 'int a;\n' * 701, '701 lines')

    def test_unfinished_work_is_found(self):
        self.broken('engine/core/a.cpp', f'// {UNFINISHED}: later\n', 'unfinished work')

    def test_file_names_are_snake_case(self):
        self.broken('engine/MyFile.cpp', 'int a;\n', 'snake_case')

    # --- pages ----------------------------------------------------------------------------------

    def test_a_page_has_one_title(self):
        self.sound('docs/a.md', '# Title\n\n```sh\n# a comment\n```\n')
        self.broken('docs/a.md', '# One\n\n# Two\n', '2 titles', 3)
        self.broken('docs/a.md', 'no title\n', '0 titles')

    def test_the_changelog_has_versions_with_groups_in_order(self):
        good = '# Changelog\n\n## 1.2.3 2026-01-31\n\n### Safety\n\n- a\n\n### Features\n\n- b\n'
        self.sound('CHANGELOG.md', good)
        self.broken('CHANGELOG.md', '# Changelog\n\n## next\n', 'write `## 1.2.3', 3)
        self.broken('CHANGELOG.md', good.replace('Safety', 'News'), 'a group is one of', 5)
        self.broken('CHANGELOG.md', '# Changelog\n\n## 1.0.0 unreleased\n- a\n', 'belongs into', 4)
        self.broken('CHANGELOG.md', good + '\n### Performance\n\n- c\n', 'order is', 13)

    # --- C++ ------------------------------------------------------------------------------------

    def test_a_header_has_pragma_once(self):
        self.broken('engine/core/a.hpp', 'int a();\n', '#pragma once')

    def test_a_header_uses_no_namespace(self):
        text = self.header('using namespace std;\n')
        self.broken('engine/core/a.hpp', text, 'using namespace', 2)
        self.sound('tests/a_test.cpp', 'using namespace semel;\n')

    def test_banned_calls_are_found_in_code_and_not_in_words(self):
        for call in ('std::this_thread::sleep_for(d);', 'usleep(5);', 'int x = rand();',
                     'std::srand(1);', 'auto t = std::chrono::steady_clock::now();',
                     'assert(x);', 'out << std::endl;', 'throw 1;', 'text += quoted(name);'):
            text = f'void f() {{\n  {call}\n}}\n'
            self.broken('engine/core/a.cpp', text, ': ', 2)
            self.sound('engine/core/a.cpp', f'// {call}\nconst char* s = "{call}";\n')

    def test_a_command_that_is_tested_by_its_name_or_handler_is_found(self):
        for line in ('bool a = row.name == "get";', 'bool a = call.row->name != "get";',
                     'bool a = row->handler == handlers::exec;',
                     'auto a = find_command("monitor");',
                     'auto a = std::find(n.begin(), n.end(), row.name);'):
            self.broken('net/commands/a.cpp', f'void f() {{\n  {line}\n}}\n', 'by its name', 2)
        for line in ('auto a = find_command(words[0]);', 'bool a = row.has(fact_audited);',
                     'bool a = each.name == row->name;'):
            self.sound('net/commands/a.cpp', f'void f() {{\n  {line}\n}}\n')

    def test_words_that_contain_a_banned_call_are_not_one(self):
        self.sound('engine/core/a.cpp',
                   'static_assert(true);\nvoid f() { SEMEL_ASSERT(x); operand(); }\n')

    def test_the_clock_is_read_where_it_belongs(self):
        text = 'auto f() { return std::chrono::steady_clock::now(); }\n'
        self.sound('engine/time/clock.cpp', text)
        self.sound('bench/a.cpp', text)
        self.broken('tests/a_test.cpp', text, 'take the time from', 1)

    def test_tests_may_throw(self):
        self.sound('tests/a_test.cpp', 'void f() { throw 1; }\n')

    # --- includes -------------------------------------------------------------------------------

    def test_the_public_headers_include_only_std_and_themselves(self):
        self.sound('include/semel/a.hpp', self.header('#include <array>\n#include "semel/b.hpp"\n'))
        for target in ('"engine/core/a.hpp"', '<xxhash.h>', '<sys/mman.h>', '"b.hpp"'):
            self.broken('include/semel/a.hpp', self.header(f'#include {target}\n'), 'part', 2)

    def test_one_public_header_includes_rocksdb(self):
        self.sound('include/semel/rocksdb.hpp', self.header('#include <rocksdb/db.h>\n'))
        self.broken('include/semel/storage.hpp', self.header('#include <rocksdb/db.h>\n'), 'part',
                    2)

    def test_the_engine_includes_no_tools_and_no_third_party_but_xxhash(self):
        self.sound('engine/core/a.cpp', '#include <sys/mman.h>\n#include <xxhash.h>\n')
        for target in ('"tools/a.hpp"', '<fmt/core.h>', '<boost/json.hpp>', '<catch2/catch.hpp>'):
            self.broken('engine/core/a.cpp', f'#include {target}\n', 'part', 1)

    def test_only_the_server_of_net_knows_sockets(self):
        for target in ('<sys/socket.h>', '<boost/asio/post.hpp>', '<openssl/ssl.h>'):
            self.sound('net/server/a.cpp', f'#include {target}\n')
            self.broken('net/a.cpp', f'#include {target}\n', 'part', 1)
        self.broken('net/server/a.cpp', '#include <boost/json.hpp>\n', 'part', 1)

    def test_an_example_sees_only_the_public_face(self):
        self.sound('examples/a.cpp', '#include "semel/semel.hpp"\n')
        self.broken('examples/a.cpp', '#include "engine/core/core.hpp"\n', 'includes only', 1)
        self.sound('tests/consumer/a/main.cpp', '#include <semel/semel.hpp>\n')
        self.broken('tests/consumer/a/main.cpp', '#include "semel/semel.hpp"\n', 'includes only',
                    1)

    def test_catch_is_for_tests_alone(self):
        self.sound('tests/a_test.cpp', '#include <catch2/catch.hpp>\n')
        self.broken('bench/a.cpp', '#include <catch2/catch.hpp>\n', 'not for this part', 1)

    def test_an_include_in_a_comment_is_none(self):
        self.sound('engine/core/a.cpp', '/*\n#include "net/a.hpp"\n*/\n')

    def test_a_new_part_must_enter_the_table(self):
        self.broken('utils/a.cpp', 'int a;\n', 'no such part', 1)

    # --- atomics --------------------------------------------------------------------------------

    def test_an_atomic_call_names_its_order(self):
        for call in ('a.load()', 'a.store(1)', 'p->exchange(f(1, 2))', 'a.fetch_add(1)',
                     'a.compare_exchange_weak(\n    x, y)'):
            self.broken('tests/a_test.cpp', f'void f() {{\n  {call};\n}}\n', 'without a memory', 2)
        self.sound('tests/a_test.cpp', 'void f() { a.store(g(1), std::memory_order_release); }\n')
        self.sound('tests/a_test.cpp', 'void f() { a.load(order); }\n')

    def test_the_store_of_an_engine_is_no_atomic(self):
        for use in ('auto s = engine.store(0)', 'engine.store(7).get(key)', 'REQUIRE(f.store(1))',
                    'x->store()', 'return engine_.store(db)'):
            self.sound('tests/a_test.cpp', f'void f() {{ {use}; }}\n')
        self.broken('tests/a_test.cpp', 'void f() { if (g()) engine_done.store(1); }\n', 'store', 1)

    def test_an_operator_on_an_atomic_is_found(self):
        declared = 'std::atomic<int> n_{0};\n'
        for use in ('n_ = 1', 'n_++', '++n_', 'n_ += 2', 'x.n_ |= 1', '--x->n_'):
            text = f'{declared}void f() {{\n  {use};\n}}\n'
            self.broken('engine/core/a.cpp', text, 'operator on', 3)
        self.sound('engine/core/a.cpp', declared + 'bool f() { return n_ == 1; }\n')

    def pair(self, text):
        """The text, with the other end of [a.b] behind it."""
        return (text + 'void other() {\n  x_.store(1, std::memory_order_release);  // mo: [a.b]\n'
                '  x_.load(std::memory_order_acquire);  // mo: [a.b]\n}\n')

    def test_an_order_has_a_comment_within_reach(self):
        load = 'x_.load(std::memory_order_acquire);'
        self.sound('engine/core/a.cpp',
                   self.pair(f'void f() {{\n  {load}  // mo: [a.b]: why\n}}\n'))
        self.sound('engine/core/a.cpp',
                   self.pair(f'void f() {{\n  // mo: why\n  // [a.b]\n  //\n  //\n  {load}\n}}\n'))
        self.broken('engine/core/a.cpp',
                    self.pair(f'void f() {{\n  // mo: [a.b]\n\n\n\n\n  {load}\n}}\n'),
                    'without a `// mo:`', 7)

    def test_an_order_names_its_pair(self):
        use = 'void f() {{\n  x_.load(std::memory_order_{0});  // mo: {0}: because\n}}\n'
        for order in ('acquire', 'seq_cst'):
            self.broken('engine/core/a.cpp', use.format(order), 'names no pair', 2)
            self.broken('storage/log/a.cpp', use.format(order), 'names no pair', 2)
        self.sound('engine/core/a.cpp', use.format('relaxed'))

    def test_the_comment_of_the_next_statement_is_not_mine(self):
        self.broken('engine/core/a.cpp', self.pair(
            'void f() {\n  if (x_.load(std::memory_order_acquire)) {\n'
            '    x_.store(0, std::memory_order_relaxed);  // mo: relaxed: why\n  }\n}\n'),
            'without a `// mo:`', 2)

    def test_a_pair_has_two_ends(self):
        release = 'x_.store(1, std::memory_order_release);  // mo: [a.b]\n'
        acquire = 'x_.load(std::memory_order_acquire);  // mo: [a.b]\n'
        body = 'void f() {{\n  {}  {}}}\n'
        self.sound('engine/core/a.cpp', body.format(release, acquire))
        self.broken('engine/core/a.cpp', body.format(release, ''), 'only one end', 2)
        self.broken('engine/core/a.cpp', body.format(release, release), 'only one end', 2)

    def test_the_far_end_may_be_a_comment_at_a_system_call(self):
        self.sound('engine/core/a.cpp',
                   'void f() {\n  x_.store(1, std::memory_order_release);  // mo: [a.b]\n}\n'
                   'void g() {\n  barrier();  // mo: [a.b]\n}\n')

    # --- functions ------------------------------------------------------------------------------

    def function(self, lines, head='void f() {'):
        return head + '\n' + '  g();\n' * (lines - 2) + '}\n'

    def test_a_function_has_at_most_70_lines(self):
        for head in ('void f() {', 'template <class T>\nauto A::f(T t) const noexcept -> int {',
                     'A::A(int x) : a_{x}, b_(x) {', 'namespace n { void f() {',
                     'TEST_CASE("a sentence; with marks {", "[a]") {'):
            extra = head.count('\n')
            tail = '}\n' if 'namespace' in head else ''
            self.sound('engine/core/a.cpp', self.function(70 - extra, head) + tail)
            self.broken('engine/core/a.cpp', self.function(71 - extra, head) + tail, '71 lines')

    def test_a_class_is_no_function_but_its_members_are(self):
        self.sound('engine/core/a.hpp', self.header(
            'struct alignas(64) A {\n' + '  void g();\n' * 80 + '};\n'))
        self.broken('engine/core/a.hpp', self.header(
            'class A {\n public:\n' + self.function(71) + '};\n'), 'f has 71 lines', 4)

    def test_a_table_of_data_is_no_function(self):
        self.sound('engine/core/a.cpp', 'const int a[] = {\n' + '  f(1),\n' * 80 + '};\n')

    def test_the_ratchet_only_turns_one_way(self):
        def with_ratchet(lines, entry):
            return findings({'engine/core/a.cpp': self.function(lines),
                             tidy.RATCHET: json.dumps({'engine/core/a.cpp:f': entry}) + '\n'})
        self.assertEqual(with_ratchet(80, 80), [])
        self.assertIn('f has 81 lines; the limit is 80', with_ratchet(81, 80)[0])
        self.assertIn('lower its entry to 79', with_ratchet(79, 80)[0])
        self.assertIn('remove it', with_ratchet(70, 80)[0])

    # --- classes --------------------------------------------------------------------------------

    def class_of(self, methods=0, members=0, lines=3, more=''):
        body = ''.join(f'  void f{n}(int a) const {{\n' + '    g();\n' * (lines - 2) + '  }\n'
                       for n in range(methods))
        data = ''.join(f'  std::function<void(int)> m{n}_{{}};\n' for n in range(members))
        return self.header(f'class A : public B {{\n public:\n{more}{body} private:\n{data}}};\n')

    def test_a_class_has_at_most_25_methods_500_lines_and_20_members(self):
        for fits, broken, message in (
                ({'methods': 25}, {'methods': 26}, 'A has 26 methods'),
                ({'methods': 10, 'lines': 50}, {'methods': 11, 'lines': 50}, '550 lines'),
                ({'methods': 25, 'members': 20}, {'methods': 25, 'members': 21}, '21 data')):
            self.sound('engine/core/a.hpp', self.class_of(**fits))
            self.broken('engine/core/a.hpp', self.class_of(**broken), message, 1)

    def test_methods_count_where_they_stand_and_declarations_do_not(self):
        more = ('  A(const A&) = delete;\n  using X = int;\n  void declared(int);\n'
                '  static constexpr int y = 1;\n  enum class E { a };\n'
                '  struct In {\n    int a;\n    void h() {}\n  };\n')
        header = self.class_of(methods=20, members=20, more=more)
        out = ''.join(f'namespace n {{\nvoid A::g{n}() {{}}\n}}\n' for n in range(6))
        self.tree_broken({'engine/core/a.hpp': header, 'engine/core/a.cpp': out},
                         'A has 26 methods with 66 lines and 20 data members')

    def test_a_record_is_no_owner(self):
        self.sound('engine/core/a.hpp', self.class_of(methods=3, members=40))

    REASON = 'A public face: one method for each operation.'

    def with_class_entry(self, methods, entry):
        ratchet = json.dumps({'engine/core/a.hpp:A': entry}) + '\n'
        return findings({'engine/core/a.hpp': self.class_of(methods=methods),
                         tidy_classes.RATCHET: ratchet})

    def test_the_list_of_large_classes_may_only_shrink(self):
        def with_entry(methods, *counts):
            return self.with_class_entry(methods, {'counts': counts, 'reason': self.REASON})
        self.assertEqual(with_entry(30, 30, 90, 0), [])
        self.assertIn('A has 31 methods', with_entry(31, 30, 90, 0)[0])
        self.assertIn('lower its entry to [29, 90, 0]', with_entry(29, 30, 90, 0)[0])
        self.assertIn('remove it', with_entry(25, 30, 90, 0)[0])

    def test_a_class_of_the_list_has_a_reason(self):
        counts = [30, 90, 0]
        for entry in ({'counts': counts}, {'counts': counts, 'reason': ''},
                      {'counts': counts, 'reason': ' ' * 30}, {'counts': counts, 'reason': 'wide'},
                      {'counts': counts, 'reason': 7}):
            found = self.with_class_entry(30, entry)
            self.assertEqual(len(found), 1, entry)
            self.assertIn('A needs a "reason"', found[0])
        for entry in (counts, {'reason': self.REASON}, {'counts': [30], 'reason': self.REASON},
                      {'counts': ['30', 90, 0], 'reason': self.REASON}):
            found = self.with_class_entry(30, entry)
            self.assertIn('needs "counts"', found[-1])

    def test_a_renewed_list_keeps_its_reasons(self):
        owner = tidy_classes.Owner('A', 'engine/core/a.hpp')
        owner.methods, owner.lines = 31, 91
        kept = {'engine/core/a.hpp:A': {'counts': [30, 90, 0], 'reason': self.REASON}}
        for known, reason in ((kept, self.REASON), ({}, '')):
            renewed = json.loads(tidy_classes.ratchet_text([owner], known))
            self.assertEqual(renewed, {'engine/core/a.hpp:A': {'counts': [31, 100, 0],
                                                               'reason': reason}})

    # --- words ----------------------------------------------------------------------------------

    def test_a_riddle_in_a_comment_is_found(self):
        for phrase in ('What was here is gone.', 'Wakes who waits.', 'Nobody reads it.',
                       'The caller is told.', 'At most so many of them.', 'It goes on meanwhile.',
                       'Keeps whoever\n// comes first.', 'The text says\n// so.', 'Gone for good.',
                       'A marker stays in its place.', 'Keeps nothing of it.'):
            self.broken('engine/core/a.cpp', f'int a;\n// {phrase}\n', 'has 1 riddles, 0', 2)

    def test_plain_sentences_and_standard_uses_are_no_riddles(self):
        for phrase in ('A client who waits is woken.', 'What is it for?', 'Calls what() of it.',
                       'Meanwhile, the drainer goes on.', 'Use `what is` here.',
                       'Calls who.\n\n// Is it?', 'As long as the lease lasts.'):
            self.sound('engine/core/a.cpp', f'// {phrase}\n')
        self.sound('engine/core/a.cpp', 'const char* a = "nobody";\n')
        self.sound('tests/a_test.cpp', '// Nobody.\n')

    def test_a_page_is_read_without_its_code(self):
        self.sound('docs/a.md', '# A\n\n```sh\n# nobody\n```\n`nobody`\n')
        self.broken('docs/a.md', '# A\n\n```sh\nls\n```\nNobody.\n', 'docs/a.md has 1', 6)
        self.broken('docs/decisions/0001-a.md', '# A\n\nNobody.\n', 'docs/decisions has 1', 3)

    def test_a_comment_that_the_formatter_tore_is_found(self):
        full = '// ' + 'x' * 40 + ' ' + 'y' * 53
        for text in (f'{full}\n// word\n// and it goes on\n',
                     f'{full.replace("// xx", "//   - ")}\n//   word\n//     and it goes on\n',
                     f'{full.replace("// xxxxxx", "//   [a.b]  ")}\n//   word\nint a;\n'):
            self.broken('engine/core/a.hpp', self.header(text), '1 torn comments', 3)
        for text in (f'{full}\n// word\nint a;\n',                     # the end of a paragraph
                     f'{full}\n// word.\n// Errors: none\n',
                     f'{full}\n// two words\n// and it goes on\n',
                     '// short\n// word\n// and it goes on\n'):
            self.sound('engine/core/a.hpp', self.header(text))

    def test_the_counts_of_words_may_only_fall(self):
        def with_row(count, *row):
            ratchet = json.dumps({'engine/core': row}) + '\n'
            return findings({'engine/core/a.hpp': self.header('// Nobody.\n' * count),
                             tidy_words.RATCHET: ratchet})
        self.assertEqual(with_row(2, 2, 0), [])
        self.assertIn('3 riddles, 2 are allowed', with_row(3, 2, 0)[0])
        self.assertIn('lower its row to [1, 0]', with_row(1, 2, 0)[0])
        self.assertIn('lower its row to [0, 0]', with_row(0, 0, 1)[0])

    # --- the build and the reader ---------------------------------------------------------------

    def test_a_source_is_in_the_build(self):
        self.broken('tests/unlisted_test.cpp', 'int a;\n', 'in no CMakeLists.txt', 1)

    def test_comments_strings_and_separators_are_recognised_apart(self):
        code, comments = tidy_lex.split(
            'a("//x"); // b\nR"(/* } */)"; c(\'"\', 1\'000); /* d\n */ e();\n')
        for word in ('a(', 'c(', 'e()', '1_000'):
            self.assertIn(word, code)
        for word in ('//', 'x', 'b', '}', 'd'):
            self.assertNotIn(word, code)
        self.assertIn('// b', comments)
        self.assertIn('d', comments)
        self.assertNotIn('x', comments)

    def test_the_program_ends_with_1_if_there_is_a_finding(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / 'a.md').write_text('no title\n')
            run = subprocess.run([sys.executable, str(ROOT / 'tools/tidy.py'), '--root', folder],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn('a.md:1: 0 titles', run.stdout)


if __name__ == '__main__':
    unittest.main()
