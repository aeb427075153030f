// Keyboard shortcuts, as in Gmail. Each activates a link or a button of the page.
//
// Invariants:
// - A key that the user types into a field is not a shortcut.
// - Single-key shortcuts can be turned off in the dialog that lists them (WCAG 2.2, 2.1.4). The
//   browser stores this choice. @ts-check

/** The key in local storage for the choice to turn single-key shortcuts off. */
const SWITCH = "single-keys";

/** The time in which the next key after `g` must follow, in milliseconds. */
const PATIENCE_MS = 1500;

/** The destination of `g` with the next key. @type {Record<string, [string, string]>} */
const PLACES = {
  i: ["/mail/box/1", "Go to Inbox"],
  s: ["/mail/search?q=is%3Astarred", "Go to starred messages"],
  t: ["/mail/box/3", "Go to Sent"],
  d: ["/mail/box/2", "Go to Drafts"],
  a: ["/mail/search?q=", "Go to all mail"],
};

/** A key's description and action. @type {Record<string, [string, () => void]>} */
const KEYS = {
  j: ["Next (older) message", () => step(1)],
  k: ["Previous (newer) message", () => step(-1)],
  o: ["Open message", () => press("a.what", "row")],
  u: ["Back to list", () => void (press("main a.back", "quiet") || (find("form.list") ? go(location.href) : history.back()))],
  x: ["Select or unselect message", () => press("input[name=key]", "row")],
  e: ["Archive", () => deed("archive")],
  "#": ["Delete", () => deed("trash")],
  "!": ["Move to Junk", () => deed("junk")],
  s: ["Star or unstar", () => star()],
  I: ["Mark as read", () => deed("read")],
  U: ["Mark as unread", () => deed("unread")],
  r: ["Reply", () => answer("reply")],
  a: ["Reply all", () => answer("all")],
  f: ["Forward", () => answer("forward")],
  c: ["Compose", () => press("a.compose")],
  "/": ["Search", () => /** @type {HTMLInputElement | null} */ (find("#search"))?.select()],
  z: ["Undo", () => press("main .notice button")],
  "?": ["Show shortcuts", () => help()],
};

/** The time when `g` was pressed, if the next key is awaited. */
let waitsSince = -PATIENCE_MS;

/** The current row: the row with the focus, or the last row that had it. */
function rowHere() {
  const focused = document.activeElement?.closest("li.row");
  return focused ?? rows().find(row => place.list === listHere() && keyOf(row) === place.key) ?? null;
}

/**
 * Clicks an element of the page.
 * @param {string} selector
 * @param {"page" | "row" | "quiet"} [where] "row": in the current row; otherwise on the whole page. With "quiet" a missing element is not announced.
 * @returns {boolean} whether it exists
 */
function press(selector, where = "page") {
  const row = where === "row" ? rowHere() : null;
  const element = where === "row" && row === null ? null : find(selector, row ?? document);
  element?.click();
  if (element === null && where !== "quiet") {
    say(where === "row" ? "Select a message first. Press j to go to the next one." : "Not available here.");
  }
  return element !== null;
}

/** In a list, moves to another row. On a message's page, opens another message of the last list. @param {number} by */
function step(by) {
  const all = rows();
  if (all.length > 0) {
    const row = rowHere();
    const next = row ? all[all.indexOf(row) + by] : all[0];
    if (next) {
      find("a.what", next)?.focus();
    } else {
      say(by > 0 ? "End of this page." : "Start of this page.");
    }
    return;
  }
  const at = neighbours.findIndex(link => bare(new URL(link, location.href).href) === here);
  const next = at < 0 ? undefined : neighbours[at + by];
  if (next) {
    void go(next);
  } else {
    say("No more messages.");
  }
}

/** The addresses of the messages in the last list. @type {string[]} */
let neighbours = [];

function remember() {
  const links = [...document.querySelectorAll("main li.row a.what")];
  if (links.length > 0) {
    neighbours = links.map(link => link.getAttribute("href") ?? "");
  }
}

/** Does an action on the selected messages, or on the current message if none is selected. @param {string} name */
function deed(name) {
  const form = /** @type {HTMLFormElement | null} */ (find("main form[action='/mail/act']:has(button[name=do])"));
  const button = form && find(`button[name=do][value=${name}]`, form);
  if (!form || !button) {
    say("Not available here.");
    return;
  }
  if (form.matches(".list") && !find("input[name=key]:checked", form)) {
    const box = /** @type {HTMLInputElement | null} */ (find("input[name=key]", rowHere() ?? document.createElement("p")));
    if (!box) {
      say("Select a message first. Press j to go to the next one.");
      return;
    }
    box.checked = true;
  }
  form.requestSubmit(button);
}

function star() {
  const isList = rows().length > 0;
  press(isList ? "button[name=star]" : "main article button[name=star]", isList ? "row" : "page");
}

/** Replies to the message with the focus, or to the opened message. @param {string} how */
function answer(how) {
  const selector = `a[href^="/mail/compose?${how}="]`;
  const message = document.activeElement?.closest("article") ?? find("main article:not(.folded)");
  const link = message && find(selector, message);
  if (link) {
    link.click();
  } else {
    say("Open a message first.");
  }
}

/** Whether the element, of this page or of a message in a frame, is a field that takes typed keys. @param {EventTarget | null} target */
function isTyping(target) {
  const field = /** @type {HTMLElement} */ (target);
  return "matches" in field && (field.isContentEditable || field.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=submit], [type=button])"));
}

/** Whether single-key shortcuts are on. */
function isOn() {
  try {
    return localStorage.getItem(SWITCH) !== "off";
  } catch {
    return true;
  }
}

/** @param {boolean} on */
function turn(on) {
  try {
    localStorage.setItem(SWITCH, on ? "on" : "off");
  } catch {
    say("This browser cannot save this setting.");
  }
}

/**
 * @param {string} name
 * @param {string} [text]
 * @param {...Node} inside
 */
function element(name, text = "", ...inside) {
  const made = document.createElement(name);
  made.append(text, ...inside);
  return made;
}

/** Shows the dialog with all shortcuts and their switch. */
function help() {
  const dialog = /** @type {HTMLDialogElement} */ (element("dialog"));
  const heading = element("h2", "Keyboard shortcuts");
  heading.id = "keys";
  dialog.setAttribute("aria-labelledby", heading.id);
  const list = element("dl");
  /** @type {[string, string][]} */
  const all = [
    ...Object.entries(KEYS).map(([key, [words]]) => /** @type {[string, string]} */ ([/[A-Z]/.test(key) ? `Shift ${key.toLowerCase()}` : key, words])),
    ...Object.entries(PLACES).map(([key, [, words]]) => /** @type {[string, string]} */ ([`g ${key}`, words])),
    ["Ctrl Enter", "Send message"],
  ];
  for (const [keys, words] of all) {
    const kept = keys.split(" ").flatMap((key, number) => (number ? [new Text(" "), element("kbd", key)] : [element("kbd", key)]));
    list.append(element("div", "", element("dt", "", ...kept), element("dd", words)));
  }
  const box = /** @type {HTMLInputElement} */ (element("input"));
  box.type = "checkbox";
  box.checked = isOn();
  box.addEventListener("change", () => turn(box.checked));
  const close = element("button", "Close");
  close.autofocus = true;
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.append(heading, list, element("p", "", element("label", "", box, new Text(" Enable keyboard shortcuts"))), close);
  document.body.append(dialog);
  dialog.showModal();
}

/** Adds a button to the account menu that opens the dialog. */
function offerHelp() {
  const button = element("button", "Keyboard shortcuts");
  button.className = "plain";
  button.setAttribute("type", "button");
  button.addEventListener("click", help);
  find("details.account form")?.before(button);
}

/** Handles a key that was pressed in the page, or in a message in a frame. @param {KeyboardEvent} event */
function keyPressed(event) {
  if (event.defaultPrevented || event.isComposing || find("dialog[open]")) {
    return;
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const send = find("form.compose button[value=send]");
    if (send) {
      event.preventDefault();
      send.click();
    }
    return;
  }
  if (event.key === "Escape" && document.activeElement?.id === "search") {
    (placeAgain() ?? find("main"))?.focus();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || !isOn()) {
    return;
  }
  const isBehindG = event.timeStamp - waitsSince < PATIENCE_MS;
  waitsSince = !isBehindG && event.key === "g" ? event.timeStamp : -PATIENCE_MS;
  const to = isBehindG ? PLACES[event.key] : undefined;
  const key = isBehindG ? undefined : KEYS[event.key];
  if (to || key) {
    event.preventDefault();
    to ? void go(to[0]) : key?.[1]();
  }
}

document.addEventListener("keydown", keyPressed);
listeners.push(remember);
remember();
offerHelp();
