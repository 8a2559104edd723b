"""The rules of the arcade game, one module a rule; ``tick`` plays one frame of them."""
