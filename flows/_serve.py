"""The process behind the embedded Prefect server: ``python -m trainlib.flows._serve PORT``.

It serves Prefect's API on loopback for as long as its standard input is open. The parent holds the other
end, so that however the parent ends, this process ends after it.
"""

from __future__ import annotations

import sys
import threading
import time

# The last states of a run arrive as events and are written a moment later.
LINGER_S = 2.0


def main() -> None:
    import uvicorn
    from prefect.server.api.server import create_app

    server = uvicorn.Server(
        uvicorn.Config(create_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error", lifespan="on")
    )

    def end_with_parent() -> None:
        sys.stdin.read()
        time.sleep(LINGER_S)
        server.should_exit = True

    threading.Thread(target=end_with_parent, daemon=True).start()
    server.run()


if __name__ == "__main__":
    main()
