// Placeholder of the layer runtime; replaced by its first real file.
