"""The picture: a RAM image drawn as the colour vector monitor shows it."""
