"""Replicated state: one order becomes equal states.  Who has it, how it travels, what survives."""
