"""MLflow: runs, the metric writer, checkpoints and models. The one registry of trainlib."""
