// News: the server says when something in a mailbox has changed, and the page that shows it changes in place.
//
// Invariants:
// - What somebody is doing is not disturbed: of a list only what is in it changes, and what was chosen stays chosen; of other pages only what stands around them.
// - An event says how everything is: whoever was not connected has missed nothing when the next one comes.
// @ts-check

/** Of each mailbox, but for an outbox with nothing in it, how many messages were not read, and a number that grows with every change. @typedef {Record<string, [number, number]>} News */

/** What was heard last. @type {News | null} */
let heard = null;

/** The outbox, and the mailbox behind which it stands. */
const [OUTBOX, TRASH] = ["7", "6"];

/** Whether the list that is shown is being looked at again, or is to be once more. @type {"no" | "once" | "again"} */
let looking = "no";

/** @param {News} news */
function newsArrived(news) {
  for (const link of document.querySelectorAll("nav.side a[href^='/mail/box/']")) {
    const [unread] = news[link.getAttribute("href")?.split("/")[3] ?? ""] ?? [];
    if (unread !== undefined) {
      count(link, unread);
    }
  }
  outbox(OUTBOX in news);
  title(document.title.replace(/^\(\d+\) /, ""));
  const shown = /^\/mail\/box\/(\d+)(\?|$)/.exec(listHere())?.[1];
  const before = heard;
  heard = news;
  if (before !== null && shown !== undefined && news[shown]?.[1] !== before[shown]?.[1]) {
    void lookAgain();
  }
}

/** How many of a mailbox were not read. @param {Element} link @param {number} unread */
function count(link, unread) {
  find(".count", link)?.remove();
  if (unread > 0) {
    const words = Object.assign(element("span", " unread"), { className: "unseen" });
    link.append(" ", Object.assign(element("span", String(unread), words), { className: "count" }));
  }
}

/** The outbox stands beside the page while something is in it, or it is open. @param {boolean} isThere */
function outbox(isThere) {
  const link = find(`nav.side a[href="/mail/box/${OUTBOX}"]`);
  if (isThere && link === null) {
    const made = Object.assign(element("a", "", element("span", "Outbox")), { href: `/mail/box/${OUTBOX}` });
    find(`nav.side li:has(a[href="/mail/box/${TRASH}"])`)?.after(element("li", "", made));
  } else if (!isThere && !link?.hasAttribute("aria-current")) {
    link?.closest("li")?.remove();
  }
}

/** The list is asked for again, and what is in it changes. */
async function lookAgain() {
  if (find("main[aria-busy=true]") !== null) {
    // The page that comes shows it anyway.
    return;
  }
  if (looking !== "no") {
    looking = "again";
    return;
  }
  looking = "once";
  const [wish, from] = [wishes, here];
  const answer = await ask(here).catch(() => null);
  const isAgain = /** @type {string} */ (looking) === "again";
  looking = "no";
  const list = answer && isOurs(answer) && answer.page ? find("main form.list", answer.page) : null;
  const own = find("main form.list");
  if (wish === wishes && here === from && list !== null && own !== null) {
    const focused = focusedNow();
    const newest = keyOf(rows()[0] ?? own);
    const chosen = new Set([...own.querySelectorAll("input[name=key]:checked")].map(box => box.getAttribute("value")));
    for (const part of [".rows, .empty", ".pages"]) {
      const fresh = find(part, list);
      if (fresh !== null) {
        find(part, own)?.replaceWith(fresh);
      }
    }
    for (const box of own.querySelectorAll("input[name=key]")) {
      /** @type {HTMLInputElement} */ (box).checked = chosen.has(box.getAttribute("value"));
    }
    if (document.activeElement === document.body) {
      focusAgain(focused);
    }
    remember();
    const [first, ...others] = rows();
    if (first && others.some(row => keyOf(row) === newest)) {
      say(`New: ${find(".people", first)?.textContent?.trim() ?? ""}, ${find(".subject", first)?.textContent ?? ""}`);
    }
  }
  if (isAgain) {
    void lookAgain();
  }
}

new EventSource("/mail/events").addEventListener("message", event => newsArrived(JSON.parse(event.data)));
