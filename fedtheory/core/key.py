"""Randomness with names. A key is a seed and a path; a hash of both seeds a generator.

Every random line of the package names the path of its key, so a draw depends on what it is for (run, round, client
batch, projector) and never on what was drawn before it. A hash, never arithmetic, mixes seed and path: with
s(i + 17) + i, say, (s, i) = (17, 0) and (16, 1) would share a stream.
"""

import hashlib
from dataclasses import dataclass

import torch

from fedtheory.core import checks


@dataclass(frozen=True, slots=True)
class Key:
    """A named stream of randomness.

    `Key(seed).fold("round", 3).generator()` is the same generator on every machine and in every order of calls.

    Fields:
        seed: an integer from 0 to 2**63 - 1.
        path: names and integers, outermost first.

    Raises TypeError or ValueError for a seed or a name that is no int (or str) in range.

    >>> Key(0).fold("round", 3)
    Key(seed=0, path=('round', 3))
    """

    seed: int
    path: tuple[int | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.whole("seed", self.seed, 0, 2**63 - 1))
        if not isinstance(self.path, tuple):
            checks.reject("path", self.path, "a tuple of ints and strs", "pass Key(0).fold('a', 1)", TypeError)
        for name in self.path:
            if type(name) is not int and type(name) is not str:
                checks.reject(
                    "path", self.path, "ints and strs", "name the stream with plain ints and strings", TypeError
                )

    @staticmethod
    def of(key: "Key | int") -> "Key":
        """The key itself, or the key of a seed."""
        return key if isinstance(key, Key) else Key(checks.whole("key", key, 0, 2**63 - 1))

    def fold(self, *names: int | str) -> "Key":
        """The key of a sub-stream; folding "a" then 1 equals folding ("a", 1)."""
        for name in names:
            if type(name) is not int and type(name) is not str:
                checks.reject("name", name, "an int or a str", "fold plain ints and strings", TypeError)
        key = object.__new__(Key)  # the seed was checked when the root was made
        object.__setattr__(key, "seed", self.seed)
        object.__setattr__(key, "path", self.path + names)
        return key

    def hash(self) -> int:
        """63 bits of BLAKE2b over seed and path; repr keeps 1 and "1" apart and escapes every separator."""
        digest = hashlib.blake2b(repr((self.seed, self.path)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 1

    def generator(self) -> torch.Generator:
        """A fresh CPU generator at the start of this key's stream.

        PyTorch's takes the lower 32 bits of the hash: of 77,000 keys, two share a stream with probability 1/2.
        """
        return torch.Generator().manual_seed(self.hash())
