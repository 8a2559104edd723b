"""Files that others wrote, read within limits; our own, written safely."""
