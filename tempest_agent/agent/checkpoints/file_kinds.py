"""What a file is that is no checkpoint, told by its first bytes or by what is in the archive."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

_LOOKED_AT = 4096

_BEGINNINGS = (
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"BM", "a picture (BMP)"),
    (b"RIFF", "a film, sound or picture (RIFF)"),
    (b"%PDF", "a PDF document"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"\x80", "a pickle, which could run programs"),
)


def kind_of(path: Path) -> str:
    """What the file ``path``, which is no ZIP archive, seems to be."""
    with path.open("rb") as file:
        beginning = file.read(_LOOKED_AT)
    if not beginning:
        return "empty"
    if not any(beginning):
        return "full of zeros"
    # Its header is JSON, after the header's length in eight bytes.
    if beginning[8:10] == b'{"' and int.from_bytes(beginning[:8], "little") < 2**27:
        return "a file of safetensors"
    if beginning[257:262] == b"ustar":
        return "a tar archive"
    # The last letter may be cut in half.
    text = beginning.decode("utf-8", errors="ignore")
    if len(text.encode()) > len(beginning) - 4 and all(
        letter.isprintable() or letter in "\t\n\r\f\v\x1b" for letter in text
    ):
        return "a text file"
    for magic, kind in _BEGINNINGS:
        if beginning.startswith(magic):
            return kind
    return "no archive of tensors"


def kind_of_archive(names: Collection[str]) -> str:
    """What a ZIP archive with entries of these ``names`` seems to be, if it has no tensors."""
    if {"policy.pth", "pytorch_variables.pth"} & set(names):
        return "a model of Stable-Baselines3"
    if names and all(name.endswith(".npy") for name in names):
        return "an archive of NumPy arrays (.npz)"
    return "a ZIP archive of other files"
