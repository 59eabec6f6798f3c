"""Federated subspace optimization: every algorithm beside its theorem, and both of them run.

What a user may rely on is listed in `__init__.pyi`, once; each name is imported when it is first used. Nothing else is
promised: other names without underscore are shared between the package's own files, and may move.
"""

import lazy_loader

__version__ = "0.1.0"

_get, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A public name, also as it is printed: SCAFFOLD is Scaffold, EF21_P is EF21P."""
    if name not in __all__ and not name.islower():
        from fedtheory.core import checks

        name = checks.alike(name, __all__)
    return _get(name)
