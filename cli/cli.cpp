// Placeholder of the layer cli; replaced by its first real file.
