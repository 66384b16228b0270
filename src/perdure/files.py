"""Files that appear whole or not at all."""

import json
import os
from pathlib import Path


def force_to_disk(path: Path) -> None:
    """Flush a file or a folder's entries to the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8) atomically: readers see the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_text(text, encoding="utf-8")
    force_to_disk(temporary)
    temporary.replace(path)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
