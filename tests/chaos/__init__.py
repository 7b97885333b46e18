"""Random faults in running trainings, drawn from a seed, and an account of what was lost by them.

``victims`` has the trainings, ``faults`` what happens to them, ``scene`` the servers and the Ray that they run on. ``plans``
draws from a seed what is trained and what happens when; ``rounds`` carries it out; ``account`` counts what is wrong at
the end. ``make chaos ROUNDS=200 SEED=1`` runs it for a night.
"""
