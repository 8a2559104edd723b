"""The rules of the game, one module per rule; ``tick`` plays one frame of them."""
