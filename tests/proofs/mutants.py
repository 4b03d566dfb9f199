#!/usr/bin/env python3
"""Planted bugs: is each of them found by a proof?

Every mutant is a set of exact source edits: a text that must occur once in its file, and what to do
instead. All of them are written into one copy of the engine, each behind its own number, so that
the copy is built once and a mutant is chosen when a proof starts (SEMEL_MUTANT=n; 0: none). The
proofs run against the copy; a mutant is caught when a proof fails, crashes or does not end. The
copy without a mutant must pass.

mutants.py [--long] [--seed N] [NAME ...]   Last line: the figure. Exit 1 if a mutant survives.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "mutants"
FLAGS = ["-std=c++20", "-O1", "-g1", "-w", "-DXXH_INLINE_ALL", "-include", "mutant.hpp"]
PARTS = ["arguments", "checker", "history", "oracle", "oracle_claims"]
MODEL = ["model", "model_claims", "model_run", "model_store", "model_whole"]
LINEAR = ["linearizability", "linear_ops", "linear_run"]
ONCE = ["once", "once_ends", "once_limits", "once_locks", "once_program",
        "once_readers", "once_semaphores", "once_steps"]
TIME_LIMIT_S = 40
CONTROL_LIMIT_S = 180


class Mutant:
    """Edits: (file, old, new, kind). An expression is chosen by ?:, a statement by if and else."""

    def __init__(self, name, what, edits, proof):
        self.name, self.what, self.edits, self.proof = name, what, edits, proof


MUTANTS = [
    Mutant(
        "lost_cas", "a compare-and-set that failed counts as done",
        [("engine/core/record_step.hpp", "location_.shard->table.publish(probe_, handle)",
          "location_.shard->table.publish(probe_, handle) || true", "expression"),
         ("engine/core/plain_change.hpp", "!at.location.shard->table.publish(at.probe, handle)",
          "!at.location.shard->table.publish(at.probe, handle) && false", "expression")],
        "linearizability"),
    Mutant(
        "blind_store", "a record is stored without a compare",
        [("engine/table/table.hpp",
          "return probe.slot->compare_exchange_strong(expected, desired, "
          "std::memory_order_seq_cst,\n"
          "                                               std::memory_order_relaxed);",
          "probe.slot->store(desired, std::memory_order_seq_cst); return true;", "statement")],
        "linearizability"),
    Mutant(
        "early_expiry", "a record is dead 1 ms before its end",
        [("engine/core/record_step.hpp",
          "old != nullptr && core_.databases().lives(head, now);",
          "old != nullptr && core_.databases().lives(head, now + Millis{1});", "tail")],
        "model"),
    Mutant(
        "late_expiry", "a record lives through the millisecond of its end",
        [("engine/core/record_step.hpp",
          "old != nullptr && core_.databases().lives(head, now);",
          "old != nullptr && core_.databases().lives(head, now - Millis{1});", "tail")],
        "model"),
    Mutant(
        "hit_after_end", "a repeat is answered from a record whose time has ended",
        [("engine/keys/key_space.hpp", "!databases_.lives(found, now)",
          "databases_.is_flushed(found)",
          "expression"),
         ("engine/keys/key_space.hpp", "databases.lives(head, now)",
          "!databases.is_flushed(head)",
          "expression")],
        "model"),
    Mutant(
        "flushed_lives", "what was flushed is there until it is taken out",
        [("engine/keys/database_map.hpp", "record.lives_at(now) && !is_flushed(record)",
          "record.lives_at(now)", "expression")],
        "model"),
    Mutant(
        "early_sweep", "the wheel's sweep takes what ends in 2 ms",
        [("engine/upkeep/expiry.cpp", "old.due() > now", "old.due() > now + Millis{2}",
          "expression"),
         ("engine/upkeep/expiry.cpp", "old.lives_at(now_)", "old.lives_at(now_ + Millis{2})",
          "expression")],
        "model"),
    Mutant(
        "resurrect_by_complete", "complete() re-creates a claim that was given back",
        [("engine/rules/claim_rules.cpp",
          "if (found != ClaimFound::claim) return {};",
          "if (found == ClaimFound::absent && verb == OwnerVerb::complete) {\n"
          "      record.epoch = call.epoch;\n      answer(outcome, OwnerAnswer::ok);\n"
          "      return store_done(record, call.payload, policy, facts.now, scratch);\n    }\n"
          "    if (found != ClaimFound::claim) return {};", "statement")],
        "model"),
    Mutant(
        "resurrect_by_replay", "an older mutation replaces a newer record",
        [("engine/upkeep/restorer.cpp", "old->version() >= mutation.version", "false",
          "expression")],
        "model"),
    Mutant(
        "epoch_kept", "a takeover keeps the epoch of the owner before",
        [("engine/rules/claim_rules.cpp", "record.epoch = facts.candidate;",
          "if (record.epoch == 0) record.epoch = facts.candidate;", "statement")],
        "model"),
    Mutant(
        "epoch_repeats", "what a deleted record has shown is forgotten, so versions repeat",
        [("engine/core/record_step.hpp", "old != nullptr ? head.version() : probe_.floor",
          "old != nullptr ? head.version() : 0", "expression")],
        "linearizability"),
    Mutant(
        "stale_step", "a step does not compare the epoch with the record's",
        [("engine/rules/memo_rules.cpp", "record.epoch == epoch", "true", "expression")],
        "once"),
    Mutant(
        "late_step", "a step does not look at the lease",
        [("engine/rules/memo_rules.cpp", "!lease_over(record, facts.now, facts.owner_dead)",
          "true", "expression")],
        "once"),
    Mutant(
        "memos_lost", "what a failure gives back forgets its memos",
        [("engine/rules/claim_rules.cpp",
          "policy.attempts_max == 0 && !policy.issued && record.memos.empty()",
          "policy.attempts_max == 0 && !policy.issued", "expression")],
        "once"),
    Mutant(
        "memos_mixed", "a step is answered with the memo of another payload",
        [("engine/rules/memo_list.cpp", "if (!is_other) found = memo.bytes;",
          "found = memo.bytes;", "statement")],
        "once"),
    Mutant(
        "permits_uncounted", "fewer permits: holders beyond them do not count",
        [("patterns/holders/permit_slots.cpp", "held.count <= permits_", "true", "expression")],
        "once"),
    Mutant(
        "width_unknown", "how many permits there were is not remembered",
        [("patterns/holders/permit_slots.cpp", "text ? number_of(*text) : 0", "0", "expression")],
        "once"),
    Mutant(
        "reader_unseen", "a writer does not look at the last of the readers",
        [("patterns/holders/read_write_lock.cpp", "is_in(readers_.key_of(slot), found)",
          "(slot < 1 && is_in(readers_.key_of(slot), found))", "expression")],
        "once"),
    Mutant(
        "next_overtaken", "who is next keeps nobody out",
        [("patterns/holders/read_write_lock.cpp", "!place_.is_mine() && is_next(found)", "false",
          "expression")],
        "once"),
    Mutant(
        "token_unset", "a writer's token is that of the one before",
        [("patterns/holders/read_write_lock.cpp", "seen && access_ == Access::read",
          "seen.has_value()", "expression")],
        "once"),
    Mutant(
        "rate_part", "a bucket forgets by which part of a millisecond it is full before its end",
        [("patterns/rate_rules.cpp", "count_of(remaining) * before.refill - state.amount",
          "count_of(remaining) * before.refill", "expression")],
        "once"),
    Mutant(
        "rate_edge", "a call leaves the window a millisecond early",
        [("patterns/rate_rules.cpp", "hit.age >= terms_.period",
          "hit.age + Millis{1} >= terms_.period", "expression")],
        "once"),
    Mutant(
        "held_terms", "terms that change leave what is held as it was",
        [("engine/rules/operator_rules.cpp", "std::max(live->due, held_due(record, policy))",
          "live->due", "expression")],
        "once"),
    Mutant(
        "lost_in_growth", "a segment is copied without stopping its writers",
        [("engine/table/frozen_segment.hpp",
          "old.slots()[i].fetch_or(slot::frozen, std::memory_order_acq_rel) & ~slot::frozen",
          "old.slots()[i].load(std::memory_order_acquire) & ~slot::frozen", "expression")],
        "linearizability"),
    Mutant(
        "dropped_in_growth", "one record in sixty-four is left behind when a segment is replaced",
        [("engine/table/frozen_segment.hpp", "} else if (!slot::is_empty(word)) {",
          "} else if (!slot::is_empty(word) && i % 64 != 5) {", "condition")],
        "model"),
    Mutant(
        "duplicate_grant", "a claim is granted in the last millisecond of another's lease",
        [("engine/rules/claim_states.hpp", "now >= lease_until",
          "now + Millis{1} >= lease_until", "expression")],
        "model"),
    Mutant(
        "grant_not_stored", "a takeover is answered but not stored: two owners of one lease",
        [("engine/rules/claim_rules.cpp",
          "outcome.takeover = outcome.answer == ClaimAnswer::granted;",
          "outcome.takeover = outcome.answer == ClaimAnswer::granted;\n"
          "  if (outcome.takeover) return {};", "statement")],
        "linearizability"),
    Mutant(
        "stale_complete", "an owner from before may complete",
        [("engine/rules/claim_rules.cpp", "if (record.epoch != call.epoch) {",
          "if (record.epoch < call.epoch) {", "condition")],
        "model"),
    Mutant(
        "stale_plain_complete", "so may it where its completion is written at once",
        [("engine/rules/claim_states.hpp", "held.epoch == call.epoch",
          "held.epoch >= call.epoch", "expression")],
        "model"),
    Mutant(
        "torn_value", "a record is published before its bytes are written",
        [("engine/core/record_step.cpp", "key_.key, decision.value,",
          "key_.key,\n"
          "            ::semel_mutant == @ ? Bytes{std::string(decision.value.size(), '?')}\n"
          "                                : decision.value,", "text"),
         ("engine/core/record_step.cpp",
          "version = keeps ? fresh_version : context.version_next++;",
          "::semel_noise(16);\n"
          "    if (!erases) {\n"
          "      const bool pending = core_.journal() != nullptr && sink_ == nullptr;\n"
          "      Entry::write(\n"
          "          const_cast<Entry*>(fresh),\n"
          "          {decision.kind, location_.stored_db, decision.due, fresh_version, pending},\n"
          "          key_.key, decision.value);\n"
          "    }\n"
          "    version = keeps ? fresh_version : context.version_next++;", "statement"),
         ("engine/core/plain_change.hpp", "write(to, fresh_version);",
          "std::memset(to, '?', record.value_bytes);", "statement"),
         ("engine/core/plain_change.hpp", "version = fresh_version;",
          "::semel_noise(16);\n"
          "    write(to, fresh_version);\n"
          "    version = fresh_version;", "statement")],
        "linearizability"),
    Mutant(
        "reuse_before_grace", "a replaced record's memory is given out again at once",
        [("engine/core/committed.cpp",
          "large_records_.retire(context, *change.old, old_bytes);",
          "context.cache.free(region_.handle_of(change.old));", "statement"),
         ("engine/core/plain_change.hpp",
          "core.threads().retire_record(own, old, bytes);",
          "own.cache.free(old);", "statement")],
        "linearizability"),
    Mutant(
        "section_without_exclusion", "operations do not wait for a section",
        [("engine/core/operation.hpp",
          "!is_free(*location.shard) || core_.databases().stored(key.db) != location.stored_db",
          "core_.databases().stored(key.db) != location.stored_db", "expression"),
         ("engine/core/operation.hpp",
          "is_free(*location.shard) && databases.map() == map",
          "databases.map() == map", "expression")],
        "linearizability"),
    Mutant(
        "promoted_twice", "every waiter of a free key gets the grant",
        [("engine/waits/wait_queue.cpp", '#include "engine/waits/wait_queue.hpp"',
          '#include "engine/waits/wait_queue.hpp"\n#include "engine/claims/claim_attempt.hpp"',
          "text"),
         ("engine/waits/wait_queue.cpp", "    end_wait(waiter, pass.out);\n  } else if",
          "    if (::semel_mutant == @ && next != nullptr && !waiter.cancelled) {\n"
          "      Waiter& second = *next->waiter;\n"
          "      next = next->after;\n"
          "      static_cast<ClaimAttempt&>(*second.attempt).outcome =\n"
          "          static_cast<ClaimAttempt&>(*waiter.attempt).outcome;\n"
          "      end_wait(second, pass.out);\n"
          "    }\n"
          "    end_wait(waiter, pass.out);\n  } else if", "text")],
        "model"),
    Mutant(
        "scan_skips", "a scan that goes on leaves out a line",
        [("engine/api/scan.cpp", "cursor.line = last;", "cursor.line = last + 1;", "statement")],
        "model"),
    Mutant(
        "snapshot_forgets", "a record replaced during a snapshot is not kept for it",
        [("engine/memory/snapshot_cut.hpp", "version >= cut", "true", "expression")],
        "linearizability"),
    Mutant(
        "blind_move", "a record is moved without a compare",
        [("engine/upkeep/compactor.cpp", "if (!ShardTable::replace(word, seen, handle)) {",
          "if (word.store((seen & ~slot::handle_mask) | handle, std::memory_order_seq_cst), "
          "false) {", "condition")],
        "linearizability"),
    Mutant(
        "left_before_grace", "the place that a record has left is given out again at once",
        [("engine/upkeep/compactor.cpp",
          "core_.large_records().retire(context, old);",
          "context.cache.free(slot::handle(seen));", "statement")],
        "linearizability"),
]


# By proof: how many seeds are tried before a mutant counts as a survivor.
RUNS_MAX = {"model": 2, "linearizability": 12, "once": 1}

# Where every run of the copy, the one without a mutant too, gives up the processor now and then:
# between the steps of one operation, so that threads meet there even on few cores: one in so many
# times.
NOISE = [
    ("engine/core/record_step.hpp", "    RecordView view;\n", 16),  # found, not yet read
    # Decided, not yet published.
    ("engine/core/record_step.cpp", "  const Entry::Head is = fresh", 16),
    ("engine/core/plain_change.hpp", "  const Timestamp due = fresh->due();\n", 16),
    # Seen, not yet moved.
    ("engine/upkeep/compactor.cpp", "  old.copy_to(core_.region().at(handle));\n", 2),
]
NOISE_SOURCE = """#include <sched.h>
#include <cstdint>
#include <cstdlib>
int semel_mutant = std::getenv("SEMEL_MUTANT") ? std::atoi(std::getenv("SEMEL_MUTANT")) : 0;
void semel_noise(unsigned one_in) noexcept {
  static thread_local std::uint64_t state = reinterpret_cast<std::uintptr_t>(&state) | 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  if (state % one_in == 0) sched_yield();
}
"""


def write_edit(text, mutant, number, edit):
    path, old, new, kind = edit
    chosen = f"::semel_mutant == {number}"
    if kind == "expression":
        return f"(({chosen}) ? ({new}) : ({old}))"
    if kind == "statement":
        return f"if ({chosen}) {{ {new} }} else {{ {old} }}"
    if kind == "text":  # @ stands for the mutant's number
        return new.replace("@", str(number))
    if kind == "tail":  # an initializer up to its semicolon
        return f"({chosen}) ? ({new[:-1]}) : ({old[:-1]});"
    if kind == "condition":  # from the keyword to the opening brace
        head, before = old.split("if (", 1)
        after = new.split("if (", 1)[1]
        return f"{head}if (({chosen}) ? ({after[:-3]}) : ({before[:-3]})) {{"
    raise ValueError(kind)


def make_tree():
    """The engine with every mutant behind its number. Edits of one place are nested in order."""
    tree = BUILD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for folder in ("base", "engine", "include", "patterns", "tests/patterns", "tests/proofs"):
        shutil.copytree(ROOT / folder, tree / folder)
    (tree / "mutant.hpp").write_text(
        "extern int semel_mutant;\nvoid semel_noise(unsigned one_in) noexcept;\n")
    (tree / "mutant.cpp").write_text(NOISE_SOURCE)
    places = {}  # (file, old) -> [(number, mutant, edit)]
    for number, mutant in enumerate(MUTANTS, 1):
        for edit in mutant.edits:
            places.setdefault(edit[:2], []).append((number, mutant, edit))
    for (path, old), users in places.items():
        original = (ROOT / path).read_text()
        if original.count(old) != 1:
            sys.exit(f"mutants: {users[0][1].name}: its text occurs {original.count(old)} times in "
                     f"{path}, not once:\n{old}")
        written = old
        for number, mutant, edit in users:
            if written == old:
                written = write_edit(old, mutant, number, edit)
            elif edit[3] == "tail":  # a second mutant of the same initializer
                written = f"(::semel_mutant == {number}) ? ({edit[2][:-1]}) : ({written[:-1]});"
            elif edit[3] == "expression":
                written = f"((::semel_mutant == {number}) ? ({edit[2]}) : ({written}))"
            else:
                sys.exit(f"mutants: {mutant.name}: shares its place with another mutant")
        file = tree / path
        text = file.read_text()
        if text.count(old) != 1:
            sys.exit(f"mutants: {users[0][1].name}: its place was changed by another mutant")
        file.write_text(text.replace(old, written))
    for path, anchor, one_in in NOISE:
        text = (tree / path).read_text()
        if text.count(anchor) != 1:
            sys.exit(f"mutants: the place of the noise occurs {text.count(anchor)} times in {path}")
        (tree / path).write_text(text.replace(anchor, f"    ::semel_noise({one_in});\n" + anchor))
    return tree


def run_compiler(arguments):
    """None, or what the compiler said."""
    done = subprocess.run(arguments, cwd=BUILD / "tree", capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr


def build(tree):
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    engine_sources = sorted((tree / "engine").rglob("*.cpp")) + [tree / "mutant.cpp"]
    proofs = tree / "tests/proofs"
    proof_sources = {name: next(proofs.rglob(f"{name}.cpp"), None)
                     for name in PARTS + MODEL + LINEAR + ONCE}
    pattern_sources = [*sorted((tree / "patterns").glob("*.cpp")),
                       *sorted((tree / "patterns/holders").glob("*.cpp")),
                       tree / "patterns/tokens/token_service.cpp"]
    sources = engine_sources + pattern_sources + [s for s in proof_sources.values() if s]
    objects = BUILD / "objects"
    objects.mkdir(parents=True, exist_ok=True)

    def object_of(source):
        return objects / str(source.relative_to(tree)).replace("/", "_").replace(".cpp", ".o")

    jobs = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for source in sources:
            target = object_of(source)
            command = compiler + FLAGS + ["-I.", "-Iinclude", "-c",
                                          str(source.relative_to(tree)), "-o", str(target)]
            jobs[pool.submit(run_compiler, command)] = source
        for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            if job.result() is not None:
                sys.exit(f"mutants: {jobs[job].name} does not compile:\n{job.result()}")
            if sys.stderr.isatty():
                print(f"\rbuilding the engine with all mutants {done}/{len(jobs)}", end="",
                      file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    engine = [str(object_of(source)) for source in engine_sources]
    patterns = [str(object_of(source)) for source in pattern_sources]
    for proof, names in (("model", PARTS + MODEL), ("linearizability", PARTS + LINEAR),
                         ("once", ONCE)):
        mine = [str(object_of(proof_sources[n])) for n in names if proof_sources[n]]
        mine += patterns if proof == "once" else []
        said = run_compiler(["g++", *mine, *engine, "-lpthread", "-o",
                             str(BUILD / f"proof_{proof}")])
        if said is not None:
            sys.exit(f"mutants: proof_{proof} does not link:\n{said}")


def run_proof(proof, number, seed, limit_s):
    """(caught, how, seconds)"""
    # Whether threads meet where a mutant lies is chance: one run in three does, for some of them.
    # A verdict says more than a run without end, which gets one more chance as well.
    runs_max = 1 if number == 0 else RUNS_MAX[proof]
    seconds = 0.0
    endless = 0
    for run in range(runs_max):
        this_seed = seed if run == 0 else (seed or 0) + run
        caught, how, took = run_once(proof, number, this_seed, limit_s)
        seconds += took
        endless += how == "did not end"
        if caught and (how != "did not end" or endless == 2):
            break
    return caught or endless != 0, how if run == 0 else f"{how}, run {run + 1}", seconds


def run_once(proof, number, seed, limit_s):
    started = time.monotonic()
    environment = dict(os.environ, SEMEL_MUTANT=str(number))
    command = [str(BUILD / f"proof_{proof}")]
    if seed is not None:
        command += ["--seed", str(seed)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return True, "did not end", time.monotonic() - started
    seconds = time.monotonic() - started
    if done.returncode == 0:
        return False, "passed", seconds
    if done.returncode < 0:
        return True, f"crash, signal {-done.returncode}", seconds
    text = done.stdout.decode(errors="replace").splitlines()
    reason = next((line for line in text if "DIFFERENCE" in line or "linearizability: seed" in line
                   or "once: seed" in line or "invariant" in line),
                  text[-1] if text else "no word")
    return True, reason.split(": ", 2)[-1][:70], seconds


def main(arguments):
    seed, names, is_long = None, [], False
    rest = iter(arguments)
    for argument in rest:
        if argument == "--long":
            is_long = True
        elif argument == "--seed":
            seed = int(next(rest, "1"))
        elif argument.startswith("-"):
            print(f"mutants: {argument}: unknown argument; known: --long, --seed N, NAME ...",
                  file=sys.stderr)
            return 2
        else:
            names.append(argument)
    unknown = [name for name in names if name not in {m.name for m in MUTANTS}]
    if unknown:
        print(f"mutants: no mutant '{unknown[0]}'", file=sys.stderr)
        return 2
    build(make_tree())
    for proof in ("model", "linearizability", "once"):
        caught, how, seconds = run_proof(proof, 0, seed, CONTROL_LIMIT_S)
        print(f"control                    {proof:16} {how}, {seconds:.1f} s", flush=True)
        if caught:
            print(f"mutants: the engine without a mutant fails {proof}")
            return 1
    tried = [(n, m) for n, m in enumerate(MUTANTS, 1) if not names or m.name in names]
    survivors = []
    for number, mutant in tried:
        other = "model" if mutant.proof == "linearizability" else "linearizability"
        proofs = [mutant.proof, other] if is_long else [mutant.proof]
        results = [(proof, *run_proof(proof, number, seed, TIME_LIMIT_S)) for proof in proofs]
        for proof, caught, how, seconds in results:
            word = "caught" if caught else "SURVIVED"
            print(f"{mutant.name:26} {proof:16} {word} in {seconds:.1f} s: {how}", flush=True)
        if not any(caught for _, caught, _, _ in results):
            print(f"    {mutant.what}")
            survivors.append(mutant.name)
    print(f"mutants: {len(tried) - len(survivors)} of {len(tried)} caught" +
          (f", survivors: {' '.join(survivors)}" if survivors else ""))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
