"""Who is in the next view: evidence, rows, choice of members, Gather and Commit, token paths, cause of a view.

A component, not a layer: the token ring (and later the view-synchronous layer) holds one `Membership`, forwards inputs
to it and does what it answers.  It decides *who* is in the next view and carries the commit token; what happens to
messages at a view change (ring recovery, flush) is the owner's.

How an owner uses it
--------------------
Every method takes ``now`` and returns a list of actions, in order.  Most are ordinary actions of the contract; those
derived from `Decision` are for the owner alone, which must not pass them on::

    def _carry(self, now, actions):
        out = []
        for action in actions:
            if isinstance(action, Decision):
                out += self._decided(now, action)    # Gathering, Committed, Returned, Parted, Outdone
            else:
                out.append(action)
        return out

1. *Every* packet that comes in, of whatever type, is first shown to ``heard(now, peer)``.  It answers None if the
   packet must be dropped (a stranger, or a life that does not count): then it is shown to ``ignored``, which looks
   for two lives of one id.  Else a list of actions (nearly always empty).
   Packets in `PACKETS` then go to ``receive``; the owner's own packets stay with the owner.
2. Timers whose name starts with ``m.`` go to ``timer``; ``stored``/``store_failed`` likewise: all keys are its own.
   At the owner's own timers call ``stood_still(now, due)`` first: actions, and afterwards ``paused`` says whether this
   member itself had stopped (then suspect nobody in this step).
3. Regular tokens (of the owner's own type, which names its addressee): ``token`` when one is accepted, ``pass_token``
   to transmit it (repeats it, by multicast from the second time on, until ``went_on``), ``went_on`` at a message of
   this ring with seq above the copy's.  Loss, self-tuning, repetition and blame follow from these three.
4. `Gathering`: the view is being left (or an attempt failed).  Stop sending new messages and forwarding old tokens;
   the old ring's state stays.  `entry()` is called when this member's commit entry is written: **from that moment until
   the next install the owner is frozen**, also if the attempt fails.
5. `Committed`: all entries are in.  Start recovery (flush).  Say that this member has finished its part of it only when
   ``recorded`` is true (it may become so at ``stored``), and tell ``finished`` then.  `Returned`, at the representative
   only: the commit token came back a third time; send the first token of the new ring.  A view of one gets both in one
   list.
6. ``installed(now)`` when recovery is over: state Operational, the new view works.
7. A packet of another ring straight from a peer: ``foreign(now, peer, ring_id)``.
"""

from ordercast.membership.automaton import State
from ordercast.membership.events import Committed, Decision, Gathering, Outdone, Parted, Returned
from ordercast.membership.member import PROBES, Membership
from ordercast.membership.packets import PACKETS, CommitToken, Hello, Join
from ordercast.membership.primary import PROBES as PRIMARY_PROBES
from ordercast.membership.report import NOTHING

__all__ = [
    "NOTHING",
    "PACKETS",
    "PRIMARY_PROBES",
    "PROBES",
    "CommitToken",
    "Committed",
    "Decision",
    "Gathering",
    "Hello",
    "Join",
    "Membership",
    "Outdone",
    "Parted",
    "Returned",
    "State",
]
