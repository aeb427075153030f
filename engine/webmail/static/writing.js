// The compose page: the script saves the message automatically, accepts dropped files, and shows
// the progress of the upload.
//
// Invariants:
// - The text stays on the page until the server has it. An error is shown beside the text.
// - A message has one draft: each save replaces the last draft.
// - Only one save or send is in progress at a time, since both name the draft that they replace.
// - Before unsaved changes are lost, the page asks.
// @ts-check

/** The pause in typing after which the message is saved, in milliseconds. */
const PAUSE_MS = 3000;

/** The time until a failed save is tried again, in milliseconds. */
const AGAIN_MS = 30_000;

/** The text that is shown when the session has ended. */
const SESSION_ENDED = "Your session has ended. Sign in again in another window, then continue here. Your message stays on this page.";

/** The text that is shown when the server does not respond. */
const NO_RESPONSE = "The server is not responding. Your message is still on this page.";

/** The server's text about files that it has not saved. This page still has them. */
const LOST = " Attach your files again.";

/**
 * A message that is being written. `changes`: the count of changes. `kept`: the count of changes at the last save.
 * @typedef {{ form: HTMLFormElement, changes: number, kept: number, timer: number, under: Promise<void>, isGoing: boolean, note: HTMLElement }} Writing
 */

/** The message on the page. @type {Writing | null} */
let writing = null;

/** @param {string} name @param {HTMLFormElement} form */
function field(name, form) {
  return /** @type {HTMLInputElement} */ (form.elements.namedItem(name));
}

/** Prepares the page that was shown, if it is a compose page. */
function writingBegins() {
  clearTimeout(writing?.timer);
  const form = /** @type {HTMLFormElement | null} */ (find("form.compose"));
  if (form === null) {
    writing = null;
    return;
  }
  const note = element("p");
  note.className = "kept";
  find(".actions", form)?.after(note);
  const changes = form.dataset.unsaved === undefined ? 0 : 1;
  writing = { form, changes, kept: 0, timer: 0, under: Promise.resolve(), isGoing: false, note };
  if (changes > 0) {
    keepLater(writing, PAUSE_MS);
  }
}

/** Whether there are unsaved changes. @param {Writing} message */
function hasUnsaved(message) {
  return message.changes !== message.kept || files(message).length > 0;
}

/** @param {Writing} message @param {string} words @param {boolean} isWrong */
function tell(message, words, isWrong) {
  message.note.replaceChildren(words);
  message.note.classList.toggle("wrong", isWrong);
  if (words.endsWith(SESSION_ENDED)) {
    const link = /** @type {HTMLAnchorElement} */ (element("a", "Sign in"));
    link.href = "/mail/login";
    link.target = "_blank";
    message.note.append(" ", link);
  }
  if (isWrong) {
    say(words);
  }
}

/** @param {Writing} message @param {number} after in milliseconds */
function keepLater(message, after) {
  clearTimeout(message.timer);
  message.timer = setTimeout(() => void keepNow(message), after);
}

/** Saves the message, after any save or send in progress. @param {Writing} message */
function keepNow(message) {
  clearTimeout(message.timer);
  message.under = message.under.then(() => keep(message));
  return message.under;
}

/** @param {Writing} message */
async function keep(message) {
  const { form, changes, kept } = message;
  const isEmpty = ["to", "cc", "bcc", "subject", "text", "draft"].every(name => field(name, form).value.trim() === "");
  if (message !== writing || message.isGoing || changes === kept || isEmpty) {
    return;
  }
  const fields = new FormData(form);
  fields.delete("files");
  fields.set("do", "save");
  const answer = await hand(form, fields);
  const error = wrong(answer);
  if (answer !== null && error === "") {
    message.kept = changes;
    field("draft", form).value = draftOf(answer);
    takeKeptFiles(form, answer);
    const time = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    tell(message, files(message).length > 0 ? `Draft saved at ${time}. Attachments not saved yet.` : `Draft saved at ${time}.`, false);
    if (message === writing && here === bare(location.href)) {
      // A reload of the page shows the saved draft.
      here = bare(answer.address);
      history.replaceState(history.state, "", here);
    }
  } else {
    tell(message, `Draft not saved. ${error}`, true);
    keepLater(message, AGAIN_MS);
  }
  if (message.changes !== changes) {
    keepLater(message, PAUSE_MS);
  }
}

/**
 * Sends a message to the server. If the user has logged in again, the new session is used.
 * @param {HTMLFormElement} form
 * @param {FormData} fields
 * @param {(part: number) => void} [sent]
 */
async function hand(form, fields, sent) {
  const answer = await ask(form.action, fields, sent).catch(() => null);
  if (answer !== null && !isOurs(answer) && (await isKnownAgain())) {
    fields.set("token", field("token", form).value);
    return ask(form.action, fields, sent).catch(() => null);
  }
  return answer;
}

/** Whether the same account has a new session. If so, the forms of this page get its token. */
async function isKnownAgain() {
  const answer = await ask("/mail/compose").catch(() => null);
  const who = (/** @type {ParentNode | null | undefined} */ of) => of?.querySelector("details.account summary")?.textContent;
  const token = answer?.page?.querySelector("input[name=token]")?.getAttribute("value");
  const isAgain = token != null && who(answer?.page) === who(document) && token !== field("token", /** @type {HTMLFormElement} */ (find("form.compose")))?.value;
  if (isAgain) {
    document.querySelectorAll("input[name=token]").forEach(input => input.setAttribute("value", token));
  }
  return isAgain;
}

/** The error text in an answer. Empty if the action has succeeded. @param {Answer | null} answer */
function wrong(answer) {
  if (answer === null) {
    return NO_RESPONSE;
  }
  const refusal = answer.page && find("main.refused p", answer.page);
  if (answer.page === null || refusal !== null) {
    return (refusal?.textContent ?? answer.text).trim();
  }
  return isOurs(answer) ? find("main p.error", answer.page)?.textContent ?? "" : SESSION_ENDED;
}

/** The key of the draft on a page. @param {Answer} answer */
function draftOf({ page }) {
  return (page && find("form.compose input[name=draft]", page)?.getAttribute("value")) ?? "";
}

/** Replaces the list of saved files by the list of the new draft. @param {HTMLFormElement} form @param {Answer} answer */
function takeKeptFiles(form, { page }) {
  const list = "ul.attachments:not(.chosen)";
  const kept = page && find(list, page);
  if (kept) {
    find(list, form)?.replaceWith(kept);
  }
}

/** Sends, saves or discards the message, depending on the button. @param {Writing} message @param {HTMLElement | null} button */
async function send(message, button) {
  if (message.isGoing) {
    return;
  }
  message.isGoing = true;
  clearTimeout(message.timer);
  await message.under;
  const { form, changes } = message;
  const wish = begin();
  const bar = /** @type {HTMLProgressElement} */ (element("progress"));
  bar.setAttribute("aria-label", "Upload progress");
  const carried = files(message);
  const fields = /** @type {FormData} */ (said(form, button));
  const answer = await hand(form, fields, part => {
    if (carried.length > 0) {
      bar.value = part;
      message.note.replaceChildren(`Uploading: ${Math.round(part * 100)}% `, bar);
    }
  });
  message.isGoing = false;
  find("main")?.removeAttribute("aria-busy");
  if (wish !== wishes) {
    return;
  }
  const error = wrong(answer);
  if (answer !== null && isOurs(answer)) {
    message.kept = changes;
    show(answer, false);
    const notice = find("main p.error");
    if (notice !== null && writing !== null && error.endsWith(LOST)) {
      carry(writing, carried);
      notice.textContent = error.replace(LOST, "");
    }
  } else if (error === SESSION_ENDED && carried.length === 0) {
    // The login page keeps the message.
    writing = null;
    plain.add(form);
    form.requestSubmit(button);
  } else {
    tell(message, `Request failed. ${error}`, true);
  }
}

/** The attached files. @param {Writing} message */
function files({ form }) {
  return [.../** @type {FileList} */ (field("files", form).files)];
}

/** Replaces the attached files. @param {Writing} message @param {File[]} all */
function carry(message, all) {
  const transfer = new DataTransfer();
  all.forEach(file => transfer.items.add(file));
  const input = field("files", message.form);
  input.files = transfer.files;
  find("ul.chosen", message.form)?.remove();
  const list = element("ul");
  list.className = "attachments chosen";
  list.setAttribute("aria-label", "Files to attach");
  all.forEach((file, number) => {
    const remove = element("button", "Remove", Object.assign(element("span", ` ${file.name}`), { className: "unseen" }));
    remove.setAttribute("type", "button");
    remove.addEventListener("click", () => {
      carry(message, all.filter((_, other) => other !== number));
      input.focus();
    });
    const size = file.size < 1_000_000 ? `${Math.ceil(file.size / 1000)} KB` : `${(file.size / 1_000_000).toFixed(1)} MB`;
    list.append(element("li", "", Object.assign(element("span", file.name), { dir: "auto" }), Object.assign(element("span", size), { className: "size" }), remove));
  });
  if (all.length > 0) {
    input.closest(".field")?.before(list);
  }
}

document.addEventListener("submit", event => {
  if (writing !== null && event.target === writing.form && !plain.has(writing.form)) {
    event.preventDefault();
    void send(writing, event.submitter);
  }
}, true);

document.addEventListener("input", event => {
  if (writing === null || !(event.target instanceof Element) || event.target.closest("form") !== writing.form) {
    return;
  }
  if (event.target.id === "files") {
    // Files that were chosen before stay attached.
    carry(writing, files(writing));
    return;
  }
  writing.changes += 1;
  keepLater(writing, PAUSE_MS);
});

/** Whether the user drags files over a compose page. @param {DragEvent} event */
function carriesFiles(event) {
  return writing !== null && event.dataTransfer !== null && event.dataTransfer.types.includes("Files");
}

document.addEventListener("dragover", event => {
  if (carriesFiles(event)) {
    event.preventDefault();
    writing?.form.classList.add("dropping");
  }
});

document.addEventListener("dragleave", event => {
  if (event.relatedTarget === null) {
    writing?.form.classList.remove("dropping");
  }
});

document.addEventListener("drop", event => {
  const dropped = event.dataTransfer?.files ?? [];
  if (writing !== null && carriesFiles(event)) {
    event.preventDefault();
    writing.form.classList.remove("dropping");
    carry(writing, [...files(writing), ...dropped]);
    say(dropped.length === 1 ? `${dropped[0]?.name} attached.` : `${dropped.length} files attached.`);
  }
});

leaving.push(async () => {
  if (writing === null || writing.isGoing) {
    return true;
  }
  await keepNow(writing);
  return writing === null || !hasUnsaved(writing) || confirm("You have unsaved changes. Leave this page anyway?");
});

addEventListener("beforeunload", event => {
  if (writing !== null && hasUnsaved(writing)) {
    event.preventDefault();
  }
});

listeners.push(writingBegins);
writingBegins();
