"""Which device and which number format: what the machine does well."""

from dataclasses import dataclass

import torch

from perdure.errors import InputError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Hardware:
    """A device, a dtype for the model's weights, and why that dtype."""

    device: torch.device
    dtype: torch.dtype
    reason: str

    @classmethod
    def choose(cls, device: str | None = None, dtype: str | None = None) -> "Hardware":
        """What was asked for, and for the rest the fastest that is exact enough: CUDA, then Apple's GPU, then the CPU.

        Raises
        ------
        InputError: the device isn't there, or the dtype is unknown.
        """
        where = _device(device)
        if dtype is not None:
            if dtype not in DTYPES:
                raise InputError(f"dtype {dtype!r} is unknown; choose one of {', '.join(DTYPES)}.")
            return cls(where, DTYPES[dtype], "as asked")
        if where.type == "cuda":
            if torch.cuda.is_bf16_supported(including_emulation=False):
                return cls(where, torch.bfloat16, "this GPU multiplies bfloat16 in hardware")
            return cls(where, torch.float32, "this GPU has no bfloat16 hardware")
        if where.type == "cpu":
            if _cpu_multiplies_bfloat16():
                return cls(where, torch.bfloat16, "this CPU multiplies bfloat16 in hardware")
            return cls(where, torch.float32, "this CPU is many times slower in bfloat16")
        return cls(where, torch.float32, "the safe choice on this device")


def _device(name: str | None) -> torch.device:
    if name is None:
        available = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device(available)
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device {name!r} is unknown; choose cpu, cuda, cuda:1 or mps.") from error
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not present.get(device.type, False):
        raise InputError(f"device {name!r} is not there; leave --device out to use what the machine has.")
    return device


def _cpu_multiplies_bfloat16() -> bool:
    """PyTorch's own probes; absent ones (other processors, other versions) count as no."""
    probes = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, probe, lambda: False)() for probe in probes)
