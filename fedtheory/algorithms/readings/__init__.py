"""What the papers leave open: for a method, the alternatives to single steps of its box, each with its number."""
