"""The algorithms, one file per method or family; each ends with its entries in the registry."""
