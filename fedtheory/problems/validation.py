"""The problem on which hyperparameters of image classification are chosen."""

from typing import Any

import torch

from fedtheory.core.key import Key
from fedtheory.problems.images import ImageClassification


def validation(data: str, network: str, key: Key, **options: Any) -> ImageClassification:
    """Load images as `ImageClassification.load`, tested on a held-out fifth of every client's images."""
    whole = ImageClassification.load(data, network, key, **options)
    g = key.fold("held out").generator()
    order = [part[torch.randperm(len(part), generator=g)] for part in whole.parts]
    held = torch.cat([part[: len(part) // 5] for part in order])
    kept = [part[len(part) // 5 :] for part in order]
    problem = ImageClassification(
        whole.images,
        whole.labels,
        kept,
        whole.network,
        whole.key,
        batch=whole.batch,
        epochs=whole.epochs,
        std=whole.std,
        augment=options.get("augment", "none"),
        test=(whole.images[held], whole.labels[held]),
        moments=options.get("moments", "drawn"),
        precision=options.get("precision", "full"),
        device=whole.device,
    )
    problem.origin = whole.origin
    return problem
