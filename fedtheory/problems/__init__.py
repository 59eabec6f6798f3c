"""Problems: three whose constants are known, networks on images, and language models on texts."""
