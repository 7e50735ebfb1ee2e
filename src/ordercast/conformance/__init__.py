"""Tests for protocols, ours and yours: golden vectors, text scripts, and the suite that takes a maker function."""
