"""The simulator: virtual time, one seeded source of randomness, one queue of events, the very stacks that run live."""
