"""A run in halves that know each other only through bytes, and what carries the bytes."""
