"""The picture: a display list drawn as the colour vector monitor shows it."""
