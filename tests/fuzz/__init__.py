"""A forger between honest cores: it knows every packet type, from the types themselves.

`forger` makes packets up and changes real ones, `campaign` lets it loose in a simulated group and judges what becomes
of the members; `python -m tests.fuzz` (``make fuzz``) is the long campaign, `test_fuzz.py` the short one.
"""
