"""Replicated objects: classes whose methods are applied at every member, in one order.  Pure: `live` drives them."""
