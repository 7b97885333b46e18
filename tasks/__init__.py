"""One step each, with its retries: Prefect tasks."""
