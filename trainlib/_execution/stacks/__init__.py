"""What every rank is doing: its Python stacks, on demand and in the error of a rank that hangs.

A worker is asked as any actor is, which disturbs nothing. One that does not answer, because something in it keeps all
other Python from running, is made to write its stacks down by a signal.
"""
