// The frames with the HTML of messages: each is as tall as its document, follows the theme, and
// passes its keys on to the page.
//
// The document has the origin of the page, but its sandbox runs no script (see `answer.rs`). So
// this script can read and change it, and it can do nothing by itself.
//
// Invariants:
// - A document may shadow the properties of `document` and of its forms by the names of elements.
//   So its elements are found with a method of the prototype, and forms are left alone.
// - Nothing of the document becomes an element of the page.
// - A document that grows with its frame does not grow without end. @ts-check

/** The smallest scale at which a wide document is shown. A wider one scrolls sideways. */
const SCALE_MIN = 0.5;

/** The number of times that a frame may grow after its width, its images or its reader changed something. */
const GROWTHS_MAX = 3;

/** The greatest height of a frame in pixels. A taller document scrolls, or is cut on paper. */
const HEIGHT_MAX = document.body.matches(".paper") ? 30_000 : 100_000;

/** The maximum number of elements whose colours are examined. */
const COLOURED_MAX = 3000;

/** Quotations with a mark of the mail program. */
const MARKED = ":is(.gmail_quote, .yahoo_quoted, blockquote[type=cite], blockquote[class*=quote]):not(form)";

/** Quotations. One without a mark ends the message: others are set off for show. */
const QUOTES = `${MARKED}, blockquote:last-child`;

/** The number of characters from which a quotation is folded. */
const QUOTE_LONG = 160;

/** The colours that count as none: our ink and black on white. A browser writes them like this. */
const INKS = ["rgb(24, 32, 44)", "rgb(0, 0, 0)"];
const PAPERS = ["rgba(0, 0, 0, 0)", "rgb(255, 255, 255)"];

/** Whether the page is for printing. */
const isPaper = document.body.matches(".paper");

/** @typedef {{ frame: HTMLIFrameElement, root: HTMLElement, button: HTMLElement, takesTheme: boolean }} Framed */

/** The prepared frames of the page. @type {Framed[]} */
let framed = [];

/** The elements of a frame's document. @param {HTMLIFrameElement} frame @param {string} selector @returns {HTMLElement[]} */
function within(frame, selector) {
  const page = frame.contentDocument;
  return page ? [.../** @type {NodeListOf<HTMLElement>} */ (Document.prototype.querySelectorAll.call(page, selector))] : [];
}

/** A property of a frame's document. @param {HTMLIFrameElement} frame @param {"readyState" | "scrollingElement"} name */
function documentOf(frame, name) {
  return frame.contentDocument && Object.getOwnPropertyDescriptor(Document.prototype, name)?.get?.call(frame.contentDocument);
}

/** Prepares a frame when its document has arrived. @param {HTMLIFrameElement} frame */
function frameArrived(frame) {
  const [root] = within(frame, ":root");
  if (!root || frame.contentWindow?.location.href !== frame.src || framed.some(one => one.root === root)) {
    return;
  }
  for (const box of within(frame, ":root, body")) {
    // Otherwise a document may be as tall as its frame. In quirks mode it is with the height `auto`.
    box.style.setProperty("height", "fit-content", "important");
    box.style.setProperty("min-height", "0", "important");
    box.style.setProperty("max-height", "none", "important");
  }
  fitAlways(frame, root);
  const button = element("button");
  const one = { frame, root, button, takesTheme: takesTheme(frame) };
  framed.push(one);
  if (!isPaper) {
    foldQuotes(frame);
    button.className = "shade";
    button.setAttribute("type", "button");
    button.addEventListener("click", () => {
      frame.classList.toggle(one.takesTheme ? "plain" : "inverted");
      shade(one);
    });
    frame.after(button);
  }
  frame.classList.toggle("plain", one.takesTheme);
  shade(one);
  root.addEventListener("keydown", event => {
    // A field may hide behind another element, which the event then names.
    if (isAnyOf(event.target, "body, :root, a[href], summary")) {
      keyPressed(event);
    }
  });
  root.addEventListener("click", event => fragmentFollowed(frame, event));
}

/** Keeps a frame as tall as its document. @param {HTMLIFrameElement} frame @param {HTMLElement} root */
function fitAlways(frame, root) {
  let [width, growths, tallest] = [-1, 0, 0];
  const fit = () => {
    const isWidth = frame.clientWidth !== width;
    if (isWidth) {
      width = frame.clientWidth;
      growths = 0;
      tallest = 0;
      root.style.removeProperty("zoom");
      root.style.setProperty("zoom", String(Math.max(Math.min(width / root.scrollWidth, 1), SCALE_MIN)));
    }
    const isWider = root.scrollWidth > (root.clientWidth || width) + 1;
    // Elements with an absolute position do not make the document taller, but it scrolls to them.
    const scrolled = documentOf(frame, "scrollingElement")?.scrollHeight ?? 0;
    if (scrolled > frame.clientHeight + 1 && root.style.getPropertyValue("zoom") === "1") {
      tallest = Math.max(tallest, scrolled);
    }
    const own = Math.max(Math.ceil(root.getBoundingClientRect().height), tallest);
    if (isPaper && own > HEIGHT_MAX && !frame.matches(":has(+ .cut)")) {
      frame.after(element("p", "This message is too tall to be printed whole, so only its beginning is printed."));
      frame.nextElementSibling?.classList.add("cut");
    }
    const height = Math.min(own + (isWider ? 16 : 0) + frame.offsetHeight - frame.clientHeight, HEIGHT_MAX);
    const isTaller = height > Number.parseInt(frame.style.height || "0", 10);
    if (isWidth || !isTaller || growths++ < GROWTHS_MAX) {
      frame.style.height = `${height}px`;
    }
  };
  // In the next frame, since a change of the observed size would be an error.
  const observer = new ResizeObserver(() => requestAnimationFrame(() => {
    if (frame.isConnected && frame.clientWidth > 0) {
      fit();
    }
  }));
  root.addEventListener("load", () => (width = -1), true);
  root.addEventListener("toggle", () => (growths = 0), true);
  observer.observe(frame);
  observer.observe(root);
  fit();
}

/** Whether a document has no colours of its own. Then it gets those of the page. @param {HTMLIFrameElement} frame */
function takesTheme(frame) {
  const all = within(frame, ":root, body, body *:not(style, img, form)");
  const isOwn = (/** @type {HTMLElement} */ one) => {
    const { backgroundColor, backgroundImage, color } = getComputedStyle(one);
    return !PAPERS.includes(backgroundColor) || backgroundImage !== "none" || (!INKS.includes(color) && !one.closest("a"));
  };
  // The colours of a form cannot be replaced.
  const isColoured = (/** @type {HTMLElement} */ form) => getComputedStyle(form).backgroundColor !== PAPERS[0];
  if (all.length > COLOURED_MAX || all.some(isOwn) || within(frame, "form").some(isColoured)) {
    return false;
  }
  const [root, ...others] = all;
  root?.style.setProperty("background-color", "transparent", "important");
  for (const one of others) {
    one.style.setProperty("color", one.closest("a") ? "var(--link)" : "inherit", "important");
    one.style.setProperty("background-color", "transparent", "important");
  }
  for (const body of within(frame, "body")) {
    body.style.setProperty("margin", "0", "important");
  }
  return true;
}

/** Gives a frame the colours of the page, or of a sheet of paper. @param {Framed} one */
function shade({ frame, root, button, takesTheme }) {
  const { color, colorScheme } = getComputedStyle(frame);
  const page = getComputedStyle(document.documentElement);
  const [isPlain, isInverted] = [frame.matches(".plain"), frame.matches(".inverted")];
  root.style.setProperty("color-scheme", colorScheme);
  if (takesTheme) {
    root.style.setProperty("color", color);
    root.style.setProperty("--link", isPlain ? page.getPropertyValue("--accent") : "#1f5bd0");
  }
  for (const image of within(frame, "img, video, [background]:not(form)")) {
    isInverted ? image.style.setProperty("filter", "invert(1) hue-rotate(180deg)") : image.style.removeProperty("filter");
  }
  button.hidden = page.colorScheme !== "dark";
  button.textContent = isPlain || isInverted ? "Show in light colors" : "Show in dark colors";
}

/** Folds long quotations behind text. A forwarded message is not folded. @param {HTMLIFrameElement} frame */
function foldQuotes(frame) {
  const [body] = within(frame, "body");
  for (const quote of within(frame, QUOTES)) {
    const text = quote.textContent ?? "";
    const [before, after] = [new Range(), new Range()];
    before.setStart(body ?? quote, 0);
    before.setEndBefore(quote);
    after.setStartAfter(quote);
    after.setEnd(body ?? quote, body?.childNodes.length ?? 0);
    const isEnd = after.toString().trim() === "";
    if (quote.matches(`:is(details, form, ${QUOTES}) *`) || text.length < QUOTE_LONG || /^\s*-{5,}/.test(text) || before.toString().trim() === "" || !(isEnd || isAnyOf(quote, MARKED)) || hasAnswers(quote)) {
      continue;
    }
    const above = quote.matches(".moz-cite-prefix + *") ? quote.previousElementSibling : null;
    const details = element("details", "", element("summary", "Quoted text"));
    quote.before(details);
    details.append(above ?? "", quote);
  }
}

/** Whether answers stand between the quotations within an element. @param {HTMLElement} quote */
function hasAnswers(quote) {
  const quoted = [...quote.querySelectorAll("blockquote")].filter(one => one.parentElement?.closest("blockquote, .gmail_quote, .yahoo_quoted") === quote);
  const [first] = quoted;
  if (!first || isAnyOf(quote, "blockquote")) {
    return false;
  }
  const rest = new Range();
  rest.setStartBefore(first);
  rest.setEnd(quote, quote.childNodes.length);
  const letters = (/** @type {string} */ text) => text.replace(/\s+/g, "").length;
  return letters(rest.toString()) > letters(quoted.map(one => one.textContent).join(""));
}

/** Whether an element matches a selector. A form may shadow its own method. @param {EventTarget | null} one @param {string} selector */
function isAnyOf(one, selector) {
  return one !== null && "nodeType" in one && /** @type {boolean} */ (Element.prototype.matches.call(one, selector));
}

/** Scrolls to the target of a link within a document. @param {HTMLIFrameElement} frame @param {Event} event */
function fragmentFollowed(frame, event) {
  const link = /** @type {Element | null} */ (Element.prototype.closest.call(event.target, "a"));
  const name = link?.getAttribute("href") ?? "";
  if (name.startsWith("#")) {
    event.preventDefault();
    within(frame, `[id="${CSS.escape(name.slice(1))}"], a[name="${CSS.escape(name.slice(1))}"]`)[0]?.scrollIntoView();
  }
}

function framesArrived() {
  framed = framed.filter(({ frame }) => frame.isConnected);
  for (const frame of document.querySelectorAll("iframe")) {
    frame.addEventListener("load", () => frameArrived(frame));
    if (documentOf(frame, "readyState") === "complete") {
      frameArrived(frame);
    }
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => framed.forEach(shade));
listeners.push(framesArrived);
framesArrived();
if (isPaper) {
  addEventListener("load", () => requestAnimationFrame(() => print()));
}
