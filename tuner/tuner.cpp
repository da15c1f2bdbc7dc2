// Placeholder of the layer tuner; replaced by its first real file.
