"""Numbers as the ledger shows them: no more digits than two processors share."""

from collections.abc import Mapping
from typing import Any


def level(gap: float, tolerance: float) -> tuple[float, str]:
    """A gap as margin and in words: what lies below the tolerance is rounding, which no two processors share."""
    return (0.0, f"below {tolerance:g}") if gap < tolerance else (gap, f"{gap:.3g}")


def digits(value: float) -> float:
    """Four of them: the last ones differ from one processor to another."""
    return float(f"{value:.4g}")


def listed(values: Mapping[str, Any]) -> str:
    """Names with their values, for a sentence."""
    return ", ".join(f"{name}: {f'{v:.3g}' if isinstance(v, float) else v}" for name, v in values.items())
