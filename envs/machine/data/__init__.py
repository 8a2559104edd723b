"""Tables of the machine: waves and wells, as JSON."""
