"""The picture: a RAM image drawn the way the colour vector monitor shows it."""
