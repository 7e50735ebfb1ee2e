"""What a live member and a simulated one do alike, besides time and bytes."""
