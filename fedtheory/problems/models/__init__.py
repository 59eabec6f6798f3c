"""Models behind losses: networks on images, perceptrons, language models."""
