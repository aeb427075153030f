"""The promise: no outgoing message of the webmail is lost, and its author sees where it is, in
 Chromium with scripts and without.

Drafts are saved while they are written (`webmail_compose.py`), messages are held before they leave
(`webmail_undo_send.py`), and administrators manage the queue (`webmail_queue.py`).

Takes four minutes under TCG, mostly spent waiting for held messages; --quick, with the queue
in one kind of browser on each screen, a little less.
"""

import barepost

# Parts of this test with files of their own: their test cases are found and run.
from webmail_undo_send import UndoSendWithoutScripts, UndoSendWithScripts
from webmail_queue import QueueWithoutScripts, QueueWithScripts
from webmail_compose import Compose

if __name__ == "__main__":
    barepost.main()
