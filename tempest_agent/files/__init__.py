"""Reading files that others wrote, and writing our own safely."""
