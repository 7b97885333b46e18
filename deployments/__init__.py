"""What ``trainlib up`` serves: the flows as deployments, and what becomes of runs that crash."""

__all__: list[str] = []
