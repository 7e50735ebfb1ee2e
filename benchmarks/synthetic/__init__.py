"""Made-up traces of any size, with faults whose places are known."""

from synthetic.faults import FAULTS, Fault, inject
from synthetic.files import fault_plan, make_runs, write
from synthetic.runs import Run, Shape, make_run

__all__ = ["FAULTS", "Fault", "Run", "Shape", "fault_plan", "inject", "make_run", "make_runs", "write"]
