"""The log of everything that a guest wrote to its disk, as QEMU's block driver `blklogwrites` keeps it, and disks made from it.

The format is that of Linux's dm-log-writes (include/linux/dm-log-writes.h), all numbers little-endian:

    superblock   one sector: magic u64, version u64, entries u64, sector size u32
    entry        one sector: sector u64, sectors u64, flags u64, data length u64; then the sectors written, if any

The superblock's count is brought up to date whenever a flush was logged, before the guest hears that it is done. So the
count, read when a client is told something, is a place in the log behind the flush that the client was told for.
"""

import os
import struct

from barepost import disk_option

MAGIC = 0x6A736677736872
SECTOR = 512
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
SUPERBLOCK = struct.Struct("<QQQI")
ENTRY = struct.Struct("<QQQQ")


def logged(command, disk, log):
    """QEMU's command line with the disk under a log of what is written to it."""
    disk, log = (str(path).replace(",", ",,") for path in (disk, log))
    at = disk_option(command)
    return [
        *command[:at],
        "-blockdev", f"driver=file,node-name=disk-file,filename={disk}",
        "-blockdev", f"driver=file,node-name=log-file,filename={log},cache.no-flush=on",
        "-blockdev", f"driver=blklogwrites,node-name=disk,file=disk-file,log=log-file,log-sector-size={SECTOR}",
        *command[at + 2:],
    ]


class Position:
    """How many entries a log has that is being written: a clock for a `Ledger`."""

    def __init__(self, log):
        self._log = log
        self._file = None

    def __call__(self):
        if self._file is None:
            self._file = os.open(self._log, os.O_RDONLY)
        superblock = os.pread(self._file, SUPERBLOCK.size, 0)
        if len(superblock) < SUPERBLOCK.size:
            return 0
        magic, _, entries, _ = SUPERBLOCK.unpack(superblock)
        return entries if magic == MAGIC else 0

    def close(self):
        os.close(self._file)


class WriteLog:
    """A finished log: `entries` of (sector, sectors, flags, offset of the data in the log)."""

    def __init__(self, path):
        self._file = open(path, "rb")
        magic, version, count, sector_size = SUPERBLOCK.unpack(self._file.read(SUPERBLOCK.size))
        if (magic, version, sector_size) != (MAGIC, 1, SECTOR):
            raise AssertionError(f"not a log of writes: {magic:x}, version {version}, sectors of {sector_size}")
        self.entries = []
        at = SECTOR
        for _ in range(count):
            self._file.seek(at)
            sector, sectors, flags, _ = ENTRY.unpack(self._file.read(ENTRY.size))
            at += SECTOR
            self.entries.append((sector, sectors, flags, at))
            if not flags & DISCARD:
                at += sectors * SECTOR

    def close(self):
        self._file.close()

    def last_flush(self, position):
        """The number of entries up to and with the last flush among the first `position` ones."""
        return next((i + 1 for i in range(position - 1, -1, -1) if self.entries[i][2] & FLUSH), 0)

    def apply(self, disk, first, last):
        """Writes all of the entries from `first` to before `last` to a disk's file descriptor."""
        for index in range(first, last):
            sector, sectors, flags, offset = self.entries[index]
            os.pwrite(disk, self._data(sectors, flags, offset), sector * SECTOR)

    def apply_some(self, disk, first, last, dice):
        """Writes what a power cut may leave of the entries that no flush covers.

        Each write is there wholly or not, or sector by sector, or with garbage in its place; which of these a cut does is
        drawn once. Returns a word for it.
        """
        manner = dice.choice(("none of them", "all of them", "some of them", "some of their sectors", "garbage in some"))
        share = dice.choice((0.1, 0.5, 0.9))
        for index in range(first, last):
            sector, sectors, flags, offset = self.entries[index]
            data = self._data(sectors, flags, offset)
            if flags & FUA or manner == "all of them" or manner == "some of them" and dice.random() < share:
                os.pwrite(disk, data, sector * SECTOR)
            elif manner in ("some of their sectors", "garbage in some"):
                for i in range(0, len(data), SECTOR):
                    fate = dice.random()
                    if fate < share:
                        os.pwrite(disk, data[i:i + SECTOR], sector * SECTOR + i)
                    elif manner == "garbage in some" and fate < share + 0.1:
                        os.pwrite(disk, dice.randbytes(SECTOR), sector * SECTOR + i)
        return manner

    def _data(self, sectors, flags, offset):
        if flags & DISCARD:
            return bytes(sectors * SECTOR)
        self._file.seek(offset)
        return self._file.read(sectors * SECTOR)
