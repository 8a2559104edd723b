"""The arcade game itself: its RAM image and the rules that carry it from tick to tick."""
