#!/usr/bin/env python3
"""The last table of docs/patterns.md is true: each row is there, its section exists, what it says
in C++ is in a header and in that section's code, what it says on the wire is in a dialogue of that
section, and its test is one of tests/. A test tells what breaks without it. And the headings that
other files name exist.

Afterwards mistakes are planted in the page, each of which must be found."""
import pathlib
import re
import sys

ROWS = [f"P{n}" for n in range(1, 4)] + ["P3b"] + [f"P{n}" for n in range(4, 15)] + ["steps"]
root = pathlib.Path(__file__).resolve().parents[2]


def anchor_of(heading):
    """As it is made of a heading where such pages are shown."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def sections_of(page):
    """Anchor -> what stands under that heading, up to the next one."""
    parts = re.split(r"^##+ (.*)\n", page, flags=re.M)
    return {anchor_of(parts[i]): parts[i + 1] for i in range(1, len(parts), 2)}


def cases_of(sources):
    """The names of all test cases. A name that is parted over two lines is one."""
    names = set()
    for source in sources:
        for literals in re.findall(r'TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', source):
            names.add("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"'))
    return names


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def check_row(cells, sections, cases, headers):
    """What is wrong with a row."""
    row, _, section, process, wire, tests = cells
    linked = re.fullmatch(r"\[(.+)\]\(#(.+)\)", section)
    if linked is None or linked.group(2) not in sections:
        return [f"{row}: no section {section}"]
    text = sections[linked.group(2)]
    code = "".join(re.findall(r"```cpp\n(.*?)```", text, re.S))
    played = "".join(re.findall(r"```resp3\n(.*?)```", text, re.S))
    wrong = []
    for name in quoted(process):
        if name.split("::")[-1] not in headers:
            wrong.append(f"{row}: {name} is in no header")
    if not any(name.split("::")[-1] in code for name in quoted(process)):
        wrong.append(f"{row}: its section has no C++ with {process}")
    for words in quoted(wire):
        for word in words.split():
            if not re.search(rf"^[A-Z]> .*\b{re.escape(word)}\b", played, re.M):
                wrong.append(f"{row}: no dialogue of its section has {word}")
    if not quoted(tests) or not quoted(wire):
        wrong.append(f"{row}: no test, or no wire form")
    wrong += [f"{row}: no test is named '{name}'" for name in quoted(tests) if name not in cases]
    if not any(name.startswith(f"breaks: {row}:") for name in cases):
        wrong.append(f"{row}: no story tells what breaks")
    return wrong


def check(page, cases, headers, others):
    """What is wrong with the page."""
    sections = sections_of(page)
    table = re.findall(r"^\| (.*) \|$", sections.get("rows", ""), re.M)
    rows = [line.split(" | ") for line in table if re.match(r"P\d|steps", line)]
    wrong = []
    if [cells[0] for cells in rows] != ROWS:
        wrong.append("rows are " + " ".join(cells[0] for cells in rows))
    for cells in rows:
        wrong += ([f"{cells[0]}: {len(cells)} cells"] if len(cells) != 6 else
                  check_row(cells, sections, cases, headers))
    for named in sorted(set(re.findall(r"patterns\.md#([a-z0-9-]+)", others))):
        if named not in sections:
            wrong.append(f"no heading for patterns.md#{named}")
    return wrong


def self_test(page, cases, headers, others):
    """Every planted mistake is found."""
    planted = [
        (re.sub(r"^\| P7 .*\n", "", page, flags=re.M), cases, others),
        (page.replace("\n## Debounce\n", "\n## Debouncing\n"), cases, others),
        (page.replace("SEMEL.COMPLETES payments", "SEMEL.COMPLETE payments"), cases, others),
        (page.replace("`Fence`", "`Fences`"), cases, others),
        (page.replace("(P13)` |", "(P31)` |"), cases, others),
        (page, {name for name in cases if not name.startswith("breaks: P3b:")}, others),
        (page, cases, others + "patterns.md#no-such-heading"),
    ]
    for i, (changed, known, named) in enumerate(planted):
        if (changed, known, named) == (page, cases, others):
            sys.exit(f"self-test: mistake {i} changes nothing")
        if not check(changed, known, headers, named):
            sys.exit(f"self-test: mistake {i} is not found")
    return len(planted)


def text_of(folder, *endings):
    return [path.read_text() for path in sorted((root / folder).rglob("*"))
            if path.suffix in endings and path.name != "patterns.md"]


def main():
    page = (root / "docs/patterns.md").read_text()
    cases = cases_of(text_of("tests", ".cpp"))
    headers = "".join(text_of("include", ".hpp"))
    others = headers + "".join(text_of("docs", ".md"))
    wrong = check(page, cases, headers, others)
    if wrong:
        sys.exit("\n".join(wrong))
    mistakes = self_test(page, cases, headers, others)
    print(f"docs/patterns.md: {len(ROWS)} rows hold; {mistakes} planted mistakes were found")


main()
