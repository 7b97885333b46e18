"""Trainings that are made of recorded ones: resumed, or forked with other settings. Both doors use it, commands and flows."""
