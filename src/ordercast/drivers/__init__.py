"""What a driver does besides time and bytes, once for both: who is admitted, what is lost, trains, sizes, the disk."""
