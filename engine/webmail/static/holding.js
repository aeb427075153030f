// A letter that is held: the page counts how long it can still be taken back.
//
// Invariant: when it cannot be taken back any more, nothing on the page says that it can.
// @ts-check

/** What counts. */
let counting = 0;

function countingBegins() {
  clearTimeout(counting);
  const notice = find("main .notice[data-seconds]");
  const words = notice && find("span", notice);
  if (!notice || !words) {
    return;
  }
  const end = performance.now() + Number(notice.dataset.seconds) * 1000;
  // Who hears the page hears that the letter is held, and not every second of it.
  const left = Object.assign(element("span"), { className: "left" });
  left.setAttribute("aria-hidden", "true");
  words.after(left);
  const count = () => {
    const seconds = Math.ceil((end - performance.now()) / 1000);
    left.textContent = `${seconds} s`;
    if (seconds > 0) {
      counting = setTimeout(count, 250);
      return;
    }
    words.textContent = "Your letter was sent.";
    left.remove();
    find("form", notice)?.remove();
  };
  count();
}

listeners.push(countingBegins);
countingBegins();
