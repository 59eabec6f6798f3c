"""Ten shapes on grey images, drawn from a seed: data that need no file and no library.

Position, size, turn, ink and background are random, and every pixel has noise. Only sums, products, divisions and
square roots are used, which IEEE 754 rounds in one way: the bytes are the same on every machine.
"""

from functools import cache

import numpy as np
import torch

from fedtheory.core.key import Key

CLASSES = ("disc", "ring", "half disc", "crescent", "square", "frame", "corner", "plus", "bar", "triangle")
SIDE, IMAGES, TRAIN = 28, 5000, 4000
NOISE = 40  # a pixel's largest change, of 255


def _inside(kind: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether points of the plane lie in a shape of about unit radius."""
    square, far, near = u * u + v * v, np.maximum(abs(u), abs(v)), np.minimum(abs(u), abs(v))
    return (
        lambda: square <= 1,
        lambda: (square <= 1) & (square >= 0.4),
        lambda: (square <= 1) & (v >= 0),
        lambda: (square <= 1) & ((u - 0.5) * (u - 0.5) + v * v >= 0.7),
        lambda: far <= 0.85,
        lambda: (far <= 0.85) & (far >= 0.5),
        lambda: (far <= 0.85) & ((u <= -0.25) | (v <= -0.25)),
        lambda: (far <= 1) & (near <= 0.3),
        lambda: (abs(u) <= 1) & (abs(v) <= 0.3),
        lambda: (v >= -0.6) & (v <= 1 - 1.8 * abs(u)),
    )[kind]()


@cache  # a second of work
def shapes() -> tuple[torch.Tensor, torch.Tensor]:
    """Draw all images: bytes (5000, 1, 28, 28), and labels (5000,), 500 of each class, in random order."""
    generator = Key(0).fold("shapes").generator()

    def draw(low: int, high: int, *shape: int) -> np.ndarray:
        return torch.randint(low, high + 1, (IMAGES, *shape), generator=generator).numpy().astype(np.float64)

    labels = torch.randperm(IMAGES, generator=generator) % len(CLASSES)
    radius, x, y = draw(24, 36, 1, 1) / 4, draw(-8, 8, 1, 1) / 4, draw(-8, 8, 1, 1) / 4
    a, b = draw(-100, 100, 1, 1) + 0.5, draw(-100, 100, 1, 1)
    ink, paper = draw(140, 220, 1, 1), draw(30, 110, 1, 1)
    noise = draw(-NOISE, NOISE, SIDE, SIDE)
    at = (np.arange(2 * SIDE) + 0.5) / 2 - SIDE / 2  # four points of each pixel
    scale = radius * np.sqrt(a * a + b * b)
    images = np.empty((IMAGES, SIDE, SIDE))
    for kind in range(len(CLASSES)):
        mine = (labels == kind).numpy()
        right, down = at - x[mine], at[:, None] - y[mine]
        u, v = (a[mine] * right + b[mine] * down) / scale[mine], (a[mine] * down - b[mine] * right) / scale[mine]
        share = _inside(kind, u, v).reshape(-1, SIDE, 2, SIDE, 2).mean((2, 4))  # in quarters
        images[mine] = paper[mine] + share * (ink[mine] - paper[mine]) + noise[mine]
    return torch.from_numpy(np.clip(np.rint(images), 0, 255).astype(np.uint8))[:, None], labels
