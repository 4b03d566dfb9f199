"""File systems on loop devices for filesystems.py: made, filled up, stopped."""
import fcntl
import os
import pathlib
import shutil
import struct
import subprocess
import time

MIB = 1 << 20


class Unavailable(Exception):
    """This machine cannot do it; the text says why."""


def run(*words, check=True):
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if check and done.returncode:
        raise Unavailable(f"{' '.join(map(str, words))}: {done.stdout.strip()}")
    return done.stdout.strip()


class Volume:
    """A file system of its own, from mount to unmount."""

    MAKE = {"ext4": ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
            "xfs": ("mkfs.xfs", "-q", "-f", "-m", "reflink=1"),
            "btrfs": ("mkfs.btrfs", "-q", "-f")}

    def __init__(self, kind, scratch, is_thin=False):
        self.kind, self.scratch = kind, scratch
        self.base = "ext4" if kind == "overlay" else kind
        self.below = scratch / "below"  # where the image lies; thin: a tmpfs that may be full
        self.below.mkdir()
        self.is_thin = is_thin and self.base != "tmpfs"
        self.image, self.device = self.below / "image", None
        self.disk = scratch / "disk"
        self.disk.mkdir()
        self.root = self.disk
        self.mounts = []

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        if self.base == "tmpfs":
            run("mount", "-t", "tmpfs", "-o", f"size={400 * MIB}", "tmpfs", self.disk)
            self.mounts.append(self.disk)
            return
        if not shutil.which(self.MAKE[self.base][0]):
            raise Unavailable(f"{self.MAKE[self.base][0]} is not installed")
        if self.is_thin:
            run("mount", "-t", "tmpfs", "-o", f"size={440 * MIB}", "tmpfs", self.below)
        with self.image.open("wb") as image:
            image.truncate(400 * MIB)
        run(*self.MAKE[self.base], self.image)
        # Direct I/O: where the image ends, a sector cannot be read, and is not zeros.
        self.device = run("losetup", "-f", "--show", "--direct-io=on", self.image)
        self.mount_base()
        if self.kind == "overlay":
            for name in ("lower", "upper", "work"):
                (self.disk / name).mkdir()
            self.root = self.scratch / "over"
            self.root.mkdir()
            self.mount_overlay()

    def mount_base(self):
        more = ("-o", "errors=remount-ro") if self.base == "ext4" else ()
        run("mount", *more, self.device, self.disk)
        self.mounts.append(self.disk)

    def mount_overlay(self):
        parts = ",".join(f"{what}dir={self.disk / name}" for what, name in
                         (("lower", "lower"), ("upper", "upper"), ("work", "work")))
        run("mount", "-t", "overlay", "-o", parts, "overlay", self.root)
        self.mounts.append(self.root)

    def unmount(self):
        while self.mounts:
            at = self.mounts[-1]
            for _ in range(100):
                if subprocess.run(["umount", at], capture_output=True, check=False).returncode == 0:
                    break
                time.sleep(0.05)  # the kernel may still close files of a killed process
            else:
                run("umount", "-l", at, check=False)
            self.mounts.pop()

    def mount_again(self):
        self.unmount()
        self.mount_base()
        if self.kind == "overlay":
            self.mount_overlay()

    def __exit__(self, *_):
        self.unmount()
        if self.device:
            run("losetup", "-d", self.device, check=False)
        if self.is_thin:
            run("umount", "-l", self.below, check=False)
        elif self.image.exists():
            self.image.unlink()

    def free(self):
        info = os.statvfs(self.disk)
        return info.f_bavail * info.f_frsize

    def settle(self):
        """Waits until what was removed is free: btrfs frees it with the next transaction."""
        if self.base == "tmpfs":
            return
        run("sync", "-f", self.disk, check=False)
        if self.base == "btrfs":
            run("btrfs", "subvolume", "sync", self.disk, check=False)
            run("sync", "-f", self.disk, check=False)

    def stop_working(self):
        """An error of the disk, as the file system treats it."""
        if self.base == "ext4":
            name = os.path.basename(self.device)
            pathlib.Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("1\n",
                                                                             encoding="ascii")
        elif self.base == "xfs":
            goingdown = 0x8004587D
            at = os.open(self.disk, os.O_RDONLY)
            try:
                fcntl.ioctl(at, goingdown, struct.pack("I", 2))
            finally:
                os.close(at)
        else:
            raise Unavailable(f"{self.base} has no way to stop it under load")

    def lose_sectors(self, path):
        """Nothing from the first sector of `path` on can be read any more; it can be written."""
        if self.device is None:
            raise Unavailable(f"{self.base} has no sectors")
        first = first_block(path)
        if first is None:
            raise Unavailable(f"where {path.name} lies is not known")
        os.truncate(self.image, first)
        return first


def first_block(path):
    """The first byte of a file on its device, by FIEMAP."""
    header = struct.pack("QQIIII", 0, (1 << 64) - 1, 1, 0, 1, 0)
    with open(path, "rb") as file:
        try:
            found = fcntl.ioctl(file, 0xC020660B, header + bytes(56))
        except OSError:
            return None
    if struct.unpack_from("I", found, 20)[0] == 0:
        return None
    return struct.unpack_from("Q", found, 32 + 8)[0]


def fill(path, keep=0):
    """Writes files until `keep` bytes are left."""
    with open(path, "ab", buffering=0) as file:
        for piece in (4 * MIB, 256 << 10, 4096):
            while True:
                info = os.statvfs(path)
                if keep and info.f_bavail * info.f_frsize < keep + piece:
                    break
                try:
                    if file.write(b"b" * piece) < piece:
                        break
                except OSError:
                    break
        try:
            os.fsync(file.fileno())
        except OSError:
            pass


def drop_cache(directory):
    """Takes the files' pages out of the page cache, as far as they are clean and not mapped."""
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            except OSError:
                pass
