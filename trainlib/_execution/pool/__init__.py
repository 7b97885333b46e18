"""Warm workers: started before they are needed, kept for a while, and shared by the scripts of a platform."""
