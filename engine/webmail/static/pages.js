// Navigation in place: the script fetches the page of a link or a form, and replaces <main> and the
// layout around it.
//
// The server sends whole pages, as it does without this script. If the script fails, the browser
// follows the link or sends the form.
//
// Invariants:
// - The page shows the result of the last navigation. The response to an earlier one is dropped.
// - The address bar has the address of the shown page, even after a step back.
// - Screen readers announce the result, which is written to the live region at the end of the page.
//   @ts-check

/**
 * The server's response after all redirects.
 * @typedef {{ address: string, text: string, page: Document | null }} Answer
 */

/** The live region for screen readers. */
const region = document.createElement("p");
region.className = "unseen";
region.setAttribute("role", "status");
document.body.append(region);

/** The count of navigations. Only the result of the last one is shown. */
let wishes = 0;

/** The row of a list that was opened last. It gets the focus when the user returns to the list. */
let place = { list: "", key: "", number: -1 };

/** The address of the shown page. */
let here = bare(location.href);

/** The scroll positions of the pages that were left. @type {Map<string, number>} */
const scrolls = new Map();

/** The forms that the browser must send, instead of this script. */
const plain = new WeakSet();

/** The announcements for actions whose result the page does not show. @type {Record<string, string>} */
const DONE = { unread: "Marked as unread.", read: "Marked as read." };

/** An address without its fragment and without the number of a flash message. @param {string} address */
function bare(address) {
  return (address.split("#")[0] ?? "").replace(/[?&]told=\d+$/, "");
}

/** @param {string} words */
function say(words) {
  region.textContent = "";
  // The delay makes a screen reader announce even the same text again.
  setTimeout(() => (region.textContent = words), 50);
}

/**
 * @template {Element} [T=HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {T | null}
 */
function find(selector, within = document) {
  return within.querySelector(selector);
}

/**
 * Fetches a page and follows redirects. Rejects if the server does not respond.
 * @param {string} address
 * @param {FormData | URLSearchParams} [form] the body
 * @param {(part: number) => void} [sent] receives the sent fraction of the body, up to 1
 * @returns {Promise<Answer>}
 */
function ask(address, form, sent) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(form ? "POST" : "GET", address);
    request.onerror = request.onabort = () => reject(new Error("no answer"));
    request.onload = () => {
      const text = request.responseText;
      const isPage = (request.getResponseHeader("Content-Type") ?? "").startsWith("text/html");
      resolve({ address: request.responseURL, text, page: isPage ? new DOMParser().parseFromString(text, "text/html") : null });
    };
    request.upload.onprogress = event => event.lengthComputable && sent?.(event.loaded / event.total);
    request.send(form);
  });
}

/**
 * The data of a form, as the browser would send it.
 * @param {HTMLFormElement} form
 * @param {HTMLElement | null} button
 */
function said(form, button) {
  const fields = new FormData(form, button);
  if (form.enctype === "multipart/form-data") {
    return fields;
  }
  const pairs = new URLSearchParams();
  for (const [name, value] of fields) {
    pairs.append(name, String(value).replace(/\r?\n/g, "\r\n"));
  }
  return pairs;
}

/** Whether the answer is a page of this session, with the layout. @param {Answer} answer */
function isOurs({ page }) {
  const token = (/** @type {Document} */ of) => find("form[action='/mail/logout'] input", of)?.getAttribute("value");
  const script = (/** @type {Document} */ of) => find("script[src]", of)?.getAttribute("src");
  return page !== null && find("main#content", page) !== null && token(page) === token(document) && script(page) === script(document);
}

/** The checks before the page is left. @type {(() => Promise<boolean>)[]} */
const leaving = [];

/** Navigates to an address. @param {string} address @param {{ isBack?: boolean }} [how] */
async function go(address, { isBack = false } = {}) {
  for (const may of leaving) {
    if (!(await may())) {
      if (isBack) {
        history.pushState(null, "", here);
      }
      return;
    }
  }
  const wish = begin();
  const answer = await ask(address).catch(() => null);
  if (wish !== wishes) {
    return;
  }
  if (answer === null) {
    notAnswered();
    if (isBack) {
      history.pushState(null, "", here);
    }
    return;
  }
  if (!isOurs(answer)) {
    location.assign(address);
    return;
  }
  unreachable(false);
  show(answer, isBack, new URL(address, location.href).hash);
}

/** Sends a form. @param {HTMLFormElement} form @param {HTMLElement | null} button */
async function submit(form, button) {
  const wish = begin();
  const answer = await ask(form.action, said(form, button)).catch(() => null);
  if (wish !== wishes) {
    return;
  }
  if (answer === null) {
    notAnswered();
  } else if (isOurs(answer)) {
    unreachable(false);
    show(answer, false);
    const value = button?.getAttribute("value") ?? "";
    if (button?.getAttribute("name") === "star") {
      const pressed = find(`button[name=star][value="${CSS.escape(value)}"]`)?.getAttribute("aria-pressed");
      say(pressed === "true" ? "Starred." : "Star removed.");
    } else if (find("main .notice") === null && value in DONE) {
      say(DONE[value] ?? "");
    }
  } else if (answer.address !== form.action) {
    location.assign(answer.address);
  } else {
    plain.add(form);
    form.requestSubmit(button);
  }
}

/** Shows or hides the notice that the server does not respond. The page stays as it is. @param {boolean} is */
function unreachable(is) {
  const shown = find("p.unreachable");
  if (!is) {
    shown?.remove();
  } else if (shown === null) {
    const words = "The server is not responding. Trying again…";
    find("main")?.before(Object.assign(document.createElement("p"), { className: "notice error unreachable", textContent: words }));
    say(words);
  }
}

/** Ends a navigation to which the server has not responded. */
function notAnswered() {
  find("main")?.removeAttribute("aria-busy");
  unreachable(true);
}

/** Begins a navigation. */
function begin() {
  find("main")?.setAttribute("aria-busy", "true");
  return ++wishes;
}

/**
 * Shows a page.
 * @param {Answer} answer
 * @param {boolean} isBack whether the page was shown before, so that the history has its address
 * @param {string} [part] the fragment to scroll to
 */
function show(answer, isBack, part = "") {
  const page = /** @type {Document} */ (answer.page);
  const main = /** @type {HTMLElement} */ (find("main", page));
  const isElsewhere = isBack || bare(answer.address) !== here;
  const focused = focusedNow();
  const scrolled = scrollY;
  if (isElsewhere && !isBack) {
    history.replaceState({ scrolled }, "");
    scrolls.set(here, scrolled);
    history.pushState(null, "", bare(answer.address) + part);
  }
  here = bare(answer.address);
  surround(page);
  localize(main);
  find("main")?.replaceWith(main);
  if (!isElsewhere) {
    focusAgain(focused);
    scrollTo({ top: scrolled });
  } else {
    const row = placeAgain();
    const wants = find("[autofocus]", main) ?? row ?? main;
    wants.focus({ preventScroll: wants === main || wants === row });
    const before = Number((isBack ? history.state?.scrolled : wants === row && scrolls.get(here)) || 0);
    const first = part && !isBack ? find(part, main) : null;
    if (first !== null) {
      first.scrollIntoView();
    } else if (wants === main || wants === row || isBack) {
      scrollTo({ top: before });
      if (!isBack) {
        row?.scrollIntoView({ block: "nearest" });
      }
    }
  }
  say(find(".notice span, p.error", main)?.textContent ?? (isElsewhere ? find("h1", main)?.textContent ?? "" : ""));
  shown();
}

/** Replaces the layout around <main>. @param {Document} page */
function surround(page) {
  for (const { name, value } of page.documentElement.attributes) {
    document.documentElement.setAttribute(name, value);
  }
  const side = find("nav.side", page);
  const scrolled = find("nav.side")?.scrollLeft ?? 0;
  if (side) {
    find("nav.side")?.replaceWith(side);
    side.scrollLeft = scrolled;
  }
  const search = /** @type {HTMLInputElement | null} */ (find("#search"));
  if (search && document.activeElement !== search) {
    search.value = find("#search", page)?.getAttribute("value") ?? "";
  }
  find("details.account")?.removeAttribute("open");
  title(page.title);
}

/** Sets the title, with the number of unread messages in the inbox. @param {string} words */
function title(words) {
  const count = Number.parseInt(find("nav.side a[href='/mail/box/1'] .count")?.textContent ?? "", 10);
  document.title = count > 0 ? `(${count}) ${words}` : words;
}

/** The repeated elements with a key: the rows of a list, and the forms for one item. */
const KEYED = "main li.row, main form:has(> input:is([name=key], [name=box]))";

/** The position of the focus, to restore it on another page: the element and its row. */
function focusedNow() {
  const element = /** @type {HTMLElement | null} */ (document.activeElement);
  const name = element?.getAttribute("name");
  const selector = element?.id ? `#${CSS.escape(element.id)}` : name ? `${element?.localName}[name="${CSS.escape(name)}"]` : element?.className ? `.${CSS.escape(element.classList[0] ?? "")}` : "";
  const row = element?.closest(KEYED);
  return { selector, value: element?.getAttribute("value"), row: row ? keyOf(row) : "", number: row ? keyed().indexOf(row) : -1 };
}

/** @param {ReturnType<typeof focusedNow>} focused */
function focusAgain({ selector, value, row, number }) {
  if (selector === "") {
    return;
  }
  const isKeyed = number >= 0;
  // If the row was removed, the row in its place gets the focus. If another element was removed,
  // <main> gets it.
  const found = isKeyed ? keyed().find(one => keyOf(one) === row) ?? rows()[Math.min(number, rows().length - 1)] : document;
  const like = [...(found?.querySelectorAll(selector) ?? [])].filter(one => one.checkVisibility() && isKeyed === (one.closest(KEYED) !== null));
  const same = like.find(one => (one.getAttribute("value") ?? null) === (value ?? null)) ?? (isKeyed ? like[0] : undefined);
  const element = /** @type {HTMLElement | null} */ (same ?? find("main"));
  element?.focus({ preventScroll: true });
}

function keyed() {
  return [...document.querySelectorAll(KEYED)];
}

/** The rows of the shown list. @returns {Element[]} */
function rows() {
  return [...document.querySelectorAll("main li.row")];
}

/** @param {Element} row */
function keyOf(row) {
  return find("input:is([name=key], [name=box])", row)?.getAttribute("value") ?? "";
}

/** The address that identifies a list. */
function listHere() {
  return find("form.list input[name=here]")?.getAttribute("value") ?? "";
}

/** The link to focus after a return to a list: in the row that was opened, or in the row at its place. @returns {HTMLElement | null} */
function placeAgain() {
  const all = rows();
  if (all.length === 0 || place.list !== listHere()) {
    return null;
  }
  const row = all.find(one => keyOf(one) === place.key) ?? all[Math.min(place.number, all.length - 1)];
  return row ? find("a.what", row) : null;
}

/** Calls the listeners after a page was shown. */
function shown() {
  for (const listener of listeners) {
    listener();
  }
}

/** A day, in milliseconds. */
const DAY_MS = 86_400_000;

/** @type {Record<string, Intl.DateTimeFormat>} */
const FORMATS = {
  time: new Intl.DateTimeFormat([], { timeStyle: "short" }),
  weekday: new Intl.DateTimeFormat([], { weekday: "short" }),
  day: new Intl.DateTimeFormat([], { day: "numeric", month: "short" }),
  date: new Intl.DateTimeFormat([], { dateStyle: "medium" }),
  minute: new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" }),
  whole: new Intl.DateTimeFormat([], { dateStyle: "full", timeStyle: "long" }),
};

/** Writes the times within an element in the browser's zone and language. @param {ParentNode} within */
function localize(within) {
  const now = new Date();
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  for (const time of within.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) {
      const isToday = at.getTime() >= midnight && at.getTime() < midnight + DAY_MS;
      const isThisWeek = at.getTime() >= midnight - 6 * DAY_MS && at < now;
      const short = isThisWeek ? "weekday" : at.getFullYear() === now.getFullYear() ? "day" : "date";
      const form = isToday && !time.closest(".paper") ? "time" : time.closest("article") ? "minute" : short;
      time.textContent = FORMATS[form]?.format(at) ?? "";
      time.title = FORMATS.whole?.format(at) ?? "";
    }
  }
}

/** Tells the server the browser's zone, for searches and answers, if the account has no zone. */
function tellZone() {
  const token = find("input[name=token]")?.getAttribute("value");
  if (document.documentElement.dataset.zone === "" && token) {
    const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    void ask("/mail/settings", new URLSearchParams({ token, do: "zone", zone })).catch(() => null);
  }
}

/** The functions that are called after a page was shown in place. @type {(() => void)[]} */
const listeners = [];

/** Whether an address is a page that this script can show in place. @param {URL} url */
function isPage(url) {
  return url.origin === location.origin && /^\/mail\/($|box\/|boxes$|compose$|message\/|queue$|search$|settings$|source\/)/.test(url.pathname);
}

document.addEventListener("click", event => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
  if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download") || (link.hash && bare(link.href) === here)) {
    return;
  }
  const url = new URL(link.href);
  if (isPage(url)) {
    event.preventDefault();
    void go(url.href);
  }
});

document.addEventListener("submit", event => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (event.defaultPrevented || plain.delete(form)) {
    return;
  }
  const url = new URL(form.action);
  if (form.method === "get" && isPage(url)) {
    event.preventDefault();
    url.search = said(form, null).toString();
    void go(url.href);
  } else if (form.method === "post" && !["/mail/login", "/mail/logout"].includes(url.pathname)) {
    event.preventDefault();
    void submit(form, event.submitter);
  }
});

document.addEventListener("focusin", event => {
  const row = event.target instanceof Element ? event.target.closest("li.row") : null;
  if (row) {
    place = { list: listHere(), key: keyOf(row), number: rows().indexOf(row) };
  }
});

addEventListener("popstate", () => {
  // A change of the fragment only does not need another page.
  if (bare(location.href) !== here) {
    void go(location.href, { isBack: true });
  }
});
// The address loses the number of the flash message, which is shown once.
history.replaceState(history.state, "", here + location.hash);
history.scrollRestoration = "manual";
addEventListener("pagehide", () => history.replaceState({ scrolled: scrollY }, ""));
addEventListener("load", () => scrollTo({ top: Number(history.state?.scrolled ?? 0) }));
title(document.title);
localize(document);
tellZone();
