"""Running it: checkpoints, private rows on disk, processes that share a run, and what runs leave."""
