"""How long tests wait for what takes no time to speak of."""

LONGEST_S = 400.0
"""For what ends within half a minute on a quiet machine. It only guards against what never ends: a busy one may take ten times as long."""
