// Placeholder of the layer db; replaced by its first real file.
