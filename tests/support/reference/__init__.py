"""A slow, plain restatement of the game's rules, against which the compiled ones are tested."""
