#!/usr/bin/env python3
"""Storages and nodes on real file systems that fill up or fail, on loop devices.

    filesystems.py VICTIM SEMEL [--long] [--seed N] [--only KIND[,SCENE]]

Kinds: ext4, xfs (with reflinks), btrfs, overlay (on ext4), tmpfs. Scenes:

    full        the disk fills up under load, stays full over a restart, and gets space back
    shared      the directory is cloned (cp --reflink) while it is used, then the disk fills up
    flutter     the disk is full and not full again, many times a second: also at renames and
                ingested files
    unreadable  sectors of the log cannot be read; the page cache is emptied
    readonly    the file system stops: an error of the disk, or a shutdown
    backing     the disk below cannot store more: writing back fails, at a sync or in between
    node        `semel node` at synced: full, DEL, space back, kill -9
    node_stops  the file system stops under a node: it ends with exit code 1, and comes back

No process may end by a signal but SIGKILL, answers are those of docs/guarantees.md, what was
acknowledged is there in the next life, and the tools end with their exit codes. What cannot be had
here is skipped, and counted. Run as root; mounts are in a namespace. 77: nothing could be run.
"""
import argparse
import ctypes
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "support")]
import servers  # noqa: E402
from resp import SIGNED  # noqa: E402
from victims import Ledger, Victim  # noqa: E402
from volumes import MIB, Unavailable, Volume, drop_cache, fill, run  # noqa: E402

SKIPPED = 77
PATIENCE = 30
KINDS = ("ext4", "xfs", "btrfs", "overlay", "tmpfs")
SCENES = ("full", "shared", "flutter", "unreadable", "readonly", "backing", "node",
          "node_stops")
libc = ctypes.CDLL(None, use_errno=True)


class Proof:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.random = random.Random(options.seed)
        self.bad, self.skips, self.scenes, self.signals = [], [], 0, 0
        self.acknowledged = self.refused = self.unknown = self.lives = self.known = 0
        self.name = ""

    # --- what must hold ---------------------------------------------------------------------

    def fail(self, text):
        self.bad.append(f"{self.name}: {text}")
        print(f"filesystems: {self.name}: {text}", flush=True)

    def check(self, condition, text):
        if not condition:
            self.fail(text)
        return condition

    def code_of(self, code, allowed, what):
        if code in allowed:
            return
        if isinstance(code, int) and (code < 0 or code >= 128):
            self.signals += 1
            self.fail(f"{what} ended by signal {-code if code < 0 else code - 128}")
        else:
            self.fail(f"{what} ended with {code}, not one of {allowed}")

    def tool(self, allowed, *words):
        done = subprocess.run([self.options.semel, *map(str, words)], capture_output=True,
                              text=True, timeout=120, check=False)
        self.code_of(done.returncode, allowed, f"semel {words[0]}: "
                     f"{(done.stdout + done.stderr).strip()[-300:]!r}")
        return done.returncode

    def start(self, directory, level, ledger):
        self.lives += 1
        seed = self.random.randrange(1 << 30)
        victim = Victim([self.options.victim, directory, level, seed, "filling"], ledger)
        if self.options.verbose:
            told = f"{len(victim.found)} records" if victim.is_ready else victim.refusal
            print(f"filesystems: {self.name}: life {seed} at {level}: {told}", flush=True)
        return victim

    def opened(self, victim, what):
        if victim.is_ready:
            return True
        self.code_of(victim.finish(kill=False), (3,), what)
        self.fail(f"{what}: not opened: {victim.refusal}")
        if self.options.keep:
            shutil.copytree(victim.directory, os.path.join(self.options.keep, self.name),
                            dirs_exist_ok=True)
        return False

    def compare(self, directory, ledger, what):
        victim = self.start(directory, "logged", ledger)
        if not self.opened(victim, what):
            return
        self.lost(ledger, victim.found, what)
        self.code_of(victim.finish(kill=False), (0,), what)
        self.check(victim.closed, f"{what}: was not closed")

    def lost(self, ledger, found, what):
        missing = ledger.missing(found)
        if missing:
            self.fail(f"{what}: {len(missing)} keys wrong: {missing[:3]}")

    def add_up(self, ledger):
        self.acknowledged += ledger.acknowledged
        self.refused += ledger.refused
        self.unknown += ledger.unknown
        for text in ledger.wrong[:3]:
            self.fail(f"a wrong answer: {text}")

    # --- scenes -----------------------------------------------------------------------------

    def fill_and_free(self, volume, directory, ledger, level, clone=False):
        ballast = volume.root / "ballast"
        victim = self.start(directory, level, ledger)
        if not self.opened(victim, "the first life"):
            return
        fill(ballast, keep=80 * MIB)
        victim.work(1.5)
        if clone:
            self.clone(volume, directory)
        fill(ballast)
        full = victim.work(PATIENCE, lambda: ledger.refused >= 300)
        if self.check(full or victim.failed, "was never refused") and not victim.failed:
            # Erases go on, out of the log's reserve.
            self.check(ledger.erased_when_full > 0, "no DEL was accepted on the full disk")
        self.check(not victim.failed or clone, "a full disk made the storage fail")
        self.code_of(victim.finish(kill=True), (-signal.SIGKILL,), "the first life")
        victim = self.start(directory, level, ledger)
        if clone and not victim.is_ready:  # the clone has the blocks of the reserve as well
            self.code_of(victim.finish(kill=False), (3,), "on the full disk")
            self.free(volume, ballast, clone)
            victim = self.start(directory, level, ledger)
        if not clone and victim.is_ready:  # the reserve is used up now
            self.code_of(victim.finish(kill=True), (-signal.SIGKILL,), "the second life")
            victim = self.start(directory, level, ledger)
        if not self.opened(victim, "a life on the full disk"):
            return
        self.lost(ledger, victim.found, "a life on the full disk")
        victim.work(1.0)
        self.free(volume, ballast, clone)
        before = ledger.acknowledged
        again = victim.work(PATIENCE, lambda: victim.failed or
                            ledger.acknowledged - ledger.erased_when_full > before + 200)
        self.check(again, "space came back, and nothing new was accepted")
        self.code_of(victim.finish(kill=False), (0,), "the life with space")
        self.compare(directory, ledger, "the last life")
        self.tool((0,), "verify", directory)
        self.tool((0,), "inspect", directory)
        self.tool((0,), "repair", directory)

    @staticmethod
    def free(volume, ballast, clone):
        ballast.unlink(missing_ok=True)
        if clone and volume.kind == "btrfs" and (volume.root / "clone").exists():
            run("btrfs", "subvolume", "delete", volume.root / "clone")
        elif clone:
            shutil.rmtree(volume.root / "clone", ignore_errors=True)
        volume.settle()

    @staticmethod
    def clone(volume, directory):
        """Shares all blocks of the storage with a copy."""
        if volume.kind == "btrfs":
            run("btrfs", "subvolume", "snapshot", volume.root, volume.root / "clone")
        else:
            run("cp", "-r", "--reflink=always", directory, volume.root / "clone")

    def full(self, volume, ledger):
        for level in ("logged", "synced"):
            self.fill_and_free(volume, volume.root / level, ledger[level], level)

    def shared(self, volume, ledger):
        if volume.base not in ("xfs", "btrfs") or volume.kind == "overlay":
            raise Unavailable(f"{volume.kind} shares no extents")
        for level in ("logged", "synced"):
            self.fill_and_free(volume, volume.root / level, ledger[level], level, clone=True)

    def flutter(self, volume, ledger):
        for level in ("logged", "synced"):
            directory = volume.root / level
            stop = threading.Event()
            seed = self.random.randrange(1 << 30)

            def changes(stop=stop, seed=seed):
                chance = random.Random(seed)
                ballast = volume.root / "ballast"
                while not stop.is_set():
                    fill(ballast)
                    stop.wait(chance.uniform(0.001, 0.2))
                    os.truncate(ballast, 0)
                    stop.wait(chance.uniform(0.001, 0.05))
                ballast.unlink()

            victim = self.start(directory, level, ledger[level])
            if not self.opened(victim, "the first life"):
                return
            fill(volume.root / "base", keep=100 * MIB)
            thread = threading.Thread(target=changes)
            thread.start()
            try:
                for _ in range(3 if not self.options.long else 20):
                    victim.work(self.random.uniform(1.0, 2.5))
                    self.check(not victim.failed, "a full disk made the storage fail")
                    self.code_of(victim.finish(kill=True), (-signal.SIGKILL,), "a life")
                    victim = self.start(directory, level, ledger[level])
                    if not victim.is_ready:
                        self.opening_failed(victim.finish(kill=False))
                        stop.set()
                        thread.join()
                        volume.settle()
                        victim = self.start(directory, level, ledger[level])
                        if not self.opened(victim, "with space again"):
                            return
                    self.lost(ledger[level], victim.found, "the next life")
            finally:
                stop.set()
                thread.join()
                os.unlink(volume.root / "base")
            self.code_of(victim.finish(kill=False), (0,), "the last life")
            self.compare(directory, ledger[level], "afterwards")
            self.tool((0,), "verify", directory)

    def opening_failed(self, code):
        """A RocksDB with assertions aborts when it could not write a file: known, not judged."""
        if code == -signal.SIGABRT:
            self.known += 1
        else:
            self.code_of(code, (3,), "opening")

    def unreadable(self, volume, ledger):
        for level in ("logged", "synced"):
            directory = volume.root / level
            victim = self.start(directory, level, ledger[level])
            if not self.opened(victim, "the first life"):
                return
            victim.work(1.5)
            names = sorted((directory / "log").iterdir())
            lost = names[self.random.randrange(len(names))]
            os.sync()
            volume.lose_sectors(lost if lost.exists() else sorted((directory / "log").iterdir())[0])
            end = time.monotonic() + 4
            while time.monotonic() < end and victim.process.poll() is None:
                drop_cache(directory)
                victim.work(0.1)
            self.code_of(victim.finish(kill=True), (-signal.SIGKILL,), "a life without sectors")
            drop_cache(directory)
            codes = [self.tool((0, 1, 2, 3), word, directory) for word in ("verify", "inspect")]
            victim = self.start(directory, level, ledger[level])
            if victim.is_ready:
                self.lost(ledger[level], victim.found, f"opened, verify says {codes[0]}")
                self.code_of(victim.finish(kill=True), (-signal.SIGKILL,), "the second life")
            else:
                self.code_of(victim.finish(kill=False), (3,), "opening without sectors")
            drop_cache(directory)
            self.tool((0, 1, 2, 3), "repair", directory, "--accept-loss")
            os.truncate(volume.image, 400 * MIB)
            return  # the file system itself has lost sectors

    def readonly(self, volume, ledger):
        directory, ledger = volume.root / "synced", ledger["synced"]
        if volume.base not in ("ext4", "xfs"):
            raise Unavailable(f"{volume.kind} has no way to stop it under load")
        victim = self.start(directory, "synced", ledger)
        if not self.opened(victim, "the first life"):
            return
        victim.work(1.0)
        volume.stop_working()
        self.check(victim.work(PATIENCE, lambda: victim.failed), "a stopped disk went unnoticed")
        before = ledger.acknowledged
        victim.work(0.5)
        self.check(ledger.acknowledged == before, "acknowledged after the disk had stopped")
        self.code_of(victim.finish(kill=self.random.random() < 0.5), (0, -signal.SIGKILL),
                     "a life on a stopped disk")
        self.mount_again(volume, directory, ledger)

    def mount_again(self, volume, directory, ledger):
        """What was not synced may be lost. In one boot that is damage, which a repair accepts."""
        volume.mount_again()
        victim = self.start(directory, "synced", ledger)
        if victim.is_ready:
            self.lost(ledger, victim.found, "mounted again")
            self.code_of(victim.finish(kill=False), (0,), "mounted again")
        else:
            self.code_of(victim.finish(kill=False), (3,), "mounted again")
            self.check("/log/" in str(victim.refusal) and "damaged" in str(victim.refusal),
                       f"mounted again: {victim.refusal}")
            self.tool((1,), "verify", directory)
            self.tool((0,), "repair", directory, "--accept-loss")
        self.compare(directory, ledger, "in the life after that")
        self.tool((0,), "verify", directory)

    def backing(self, volume, ledger):
        directory, ledger = volume.root / "synced", ledger["synced"]
        if not volume.is_thin:
            raise Unavailable(f"{volume.kind} has no disk below")
        victim = self.start(directory, "synced", ledger)
        if not self.opened(victim, "the first life"):
            return
        victim.work(0.5)
        pad = volume.below / "pad"
        fill(pad, keep=24 * MIB)
        noticed = victim.work(PATIENCE, lambda: victim.failed or ledger.refused >= 300)
        self.check(noticed, "a disk that stores nothing more went unnoticed")
        if victim.failed:
            before = ledger.acknowledged
            victim.work(0.5)
            self.check(ledger.acknowledged == before, "acknowledged after writing back had failed")
        self.code_of(victim.finish(kill=True), (-signal.SIGKILL,), "a life on a thin disk")
        pad.unlink()
        self.mount_again(volume, directory, ledger)

    # --- the node ---------------------------------------------------------------------------

    def node(self, volume, ledger):
        del ledger
        directory = volume.root / "node"
        held = {}
        ballast = volume.root / "ballast"
        with Node(self, directory) as node:
            client = node.client()
            fill(ballast, keep=60 * MIB)
            claim = client("SEMEL.CLAIM", "work", "job")
            self.check(isinstance(claim, list), f"SEMEL.CLAIM: {claim}")
            refusal = self.fill_node(client, held, ballast)
            if not self.check(refusal is not None and refusal.startswith("-MISCONF"),
                              f"a full disk is answered with {refusal}"):
                return
            self.full_node(client, held, claim)
            self.code_of(node.ended_by(signal.SIGKILL), (-signal.SIGKILL,), "the node")
        with Node(self, directory) as node:
            client = node.client()
            self.same(client, held, "on the full disk")
            ballast.unlink()
            end = time.monotonic() + PATIENCE
            while (told := client("SET", "later", "1")) != "+OK" and time.monotonic() < end:
                time.sleep(0.01)  # between two attempts
            self.check(told == "+OK", f"with space again SET is answered with {told}")
            held["later"] = b"1"
            self.code_of(node.ended_by(signal.SIGTERM), (0,), "the node")
        with Node(self, directory) as node:
            self.same(node.client(), held, "in the last life")
            self.code_of(node.ended_by(signal.SIGTERM), (0,), "the node")
        self.tool((0,), "verify", directory)

    def fill_node(self, client, held, ballast):
        for batch in range(2_000):
            if batch == 30:
                fill(ballast)
            pairs = [(f"k{batch}.{number}", b"v" * self.random.randrange(4_000))
                     for number in range(100)]
            told = client.all([("SET", *pair) for pair in pairs])
            held.update(pair for pair, each in zip(pairs, told) if each == "+OK")
            refused = [each for each in told if each != "+OK"]
            if refused:
                return refused[0]
        return None

    def full_node(self, client, held, claim):
        keys = iter(list(held))
        for words in (("DEL",), ("UNLINK",), ("GETDEL",), ("PEXPIRE", "1")):
            key = next(keys)
            told = client(words[0], key, *words[1:])
            self.check(not str(told).startswith("-"), f"{words[0]} on a full disk: {told}")
            del held[key]
        one, two = next(keys), next(keys)
        client("MULTI")
        client("DEL", one)
        client("DEL", two)
        told = client("EXEC")
        self.check(told == [1, 1], f"MULTI, two DEL, EXEC on a full disk: {told}")
        del held[one], held[two]
        client("MULTI")
        client("DEL", next(keys))
        client("SET", "another", "v" * 100)
        told = client("EXEC")
        self.check(isinstance(told, list) and all(str(each).startswith("-MISCONF")
                                                  for each in told),
                   f"a transaction that adds, on a full disk: {told}")
        fields = dict(zip(claim[::2], claim[1::2]))
        told = client("SEMEL.COMPLETE", "work", "job", fields[b"epoch"])
        self.check(not str(told).startswith("-"), f"SEMEL.COMPLETE on a full disk: {told}")

    def node_stops(self, volume, ledger):
        del ledger
        directory = volume.root / "node"
        if volume.base not in ("ext4", "xfs"):
            raise Unavailable(f"{volume.kind} has no way to stop it under load")
        held = {}
        with Node(self, directory) as node:
            client = node.client()
            for number in range(300):
                if client("SET", f"k{number}", "1") == "+OK":
                    held[f"k{number}"] = b"1"
            self.check(len(held) == 300, "SET was refused")
            volume.stop_working()
            told = []
            try:
                for number in range(300, 100_000):
                    told.append(client("SET", f"k{number}", "1"))
            except OSError:
                pass  # it has ended
            after = [each for each in told if each == "+OK"]
            self.check(not after, f"{len(after)} SETs were acknowledged on a stopped disk")
            self.check(all(str(each).startswith(("-TRYAGAIN", "-MISCONF")) for each in told),
                       f"answers on a stopped disk: {set(told)}")
            try:
                self.code_of(node.wait(PATIENCE), (1,), "a node on a stopped disk")
            except subprocess.TimeoutExpired:
                self.fail("a node on a stopped disk does not end")
        volume.mount_again()
        if self.tool((0, 1), "verify", directory) == 1:
            self.tool((0,), "repair", directory, "--accept-loss")
        with Node(self, directory) as node:
            self.stored(node.client(), held, "mounted again")
            self.code_of(node.ended_by(signal.SIGTERM), (0,), "the node")
        self.tool((0,), "verify", directory)

    def stored(self, client, held, what):
        told = client.all([("GET", key) for key in held])
        wrong = [key for key, value in zip(held, told) if value != held[key]]
        self.check(not wrong, f"{what}: {len(wrong)} keys wrong: {wrong[:3]}")

    def same(self, client, held, what):
        self.stored(client, held, what)
        told = client("SEMEL.CLAIM", "work", "job")
        self.check(isinstance(told, list) and b"granted" not in told,
                   f"{what}: finished work is claimed with {told}")

    # --- all --------------------------------------------------------------------------------

    def one(self, kind, scene):
        self.name = f"{kind}, {scene}"
        here = self.scratch / f"{kind}-{scene}"
        here.mkdir()
        begun = time.monotonic()
        ledgers = {"logged": Ledger(), "synced": Ledger()}
        try:
            with Volume(kind, here, is_thin=scene == "backing") as volume:
                getattr(self, scene)(volume, ledgers)
            self.scenes += 1
            print(f"filesystems: {self.name}: {time.monotonic() - begun:.0f} s", flush=True)
        except Unavailable as why:
            self.skips.append(f"{self.name}: {why}")
        finally:
            for ledger in ledgers.values():
                self.add_up(ledger)
            shutil.rmtree(here, ignore_errors=True)


class Node(servers.Node):
    """Simple strings and errors are texts with their sign."""

    form = SIGNED
    start_seconds = reply_seconds = 2 * PATIENCE

    def __init__(self, proof, directory):
        super().__init__(proof.options.semel, "--storage-enabled", "yes", "--durability", "synced",
                         "--dir", directory, folder=proof.scratch)

    def ended_by(self, number):
        self.signal(number)
        return self.wait(2 * PATIENCE)


def may_mount():
    """In a mount namespace of its own; ends with 77 where that is not allowed."""
    clone_newns = 0x00020000
    if libc.unshare(clone_newns) != 0:
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True,
                          check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("victim")
    parser.add_argument("semel")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--keep", help="copy directories that cannot be opened to this one")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only", default="", help="KIND, or KIND,SCENE")
    options = parser.parse_args()
    print(f"filesystems: seed {options.seed}", flush=True)
    if os.geteuid() != 0 or not may_mount():
        print("filesystems: skipped, file systems cannot be mounted here (root?)")
        return SKIPPED
    only = options.only.split(",") if options.only else []
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="semel_fs_"))
    proof = Proof(options, scratch)
    try:
        for _ in range(5 if options.long else 1):
            for kind in KINDS:
                for scene in SCENES:
                    if all(word in (kind, scene) for word in only):
                        proof.one(kind, scene)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for text in sorted(set(proof.skips)):
        print(f"filesystems: skipped: {text}")
    print(f"filesystems: {proof.scenes} scenes, {len(proof.skips)} skipped, {proof.lives} lives, "
          f"{proof.acknowledged} acknowledged, {proof.refused} refused, {proof.unknown} unknown, "
          f"{proof.known} RocksDB aborts, {proof.signals} signals, {len(proof.bad)} wrong")
    if proof.bad:
        return 1
    return 0 if proof.scenes else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
