"""The log of all writes of a guest to its disk, written by QEMU's block driver `blklogwrites`, and disks made from the log.

The format is that of Linux's dm-log-writes (include/linux/dm-log-writes.h). All numbers are little-endian:

    superblock   one sector: magic u64, version u64, entries u64, sector size u32
    entry        one sector: sector u64, sectors u64, flags u64, data length u64; then the sectors written, if any

The block driver updates the superblock's count whenever it has logged a flush, before the guest learns of the flush's
completion. So if the count is read when a client gets an acknowledgment, it is a position after the flush that made the
acknowledged data durable.
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
    """QEMU's command line with a log of all writes to the disk."""
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
    """The current number of entries of a growing log: a clock for a `Ledger`."""

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
        """The number of entries up to and including the last flush among the first `position` entries."""
        return next((i + 1 for i in range(position - 1, -1, -1) if self.entries[i][2] & FLUSH), 0)

    def apply(self, disk, first, last):
        """Applies the entries from `first` up to and excluding `last` to a disk, given by its file descriptor."""
        for index in range(first, last):
            sector, sectors, flags, offset = self.entries[index]
            os.pwrite(disk, self._data(sectors, flags, offset), sector * SECTOR)

    def apply_some(self, disk, first, last, dice):
        """Applies entries after the last flush as a power cut may leave them.

        The kind of damage is drawn once for all entries: none or all are written, only some, only some of their sectors, or
        garbage is in some sectors. Returns a text for the kind.
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
