// The page on which a letter is written: it keeps the letter by itself, takes files that are dropped on it, and shows how much of it has gone.
//
// Invariants:
// - What was written stays on the page until the server has it: whatever goes wrong is said in words, beside it.
// - One letter is one draft: each time it is kept it takes the place of what was kept before.
// - Nothing else is asked while it is being kept or sent: both name the draft that they replace.
// - Who leaves something behind that is not kept is asked first.
// @ts-check

/** How long somebody has to pause until his letter is kept, in milliseconds. */
const PAUSE_MS = 3000;

/** How long until what could not be kept is tried again, in milliseconds. */
const AGAIN_MS = 30_000;

/** What the page says when the server does not know its writer any more. */
const STRANGER = "You are not logged in any more. Log in in another window: then it goes on here, and until then your letter stays on this page.";

/** What it says when nothing comes back. */
const SILENCE = "The server does not answer. Your letter stays on this page.";

/** What the server says of files that it has not kept when a letter comes back. Here they do not get lost. */
const LOST = " The files have to be attached again.";

/**
 * A letter that is being written. `changes`: how often something was changed, and `kept`: after how many of these it was kept.
 * @typedef {{ form: HTMLFormElement, changes: number, kept: number, timer: number, under: Promise<void>, isGoing: boolean, note: HTMLElement }} Writing
 */

/** The letter on the page. @type {Writing | null} */
let writing = null;

/** @param {string} name @param {HTMLFormElement} form */
function field(name, form) {
  return /** @type {HTMLInputElement} */ (form.elements.namedItem(name));
}

/** A page is shown: perhaps one to write on. */
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
  // A letter that came back was not sent, and what stands on it is nowhere else.
  const changes = find("main p.error") === null ? 0 : 1;
  writing = { form, changes, kept: 0, timer: 0, under: Promise.resolve(), isGoing: false, note };
  if (changes > 0) {
    keepLater(writing, PAUSE_MS);
  }
}

/** Whether there is something that is nowhere else. @param {Writing} letter */
function hasUnsaved(letter) {
  return letter.changes !== letter.kept || files(letter).length > 0;
}

/** @param {Writing} letter @param {string} words @param {boolean} isWrong */
function tell(letter, words, isWrong) {
  letter.note.replaceChildren(words);
  letter.note.classList.toggle("wrong", isWrong);
  if (words === STRANGER) {
    const link = /** @type {HTMLAnchorElement} */ (element("a", "Log in"));
    link.href = "/mail/login";
    link.target = "_blank";
    letter.note.append(" ", link);
  }
  if (isWrong) {
    say(words);
  }
}

/** @param {Writing} letter @param {number} after in milliseconds */
function keepLater(letter, after) {
  clearTimeout(letter.timer);
  letter.timer = setTimeout(() => void keepNow(letter), after);
}

/** Keeps the letter, behind whatever is under way with it. @param {Writing} letter */
function keepNow(letter) {
  clearTimeout(letter.timer);
  letter.under = letter.under.then(() => keep(letter));
  return letter.under;
}

/** @param {Writing} letter */
async function keep(letter) {
  const { form, changes, kept } = letter;
  const isEmpty = ["to", "cc", "bcc", "subject", "text", "draft"].every(name => field(name, form).value.trim() === "");
  if (letter !== writing || letter.isGoing || changes === kept || isEmpty) {
    return;
  }
  const fields = new FormData(form);
  fields.delete("files");
  fields.set("do", "save");
  const answer = await hand(form, fields);
  const error = wrong(answer);
  if (answer !== null && error === "") {
    letter.kept = changes;
    field("draft", form).value = draftOf(answer);
    takeKeptFiles(form, answer);
    const time = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    tell(letter, files(letter).length > 0 ? `Kept at ${time}, without its files.` : `Kept at ${time}.`, false);
    if (letter === writing && here === bare(location.href)) {
      // Who loads the page again finds what was kept.
      here = bare(answer.address);
      history.replaceState(history.state, "", here);
    }
  } else {
    tell(letter, `Not kept. ${error}`, true);
    keepLater(letter, AGAIN_MS);
  }
  if (letter.changes !== changes) {
    keepLater(letter, PAUSE_MS);
  }
}

/**
 * Hands a letter to the server; if its writer has logged in again meanwhile, as who he is now.
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

/** Whether the same person is logged in again, with a new session: then the forms of this page are that session's. */
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

/** Why it was not done, in words. Empty: it was. @param {Answer | null} answer */
function wrong(answer) {
  if (answer === null) {
    return SILENCE;
  }
  const refusal = answer.page && find("main.refused p", answer.page);
  if (answer.page === null || refusal !== null) {
    return (refusal?.textContent ?? answer.text).trim();
  }
  return isOurs(answer) ? find("main p.error", answer.page)?.textContent ?? "" : STRANGER;
}

/** Under what the letter on a page is kept. @param {Answer} answer */
function draftOf({ page }) {
  return (page && find("form.compose input[name=draft]", page)?.getAttribute("value")) ?? "";
}

/** The files that are kept are those of the new draft from now on. @param {HTMLFormElement} form @param {Answer} answer */
function takeKeptFiles(form, { page }) {
  const list = "ul.attachments:not(.chosen)";
  const kept = page && find(list, page);
  if (kept) {
    find(list, form)?.replaceWith(kept);
  }
}

/** Sends it, or keeps or drops it, as a button says. @param {Writing} letter @param {HTMLElement | null} button */
async function send(letter, button) {
  if (letter.isGoing) {
    return;
  }
  letter.isGoing = true;
  clearTimeout(letter.timer);
  await letter.under;
  const { form, changes } = letter;
  const wish = begin();
  const bar = /** @type {HTMLProgressElement} */ (element("progress"));
  bar.setAttribute("aria-label", "How much of the letter has gone");
  const carried = files(letter);
  const fields = /** @type {FormData} */ (said(form, button));
  const answer = await hand(form, fields, part => {
    if (carried.length > 0) {
      bar.value = part;
      letter.note.replaceChildren(`Sending: ${Math.round(part * 100)} % `, bar);
    }
  });
  letter.isGoing = false;
  find("main")?.removeAttribute("aria-busy");
  if (wish !== wishes) {
    return;
  }
  const error = wrong(answer);
  if (answer !== null && isOurs(answer)) {
    letter.kept = changes;
    show(answer, false);
    const notice = find("main p.error");
    if (notice !== null && writing !== null && error.endsWith(LOST)) {
      carry(writing, carried);
      notice.textContent = error.replace(LOST, "");
    }
  } else if (error === STRANGER && carried.length === 0) {
    // The page on which he logs in again holds his letter.
    writing = null;
    plain.add(form);
    form.requestSubmit(button);
  } else {
    tell(letter, `Not done. ${error}`, true);
  }
}

/** The files that go along. @param {Writing} letter */
function files({ form }) {
  return [.../** @type {FileList} */ (field("files", form).files)];
}

/** They are these from now on. @param {Writing} letter @param {File[]} all */
function carry(letter, all) {
  const transfer = new DataTransfer();
  all.forEach(file => transfer.items.add(file));
  const input = field("files", letter.form);
  input.files = transfer.files;
  find("ul.chosen", letter.form)?.remove();
  const list = element("ul");
  list.className = "attachments chosen";
  list.setAttribute("aria-label", "Files that go along");
  all.forEach((file, number) => {
    const remove = element("button", "Remove", Object.assign(element("span", ` ${file.name}`), { className: "unseen" }));
    remove.setAttribute("type", "button");
    remove.addEventListener("click", () => {
      carry(letter, all.filter((_, other) => other !== number));
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
    // What was chosen before stays, if it was chosen here.
    carry(writing, files(writing));
    return;
  }
  writing.changes += 1;
  keepLater(writing, PAUSE_MS);
});

/** Files over the page. @param {DragEvent} event */
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
    say(dropped.length === 1 ? `${dropped[0]?.name} goes along.` : `${dropped.length} files go along.`);
  }
});

leaving.push(async () => {
  if (writing === null || writing.isGoing) {
    return true;
  }
  await keepNow(writing);
  return writing === null || !hasUnsaved(writing) || confirm("Some of what you wrote is nowhere but on this page. Leave it all the same?");
});

addEventListener("beforeunload", event => {
  if (writing !== null && hasUnsaved(writing)) {
    event.preventDefault();
  }
});

listeners.push(writingBegins);
writingBegins();
