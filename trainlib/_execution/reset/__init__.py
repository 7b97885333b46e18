"""Making a worker process what it was before it ran a training function, or finding out that this cannot be done."""
