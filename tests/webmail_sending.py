"""The promise: no letter that is written at the webmail is lost on its way out, and its writer sees
where it is, in Chromium with its scripts and without.

Letters are kept while they are written (`webmail_writing.py`) and held before they leave
(`webmail_holding.py`), and who administers the machine does with the queue what he wants
(`webmail_queue.py`).

Takes four minutes under TCG, most of which letters are held; --quick, with the queue in one kind of
browser on each screen, a little less.
"""

import barepost

# Parts of this test with files of their own: what stands there is found and run.
from webmail_holding import HoldingWithoutScripts, HoldingWithScripts
from webmail_queue import QueueWithoutScripts, QueueWithScripts
from webmail_writing import Writing

if __name__ == "__main__":
    barepost.main()
