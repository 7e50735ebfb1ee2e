"""Makes the helpers beside the tests importable (verify_traces, verify_cases)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
