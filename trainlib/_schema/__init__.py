"""Empty databases of Prefect and MLflow, as SQL: what their migrations leave, without running them.

A new home folder would otherwise wait for a hundred migrations, most of the time of its first training.
"""
