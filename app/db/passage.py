"""Lets one account pass through a folder without opening it to others: an entry of the folder's POSIX access list.

The list is read and written as the kernel keeps it (``system.posix_acl_access``): a version, then entries of a tag,
rights and an account, sorted. A folder without one has the three entries that its mode stands for."""

import errno
import os
import stat
import struct
import sys
from pathlib import Path

_NAME = "system.posix_acl_access"
_VERSION = struct.pack("<I", 2)
_ENTRY = struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _NAMED_GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_PASS = 0o1
_MASKED = (_USER, _GROUP, _NAMED_GROUP)
"""The entries that the mask bounds."""

Entries = dict[tuple[int, int], int]
"""Rights (read 4, write 2, pass 1) by tag and account."""


class NoAccessLists(OSError):
    """The file system of the folder keeps none, or the folder is not ours to change."""


def let_pass(folder: Path, account: int) -> bool:
    """Let ``account`` (a uid) pass through ``folder``, and nobody else who could not before; whether that changed it.

    Raises NoAccessLists where that can't be done.
    """
    if folder.stat().st_mode & stat.S_IXOTH:
        return False
    entries = _entries(folder)
    if allowed(entries, account) & _PASS:
        return False
    try:
        os.setxattr(folder, _NAME, _VERSION + b"".join(
            _ENTRY.pack(tag, rights, who) for (tag, who), rights in sorted(passing(entries, account).items())
        ))  # fmt: skip
    except OSError as error:
        raise NoAccessLists(error.errno, error.strerror) from None
    return True


def allowed(entries: Entries, account: int) -> int:
    """The rights of ``account``, which is neither the owner nor in a group of the list."""
    if (_USER, account) in entries:
        return entries[_USER, account] & entries.get((_MASK, _NOBODY), 0o7)
    return entries[_OTHER, _NOBODY]


def passing(entries: Entries, account: int) -> Entries:
    """``entries`` with passage for ``account``. That widens the mask: what it kept from others is taken from them."""
    mask = entries.get((_MASK, _NOBODY), 0o7)
    found = {key: rights & mask if key[0] in _MASKED else rights for key, rights in entries.items()}
    found[_USER, account] = found.get((_USER, account), 0) | _PASS
    bounded = 0
    for (tag, _), rights in found.items():
        bounded |= rights if tag in _MASKED else 0
    found[_MASK, _NOBODY] = bounded
    return found


def _entries(folder: Path) -> Entries:
    if sys.platform != "linux":
        raise NoAccessLists(errno.ENOTSUP, "access lists are kept on Linux alone")
    try:
        kept = os.getxattr(folder, _NAME)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise NoAccessLists(error.errno, error.strerror) from None
        mode = folder.stat().st_mode
        return {(_OWNER, _NOBODY): mode >> 6 & 7, (_GROUP, _NOBODY): mode >> 3 & 7, (_OTHER, _NOBODY): mode & 7}
    return {(tag, who): rights for tag, rights, who in _ENTRY.iter_unpack(kept[len(_VERSION) :])}
