"""The platform of one home folder: what ``trainlib up`` starts, and what scripts in that home join."""
