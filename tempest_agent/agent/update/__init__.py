"""Draw rows and learn from them, eagerly or as one CUDA graph."""
