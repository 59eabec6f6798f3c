"""What a federated round is: key, message, layout, basis, problem, algorithm, the loop, and what a run leaves."""
