"""Run TensorBoard, which has no authentication, with an access token.

    tensorboard_main.py PORT_FILE TENSORBOARD_ARGUMENTS…

It answers only requests whose X-Clew-Access header has the digest in CLEW_ACCESS_SHA256. The port
that it listens on is written to PORT_FILE: it is chosen here, so no other program can take it
first.
"""

import hashlib
import hmac
import os
import sys
from pathlib import Path


def main() -> None:
    from tensorboard import default, program

    access_digest = os.environ["CLEW_ACCESS_SHA256"]
    port_file = Path(sys.argv[1])

    class GuardedServer(program.WerkzeugServer):
        def __init__(self, wsgi_app, flags):
            def guarded(environ, start_response):
                given = environ.get("HTTP_X_CLEW_ACCESS", "")
                digest = hashlib.sha256(given.encode("latin-1")).hexdigest()
                if hmac.compare_digest(digest, access_digest):
                    return wsgi_app(environ, start_response)
                start_response("403 Forbidden", [("Content-Type", "text/plain")])
                return [b"this TensorBoard can be reached through clew up only\n"]

            super().__init__(guarded, flags)
            draft = port_file.with_name(f".{port_file.name}")
            draft.write_text(str(self.server_port))
            draft.replace(port_file)

    board = program.TensorBoard(default.get_plugins(), server_class=GuardedServer)
    board.configure(argv=["tensorboard", *sys.argv[2:]])
    sys.exit(board.main())


if __name__ == "__main__":
    main()
