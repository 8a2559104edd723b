"""Facts read off one RAM image: motion, controls, cause of a death."""
