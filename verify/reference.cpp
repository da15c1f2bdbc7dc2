// Placeholder of the layer verify; replaced by its first real file.
