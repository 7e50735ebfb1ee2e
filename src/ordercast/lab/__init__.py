"""The laboratory: real members started, loaded, hurt and ended on this machine.  A member itself is in `live`."""
