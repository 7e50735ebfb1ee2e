"""`--log json`: what a member logs, one JSON object on a line of standard error."""

from __future__ import annotations

import json
import logging
import sys

from ordercast.trace.clock import utc


class Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        words = {
            "time": utc(int(record.created * 1e9)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            words["error"] = record.exc_info[0].__name__
            words["trace"] = self.formatException(record.exc_info)
        return json.dumps(words)


def install() -> None:
    """Every logger of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
