// A held message: the page counts down the time in which the user can undo sending.
//
// Invariant: after that time the page has no undo button. @ts-check

/** The timer of the countdown. */
let counting = 0;

function countingBegins() {
  clearTimeout(counting);
  const notice = find("main .notice[data-seconds]");
  const words = notice && find("span", notice);
  if (!notice || !words) {
    return;
  }
  const end = performance.now() + Number(notice.dataset.seconds) * 1000;
  // A screen reader announces the message once, and not the countdown every second.
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
    words.textContent = "Message sent.";
    left.remove();
    find("form", notice)?.remove();
  };
  count();
}

listeners.push(countingBegins);
countingBegins();
