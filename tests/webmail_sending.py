"""The promise: no outgoing message of the webmail is lost, and its author sees its state.

Chromium runs with scripts and without. Drafts are saved while they are written
(`webmail_compose.py`). Messages are held before they are sent (`webmail_undo_send.py`).
Administrators manage the queue (`webmail_queue.py`).

It takes four minutes under TCG, mostly waiting for held messages. --quick, with the queue in one
kind of browser on each screen, takes a little less.
"""

import barepost

# Parts of this test in other files. An import makes unittest find and run their test cases.
from webmail_undo_send import UndoSendWithoutScripts, UndoSendWithScripts
from webmail_queue import QueueWithoutScripts, QueueWithScripts
from webmail_compose import Compose

if __name__ == "__main__":
    barepost.main()
