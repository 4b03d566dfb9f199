#!/usr/bin/env python3
"""Claims, model-checked: the transitions of claim_table.txt under Spin, in every order of events.

For each configuration the whole state space is searched, for broken assertions (claim_world.pml)
or for a run in which the work never becomes done (claim_live.pml). Then rows of the table are
changed, one mutant at a time, and each mutant must be caught. Last line: the figure.

prove.py [--long] [--keep] [--seed N]   --keep: leaves the generated files, says where.
The search is exhaustive, so a seed changes nothing."""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import claim_rows  # noqa: E402

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"
JOBS = int(os.environ.get("SEMEL_JOBS") or min(2, os.cpu_count() or 1))
DEPTH_MAX = 200_000
TIME_LIMIT_S = 1500
PLAIN = {"OWN": 1, "LAPSE": "lapse_retry", "STRICT": "strict_no",
         "SLIDES": "slides_no", "LIMIT": 0}
SAFETY = {"model": "claim_world", "N": 2, "GRANTS": 3, **PLAIN}
LIVE = {"model": "claim_live", "N": 2, "CRASHES": 1, "LOST": 1, "FAILURES": 1, "LAPSES": 1,
        **PLAIN}
DOUBT = {"LAPSE": "lapse_in_doubt"}
STRICT = {"STRICT": "strict_yes"}


def configurations(is_long):
    """Name -> what differs from SAFETY or LIVE. OWN: bits of owners that live in the engine."""
    world = {"N": 3, "GRANTS": 8 if is_long else 4}
    live = {"N": 3, "CRASHES": 2, "LOST": 1, "FAILURES": 1, "LAPSES": 1}
    if is_long:
        live = {"N": 3, "CRASHES": 3, "LOST": 2, "FAILURES": 2, "LAPSES": 2}
    return {
        "retry": {**SAFETY, **world},
        "retry, two in the engine": {**SAFETY, **world, "OWN": 6},
        "in doubt": {**SAFETY, **world, **DOUBT},
        "strict": {**SAFETY, **world, **STRICT},
        "in doubt, strict": {**SAFETY, **world, **DOUBT, **STRICT},
        "two attempts": {**SAFETY, **world, "LIMIT": 2},
        "two attempts, in doubt": {**SAFETY, **world, "LIMIT": 2, **DOUBT},
        "another payload": {**SAFETY, **world, "MIX": 1},
        "another payload, two attempts": {**SAFETY, **world, "MIX": 1, "LIMIT": 2},
        "duplicates after the window": {**SAFETY, **world, "WINDOW": 1, "MIX": 1},
        "sliding": {**SAFETY, **world, "SLIDES": "slides_yes", "MIX": 1},
        "steps": {**SAFETY, **world, "MEMOS": 1},
        "steps, in doubt": {**SAFETY, **world, "MEMOS": 1, **DOUBT},
        "becomes done": {**LIVE, **live},
        "becomes done, remote owners": {**LIVE, **live, "OWN": 0},
        "becomes done, strict": {**LIVE, **live, **STRICT},
    }


class Mutant:
    """`cells` of a row of `call` lead to `outcome` instead; or the row becomes several, a list of
    (cells, outcome). Without a call it is the settings that a proof must not bear."""

    def __init__(self, name, call, cells, outcome, base=None, **more):
        self.name, self.call, self.cells, self.outcome = name, call, cells, outcome
        self.settings = {**(base or SAFETY), **more}

    def change(self, text):
        if self.call is None:
            return text
        rows = self.outcome if isinstance(self.outcome, list) else [(self.cells, self.outcome)]
        call = None
        lines = text.split("\n")
        for i, line in enumerate(lines):
            words = line.split()
            if line.startswith("call "):
                call = words[1]
            elif call == self.call and "->" in words:
                cells = " ".join(words[:words.index("->")])
                if cells == self.cells:
                    lines[i] = "\n".join(f"  {cells} -> {outcome}" for cells, outcome in rows)
                    if lines[i].split() == words:
                        sys.exit(f"mutant {self.name} changes nothing")
                    return "\n".join(lines)
        sys.exit(f"mutant {self.name}: {self.call} has no row {self.cells}")


FINISHED = "done|spent|digest"
TAKEOVER = "over|closed * !differs retry none|below * *"
OTHERS = "!absent|vacant|held|over|closed|doubt same *"
MUTANTS = [
    Mutant("who claims a held key is granted it", "claim", "held !same !differs * * * *",
           "granted - new_epoch,attempt held"),
    Mutant("a takeover keeps the epoch", "claim", TAKEOVER,
           "granted takeover its_epoch,attempt held"),
    Mutant("epochs begin at 1 again after a deletion", "claim",
           "absent|vacant * * * none|below none|inside *", "granted - first_epoch,attempt held"),
    Mutant("epochs begin again after a restart", "restart", "absent *", "- - - ="),
    Mutant("the same, as the guarded thing sees it", "restart", "absent *", "- - - =",
           ONLY_SINK=1),
    Mutant("a takeover keeps the epoch, as the guarded thing sees it", "claim", TAKEOVER,
           "granted takeover its_epoch,attempt held", ONLY_SINK=1),
    Mutant("a lost lease is granted again", "claim", TAKEOVER,
           "regranted - its_epoch,attempt,remaining ="),
    Mutant("a finished claim is granted anew", "claim", "spent|digest * !differs * * * no",
           "granted - new_epoch,attempt held"),
    Mutant("a duplicate in a sliding window ends the record", "claim", "done * !differs * * * yes",
           "replay - attempt,result absent", SLIDES="slides_yes"),
    Mutant("a duplicate in a sliding window revives a result", "claim",
           "digest * !differs * * * yes", "granted - new_epoch,attempt held",
           SLIDES="slides_yes"),
    Mutant("a result is replayed to another payload", "claim", f"{FINISHED} * differs * * * *",
           "replay - attempt,result =", MIX=1),
    Mutant("a doubtful claim is granted", "claim", "over|closed * !differs in_doubt * * *",
           "granted takeover new_epoch,attempt held", **DOUBT),
    Mutant("a doubtful claim ends by itself", "end", "held|over|closed in_doubt",
           "- - - absent", **DOUBT),
    Mutant("what is older than the window is granted", "claim", "absent|vacant * * * * old *",
           "granted - new_epoch,attempt held", WINDOW=1),
    Mutant("the limit of attempts is not looked at", "claim", "over|closed * !differs retry at * *",
           "granted takeover new_epoch,attempt held", LIMIT=2),
    Mutant("a failure forgets the attempts", "fail_release", "held same * below|at *",
           "ok - - absent", LIMIT=2),
    Mutant("complete does not compare the epoch", "complete", "!absent|vacant|done older * *",
           "ok - - done"),
    Mutant("complete replaces the result of a later owner", "complete", "done older * *",
           "ok - - done"),
    Mutant("complete re-creates what is gone", "complete", "absent|vacant * * *", "ok - - done"),
    Mutant("complete is not retry-safe", "complete", f"{FINISHED} same same *",
           "conflict - - ="),
    Mutant("complete with another result is ok", "complete", f"{FINISHED} same other *",
           "ok - - ="),
    Mutant("complete replaces its own result", "complete", f"{FINISHED} same other *",
           "ok - - done"),
    Mutant("a strict namespace takes what is late", "complete", "over|closed|doubt same * yes",
           "ok late - done", **STRICT),
    Mutant("late is not said", "complete", "over|closed|doubt same * no", "ok - - done"),
    Mutant("fail does not compare the epoch", "fail_release", "!absent|vacant older * * *",
           "ok - - absent"),
    Mutant("fail undoes what is done", "fail_keep", f"{FINISHED}|poison same *", "ok - - failed"),
    Mutant("renew revives a lost lease", "renew", "over|closed|doubt same", "ok late - held"),
    Mutant("renew of a stale owner", "renew", "!absent|vacant older", "ok - - held"),
    Mutant("release of what is done", "release", OTHERS + " *", "ok - - absent"),
    Mutant("release by anyone", "release", "!absent|vacant !same * *", "ok - - absent"),
    Mutant("a step of a stale owner runs where there is no memo", "recall", "held !same *",
           "ok - - =", MEMOS=1),
    Mutant("a step of finished work runs", "recall", "!held * *", "ok - - =", MEMOS=1),
    Mutant("a release forgets the memos", "release", "held same none kept", "ok - - absent",
           MEMOS=1),
    Mutant("a failure forgets the memos", "fail_release", "held same * none kept",
           "ok - - absent", MEMOS=1),
    Mutant("a resolved doubt forgets the memos", "resolve_released", "held|over|closed|doubt kept",
           "found - - absent", MEMOS=1),
    Mutant("the wheel takes the claim with its result", "wheel", "spent", "- - - absent"),
    Mutant("a restart loses what is done", "restart", f"{FINISHED} *", "- - above absent"),
    Mutant("a restart loses a remote owner's claim", "restart", "held|over remote",
           "- - above absent", **DOUBT),
    Mutant("no takeover", "claim", TAKEOVER, "in_flight - attempt,remaining,label =", LIVE),
    Mutant("a closed session is waited for", "claim", TAKEOVER,
           [("over * !differs retry none|below * *", "granted takeover new_epoch,attempt held"),
            ("closed * !differs retry none|below * *", "in_flight - attempt,remaining,label =")],
           LIVE),
    Mutant("who lost the reply is not granted again", "claim", "held same * * * * *",
           "in_flight - attempt,remaining,label =", LIVE),
    Mutant("what an owner doubts is taken over", "claim", "doubt * !differs * * * *",
           "granted takeover new_epoch,attempt held"),
    Mutant("work in doubt, which must not be done again", None, "", "", LIVE, **DOUBT),
]


class Verdict:
    def __init__(self, output, ended):
        self.output = output
        errors = re.search(r"errors: (\d+)", output)
        self.errors = int(errors.group(1)) if errors else None
        self.complete = (ended and errors is not None and "Search not completed" not in output
                         and "search depth too small" not in output
                         and "hash table full" not in output)
        self.states = int(self.number(r"(\d+) states, stored"))
        self.depth = int(self.number(r"depth reached (\d+)"))
        self.seconds = self.number(r"elapsed time ([\d.e+-]+)")
        self.megabytes = self.number(r"([\d.]+)\s+total actual memory")
        self.used = {int(line) for line in re.findall(r"^used (\d+)", output, re.MULTILINE)}
        found = re.search(r"^pan:\d+: (.*?)(?: \(at depth.*)?$", output, re.MULTILINE)
        self.found = found.group(1) if found else ""

    def number(self, pattern):
        found = re.search(pattern, self.output)
        return float(found.group(1)) if found else 0.0


def command(arguments, where):
    done = subprocess.run(arguments, cwd=where, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} in {where}:\n{done.stdout}{done.stderr}")


def verify(work, name, settings, text, count, level="-O0"):
    """Searches the whole state space of one configuration, with the transitions of `text`. Most of
    the time of a short search goes into the compiler, hence its level."""
    where = work / re.sub(r"\W+", "_", name)
    where.mkdir(parents=True, exist_ok=True)
    model = settings["model"]
    for file in ("claim_record.pml", f"{model}.pml"):
        shutil.copy(HERE / file, where)
    table = claim_rows.Table(text)
    (where / "claim_rows.pml").write_text(claim_rows.promela(table, count), encoding="utf-8")
    defines = [f"-D{key}={value}" for key, value in settings.items() if key != "model"]
    command(["spin", "-a", *defines, *(["-DCOUNT"] if count else []), f"{model}.pml"], where)
    # NOREDUCE: every order is looked at. COLLAPSE costs time and no states.
    is_live = model == "claim_live"
    kind = ["-DNFAIR=4"] if is_live else ["-DSAFETY"]
    command(["gcc", level, "-w", *kind, "-DCOLLAPSE", "-DNOREDUCE", "-o", "pan", "pan.c"], where)
    arguments = ["./pan", f"-m{DEPTH_MAX}", "-w20", *(["-a", "-f"] if is_live else [])]
    try:
        done = subprocess.run(arguments, cwd=where, capture_output=True, text=True,
                              timeout=TIME_LIMIT_S)
        return Verdict(done.stdout + done.stderr, done.returncode == 0)
    except subprocess.TimeoutExpired as late:
        return Verdict(str(late.stdout), False)


def search_all(work, text, is_long):
    """False: an error, or a search that did not end."""
    wanted = configurations(is_long)
    used, states, wrong = set(), 0, 0
    print(f"{'configuration':31} {'states':>9} {'depth':>7} {'s':>7} {'MB':>6}")
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        level = "-O2" if is_long else "-O0"
        runs = {name: pool.submit(verify, work, name, settings, text, True, level)
                for name, settings in wanted.items()}
        for name, run in runs.items():
            verdict = run.result()
            bad = verdict.errors != 0 or not verdict.complete
            wrong += bad
            used |= verdict.used
            states += verdict.states
            print(f"{name:31} {verdict.states:9} {verdict.depth:7} {verdict.seconds:7.2f} "
                  f"{verdict.megabytes:6.0f}{'  FAILED ' + verdict.found if bad else ''}",
                  flush=True)
            if bad:
                print(verdict.output[-3000:], f"with {wanted[name]}", sep="\n")
    return used, states, len(wanted), wrong


def rows_not_used(table, used):
    """Rows that no configuration has come to. A record older than an owner's epoch is one that a
    loss of data brought back, and nothing is lost here."""
    left = []
    for call, (columns, rows) in table.calls.items():
        for row in rows:
            newer = any(c == "epoch" and cell == ["newer"] for c, cell in zip(columns, row.cells))
            if row.line not in used and not newer:
                left.append(f"{call}, line {row.line}")
    return left


def catch_all(work, text):
    survivors = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        runs = [(m, pool.submit(verify, work, "mutant " + m.name, m.settings, m.change(text),
                                False)) for m in MUTANTS]
        for mutant, run in runs:
            verdict = run.result()
            caught = verdict.errors not in (0, None)
            survivors += not caught
            word = "caught" if caught else "SURVIVED"
            found = re.sub(r"\s+", " ", verdict.found)
            print(f"{word:8} {mutant.name}: {found}"[:100], flush=True)
    return survivors


def main():
    parser = argparse.ArgumentParser(description="model-checks the claim table")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    began = time.monotonic()
    text = claim_rows.TABLE.read_text(encoding="utf-8")
    table = claim_rows.Table(text)
    BUILD.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="claim-rules-", dir=BUILD))
    used, states, count, wrong = search_all(work, text, options.long)
    unused = rows_not_used(table, used)
    for row in unused:
        print(f"no configuration comes to {row}")
    survivors = catch_all(work, text)
    if options.keep or wrong:
        print(f"files: {work}")
    else:
        shutil.rmtree(work, ignore_errors=True)
    print(f"claim-rules: {count} configurations searched to their ends, {states} states, "
          f"{wrong} wrong; "
          f"{len(used)} rows used, {len(unused)} not; "
          f"{len(MUTANTS) - survivors} of {len(MUTANTS)} mutants caught; "
          f"{time.monotonic() - began:.0f} s")
    return 1 if wrong or unused or survivors else 0


if __name__ == "__main__":
    sys.exit(main())
