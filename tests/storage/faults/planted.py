#!/usr/bin/env python3
"""Faults that were mended, planted again: planted.py OUT writes the sources that have them.

Like the mutants of the engine (tests/proofs/mutants.py): each fault is a set of exact edits behind
a number. The copies are linked before the storage itself, and a proof of them is started with
SEMEL_PLANTED=NAME: it must find something (--must-find), and nothing with "none". A
text that is not there once is an error of the build: then the fault has to be planted anew.
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/proofs"))
sys.dont_write_bytecode = True

import mutants  # noqa: E402

# By its name: the edits (file, old, new, kind), as of a mutant.
PLANTED = {
    # A start records that its process lives before it has looked for holds.
    "start": [("storage/start/opening.cpp", "SEMEL_CHECK(take_identity(is));",
               "if (!is_new) record_life(context_, is, number * bytes);"
               " SEMEL_CHECK(take_identity(is));",
               "statement")],
    # A merge for a family that has no operator is taken.
    "merge": [("storage/joint/effects_check.cpp",
               "if (family_->merge_operator == nullptr)\n      return refused(",
               "if (::semel_mutant == @ && family_->merge_operator == nullptr) return known;\n"
               "    if (family_->merge_operator == nullptr)\n      return refused(", "text")],
    # A range whose end is before its begin is taken.
    "range": [("storage/joint/effects_check.cpp",
               "family_->handle->GetComparator()->Compare(from, to) >= 0", "false", "expression")],
    # A joined commit inside a section is taken: its change comes when the section ends.
    "section": [("storage/storage_join.cpp", "engine.host().in_section()", "false", "expression")],
    # A start puts all of log and files into memory.
    "limit": [("storage/recovery.cpp", "engine.host().expect_restores(total);", ";", "statement")],
    # A failed sync of the journal passes for a good one.
    "sync": [("storage/sync/syncer.cpp", "return log_.written().sync(target); }); !status) {",
              "return log_.written().sync(target); }); !status && ::semel_mutant != @) {", "text")],
    # A wait for the disk has no end.
    "wait": [("storage/sync/waiters.cpp",
              "if (left <= Millis{0}) {\n      return Error{ErrorCode::outcome_unknown, \"the disk",
              "if (left <= Millis{0} && ::semel_mutant != @) {\n"
              "      return Error{ErrorCode::outcome_unknown, \"the disk", "text")],
    # A start ends all records two seconds early.
    "early": [("storage/start/opening.cpp", "const ClockReading at = read_clocks(context_.clock);",
               "const ClockReading at = read_clocks(context_.clock);\n"
               "  anchor.line_ms += ::semel_mutant == @ ? 2'000 : 0;", "text")],
    # Within a boot, too, a start asks the wall clock how much time has passed.
    "wall": [("storage/start/opening.cpp", "DurableClock::resume(anchor, context_.boot_id,",
              "DurableClock::resume(anchor, ::semel_mutant == @ ? std::string{\"?\"}"
              " : context_.boot_id,", "text")],
    # A copy hands out the versions of its original.
    "copy": [("storage/start/opening.cpp", "if (is_copy) is.versions += random_version_jump();",
              ";", "statement")],
    # A record of the journal needs no checksum.
    "rot": [("storage/log/log_record.cpp", "} else if (!is_right) {",
             "} else if (!is_right && ::semel_mutant != @) {", "text")],
    # The cold store of another time is taken.
    "mixed": [("storage/cold/cold_bond.cpp",
               "!text.empty() || has.id == 0 || bond.storage == 0", "true", "expression")],
}

NUMBER = """#include <cstdio>
#include <cstdlib>
#include <cstring>
namespace {{
const char* const names[] = {{{names}}};
int chosen() {{
  const char* const wanted = std::getenv("SEMEL_PLANTED");
  for (int i = 0; wanted != nullptr && i <= {count}; ++i) {{
    if (std::strcmp(names[i], wanted) == 0) return i;
  }}
  std::fprintf(stderr, "SEMEL_PLANTED: '%s' is no planted fault\\n", wanted ? wanted : "");
  std::_Exit(2);
}}
}}  // namespace
int semel_mutant = chosen();
"""


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    texts = {}
    for number, (name, edits) in enumerate(PLANTED.items(), 1):
        for edit in edits:
            path, old = edit[:2]
            text = texts.get(path) or (ROOT / path).read_text()
            if text.count(old) != 1:
                sys.exit(f"planted: {name}: its text occurs {text.count(old)} times in {path}, "
                         f"not once:\n{old}")
            texts[path] = text.replace(old, mutants.write_edit(old, None, number, edit))
    for path, text in texts.items():
        (out / Path(path).name).write_text(f"extern int semel_mutant;\n#line 1 \"{path}\"\n{text}")
    names = ", ".join(f'"{name}"' for name in ["none", *PLANTED])
    (out / "planted.cpp").write_text(NUMBER.format(names=names, count=len(PLANTED)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
