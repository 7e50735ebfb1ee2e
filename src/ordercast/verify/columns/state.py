"""A1 to A6: of all rows only notes tell of replicated states, and these are left to the plain checkers."""

from __future__ import annotations

from ordercast.verify.columns.lifecycle import delegated
from ordercast.verify.plain import state

a1, a2, a3, a4, a5, a6 = map(delegated, (state.a1, state.a2, state.a3, state.a4, state.a5, state.a6))
