"""Federated subspace optimization: every algorithm beside its theorem, and both of them run.

What a user may rely on is listed in `__init__.pyi`, once; each name is imported when it is first used.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
