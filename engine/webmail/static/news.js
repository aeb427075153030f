// Events: the server sends an event when a mailbox has changed, and the page is updated in place.
//
// Invariants:
// - An update does not disturb the user. In a list only the rows change, and selections stay. On
//   other pages only the layout around the contents changes.
// - An event has the whole state. So a page that missed an event is up to date after the next
//   event. @ts-check

/** For each mailbox except an empty outbox: the number of unread messages, and a number that grows with every change. @typedef {Record<string, [number, number]>} News */

/** The last event. @type {News | null} */
let heard = null;

/** The numbers of the outbox, and of the mailbox before it in the side bar. */
const [OUTBOX, TRASH] = ["7", "6"];

/** Whether the list is being reloaded, and whether it must be reloaded once more. @type {"no" | "once" | "again"} */
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

/** Shows the number of unread messages of a mailbox. @param {Element} link @param {number} unread */
function count(link, unread) {
  find(".count", link)?.remove();
  if (unread > 0) {
    const words = Object.assign(element("span", " unread"), { className: "unseen" });
    link.append(" ", Object.assign(element("span", String(unread), words), { className: "count" }));
  }
}

/** Lists the outbox while it has messages or is open. @param {boolean} isThere */
function outbox(isThere) {
  const link = find(`nav.side a[href="/mail/box/${OUTBOX}"]`);
  if (isThere && link === null) {
    const made = Object.assign(element("a", "", element("span", "Outbox")), { href: `/mail/box/${OUTBOX}` });
    find(`nav.side li:has(a[href="/mail/box/${TRASH}"])`)?.after(element("li", "", made));
  } else if (!isThere && !link?.hasAttribute("aria-current")) {
    link?.closest("li")?.remove();
  }
}

/** Reloads the list and replaces its rows. */
async function lookAgain() {
  if (find("main[aria-busy=true]") !== null) {
    // The page that is being loaded has the new state.
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
    localize(list);
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
      say(`New message: ${find(".people", first)?.textContent?.trim() ?? ""}, ${find(".subject", first)?.textContent ?? ""}`);
    }
  }
  if (isAgain) {
    void lookAgain();
  }
}

/** The time until the page listens again after its connection was refused, in milliseconds. */
const LISTEN_AGAIN_MS = 10_000;

/** Listens to events. If the connection is lost, the page says so until it is there again. */
function listen() {
  const source = new EventSource("/mail/events");
  source.addEventListener("open", () => unreachable(false));
  source.addEventListener("message", event => {
    unreachable(false);
    newsArrived(JSON.parse(event.data));
  });
  source.addEventListener("error", () => {
    // The browser connects again by itself, unless the server has refused.
    unreachable(source.readyState === EventSource.CONNECTING);
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(listen, LISTEN_AGAIN_MS);
    }
  });
}

if (!isPaper) {
  listen();
}
