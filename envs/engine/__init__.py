"""Many games stepped side by side by compiled code and threads."""
