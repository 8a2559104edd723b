"""Ray: optional import, clusters, and whether they are alive."""
