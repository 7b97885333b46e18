"""Models without trainlib: what MLflow loads, serves and predicts with, beside a registered checkpoint.

``loader``, ``preprocessing`` and ``arrays`` are standalone: they are copied beside the model, with the room's own module
(:attr:`trainlib._rooms.Room.served`), and run where only MLflow and the framework are installed.
"""
