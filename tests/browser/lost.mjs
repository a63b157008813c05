// What a reader loses in the state that is shown: text that is cut, controls that are covered, a page
// that scrolls sideways.

/** Runs in the page. */
export function lostHere() {
  const said = [];
  const short = (element) => element.outerHTML.replace(/\s+/g, ' ').slice(0, 120);
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const widest = [...document.body.querySelectorAll('*')].find(
      (element) => element.getBoundingClientRect().right > root.clientWidth + 1 && !element.closest('.log-lines, .sr-only'),
    );
    said.push(`${root.scrollWidth} px wide: ${widest && short(widest)}`);
  }
  const reach = document.querySelector('dialog[open]') ?? document.body;
  for (const element of reach.querySelectorAll('a[href], button, input, select, textarea, summary')) {
    if (!element.checkVisibility({ visibilityProperty: true }) || element.closest('.skip, .sr-only')) continue;
    element.scrollIntoView({ block: 'center', inline: 'nearest' });
    const { x, y, width, height } = element.getBoundingClientRect();
    const at = document.elementFromPoint(x + width / 2, y + height / 2);
    const ours = element.closest('label') ?? element;
    if (!ours.contains(at)) said.push(`covered by ${at && short(at)}: ${short(element)}`);
    const { overflowX, overflowY, textOverflow, webkitLineClamp } = getComputedStyle(element);
    const cuts = (overflowX !== 'visible' || overflowY !== 'visible') && webkitLineClamp === 'none';
    if (cuts && textOverflow !== 'ellipsis' && element.scrollHeight > element.clientHeight + 2 && !/TEXTAREA|SELECT|INPUT/.test(element.tagName)) {
      said.push(`cut off: ${short(element)}`);
    }
  }
  // Words in a box of fixed height that hides the rest.
  for (const element of reach.querySelectorAll('.badge, .chip, .pill, .word, h1, h2, .row, .btn, .toast p')) {
    if (element.checkVisibility() && element.scrollHeight > element.clientHeight + 3 && getComputedStyle(element).display !== 'inline' && getComputedStyle(element).overflowY !== 'visible' && getComputedStyle(element).textOverflow !== 'ellipsis') {
      said.push(`cut off: ${short(element)}`);
    }
  }
  scrollTo(0, 0);
  return said;
}
