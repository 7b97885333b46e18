"""Stands in for the agent of Ray's dashboard in a local Ray, which has no dashboard: a process that waits until its raylet ends.

Ray insists on such a process, and ends when it does. Its own imports half of Ray, a second of processor time and 120 MB, to measure
processes and to serve figures that nobody asks for.
"""

import os
import time

if __name__ == "__main__":
    raylet = int(os.environ["RAY_RAYLET_PID"])  # it may be gone before this process has started
    while os.getppid() == raylet:
        time.sleep(0.5)
