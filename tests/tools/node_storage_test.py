"""Backups of a running node, and its storage's failures: node_storage_test.py PATH_OF_SEMEL
[unittest arguments]."""

import os
import subprocess

import node_test


class Storage(node_test.Case):
    def status(self, client):
        words = client("SEMEL.BACKUP", "STATUS")
        return dict(zip(words[::2], words[1::2]))

    def backed_up(self, client, name):
        self.assertEqual(client("SEMEL.BACKUP", "START", name), "+OK")
        node_test.until(lambda: self.status(client)[b"state"] != b"running", "a backup's end")
        return self.status(client)

    def test_a_backup_is_made_beside_the_running_node(self):
        folder = self.folder / "backups"
        folder.mkdir()
        node = self.keep("--durability", "logged", "--backup-dir", folder)
        client = node.client()
        self.assertEqual(self.status(client)[b"state"], b"none")
        self.assertEqual(client("SET", "before", "1"), "+OK")
        status = self.backed_up(client, "one")
        self.assertEqual((status[b"state"], status[b"name"], status[b"error"]),
                         (b"done", b"one", b""))
        self.assertEqual(client("SET", "after", "1"), "+OK")
        self.assertEqual(self.backed_up(client, "one")[b"state"], b"failed")  # it is there
        self.assertEqual(self.backed_up(client, "two")[b"state"], b"done")
        for name in ("", ".", "..", "../out", "a/b", "n" * 129, "a\0b"):
            self.assertIn("the name of a backup", client("SEMEL.BACKUP", "START", name))
        self.assertIn("event=backup name=one", node.log())
        self.assertEqual(node.stop(), 0)
        text = self.refusal("--storage-enabled", "yes", "--dir", folder / "one", code=1)
        self.assertIn("is a backup", text)
        for name, expected in (("one", [b"1", None]), ("two", [b"1", b"1"])):
            again = self.folder / f"again-{name}"
            subprocess.run([node_test.SEMEL, "restore", str(folder / name), str(again)], check=True,
                           capture_output=True, timeout=node_test.PATIENCE)
            client = self.node("--storage-enabled", "yes", "--dir", again).client()
            self.assertEqual(client("MGET", "before", "after"), expected)

    def test_a_restart_after_evictions_has_what_stayed_and_nothing_that_went(self):
        flags = ("--durability", "logged", "--cache-databases", "1", "--maxmemory", "8mb",
                 "--maxmemory-policy", "allkeys-lru")

        def keys(client, database):
            self.assertEqual(client("SELECT", database), "+OK")
            return set(client("KEYS", "*"))

        def evicted(client):
            return int(client("INFO", "stats").split(b"evicted_keys:")[1].split(b"\r")[0])

        node = self.keep(*flags)
        client = node.client()
        for i in range(50):
            self.assertEqual(client("SET", f"stays:{i}", "v"), "+OK")
        self.assertIn(b"granted", client("SEMEL.CLAIM", "ns", "job"))
        self.assertEqual(client("SELECT", 1), "+OK")
        for i in range(12_000):
            self.assertEqual(client("SET", f"k{i}", "v" * 1_000), "+OK")
        there = keys(client, 1)
        self.assertEqual(len(there) + evicted(client), 12_000)
        self.assertGreater(evicted(client), 1_000)
        # An evicted key that is written again is a new one.
        gone = next(f"k{i}" for i in range(12_000) if f"k{i}".encode() not in there)
        self.assertEqual(client("SET", gone, "again"), "+OK")
        there = keys(client, 1)
        self.assertEqual(node.stop(), 0)
        client = self.keep(*flags).client()
        before = evicted(client)
        after = keys(client, 1)
        self.assertLessEqual(after, there)
        # Records lie otherwise in memory now, so some more may have gone; each one is counted.
        self.assertIn(len(there) - len(after), range(before, evicted(client) + 1))
        self.assertGreater(len(after), len(there) / 2)
        if gone.encode() in after:
            self.assertEqual(client("GET", gone), b"again")
        self.assertEqual(len(keys(client, 0)), 50 + 1)
        self.assertIn(b"in_flight", client("SEMEL.CLAIM", "ns", "job"))

    def test_bgsave_makes_a_backup_and_info_and_lastsave_tell_of_it(self):
        folder = self.folder / "backups"
        folder.mkdir()
        node = self.keep("--durability", "logged", "--backup-dir", folder, "--backup-copies", "yes",
                         "--backup-rate", "65536")
        client = node.client()

        def info():
            text = client("INFO", "persistence").decode()
            return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

        self.assertEqual(info()["rdb_last_save_time"], str(client("LASTSAVE")))
        for i in range(400):
            self.assertEqual(client("SET", f"k{i}", os.urandom(500).hex()), "+OK")
        self.assertEqual(client("BGSAVE"), "+Background saving started")
        self.assertEqual(info()["rdb_bgsave_in_progress"], "1")
        self.assertIn("ERR Background save already in progress", client("BGSAVE"))
        self.assertIn("is running", client("SEMEL.BACKUP", "START", "other"))
        node_test.until(lambda: self.status(client)[b"bytes"] > 0, "progress")
        self.assertEqual(client("SEMEL.BACKUP", "CANCEL"), "+OK")
        node_test.until(lambda: info()["rdb_bgsave_in_progress"] == "0", "the end")
        self.assertEqual((info()["rdb_last_bgsave_status"], info()["rdb_saves"]), ("err", "0"))
        self.assertEqual(os.listdir(folder), [])
        self.assertIn("no backup is running", client("SEMEL.BACKUP", "CANCEL"))
        self.assertEqual(client("CONFIG", "SET", "backup-rate", "1gb"), "+OK")
        self.assertEqual(client("BGSAVE", "SCHEDULE"), "+Background saving started")
        node_test.until(lambda: info()["rdb_saves"] == "1", "the end")
        self.assertEqual(info()["rdb_last_bgsave_status"], "ok")
        (name,) = os.listdir(folder)
        self.assertRegex(name, r"^bgsave-\d+$")
        subprocess.run([node_test.SEMEL, "verify", str(folder / name)], check=True,
                       capture_output=True, timeout=node_test.PATIENCE)
        # What has not changed is linked from it.
        self.assertEqual(self.backed_up(client, "two")[b"state"], b"done")
        shared = [p for p in (folder / "two" / "rocksdb").iterdir() if p.stat().st_nlink > 1]
        self.assertTrue(shared)
        # One that runs at the end of the node leaves nothing.
        self.assertEqual(client("CONFIG", "SET", "backup-rate", "65536"), "+OK")
        for i in range(400):
            self.assertEqual(client("SET", f"m{i}", os.urandom(500).hex()), "+OK")
        self.assertEqual(client("SEMEL.BACKUP", "START", "last"), "+OK")
        self.assertEqual(node.stop(), 0)
        self.assertFalse((folder / "last").exists())

    def test_files_of_the_node_itself_may_lie_in_the_directory(self):
        folder = self.folder / "data"
        folder.mkdir()
        users, log, other = folder / "users.acl", folder / "node.log", folder / "other"
        users.write_text("user default on nopass ~* &* +@all\n")
        other.write_text("")
        at = ("--storage-enabled", "yes", "--dir", folder, "--aclfile", users)
        self.assertIn("has other", self.refusal(*at, code=1))
        other.unlink()
        client = self.node(*at, "--log-file", log).client()
        self.assertEqual(client("SET", "a", "1"), "+OK")

    def test_without_a_folder_or_a_storage_there_are_no_backups(self):
        self.assertIn("backup-dir is not set", self.keep().client()("SEMEL.BACKUP", "START", "a"))
        client = self.node().client()
        self.assertIn("no storage", client("SEMEL.BACKUP", "START", "a"))
        self.assertEqual(self.status(client)[b"state"], b"none")

    def failing(self, *arguments):
        """A node whose syncs fail from the moment in which the returned file is there."""
        library, trigger = self.folder / "fails.so", self.folder / "fail"
        source = self.folder / "fails.c"
        source.write_text("""
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int fails(void) {
  if (access(getenv("FAIL_FROM"), F_OK) != 0) return 0;
  errno = EIO;
  return 1;
}
int msync(void* at, size_t bytes, int flags) {
  return fails() ? -1 : (int)syscall(SYS_msync, at, bytes, flags);
}
int fdatasync(int file) {
  return fails() ? -1 : (int)syscall(SYS_fdatasync, file);
}
""")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        under = ("env", f"LD_PRELOAD={library}", f"FAIL_FROM={trigger}",
                 "ASAN_OPTIONS=verify_asan_link_order=0")
        return self.keep("--durability", "synced", *arguments, under=under), trigger

    def test_a_node_whose_storage_has_failed_ends_and_comes_back(self):
        node, trigger = self.failing()
        client = node.client()
        self.assertEqual(client("SET", "before", "1"), "+OK")
        trigger.touch()
        self.assertIn("TRYAGAIN", client("SET", "after", "1"))
        self.assertEqual(node.wait(), 1)
        self.assertIn("the storage has failed", node.log())
        client = self.keep().client()
        self.assertEqual(client("GET", "before"), b"1")

    def test_by_a_setting_it_stays_and_refuses(self):
        node, trigger = self.failing("--exit-on-storage-failure", "no")
        client = node.client()
        trigger.touch()
        self.assertIn("TRYAGAIN", client("SET", "after", "1"))
        self.assertRegex(client("SET", "more", "1"), "TRYAGAIN|MISCONF")
        self.assertTrue(node.is_alive())
        trigger.unlink()
        self.assertEqual(node.stop(), 1)


if __name__ == "__main__":
    node_test.main(__doc__)
