"""Each check of .clang-tidy finds its fault: clang_tidy_test.py [unittest arguments]."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = '''#include <string>
#include <utility>
#include <vector>
#define SEMEL_ASSERT(x) ((x) ? void() : __builtin_trap())
'''
# By check: a fault that compiles.
FAULTS = {
    'bugprone-assert-side-effect': 'void f(int n) { SEMEL_ASSERT(n++ != 0); }',
    'bugprone-exception-escape':
        'struct A { ~A() { throw 1; } };',
    'bugprone-inaccurate-erase':
        '#include <algorithm>\n'
        'void f(std::vector<int>& v) { v.erase(std::remove(v.begin(), v.end(), 1)); }',
    'bugprone-infinite-loop': 'void g(); void f() { int i = 0; int n = 9; while (i < n) g(); }',
    'bugprone-misplaced-widening-cast':
        'long long f(int a, int b) { return static_cast<long long>(a * b); }',
    'bugprone-string-constructor': "std::string f() { return std::string('x', 5); }",
    'bugprone-suspicious-semicolon': 'void g(); void f(bool b) { if (b);\n  g(); }',
    'bugprone-too-small-loop-variable':
        'int f(std::vector<int>& v) { int s = 0;'
        ' for (unsigned char i = 0; i < v.size(); ++i) s += v[i]; return s; }',
    'bugprone-undelegated-constructor': 'struct A { A(int) {} A() { A(0); } };',
    'bugprone-unhandled-self-assignment':
        'struct A { int* p; A& operator=(const A& o) { delete p; p = new int(*o.p);'
        ' return *this; } };',
    'bugprone-unused-raii':
        'struct Guard { Guard(int); ~Guard(); }; void f() { Guard(1); static_cast<void>(0); }',
    'bugprone-use-after-move':
        'std::size_t f(std::string s) { std::string t = std::move(s);'
        ' return s.size() + t.size(); }',
    'cppcoreguidelines-slicing':
        'struct A { int a; virtual ~A(); }; struct B : A { int b; }; void g(A);'
        ' void f(const B& b) { g(b); }',
    'misc-unused-using-decls': 'namespace n { struct S {}; } using n::S;',
    'performance-for-range-copy':
        'std::size_t f(const std::vector<std::string>& v) { std::size_t n = 0;'
        ' for (const std::string s : v) n += s.size(); return n; }',
    'performance-move-const-arg':
        'void g(int&&); void f(int n) { int m = n; g(std::move(m)); }',
    'performance-no-automatic-move':
        'struct R { R(const std::string&); R(std::string&&); };'
        ' R f() { const std::string s = "a"; return s; }',
    'performance-unnecessary-value-param':
        'std::size_t f(const std::string s) { return s.size(); }',
    'readability-inconsistent-declaration-parameter-name':
        'int f(int count); int f(int index) { return index; }',
}


def checks():
    text = (ROOT / '.clang-tidy').read_text(encoding='utf-8')
    return re.findall(r'^  ((?!-\*)[a-z]+-[a-z-]+),?$', text, re.MULTILINE)


@unittest.skipIf(shutil.which('clang-tidy') is None, 'clang-tidy is not installed')
class Checks(unittest.TestCase):
    def test_each_finds_its_fault(self):
        self.assertEqual(sorted(checks()), sorted(FAULTS))
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / '.clang-tidy', folder)
            for check, fault in FAULTS.items():
                with self.subTest(check):
                    source = pathlib.Path(folder, 'fault.cpp')
                    source.write_text(f'{HEAD}{fault}\n', encoding='utf-8')
                    done = subprocess.run(
                        ['clang-tidy', '--quiet', source, '--', '-std=c++20'],
                        capture_output=True, text=True, check=False)
                    self.assertIn(f'[{check}', done.stdout, done.stderr[-500:])
                    self.assertNotEqual(done.returncode, 0)


if __name__ == '__main__':
    unittest.main()
