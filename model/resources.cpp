// Placeholder of the layer model; replaced by its first real file.
