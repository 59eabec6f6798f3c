"""The server's average over the participants, by the clients' share of the data where it is asked for."""

import torch

from fedtheory.core.problem import Problem


def shares(problem: Problem, weighted: bool, like: torch.Tensor) -> torch.Tensor | None:
    """The problem's client weights p_i, (N,), in the type of `like`; None: all count alike.

    Where all weights are equal it is None, too: clients of one size give the same bits, weighted or not.
    """
    p = problem.weights
    return p.to(like) if weighted and not bool((p == p[0]).all()) else None


def average(rows: torch.Tensor, p: torch.Tensor | None, clients: torch.Tensor) -> torch.Tensor:
    """The mean of the participants' rows (S, ...), by p (N,) renormalised over them; their plain mean for None."""
    if p is None:
        return rows.mean(0)
    of = p[clients]
    return torch.tensordot(of / of.sum(), rows, 1)
