"""Every matplotlib figure."""
