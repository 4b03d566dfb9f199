#!/usr/bin/env python3
"""What README.md shows is what the tests compile and run: its first C++ is the program
examples/once.cpp, all further C++, there and in docs/local-redis.md, is a piece of
examples/local_redis.cpp, that in docs/keys.md one of tests/patterns/keys_page_test.cpp, that in
docs/patterns.md one of tests/patterns/patterns_page_test.cpp, and that of docs/replication.md about
a node in process one of examples/group_node.cpp. The packages it names are those of tools/setup."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]


def shown(page, language, title=""):
    """The blocks of code of `page` in `language`, of the section with the title alone."""
    text = (root / page).read_text()
    if title:
        text = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    found = re.findall(rf"```{language}\n(.*?)```", text, re.S)
    return found or sys.exit(f"{page} shows no {language}")


def unindented(code):
    """What stands deeper in a program than on its page is the same."""
    return re.sub(r"^ +", "", code, flags=re.M)


def pieces(program):
    """The bodies of the functions of `program`, without their indentation."""
    return [unindented(body) for body in re.findall(r"\{\n(.*?)^\}", program, re.S | re.M)]


once, *others = shown("README.md", "cpp")
first_line, program = (root / "examples/once.cpp").read_text().split("\n", 1)
if not first_line.startswith("//"):
    sys.exit("examples/once.cpp: the first line should be its comment")
if once != program:
    sys.exit("README.md and examples/once.cpp differ")

further = [("README.md", others, "examples/local_redis.cpp"),
           ("docs/local-redis.md", shown("docs/local-redis.md", "cpp"), "examples/local_redis.cpp"),
           ("docs/keys.md", shown("docs/keys.md", "cpp"), "tests/patterns/keys_page_test.cpp"),
           ("docs/patterns.md", shown("docs/patterns.md", "cpp"),
            "tests/patterns/patterns_page_test.cpp"),
           ("docs/replication.md",
            shown("docs/replication.md", "cpp", "In process: a node of the group"),
            "examples/group_node.cpp")]
for page, blocks, program in further:
    bodies = pieces((root / program).read_text())
    for block in blocks:
        if not any(unindented(block) in body for body in bodies):
            sys.exit(f"{page} shows what is not in {program}:\n{block}")

setup = (root / "tools/setup").read_text()
needed = re.search(r"packages_build=\((.*?)\)", setup, re.S).group(1).split()
command = re.search(r"apt-get install (.*?)\n```", (root / "README.md").read_text(), re.S)
names = command.group(1).replace("\\\n", " ").split() if command else []
# "one|other": what a release calls it.
if len(names) != len(needed) or not all(
        name in need.strip('"').split("|") for name, need in zip(names, needed)):
    sys.exit("README.md does not name the packages_build of tools/setup: " + " ".join(needed))
print("README.md and the pages local-redis, keys, patterns and replication show what the examples "
      "and tests run")
