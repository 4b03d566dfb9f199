"""Archives with the same bytes each time: entries in order, one time, no names of this machine."""

import gzip
import hashlib
import io
import tarfile
import time
import zipfile
from pathlib import Path

ZIP_FIRST = 315532800  # 1980, before which a zip has no times


def entries_of(folder):
    """{name: (bytes, whether it can be run)} of all files below."""
    folder = Path(folder)
    return {path.relative_to(folder).as_posix(): (path.read_bytes(),
                                                  bool(path.stat().st_mode & 0o100))
            for path in sorted(folder.rglob('*')) if path.is_file()}


def both(entry):
    """Bytes alone are a file that cannot be run."""
    return entry if isinstance(entry, tuple) else (entry, False)


def write_zip(path, entries, epoch):
    """`entries`: {name: bytes} or {name: (bytes, whether it can be run)}."""
    moment = time.gmtime(max(epoch, ZIP_FIRST))[:6]
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(entries):
            data, runs = both(entries[name])
            info = zipfile.ZipInfo(name, moment)
            info.create_system = 3  # Unix, wherever this runs
            info.external_attr = (0o100755 if runs else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def write_tar(path, entries, epoch):
    """A .tar.gz."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode='w', format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(entries):
            data, runs = both(entries[name])
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), epoch, 0o755 if runs else 0o644
            archive.addfile(info, io.BytesIO(data))
    with open(path, 'wb') as file, gzip.GzipFile('', 'wb', 9, file, mtime=0) as packed:
        packed.write(plain.getvalue())


def read_tar(path):
    """What write_tar() takes."""
    with tarfile.open(path) as archive:
        return {member.name: (archive.extractfile(member).read(), bool(member.mode & 0o100))
                for member in archive.getmembers() if member.isfile()}


def digest(path, algorithm='sha256'):
    made = hashlib.new(algorithm)
    with open(path, 'rb') as file:
        while part := file.read(1 << 20):
            made.update(part)
    return made.hexdigest()
