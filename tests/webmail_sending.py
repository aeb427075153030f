"""The promise: no message that is written at the webmail is lost on its way out, and its author sees
where it is, in Chromium with scripts and without.

Drafts are kept while they are written (`webmail_writing.py`), messages are held before they leave
(`webmail_holding.py`), and administrators manage the queue (`webmail_queue.py`).

Takes four minutes under TCG, mostly in waiting for messages that are held; --quick, with the queue
in one kind of browser on each screen, a little less.
"""

import barepost

# Parts of this test with files of their own: what stands there is found and run.
from webmail_holding import HoldingWithoutScripts, HoldingWithScripts
from webmail_queue import QueueWithoutScripts, QueueWithScripts
from webmail_writing import Writing

if __name__ == "__main__":
    barepost.main()
