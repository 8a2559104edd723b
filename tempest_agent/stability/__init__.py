"""Symptoms of divergence and their remedies."""
