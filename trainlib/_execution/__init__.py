"""Ray: the cluster connection, the gang, its workers, one attempt, and what a framework adds to it."""
