"""What a practitioner takes from the theorems of docs/theory: each rule beside runs of the training code."""
