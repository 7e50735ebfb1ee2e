"""The live driver: real processes, asyncio, UDP."""
