"""How a vector becomes a small message: bases, factors, sparse and signed vectors, directions."""
