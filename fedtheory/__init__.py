"""Federated subspace optimization: every algorithm beside its theorem, and both of them run.

What a user may rely on is listed in `__init__.pyi`, once; each name is imported when it is first used. Nothing else is
promised: other names without underscore are shared between the package's own files, and may move.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
