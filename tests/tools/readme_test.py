#!/usr/bin/env python3
"""The example in README.md is the program examples/once.cpp, which the tests compile and run."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
shown = re.search(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.S)
if shown is None:
    sys.exit("README.md shows no C++ example")
first_line, program = (root / "examples/once.cpp").read_text().split("\n", 1)
if not first_line.startswith("//"):
    sys.exit("examples/once.cpp: the first line should be its comment")
if shown.group(1) != program:
    sys.exit("README.md and examples/once.cpp differ")
print("README.md shows examples/once.cpp")
