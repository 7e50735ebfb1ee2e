"""For each promise: traces it accepts, and smallest traces it rejects.

`V` is the beginning most cases share: two members in one view.  Member 1 sends a = 1:1, b = 1:2; member 2 c = 2:1.
"""

from __future__ import annotations

from typing import Any

V = "1 view 1,2 | 2 view 1,2"
V3 = "1 view 1,2,3 | 2 view 1,2,3 | 3 view 1,2,3"
AB = f"{V} | 1 sub 2 | 1 org 1 | 1 org 2"
ABC = f"{AB} | 2 sub 1 | 2 org 1"

# 1, 2 and 3 in view 1.1; then 3 is lost and 1, 2 go on to view 2.1
T12 = "1 view 1,2 trans =2.1 <1.1"
W12 = "1 view 1,2 =2.1 t=1,2 <1.1"
LOSE3 = f"{T12} | {W12} | 2 view 1,2 trans =2.1 <1.1 | 2 view 1,2 =2.1 t=1,2 <1.1"
# ... or 1 is lost and 2, 3 go on
T23 = "2 view 2,3 trans =2.2 <1.1 | 3 view 2,3 trans =2.2 <1.1"
W23 = "2 view 2,3 =2.2 t=2,3 <1.1 | 3 view 2,3 =2.2 t=2,3 <1.1"
# all three go on to view 2.1; 1 is outside the group x, to which 2 sends
GO3 = " | ".join(f"{m} view 1,2,3 trans =2.1 <1.1 | {m} view 1,2,3 =2.1 t=1,2,3 <1.1" for m in (1, 2, 3))
X23 = f"{V3} | 2 gview x 2,3 | 3 gview x 2,3 | 2 sub 1 g=x | 2 org 1 g=x"
ORG1 = "1 sub 1 | 1 org 1"
# 3 orders a and c one way and goes elsewhere, 1 and 2 the other way in the view's end; agreed without S18
AC = f"{V3} | 1 sub 1 | 1 org 1 | 2 sub 1 | 2 org 1"
ALONE3 = "3 view 3 trans =2.3 <1.1 | 3 view 3 =2.3 t=3 <1.1"
OTHERWISE12 = " | ".join(
    f"{m} view 1,2 trans =2.1 <1.1 | {m} del 1:1 | {m} del 2:1 | {m} view 1,2 =2.1 t=1,2 <1.1" for m in (1, 2)
)
XY = " | ".join(f"{m} gview {g} 1,2,3" for g in "xy" for m in (1, 2, 3))
GROUPED = f"{V3} | {XY} | 1 sub 1 g=x | 1 org 1 g=x | 2 sub 1 g=y | 2 org 1 g=y | 3 del 2:1 g=y | 3 del 1:1 g=x"
GROUPED12 = OTHERWISE12.replace("del 1:1", "del 1:1 g=x").replace("del 2:1", "del 2:1 g=y")
WEAK = ("S17", "S19", "S21")
SAFE1 = "1 sub 1 safe | 1 org 1 safe | 1 rcv 1:1 safe | 2 rcv 1:1 safe | 3 rcv 1:1 safe"
VISITS = " | ".join(f"{member} note rotation ns=1 @{time}" for member in (1, 2) for time in range(110, 300, 10))
STABLE = "0 stable 1,2 1000 @100"
CHANGING: dict[str, Any] = {"scenario": {"load": {"regime": "quasi", "rates": [{"rate": 1.0, "at_ms": 20_001.0}]}}}
STEADY: dict[str, Any] = {"scenario": {"load": {"regime": "quasi"}}, "timeout_ns": 10_000}
# twenty messages of 1, delivered in order, and the other way round
SAID = " | ".join(["1 sub 20", *(f"1 org {k}" for k in range(1, 21))])
TWENTY = [f"del 1:{k}" for k in range(1, 21)]
OFTEN = {"rate": 0.3}
MINOR = "1 view 1,2 minor | 2 view 1,2 minor"  # under the policy, and not primary


# 1 and 2 decide view 1.1 and apply a call; then 1 goes on to view 2.1
BEGUN = " | ".join(f"{m} state view 0o members=1,2 | {m} state decided 0o epoch=1.1" for m in (1, 2))
CALLED = f"{V} | {BEGUN} | 1 applied 1:1 1a | 2 applied 1:1 1a"
NEXT = "1 view 1,2 =2.1 | 1 state view 1a members=1,2"
ONE: dict[str, Any] = {"partition": "primary-majority"}
WELL = f"{V} | {STABLE} | 1 state complete 0o @150 | "
BOTH: dict[str, Any] = {"timeout_ns": 10_000, "members": (1, 2)}
THIRD: dict[str, Any] = {"timeout_ns": 10_000, "members": (1, 2, 3)}
SLOW: dict[str, Any] = {"nets": [{"mbit": 100.0}]}
# 1 and 2 go on apart, each with a call of its own, and meet again in view 3.1
SPLIT = f"{V} | {BEGUN} | 1 view 1 =2.1 | 2 view 2 =2.2"
GATHERED = " | ".join(f"{m} view 1,2 =3.1 | {m} state view 0o members=1,2" for m in (1, 2))
APART = (
    f"{SPLIT} | 1 applied 1:1 1a | 2 applied 2:1 1b | 1 view 1,2 =3.1 | 1 state view 1a members=1,2 "
    "| 2 view 1,2 =3.1 | 2 state view 1b members=1,2"
)


def spell(member: int, words: list[str]) -> str:
    return " | ".join(f"{member} {word}" for word in words)


# promise -> [(text, header)]; agreement of both forms is tested on all of them, for all promises
Case = tuple[str, dict[str, Any]]


def case(text: str, **header: Any) -> Case:
    return text, header


# 2 was away, and is back; 1 delivers more than it may take until 2 delivers again
BACK = f"1 sub 199 | 1 org 1-199 | 2 absent | 2 present | {spell(1, [f'del 1:{k}' for k in range(1, 200)])}"
ACCEPTED: dict[str, list[Case]] = {
    "S1": [
        case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 2 del 1:2"),
        case(f"{V} | 1 sub 3 | 1 org 1-3 | 2 del 1:1-3"),
        case(f"{V} | 1 sub 1 g=x safe | 1 org 1 g=x safe | 2 del 1:1 g=x safe"),
    ],
    "S2": [case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 2/2 view 1,2 =2 | 2/2 del 1:1")],
    "S3": [case(f"{AB} | 1 sub 3 | 1 org 3-5"), case("1 start @1 | 1/2 start @2")],
    "S4": [case(V)],
    "S5": [
        case(V),
        case("1 view 1,2 from=1/2 | 2 view 1,2 from=2/1"),
        case(f"{V3} | {LOSE3} | 3 view 3 trans =2.3 <1.1"),
    ],
    "S6": [
        case("1 view 1 =1.1 | 1 view 1,2 =2.1 | 2 view 1,2 =2.1 | 1/2 view 1 =3.1"),
        case("1 view 1 =1.1 | 1 view 1 =1.2"),
    ],
    "S7": [case(f"{AB} | 1 del 1:1")],
    "S8": [
        case(f"{V3} | {LOSE3} | 3 view 3 =2.3 minor | {ORG1} | 1 del 1:1"),
        case("1 view 1 =1.1 | 1 view 1,2 =2.1 | 2 view 2,3 =3.2 | 3 view 2,3 =3.2"),
    ],
    "S9": [
        case(f"{V3} | {ORG1} | 1 del 1:1 | {T12} | 2 view 1,2 trans =2.1 <1.1 | 2 del 1:1"),
        case(f"{V3} | {ORG1} | 1 del 1:1"),
    ],
    "S10": [
        case(f"{V3} | {ORG1} | 2 view 1,2 trans =2.1 <1.1 | 2 del 1:1"),
        case(f"{V3} | {LOSE3} | {ORG1} | 2 del 1:1"),
    ],
    "S11": [
        case(f"{V3} | {ORG1} | 1 del 1:1 | {T12} | {W12} | 2 view 1,2 trans =2.1 <1.1 | 2 del 1:1 "
             "| 2 view 1,2 =2.1 t=1,2 <1.1"),
        case(f"{V3} | {ORG1} | 1 del 1:1 | 2 del 1:1 | {LOSE3} | 3 view 3 =2.3"),
        case(f"{X23} | 2 del 2:1 g=x | 3 del 2:1 g=x | {GO3}"),
    ],
    "S12": [
        case(f"{V3} | {LOSE3}"),
        case(f"{V3} | {T12} | {W12} | 0 crash 2"),
        # 2 is cut off before it can install the view that 1 installed
        case(f"{V3} | {T12} | {W12} | 2 view 2 trans =3.2 <1.1 | 2 view 2 =3.2 t=2 <1.1"),
        # 1 passes through a view of 1 and 2 in one step, 2 dies before it
        case(f"{V3} | 1 view 1,2 trans =1.5 <1.1 @50 | 1 view 1,2 =1.5 t=1,2 <1.1 @50 "
             "| 1 view 1,2 trans =2.1 <1.5 @50 | 1 view 1,2,3 =2.1 t=1,2 <1.5 @50 | 0 crash 2"),
        # 2 comes from another view
        case("1 view 1 =1.1 | 2 view 2 =1.2 | 1 view 1 trans =2.1 <1.1 | 1 view 1,2 =2.1 t=1 <1.1 "
             "| 2 view 2 trans =2.1 <1.2 | 2 view 1,2 =2.1 t=2 <1.2"),
    ],
    "S13": [
        case(f"{V3} | {ORG1} | {T12} | 1 del 1:1 | {W12} | 2 view 1,2 trans =2.1 <1.1 | 2 del 1:1 "
             "| 2 view 1,2 =2.1 t=1,2 <1.1"),
        case(f"{V3} | {ORG1} | {T12} | 1 del 1:1 | {W12} | 2 view 1,2 trans =2.1 <1.1 | 0 crash 2"),
        case(f"{X23} | 2 del 2:1 g=x | 3 del 2:1 g=x | {GO3}"),
    ],
    "S14": [
        case(f"{V3} | {ORG1} | 1 del 1:1 | {T12} | {W12}"),
        case(f"{V3} | {ORG1} | {T12} | 1 del 1:1 | {W12}"),
        case(f"{V3} | 1 sub 1 | {T12} | {W12} | 1 org 1"),
        case(f"{V3} | {ORG1} | {T12} | {W12} | 1 del 1:1", options={"flush": "carry"}),
        case(f"{V3} | {ORG1}"),
        case(f"{V3} | 1 gview x 1,2 | 1 sub 1 g=x | 1 org 1 g=x | 1 gview x 2 | {T12} | {W12}"),
        case(f"{V3} | 1 gview x 2 | 1 sub 1 g=x | 1 org 1 g=x | 1 gview x 1,2 | {T12} | {W12}"),
    ],
    "S15": [
        case(f"{AB} | 1 del 1:1 | 1 del 1:2 | 2 del 1:1 | 2 del 1:2"),
        case(f"{AB} | 1 del 1:1 | 2 del 1:1"),
        # originated in two views: the second view's first message needs nothing before it
        case("1 view 1,2 =1 | 1 sub 2 | 1 org 1 | 1 view 1,2 =2 | 1 org 2 | 2 view 1,2 =2 | 2 del 1:2"),
        # to two groups
        case(f"{V} | 1 sub 1 g=x | 1 sub 1 g=y | 1 org 1 g=x | 1 org 2 g=y | 2 del 1:2 g=y"),
    ],
    "S16": [
        case(f"{V} | 1 sub 1 | 1 org 1 | 2 del 1:1 | 2 sub 1 | 2 org 1 | 1 del 1:1 | 1 del 2:1"),
        case(f"{ABC} | 1 del 2:1 | 2 del 1:1"),
        case("1 view 1 =1 | 1 sub 1 | 1 org 1 | 2 view 1,2 =2 | 1 view 1,2 =2 | 2 sub 1 | 2 org 1 | 1 del 2:1"),
    ],
    "S17": [
        case(f"{ABC} | 1 del 1:1 | 1 del 2:1 | 1 del 1:2 | 2 del 1:1 | 2 del 2:1"),
        case(f"{ABC} | 1 del 1:1 | 1 del 2:1 | 1 del 1:2 | 2 del 1:1 | 2 del 1:2"),  # a hole, not another order
        # opposite orders in two views that exist at the same time
        case("1 view 1 =1 | 2 view 2 =2 | 1 sub 1 | 1 org 1 | 2 sub 1 | 2 org 1 "
             "| 1 del 1:1 | 1 del 2:1 | 2 del 2:1 | 2 del 1:1"),
        # without S18: 3 goes elsewhere, dies, leaves, or begins anew
        case(f"{AC} | 3 del 2:1 | 3 del 1:1 | {ALONE3} | {OTHERWISE12}", promises=WEAK),
        case(f"{AC} | 3 del 2:1 | 3 del 1:1 | 0 crash 3 | {OTHERWISE12}", promises=WEAK),
        case(f"{AC} | 3 del 2:1 | 3 del 1:1 | 3 leave | 1 del 1:1 | 1 del 2:1", promises=WEAK),
        case(f"{AC} | 3 del 2:1 | 3 del 1:1 | 3/2 view 3 =2.3 | 1 del 1:1 | 1 del 2:1", promises=WEAK),
    ],
    "S18": [case(f"{ABC} | 1 del 1:1 | 1 del 2:1 | 1 del 1:2 | 2 del 1:1 | 2 del 2:1 | 2/2 view 1,2 =2 | 2/2 del 1:2")],
    "S19": [
        case(f"{ABC} | 1 del 1:1 | 1 del 2:1 | 1 del 1:2 | 2 del 1:1 | 2 del 2:1"),
        case(f"{ABC} | 1 del 1:1 | 2 del 2:1"),  # nothing in common
        # 1 did not come along into the transitional view
        case(f"{V3} | 1 sub 1 | 1 org 1 | 2 sub 1 | 2 org 1 | 1 del 1:1 | 1 del 2:1 "
             "| 3 view 2,3 trans =2 <1 | 3 del 2:1"),
        case(f"{AC} | 3 del 2:1 | {ALONE3} | {OTHERWISE12}", promises=WEAK),
        case(f"{AC} | 3 del 2:1 | 0 crash 3 | {OTHERWISE12}", promises=WEAK),
    ],
    "S20": [
        case(f"{V3} | {SAFE1} | 1 del 1:1 safe | 2 del 1:1 safe | {LOSE3}"),
        # nobody but 1 and 2 has it: safe in the transitional view of both
        case(f"{V3} | 1 sub 1 safe | 1 org 1 safe | 1 rcv 1:1 safe | 2 rcv 1:1 safe | {T12} | 1 del 1:1 safe "
             f"| {W12} | 2 view 1,2 trans =2.1 <1.1 | 2 del 1:1 safe | 2 view 1,2 =2.1 t=1,2 <1.1"),
        case(f"{V3} | 1 sub 1 safe | 1 org 1 safe | 1 del 1:1 safe", live=True, level="deliver"),
    ],
    "S21": [
        case(f"{V} | 1 gview x 1,2 | 2 gview x 1,2 | 1 gview y 1 | 1 sub 1 g=x | 1 sub 1 g=y | 1 org 1 g=x "
             "| 1 org 2 g=y | 2 sub 1 g=x | 2 org 1 g=x | 1 del 1:1 g=x | 1 del 1:2 g=y | 1 del 2:1 g=x "
             "| 2 del 1:1 g=x | 2 del 2:1 g=x"),
        case(f"{GROUPED} | {ALONE3} | {GROUPED12}", promises=WEAK),
    ],
    "S22": [
        case(f"{V} | 2 gview x 1,2 | 1 sub 1 g=x,y | 1 org 1 g=x,y | 2 del 1:1 g=x,y"),
        case(f"{V} | 2 gview x 1 | {ORG1} | 2 del 1:1"),
        case(f"{V} | 1 gview x 1 | {STABLE} | 1 gview x 1,2 | 2 gview x 1,2 | 1 gview y | 1 end @900 | 2 end @900"),
        case(f"{V} | 1 gview x 1 | {STABLE} | 1 end @900 | 2 end held=1 @900"),
        case(f"{MINOR} | 1 gview x 1 | {STABLE} | 1 end @900 | 2 end @900"),
    ],
    "S23": [
        case(f"{V} | {ORG1} | 1 del 1:1 ring=1 order_seq=5 stamp=7 | 2 del 1:1 ring=2 order_seq=9 stamp=7"),
        case(f"{V} | {ORG1} | 1 del 1:1 ring=1 order_seq=5 stamp=7 | 2 del 1:1 ring=1 order_seq=5 stamp=7"),
    ],
    "Q1": [
        case(f"{SAID} | {spell(1, TWENTY)} | {spell(2, TWENTY)} | {spell(3, TWENTY)}", options=OFTEN),
        # 3 comes late and was away: what it missed then does not count
        case(f"{SAID} | {spell(1, TWENTY)} | {spell(2, TWENTY)} | {spell(3, TWENTY[4:9])} | 3 absent | 3 present "
             f"| {spell(3, TWENTY[15:])}", options=OFTEN),
        # a dummy everywhere is no violation
        case(f"{SAID} | {spell(1, TWENTY)} | 1 dummy 1:77 | {spell(2, TWENTY)} | 2 dummy 1:77", options=OFTEN),
    ],
    "L11": [
        case(f"{BACK} | 2 end".replace("1 del 1:40 ", "2 del 1:39 | 1 del 1:40 ")),
    ],
    "L1": [
        case(f"{V3} | 0 crash 3 | {STABLE} | {LOSE3} | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case(f"{V} | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case(f"{V3} | 0 crash 3 | {STABLE} | 1 note t_loss ns=500000 | {LOSE3} | 1 end @900 | 2 end @900".replace(
             "2 view 1,2 trans =2.1 <1.1", "2 view 1,2 trans =2.1 <1.1 @500"), timeout_ns=10_000),
    ],
    "L2": [
        case(f"{V3} | 0 crash 3 | {STABLE} | {LOSE3} | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case(f"{V} | {STABLE} | 0 fault cut lasting @101 | 1 view 1,2 =2.1 @102 | 1 view 1,2 =3.1 @103 | 1 end @900 "
             "| 2 end @900", timeout_ns=10_000),
        # a link that comes and goes costs views
        case(f"{V} | 0 fault cut lasting up_ms=3 @5 | {STABLE} | 1 view 1,2 =2.1 @500 | 1 end @900 | 2 end @900",
             timeout_ns=10_000),
    ],
    "L3": [
        case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 1 del 1:2 | 2 del 1:2 | 1 end @9000 | 2 end @9000", timeout_ns=10_000),
        case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 1 del 1:2 | 2 del 1:2 | 1 end | 2 end"),
    ],
    "L4": [
        case(f"{AB} | 1 del 1:1 | 1 del 1:2 | 2 del 1:1 | 2 del 1:2 | 1 end @9000 | 2 end @9000", timeout_ns=10_000),
        case(f"{AB} | 0 crash 2 | 1 view 1 =2.1 | 1 end @9000", timeout_ns=10_000),
    ],
    "L5": [
        case(f"{V} | {STABLE} | {VISITS} | 1 end @300 | 2 end @300", timeout_ns=10_000),
    ],
    "L6": [
        case(f"{AB} | 1 end outbox=0 | 2 end outbox=0"),
        case(f"{V} | 0 crash 2 | 1 end outbox=0"),
    ],
    "L7": [
        case(f"{V} | 1 refuse @10 | 1 refuse @20 | 1 sub 1 @300 | 1 refuse @900", timeout_ns=10_000),
        # of a part that was not primary until it was
        case(f"{MINOR} | {STABLE} | 1 refuse @110 | 1 refuse not_primary @120 "
             "| 1 view 1,2 =2.1 @890 | 2 view 1,2 =2.1 @891 | 1 refuse @900", timeout_ns=10_000),
    ],
    "L8": [
        case(f"0 start 1 | 0 start 2 | {V} | 0 crash 2 | 0 start 2/2 | {STABLE} | 1 view 1,2 =2.1 | 2/2 view 1,2 =2.1 "
             "| 1 end @900 | 2/2 end @900", timeout_ns=10_000),
        case(f"{V} | {STABLE} | 0 resume 2 @150 | 1 end @900 | 2 end @900", timeout_ns=10_000),
    ],
    "A1": [
        case(CALLED),
        case(f"{V} | {BEGUN} | 1 applied 1:1 1a | 2 applied 2:1 1b odd"),  # in a transitional view there may be holes
    ],
    "A2": [
        case(f"{CALLED} | {NEXT} | 1 state decided 1a epoch=2.1", **ONE),
        # whoever took it lost its disk
        case(f"{CALLED} | 1/2 state found 0x | 2/2 state found 0x | 1/2 view 1,2 =2.1 "
             "| 1/2 state view 0x members=1,2 | 1/2 state decided 0x epoch=2.1", **ONE),
        # where all go on, what both had is put together
        case(f"{APART} | 1 state decided 2m epoch=3.1 parts=1a,1b"),
        # ... or the class cannot, or its merge raised
        case(f"{APART} | 1 state decided 1a epoch=3.1 parts=1a"),
        case(f"{APART} merges=false "
             "| 1 state decided 1a epoch=3.1"),
    ],
    "A3": [
        case(f"{CALLED} | 1 applied 1:2 2b"),
        # two parts applied it, in the places they were at, and were put together
        case(f"{SPLIT} | 1 applied 1:1 1a | 2 applied 1:1 1b | 1 state decided 1m epoch=3.1 parts=1a,1b"),
    ],
    "A4": [
        case(f"{CALLED} | 1 answered 1 | {NEXT} | 1 state decided 1a epoch=2.1", **ONE),
        # not durable, and nobody had it any more
        case(f"{CALLED} | 1 answered 1 | 1/2 state found 0o | 1/2 view 1,2 =2.1 | 1/2 state view 0o members=1,2 "
             "| 1/2 state decided 0o epoch=2.1", **ONE),
        # where all go on: another part decides without it
        case(f"{CALLED} | 1 answered 1 durable | 1 view 1 =2.1 | 2 view 2 =2.2 | 2 state view 0o members=2 "
             "| 2 state decided 0o epoch=2.2", members=(1, 2)),
        # a disk that was taken away holds nothing
        case(f"{CALLED} | 1 answered 1 durable | 2/2 state found 0o", **ONE),
        case(f"{CALLED} | 1 applied 1:2 2b | 1 answered 2 durable | 1/2 state found 1a",
             scenario={"faults": [{"fault": "disk", "how": "lost", "member": 1}]}, **ONE),
    ],
    "A5": [
        case(f"{WELL} | 2 state complete 0o @160 | 1 end @900 | 2 end @900", **BOTH),
        case(f"{WELL} | 2 state complete 0o @160 | 1 end @170 | 2 end @170", **BOTH),  # long before the bound
        # a state of 400,000 bytes has more than a hundred milliseconds at 100 Mbit/s
        case(f"{WELL} | 2 state view 0o bytes=400000 @160 | 2 state complete 0o @100000 | 1 end @200000 "
             "| 2 end @200000", scenario=SLOW, **BOTH),
        # one of three is away, and the others have decided
        case(f"{WELL} | 2 state view 0o @150 | 2 state decided 0o epoch=1.1 @155 | 2 state complete 0o @160 "
             "| 1 end @900 | 2 end @900", **THIRD),
    ],
    "A6": [case(f"{CALLED} | 1 lost 1:1 | 1 state decided 0x epoch=2.1 taken")],
    "L10": [
        case(f"{V} | {STABLE} | 1 mode active @200 | 1 mode passive @300 | 1 end @900 | 2 end @900", **STEADY),
        case(f"{V} | 1 mode active @50 | 1 mode passive @51 | 1 mode active @52 | {STABLE} | 2 mode active @200 "
             "| 1 end @900 | 2 end @900", **STEADY),
        case(f"{V} | {STABLE} | 1 end @20000200 | 2 end @20000200", workload={"rate": 10.0}, live=True),
        case(f"{V} | {STABLE} | 1 mode active @200 | 1 mode passive @300 | 1 mode active @20005000 | 1 end @20006000 "
             "| 2 end @20006000", **CHANGING),
        case(f"{V} | {STABLE} | 1 mode active @200 | 1 mode passive @300 | 1 view 1,2,3 @350 | 2 view 1,2,3 @350 "
             "| 3 view 1,2,3 @350 | 1 mode active @400 | 1 end @900 | 2 end @900 | 3 end @900", **STEADY),
    ],
    "L12": [case(f"{V} | 1 end waits=2 | 2 end")],
    "L13": [
        case(f"{V3} | {ORG1} | 1 del 1:1 | 2 del 1:1 | 1 leave | {T23} | 3 del 1:1 | {W23}"),
        case(f"{V3} | 1 sub 3 | 1 org 1 | 2 del 1:1 | 3 del 1:1 | 1 leave unsent=2-3 | {T23} | {W23}"),
        case(f"{V3} | {ORG1} | 1 leave unsent=1 | {T23} | {W23}"),  # perhaps nobody has it
        case(f"{V3} | {ORG1} | 2 del 1:1 | 1 leave | 0 crash 3 | 2 end"),  # nobody goes on
        # sent in an earlier view, which 3 was not in
        case(f"1 view 1,2 =1.1 | 2 view 1,2 =1.1 | {ORG1} | 1 view 1,2,3 =2.1 | 2 del 1:1 | 2 view 1,2,3 =2.1 "
             "| 3 view 1,2,3 =2.1 | 1 leave | 3 view 2,3 =3.2"),
        case(f"{V3} | 3 gview x 1,3 | 1 sub 1 g=x | 1 org 1 g=x | 3 del 1:1 g=x | 1 leave | {T23} | {W23}"),
        case(f"{V3} | 1 gview x 2 | 1 sub 1 g=x | 1 org 1 g=x | 1 leave | {T23} | {W23}"),  # nobody has to have it
        case(f"{V3} | 1 gview x 1 | 1 sub 1 g=x | 1 org 1 g=x | 1 leave | {T23} | {W23}"),  # for itself alone
        case(f"{V3} | 1 gview x 1,3 | 3 gview x 1,3 | 3 gview x 1 | 1 sub 1 g=x | 1 org 1 g=x | 1 leave | {T23} "
             f"| {W23}"),  # 3 had left the group before it, perhaps
        case(f"{V3} | 1 sub 1 | 0 crash 1 | 2 leave"),  # a crash is no leave
    ],
}  # fmt: skip

REJECTED: dict[str, list[Case]] = {
    "S1": [
        case(f"{V} | 1 del 2:1"),
        case(f"{V} | 1 del 9:1"),
        case(f"{V} | 1 sub 1 | 1 org 1 | 2 del 1:1 #99"),
        case(f"{V} | 1 sub 1 | 1 org 1 | 2 del 1:1 safe"),
        case(f"{V} | 1 sub 1 g=x | 1 org 1 g=x | 2 del 1:1 g=y"),
        case(f"{V} | 1 sub 1 | 1 org 1 g=x | 2 del 1:1 g=x"),
        case(f"{V} | 1 org 1 | 2 del 1:1"),
        case(f"{V} | 1 sub 1 | 1 org 1 | 2 del 1:1 !1"),
        case(f"{V} | 1 sub 1 | 1 org 1 !1"),
        case(f"{V} | 1 sub 1 | 1 org 1 @50 | 2 del 1:1 @40"),
        case(f"{V} | 1 sub 2 | 1 org 1-2 | 2 del 1:1"),
        case(f"{V} | 1 sub 1 | 2 org 1:1"),
        case(f"{V} | 0 start 1 | 0 start 2 | 1 del 2/7:1"),  # no such life ever was
        case(f"{V} | 0 start 1 | 0 start 2 | 1 del 2/7:1", live=True),
        case("1 view 1,2 | 0 start 1 | 0 start 2 | 1 del 2:1"),  # a simulated life without rows wrote nothing
    ],
    "S2": [case(f"{AB} | 2 del 1:1 | 2 del 1:1"), case(f"{V} | 1 sub 2 | 1 org 1-2 | 2 del 1:1-2 | 2 del 1:2")],
    "S3": [
        case("1 view 1 | 1 sub =2"),
        case("1 view 1 | 1 sub =1 | 1 sub =3"),
        case("1 view 1 | 1 sub =1-2 | 1 sub =2"),
        case("1 view 1 | 1 sub 2 | 1 org 1-2 | 1 org 2"),
        case("1/2 start @1 | 1 start @2"),
    ],
    "S4": [case("1 view 2")],
    "S5": [case("1 view 1,2 | 2 view 2"), case("1 view 1,2 from=1/2 | 2 view 1,2 from=1,2")],
    "S6": [
        case("1 view 1 =2.1 | 1 view 1 =1.1"),
        case("1 view 1 =2.1 | 1/2 view 1 =2.1"),
        case("1 view 1 =1.2 | 1 view 1 =1.1"),
    ],
    "S7": [case("1 sub 1 | 1 view 1"), case(f"1 view 1 | {ORG1} | 2 del 1:1 | 2 view 1,2")],
    "S8": [
        case("1 view 1 minor | 1 sub 1 | 1 org 1 | 1 del 1:1"),
        case("1 view 1 =1.1 | 2 view 2 =2.2"),
    ],
    "S9": [
        case(f"{V} | {ORG1} | 1 del 1:1 | 2 view 1,2 =2.1 | 2 del 1:1"),
        # a deliver row that names another view than its life is in
        case(f"{V} | {ORG1} | 1 del 1:1 view_seq=2"),
        case(f"{V} | {ORG1} | 1 del 1:1 view_rep=2"),
        case(f"{V3} | {ORG1} | {T12} | 1 del 1:1 view_kind=1"),
    ],
    "S10": [
        case(f"1 view 1,2 | {ORG1} | 1 view 1,2 =2.1 | 1 del 1:1"),
        case(f"{V3} | {T12} | {ORG1}"),
    ],
    "S11": [
        case(f"{V3} | {ORG1} | 1 del 1:1 | {LOSE3}"),
        case(f"{V3} | {ORG1} | {LOSE3}".replace("| 2 view 1,2 =2.1", "| 2 del 1:1 | 2 view 1,2 =2.1")),
        case(f"{X23} | 2 del 2:1 g=x | {GO3}"),  # the first that goes this way is outside the group
    ],
    "S12": [
        case("1 view 1,2 | 1 view 1 =2.1"),
        case("1 view 1 trans"),
        case(f"{V3} | {T12} | {T12}"),
        case(f"{V3} | 1 view 1,2 trans =2.1 <9.9"),
        case(f"{V3} | 1 view 2 trans =2.1 <1.1"),
        case(f"{V} | 1 view 1,3 trans =2.1 <1.1"),
        case(f"{V3} | {T12} | 1 view 1,2 =3.1"),
        case(f"{V3} | {T12} | 1 view 1 =2.1"),
        case(f"{V3} | {T12} | 1 view 1,2 =2.1 t=1 <1.1"),
        # 2 went along but is left out
        case(f"{V3} | 1 view 1 trans =2.1 <1.1 | 1 view 1,2 =2.1 | 2 view 1,2 trans =2.1 <1.1 | 2 view 1,2 =2.1"),
        # 2 is said to come along but comes from another view
        case(f"{V3} | {T12} | {W12} | 2 view 2 trans =1.5 <1.1 | 2 view 2 =1.5 t=2 <1.1 "
             "| 2 view 2 trans =2.1 <1.5 | 2 view 1,2 =2.1 t=2 <1.5"),
        # 1 passes through a view of 1 and 2 in one step, 2 comes to the next one from elsewhere
        case(f"{V3} | 1 view 1,2 trans =1.5 <1.1 @50 | 1 view 1,2 =1.5 t=1,2 <1.1 @50 "
             "| 1 view 1,2 trans =2.1 <1.5 @50 | 1 view 1,2,3 =2.1 t=1,2 <1.5 @50 "
             "| 2 view 2 trans =2.1 <1.1 @51 | 2 view 1,2,3 =2.1 t=2 <1.1 @51"),
        # 2 never was there
        case(f"1 view 1,2 | {T12} | {W12} | 2 view 2 =1.2"),
    ],
    "S13": [
        case(f"{V3} | {ORG1} | 1 del 1:1 | {T12} | 2 view 1,2 trans =2.1 <1.1"),
        case(f"{V3} | {ORG1} | {T12} | 1 del 1:1 | {W12} | 2 view 1,2 trans =2.1 <1.1 | 2 view 1,2 =2.1 t=1,2 <1.1"),
        case(f"{X23} | 2 del 2:1 g=x | {GO3}"),
        case(f"{X23} | {GO3}".replace("| 2 view 1,2,3 =2.1", "| 2 del 2:1 g=x | 2 view 1,2,3 =2.1")),
    ],
    "S14": [
        case(f"{V3} | {ORG1} | {T12} | {W12}"),
        case(f"{V3} | {ORG1} | {T12} | {W12} | 1 del 1:1"),
        case("1 view 1 | 1 sub 2 | 1 org 1 | 1 sub 1 | 1 org 3"),
        case(f"{V3} | {ORG1} | {T12} | {W12}", options={"flush": "carry"}),
        case(f"{V3} | 1 gview x 1,2 | 1 sub 1 g=x | 1 org 1 g=x | 1 gview x 1 | {T12} | {W12}"),
    ],
    "S15": [
        case(f"{AB} | 2 del 1:2 | 2 del 1:1"),
        case(f"{AB} | 2 del 1:2"),
        case(f"{V} | 1 gview x 1,2 | 1 sub 1 g=x | 1 sub 1 g=x,y | 1 org 1 g=x | 1 org 2 g=x,y | 1 del 1:1 g=x "
             "| 2 del 1:2 g=x,y"),
    ],
    "S16": [
        case(f"{V} | 1 sub 1 | 1 org 1 | 2 del 1:1 | 2 sub 1 | 2 org 1 | 1 del 2:1 | 1 del 1:1"),
        case(f"{V3} | 1 sub 1 | 1 org 1 | 2 del 1:1 | 2 sub 1 | 2 org 1 | 3 del 2:1"),
    ],
    "S17": [
        case(f"{ABC} | 1 del 1:1 | 1 del 2:1 | 2 del 2:1 | 2 del 1:1"),
        # three members, no two of which disagree
        case(f"{V3} | 1 sub 1 | 1 org 1 | 2 sub 1 | 2 org 1 | 3 sub 1 | 3 org 1 "
             "| 1 del 1:1 | 1 del 2:1 | 2 del 2:1 | 2 del 3:1 | 3 del 3:1 | 3 del 1:1"),
        case(f"{ABC} | 1 del 1:1 | 1 del 1:2 | 1 del 2:1 | 2 del 2:1 | 2 del 1:1"),
        case(f"{AC} | 3 del 2:1 | 3 del 1:1 | {ALONE3} | {OTHERWISE12}"),
        case(f"{AC} | 3 del 2:1 | 3 del 1:1 | 0 crash 3 | {OTHERWISE12}"),
        # without S18: those who go on to one view, and those who are there at the end
        case(f"{AC} | 1 del 2:1 | 1 del 1:1 | {T12} | {W12} | 2 del 1:1 | 2 del 2:1 | 2 view 1,2 trans =2.1 <1.1 "
             "| 2 view 1,2 =2.1 t=1,2 <1.1", promises=WEAK),
        case(f"{AC} | 3 del 2:1 | 3 del 1:1 | 1 del 1:1 | 1 del 2:1", promises=WEAK),
    ],
    "S18": [
        case("1 view 1 =1 | 2 view 2 =2 | 1 sub 1 | 1 org 1 | 2 sub 1 | 2 org 1 "
             "| 1 del 1:1 | 1 del 2:1 | 2 del 2:1 | 2 del 1:1"),
        case(f"{ABC} | 1 del 1:1 | 1 del 2:1 | 2 del 2:1 | 2 del 1:1"),
    ],
    "S19": [
        case(f"{ABC} | 1 del 1:1 | 1 del 2:1 | 2 del 2:1"),
        case(f"{V3} | 1 sub 1 | 1 org 1 | 2 sub 1 | 2 org 1 | 1 del 1:1 | 1 del 2:1 "
             "| 3 view 1,2,3 trans =2 <1 | 3 del 2:1"),
        case(f"{V3} | 1 sub 1 | 1 org 1 | 2 sub 1 | 2 org 1 | 1 del 1:1 | 1 del 2:1 "
             "| 3 del 2:1 | 3 view 2,3 trans =2 <1"),
        case(f"{AC} | 3 del 2:1 | {ALONE3} | {OTHERWISE12}"),
        case(f"{AC} | 1 del 1:1 | 1 del 2:1 | {T12} | {W12} | 2 del 2:1 | 2 view 1,2 trans =2.1 <1.1 "
             "| 2 view 1,2 =2.1 t=1,2 <1.1", promises=WEAK),
        case(f"{AC} | 3 del 2:1 | 1 del 1:1 | 1 del 2:1", promises=WEAK),
    ],
    "S20": [
        # not received everywhere, or not yet
        case(f"{V} | 1 sub 1 safe | 1 org 1 safe | 1 rcv 1:1 safe | 1 del 1:1 safe"),
        case(f"{V} | 1 sub 1 safe | 1 org 1 safe | 1 rcv 1:1 safe | 1 del 1:1 safe | 2 rcv 1:1 safe"),
        # 2 goes on without it
        case(f"{V3} | {SAFE1} | 1 del 1:1 safe | {LOSE3}"),
        case(f"{V3} | 1 sub 1 safe | 1 org 1 safe | 1 rcv 1:1 safe | 2 rcv 1:1 safe | {T12} | 1 del 1:1 safe "
             "| 2 view 1,2 trans =2.1 <1.1 | 2 view 1,2 =2.1 t=1,2 <1.1"),
        # 2 never installed the view
        case("1 view 1,2 | 2 start | 1 sub 1 safe | 1 org 1 safe | 1 rcv 1:1 safe | 2 rcv 1:1 safe | 1 del 1:1 safe"),
    ],
    "S21": [
        case(f"{V} | 1 gview x 1,2 | 2 gview x 1,2 | 1 gview y 1,2 | 2 gview y 1,2 | 1 sub 1 g=x | 1 org 1 g=x "
             "| 2 sub 1 g=y | 2 org 1 g=y | 1 del 1:1 g=x | 1 del 2:1 g=y | 2 del 2:1 g=y | 2 del 1:1 g=x"),
        case(f"{V} | 1 gview x 1,2 | 2 gview x 1,2 | 1 gview y 1,2 | 2 gview y 1,2 | 1 sub 1 g=x | 1 org 1 g=x "
             "| 2 sub 1 g=y | 2 org 1 g=y | 1 del 1:1 g=x | 1 del 2:1 g=y | 2 del 2:1 g=y"),
        case(f"{GROUPED} | {ALONE3} | {GROUPED12}"),
        case(f"{GROUPED} | 1 del 1:1 g=x | 1 del 2:1 g=y", promises=WEAK),
    ],
    "S22": [
        case(f"{V} | 2 gview x 1 | 1 sub 1 g=x | 1 org 1 g=x | 2 del 1:1 g=x"),
        case(f"{V} | 2 gview x 1,2 | 2 gview x 1 | 1 sub 1 g=x | 1 org 1 g=x | 2 del 1:1 g=x"),
        case(f"{V} | {ORG1} | 2 del 1:1", options={"gateways": [2]}),
        case(f"{V} | {STABLE} | 1 gview x 1 | 2 gview x 1,2 | 1 end @900 | 2 end @900"),
        case(f"{V} | {STABLE} | 1 gview x 1 | 1 end @900 | 2 end @900"),
    ],
    "S23": [
        case(f"{V} | {ORG1} | 1 del 1:1 ring=1 order_seq=5 | 2 del 1:1 ring=1 order_seq=6"),
        case(f"{V} | {ORG1} | 1 del 1:1 ring=1 order_seq=5 stamp=7 | 2 del 1:1 ring=2 order_seq=5 stamp=8"),
        case(f"{V} | {ORG1} | 1 del 1:1 ring=1 order_seq=5 stamp=7 | 2 del 1:1 ring=2 order_seq=5"),
    ],
    "Q1": [
        case(f"{SAID} | {spell(1, TWENTY)} | {spell(2, TWENTY)} | {spell(3, TWENTY[::-1])}", options=OFTEN),
        case(f"{SAID} | {spell(1, TWENTY)} | {spell(2, TWENTY)} | {spell(3, TWENTY[:1] + TWENTY[15:])}", options=OFTEN),
        case(f"{SAID} | {spell(1, TWENTY)} | {spell(2, TWENTY[:2])} | 2 del 1:1", options=OFTEN),
    ],
    "L11": [
        case(f"{BACK} | 2 end"),
        case(f"{BACK} | 2 end".replace("1 del 1:180 ", "2 del 1:179 | 1 del 1:180 ")),
    ],
    "L1": [
        case(f"{V3} | 0 crash 3 | {STABLE} | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case(f"{V3} | 0 crash 3 | {STABLE} | {T12} | {W12} | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case("1 view 1 =1.1 | 2 view 2 =1.2 | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case("1 view 1,2 =1.1 | 2 view 1,2 =1.2 | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case("0 start 1 | 0 start 2 | 1 view 1,2 | 1 end @900", timeout_ns=10_000),  # 2 never installs anything
    ],
    "L2": [
        case(f"{V} | {STABLE} | 1 view 1,2 =2.1 @500 | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case(f"{V} | {STABLE} | 0 fault cut lasting @101 | 1 view 1,2 =2.1 @102 | 1 view 1,2 =3.1 @103 "
             "| 1 view 1,2 =4.1 @104 | 1 end @900 | 2 end @900", timeout_ns=10_000),
    ],
    "L3": [
        case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 1 del 1:2 | 1 end @9000 | 2 end @9000", timeout_ns=10_000),
        case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 1 del 1:2 | 2 del 1:2 @8000 | 1 end @9000 | 2 end @9000",
             timeout_ns=10_000),
        case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 1 del 1:2 | 1 end | 2 end"),
        case(f"{V} | 1 sub 1 | 1 end @9000 | 2 end @9000", timeout_ns=10_000),
    ],
    "L4": [
        case(f"{AB} | 1 del 1:1 | 1 del 1:2 | 2 del 1:1 | 1 end @9000 | 2 end @9000", timeout_ns=10_000),
        case(f"{AB} | 1 del 1:1 | 1 del 1:2 | 0 crash 2 | 1 end @9000", timeout_ns=10_000),
    ],
    "L5": [
        case(f"{V} | {STABLE} | 1 note rotation ns=1 @200 | 2 note rotation ns=1 @200 | 1 end @300 | 2 end @300",
             timeout_ns=10_000),
    ],
    "L6": [
        case(f"{AB} | 1 end outbox=0 @200 | 2 end outbox=1 @200", timeout_ns=10_000),
        case("1 view 1,2 =2.1 | 2 view 1,2 =1.1 minor | 2 view 1,2 =2.1 | 1 end outbox=0 @200 | 2 end outbox=1 @200",
             timeout_ns=10_000),
    ],
    "L7": [case(f"{V} | 1 refuse @10 | 1 refuse @900", timeout_ns=10_000)],
    "L8": [
        case(f"0 start 1 | 0 start 2 | {V} | 0 crash 2 | 0 start 2/2 | {STABLE} | 2/2 view 2 =2.2 "
             "| 1 end @900 | 2/2 end @900", timeout_ns=10_000),
        case(f"{V} | 1 view 1 =2.1 | 0 resume 2 | {STABLE} | 2 view 2 =2.2 | 1 end @900 | 2 end @900",
             timeout_ns=10_000),
    ],
    "A1": [
        case(f"{V} | {BEGUN} | 1 applied 1:1 1a | 2 applied 2:1 1b"),
        case(f"{V} | 1 state decided 0o epoch=1.1 | 2 state decided 0x epoch=1.1"),
        case(f"{V} | {BEGUN} | 1 applied 1:1 1a | 2 applied 2:1 1a"),  # one state of different calls
        case(f"{V} | {BEGUN} | 1 applied 1:1 2a | 2 applied 1:1 2a"),  # that counts one too many
    ],
    "A2": [
        case(f"{CALLED} | {NEXT} | 1 state decided 0x epoch=2.1", **ONE),
        case(f"{APART} | 1 state decided 1a epoch=3.1"),  # what member 2 had is dropped
    ],
    "A3": [
        case(f"{CALLED} | 1 applied 1:1 2b"),
        # one part had it before the split, and after the merge it comes again
        case(f"{APART} | 1 state decided 2m epoch=3.1 parts=1a,1b | 1 applied 2:1 3c"),
    ],
    "A4": [
        case(f"{CALLED} | 1 answered 1 | {NEXT} | 2 state decided 0o epoch=2.1", **ONE),
        case(f"{CALLED} | 1 answered 1 durable | 1/2 state found 0o | 1/2 view 1,2 =2.1 "
             "| 1/2 state view 0o members=1,2 | 1/2 state decided 0o epoch=2.1", **ONE),
        # where all go on: somebody brings it, or all are there
        case(f"{APART.replace('1a |', '1a | 1 answered 1 |', 1)} | 1 state decided 1b epoch=3.1", members=(1, 2)),
        case(f"{CALLED} | 1 answered 1 durable | {GATHERED} | 1 state decided 0o epoch=3.1", members=(1, 2)),
        # answered in the transitional view, whose row names the next view
        case(f"{CALLED} | 1 view 1,2 trans =2.1 <1.1 | 1 answered 1 durable | 1 view 1,2 =2.1 "
             "| 1 state view 0o members=1,2 | 1 state decided 0o epoch=2.1", **ONE),
        # a member of its view had it, and found less on its disk
        case(f"{CALLED} | 1 applied 1:2 2b | 1 answered 2 durable | 1/2 state found 1a", **ONE),
    ],
    "A5": [
        case(f"{WELL} | 2 state view 0o @160 | 1 end @900 | 2 end @900", **BOTH),
        case(f"{WELL} | 2 state view 0o bytes=40 @160 | 2 state complete 0o @100000 | 1 end @200000 | 2 end @200000",
             scenario=SLOW, **BOTH),
        case(f"{WELL} | 2 state view 0o @150 | 2 state decided 0o epoch=1.1 @155 | 1 end @900 | 2 end @900", **THIRD),
    ],
    "A6": [
        case(f"{CALLED} | 1 state decided 0x epoch=2.1 taken"),
        case(f"{CALLED} | 1 lost 1:1 | 1 state decided 1a epoch=2.1"),
        case(f"{CALLED} | 1 lost 1:1 | 1 lost 1:1 | 1 state decided 0x epoch=2.1 taken"),
    ],
    "L10": [
        case(f"{V} | {STABLE} | 1 mode active @20000200 | 1 end @20000300 | 2 end @20000300", **STEADY),
        case(f"{V} | {STABLE} | 1 mode active @20000200 | 1 end @20006000 | 2 end @20006000", **CHANGING),
        case(f"{V} | {STABLE} | 1 mode active @200 | 1 mode passive @300 | 1 mode active @400 | 1 end @900 "
             "| 2 end @900", **STEADY),
        case(f"{V} | {STABLE} | 1 view 1,2,3 @150 | 2 view 1,2,3 @150 | 3 view 1,2,3 @150 | 1 mode active @200 "
             "| 1 mode passive @300 | 1 mode active @400 | 1 end @900 | 2 end @900 | 3 end @900", **STEADY),
    ],
    "L12": [case(f"{V} | 1 end waits=3 | 2 end")],
    "L13": [
        case(f"{V3} | 1 sub 1 | 1 leave | {T23} | {W23}"),
        case(f"{V3} | 1 sub 3 | 1 org 1 | 2 del 1:1 | 3 del 1:1 | 1 leave unsent=3 | {T23} | {W23}"),
        case(f"{V3} | {ORG1} | 1 del 1:1 | 2 del 1:1 | 1 leave | {T23} | {W23}"),
        case(f"{V3} | 1 sub 3 | 1 org 1-3 | 2 del 1:1-3 | 1 leave unsent=2-3 | {T23} | {W23}"),
        case(f"{V3} | 3 gview x 2,3 | 1 sub 1 g=x | 1 org 1 g=x | 3 del 1:1 g=x | 1 leave | {T23} | {W23}"),
        case(f"{V3} | 1 gview x 1,3 | 1 sub 1 g=x | 1 org 1 g=x | 1 leave | {T23} | {W23}"),
        case(f"{V3} | 1 gview x 1,3 | 3 gview x 1,3 | 1 sub 1 g=x | 1 org 1 g=x | 1 leave | {T23} | {W23}"),
    ],
}  # fmt: skip

UNJUDGED: dict[str, list[Case]] = {
    "A5": [
        case(f"{WELL} | 2 state view 0o @160 | 1 end @170 | 2 end @170", **BOTH),  # it had time left
        case(f"{WELL} | 2 state view 0o bytes=9 @160 | 1 end @900 | 2 end @900", **BOTH),  # at what rate?
    ],
    "S1": [
        case("1 view 1,2 | 1 del 2:1"),
        case("1 view 1,2 | 2/2 view 1,2 | 1 del 2/1:1"),  # the file of an earlier life is not there
        case("1 view 1,2 | 0 start 2 | 0 start 2/2 | 2/2 view 1,2 | 1 del 2/1:1", live=True),
        case("1 view 1,2 | 2 view 1,2 | 0 start 2 | 0 start 2/2", live=True),
    ],
    "S4": [case("1 view 1,2")],
    "S8": [case("1 view 1 =1.1 | 2 view 2,3 =2.2")],
    "S12": [case(f"1 view 1,2 | 2/2 view 2 =1.2 | {T12} | {W12} | 1 sub 1 | 2/2 del 2/1:1")],
    "L3": [
        case(f"{AB} | 1 del 1:1 | 0 crash 2 | 1 end", timeout_ns=10_000),
        case(f"{AB} | 1 del 1:1 | 0 crash 2 | 0 stable 1 | 1 end @9000", timeout_ns=10_000),
        case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 1 end | 2 end", timeout_ns=10_000_000),  # 1:2 not yet due
        case(f"{AB} | 1 del 1:1 | 2 del 1:1 | 1 del 1:2 | 1 end"),  # and without a bound: 2 has not ended
    ],
    "S20": [
        case(f"{V} | 1 sub 1 safe | 1 org 1 safe | 1 del 1:1 safe", level="deliver"),
        case("1 view 1,2 | 1 sub 1 safe | 1 org 1 safe | 1 rcv 1:1 safe | 1 del 1:1 safe"),
    ],
    "S22": [case(f"{V} | 1 sub 1 g=x | 1 org 1 g=x | 2 del 1:1 g=x")],
    "S23": [
        case(f"{V} | {ORG1} | 1 del 1:1 ring=1 order_seq=5 | 2 del 1:1 ring=2 order_seq=9"),
        case(f"{AB} | 1 del 1:1 ring=1 order_seq=5 stamp=7 | 1 del 1:2 ring=1 order_seq=6"),
    ],
    "S26": [case("1 view 1")],
    "Q1": [
        case(f"{SAID} | {spell(1, TWENTY)} | {spell(2, TWENTY)}"),
        case(f"{SAID} | {spell(1, TWENTY)} | {spell(2, TWENTY)} | 1 note conflict", options=OFTEN),
        case(f"{SAID} | {spell(1, TWENTY)} | {spell(2, TWENTY[:4] + TWENTY[9:])}", options=OFTEN),
    ],
    "L1": [
        case(f"{V3} | 0 crash 3 | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case(f"{V3} | 0 crash 3 | {STABLE} | 1 end @101 | 2 end @101", timeout_ns=10_000),
        case(f"{V3} | 0 crash 3 | {STABLE} | 1 end @900 | 2 end @900", timeout_ns=10_000, level="deliver"),
        case(f"1 view 1,2 | 0 crash 3 | {STABLE} | 1 end @900", timeout_ns=10_000),
        case(
            f"0 start 1 | 0 start 2 | {V} | 0 crash 2 | 0 start 2/2 @50 | {STABLE} | 1 view 1,2 =2.1 | 1 end @900",
            timeout_ns=10_000,
            live=True,
        ),
    ],
    "L2": [case(f"{V} | 1 end | 2 end", timeout_ns=10_000)],
    "L4": [case(AB), case("1 view 1,2 | 1 sub 1 | 1 org 1 | 1 del 1:1 | 1 end @9000", timeout_ns=10_000)],
    "L5": [
        case(V, level="deliver"),
        case(f"{V} | 1 end @900 | 2 end @900", timeout_ns=10_000),
        case(f"{VISITS.split(' | 2 ')[0]} | 1 view 1,2 | {STABLE} | 1 end @300", timeout_ns=10_000),
    ],
    "L6": [case(AB), case(f"{AB} | 1 end outbox=1 | 2 end outbox=0", timeout_ns=10_000)],
    "L7": [case(f"{V} | 1 refuse | 0 crash 2")],
    "L8": [
        case(f"{V} | 1 view 1 =2.1 | 0 resume 2 | {STABLE} | 1 end @101", timeout_ns=10_000),
        case(
            f"0 start 1 | 0 start 2 | {V} | 0 crash 2 | 0 start 2/2 @50 | {STABLE} | 1 view 1,2 =2.1 | 1 end @900",
            timeout_ns=10_000,
            live=True,
        ),
    ],
    "L10": [
        case(f"{V} | {STABLE} | 1 mode active @20000200 | 1 end @20000300 | 2 end @20000300"),
        case(f"{V} | {STABLE} | 1 mode active @200 | 1 end @900", scenario={"load": {"regime": "poisson"}}),
        case(f"{V} | 0 crash 2 | 1 mode active @200 | 1 end @900", **STEADY),
    ],
    "L12": [case(V)],
}

EMPTY: dict[str, list[Case]] = {  # none of the promise's events happened
    "S1": [case(V)],
    "S3": [case("1 view 1")],
    "S11": [case(f"{ABC} | 1 del 1:1 | 2 del 1:1")],
    "S12": [case(V3)],
    "S13": [case(V3)],
    "S18": [case(ABC)],
    "S20": [case(f"{V3} | {ORG1} | 1 del 1:1 | {LOSE3}")],  # agreed: nothing is promised
    "S21": [case(f"{ABC} | 1 del 1:1 | 1 del 2:1 | 2 del 2:1 | 2 del 1:1")],  # no groups: S17 and S18 tell it
    "S22": [case(f"{ABC} | 1 del 1:1")],
    "S23": [case(V)],
    "Q1": [case(V)],
    "L11": [case(f"0 fault loss 2 | {BACK} | 2 end")],  # links that fail meanwhile excuse
    # the core is not primary: it may wait for ever
    "L2": [case(f"{MINOR} | {STABLE} | 1 view 1,2 =2.1 minor @500 | 1 end @900 | 2 end @900", timeout_ns=10_000)],
    "L3": [
        case(f"{V} | 1 end | 2 end"),
        case(f"1 view 1 =0.1 | 1 sub 1 | {MINOR} | {STABLE} | 1 end @9000 | 2 end @9000", timeout_ns=10_000),
    ],
    "L4": [case(f"{AB} | 1 del 1:1 | 1 end | 2 end", timeout_ns=10_000)],
    "L6": [case(f"{MINOR} | 1 end outbox=1 @200 | 2 end outbox=1 @200", timeout_ns=10_000)],
    "L7": [
        case(f"{V} | 1 refuse closed @10 | 1 refuse closed @9000", timeout_ns=10_000),
        case(V),
        case(f"{MINOR} | {STABLE} | 1 refuse @110 | 1 refuse @900 | 1 end @9000 | 2 end @9000", timeout_ns=10_000),
    ],
    "L8": [case(f"{V} | 1 end @900 | 2 end @900", timeout_ns=10_000)],
    "L10": [case(f"{V} | 1 end @900 | 2 end @900", **STEADY)],
}
