"""Read foreign files and write our own safely."""
