"""Predicting: a model of the registry over a dataset, sharded over Ray, to Parquet."""
