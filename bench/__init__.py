"""Benches: what the gateway costs and saves, measured from outside over HTTP."""
