"""Random crops and flips of training images, which FedMUD's and FedBAT's public codes have for CIFAR-10 and -100."""

from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.key import Key

PADDING = 4  # pixels on every side, before a window of the image's own size is cut out
AUGMENTS = ("none", "flip", "crop", "crop+flip")


@dataclass(frozen=True)
class Augment:
    """Random crop with padding, random horizontal flip.

    torchvision's RandomCrop(side, padding=4) and RandomHorizontalFlip() come before the normalisation, which makes
    `black` of the padding's zeros; here images are normalised already.

    Fields:
        crop, flip: which of the two.
        black: what pads, (channels, 1, 1).
    """

    crop: bool
    flip: bool
    black: torch.Tensor

    @staticmethod
    def of(name: str, images: torch.Tensor) -> "Augment | None":
        """By name, for normalised images (n, channels, height, width); each channel's least value is its black.

        Raises ValueError for a name that is none of AUGMENTS, and for images that are too flat for it.
        """
        if checks.choice("augment", name, AUGMENTS) == "none":
            return None
        crop, flip = "crop" in name, "flip" in name
        least, side = 2 * PADDING if crop else 2, min(images.shape[2:])
        if side < least:
            found = f"{name!r} on images of {images.shape[2]} x {images.shape[3]} pixels"
            checks.reject("augment", found, f"images of {least} x {least} pixels or more", "choose augment='none'")
        return Augment(crop, flip, images.amin((0, 2, 3))[:, None, None])

    def draw(self, count: int, key: Key) -> torch.Tensor:
        """For so many uses of images: row and column of the corner, and whether flipped; (count, 3) int64."""
        g = key.generator()
        corner = torch.randint(2 * PADDING + 1, (count, 2), generator=g)
        return torch.cat([corner, torch.randint(2, (count, 1), generator=g)], 1)

    def apply(self, images: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        """(n, channels, height, width), with draws (n, 3), -> the same shape. Pixels are moved, never mixed."""
        n, channels, height, width = images.shape
        down, right, mirrored = draws.split(1, 1)
        rows = torch.arange(height, device=images.device).expand(n, -1)
        columns = torch.arange(width, device=images.device).expand(n, -1)
        if self.flip:
            columns = torch.where(mirrored > 0, width - 1 - columns, columns)
        if self.crop:
            wide = self.black.expand(n, channels, height + 2 * PADDING, width + 2 * PADDING).contiguous()
            wide[..., PADDING:-PADDING, PADDING:-PADDING] = images
            images, rows, columns = wide, rows + down, columns + right
        which = torch.arange(n, device=images.device)[:, None, None]
        return images[which, :, rows[:, :, None], columns[:, None]].movedim(-1, 1)
