"""All randomness is a pure function of (seed, task, stage), so a resumed run needs no stored generator state."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def derive(seed: int, *path: int | str) -> int:
    """A 63-bit seed for one named use, independent of every other: ``derive(seed, task, "dropout")``."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *path: int | str) -> torch.Generator:
    """A CPU generator for one named use."""
    return torch.Generator().manual_seed(derive(seed, *path))


@contextmanager
def seeded(seed: int, *path: int | str) -> Iterator[None]:
    """Seed torch's global generators inside the block (dropout and initialisers read them) and restore them after it."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(derive(seed, *path))
        yield
