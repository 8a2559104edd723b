"""The look-ahead player: tries plans on copies of the game."""
