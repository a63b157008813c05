// Measures one state of the page at many widths: text over text, text that is cut, controls out of
// reach, words broken in two, targets too small for a thumb.

/** Every width of issue and specification, CSS pixels. */
export const WIDTHS = [320, 360, 390, 480, 600, 768, 834, 1024, 1280, 1440, 1920];
const HEIGHT = 900;

/** Prepares `page`. The answer measures the state that is shown, at `widths`. */
export async function ruler(page) {
  const devtools = await page.createCDPSession();
  await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]);
  // The driver's own way lays the page out twice for each size.
  const resize = (width, height = HEIGHT) =>
    devtools.send('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: false,
    });
  /** What is wrong: pairs of where and what. */
  async function look(name, widths = WIDTHS) {
    const found = [];
    for (const width of widths) {
      await resize(width);
      const wrong = await page.evaluate(measure, width);
      found.push(...wrong.map((what) => [`${name} ${width}`, what]));
    }
    return found;
  }
  return { look, resize };
}

/** Each finding once, with the states that show it. */
export function findings(found) {
  const where = new Map();
  for (const [state, what] of found) where.set(what, [...(where.get(what) ?? []), state]);
  return [...where].map(([what, at]) => `${what}\n    in ${at.length}: ${at.slice(0, 4).join('; ')}`);
}

/** Runs in the page. */
async function measure(width) {
  const drawn = () => new Promise((resume) => requestAnimationFrame(() => setTimeout(resume)));
  const late = performance.now() + 5_000;
  while (innerWidth !== width && performance.now() < late) await drawn();
  await drawn();
  const wrong = new Set();
  const root = document.documentElement;
  scrollTo(0, 0);
  const dialog = document.querySelector('dialog[open]');
  const reach = dialog ?? document.body;
  const cutName = (text) => (text.length > 60 ? `${text.slice(0, 40)}…(${text.length})` : text);
  const say = (element) => {
    const at = element.closest('[data-testid]')?.dataset.testid ?? '';
    const name = element.getAttribute('class')?.split(' ').slice(0, 2).join('.') ?? '';
    return `<${element.localName}${name && `.${name}`}> in [${at}]`;
  };

  if (root.scrollWidth > root.clientWidth) {
    const widest = [...reach.querySelectorAll('*')].find(
      (element) => element.getBoundingClientRect().right > root.clientWidth + 1,
    );
    wrong.add(`sideways scroll: ${widest ? say(widest) : '?'}`);
  }

  const styles = new Map();
  const style = (element) => {
    let known = styles.get(element);
    if (!known) styles.set(element, (known = getComputedStyle(element)));
    return known;
  };
  const hidden = '.sr-only, .skip, [inert], script, style, noscript, template, option, svg, #boot';
  const isShown = (element) =>
    element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    !element.closest(hidden) &&
    style(element).clipPath === 'none';
  /** What is laid over the rest on purpose: text is compared within one layer only. */
  const layerOf = (element) => {
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const { position } = style(at);
      if (position === 'fixed' || position === 'sticky' || at.matches('dialog, [role=menu]')) return at;
    }
    return document.body;
  };
  /** Scrolls inside itself, so that nothing in it is lost. */
  const scrolls = (element, axis) => /auto|scroll/.test(style(element)[`overflow${axis}`]);
  const clips = (element, axis) => /hidden|clip/.test(style(element)[`overflow${axis}`]);
  const isClamped = (element) => style(element).webkitLineClamp !== 'none';

  // Text, line by line, as far as it is to be seen.
  const lines = [];
  const walker = document.createTreeWalker(reach, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const parents = new Map();
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const text = node.data.trim();
    const element = node.parentElement;
    if (!text || !element) continue;
    let facts = parents.get(element);
    if (!facts) {
      facts = { isShown: isShown(element), layer: layerOf(element) };
      for (let at = element.parentElement; facts.isShown && at && at !== root; at = at.parentElement) {
        facts.isShown = style(at).clipPath === 'none';
      }
      parents.set(element, facts);
    }
    if (!facts.isShown) continue;
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 0.5);
    if (boxes.length > 1 && new Set(boxes.map(({ top }) => Math.round(top))).size > 1) {
      for (const word of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
        if (word[0].length < 2 || word[0].length > 24) continue;
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const tops = [...range.getClientRects()].filter((b) => b.width > 0.5).map((b) => b.top);
        const isMono = /mono/i.test(style(element).fontFamily);
        if (!isMono && Math.max(...tops) - Math.min(...tops) > 4) {
          wrong.add(`broken inside a word: “${word[0]}” in ${say(element)}`);
        }
      }
    }
    for (const box of boxes) {
      const seen = { left: box.left, right: box.right, top: box.top, bottom: box.bottom };
      let cut = '';
      let isFree = true;
      for (let at = element; at && at !== facts.layer.parentElement; at = at.parentElement) {
        if (style(at).display === 'inline' || style(at).display === 'contents') continue;
        const around = at.getBoundingClientRect();
        for (const [axis, low, high] of [['X', 'left', 'right'], ['Y', 'top', 'bottom']]) {
          if (scrolls(at, axis)) {
            seen[low] = Math.max(seen[low], around[low]);
            seen[high] = Math.min(seen[high], around[high]);
            if (axis === 'X') isFree = false;
          } else if (clips(at, axis)) {
            const slack = axis === 'X' ? 1 : 3;
            if (seen[high] > around[high] + slack || seen[low] < around[low] - slack) {
              const marked = axis === 'X' ? style(at).textOverflow === 'ellipsis' : isClamped(at);
              if (!marked && !isClamped(at)) cut = `cut without an ellipsis: “${cutName(text)}” by ${say(at)}`;
              else cut ||= at;
            }
            seen[low] = Math.max(seen[low], around[low]);
            seen[high] = Math.min(seen[high], around[high]);
          }
        }
        if (style(at).position === 'fixed') break;
      }
      if (typeof cut === 'string' && cut) wrong.add(cut);
      else if (cut) {
        // The whole text: under the pointer, or on the page the link leads to.
        const own = element.closest('a[href]') ?? cut.closest('a[href]');
        const row = element.closest('li, [data-row]')?.querySelector('a[href]');
        element.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
        const told = element.closest('[title]')?.title ?? '';
        const more = cut.parentElement.querySelector('[aria-expanded]') ?? cut.closest('summary');
        const isHeading = [...document.querySelectorAll('h1')].some((h1) => h1.textContent.includes(text));
        if (!own && !row && !more && !isHeading && !told.includes(text)) {
          wrong.add(`cut, and whole nowhere: “${cutName(text)}” in ${say(cut)}`);
        }
      }
      if (isFree && (box.right > innerWidth + 1 && seen.right > innerWidth + 1)) {
        wrong.add(`text out of the screen: “${cutName(text)}” in ${say(element)}`);
      }
      if (seen.right - seen.left > 1 && seen.bottom - seen.top > 1) {
        lines.push({ ...seen, text, node, element, layer: facts.layer });
      }
    }
  }
  lines.sort((a, b) => a.top - b.top);
  const over = (a, b) => {
    // The box of a line is higher than its letters.
    const inset = (line) => (line.bottom - line.top) * 0.2;
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high =
      Math.min(a.bottom - inset(a), b.bottom - inset(b)) - Math.max(a.top + inset(a), b.top + inset(b));
    return wide > 2 && high > 1;
  };
  for (let i = 0; i < lines.length; i += 1) {
    for (let j = i + 1; j < lines.length && lines[j].top < lines[i].bottom; j += 1) {
      const [a, b] = [lines[i], lines[j]];
      if (a.layer !== b.layer || a.node === b.node || !over(a, b)) continue;
      wrong.add(
        `text over text: “${cutName(a.text)}” ${say(a.element)} and “${cutName(b.text)}” ${say(b.element)}`,
      );
    }
  }

  // Controls: on the screen, beside the text, large enough.
  const boxes =
    'a[href], button, input, select, textarea, summary, [role=button], [role=tab], [role=menuitem], [role=option]';
  const isTouch = width < 1024;
  const least = isTouch ? 43.5 : 23.5;
  const small = [];
  for (const element of reach.querySelectorAll(boxes)) {
    if (!isShown(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 1) continue;
    const pans = element.closest('.tabs, .log-lines, .filters');
    const isPanned = pans && pans !== element && scrolls(pans, 'X');
    if (!isPanned && (box.right > innerWidth + 1 || box.left < -1)) {
      wrong.add(`control out of the screen: ${say(element)}`);
    }
    const main = element.closest('main')?.getBoundingClientRect();
    if (!isPanned && main && layerOf(element) === document.body && box.left < main.left) {
      wrong.add(`control beside the content: ${say(element)}`);
    }
    const { backgroundColor, borderTopColor, borderTopWidth, display } = style(element);
    const isDrawn =
      backgroundColor !== 'rgba(0, 0, 0, 0)' ||
      (borderTopWidth !== '0px' && borderTopColor !== 'rgba(0, 0, 0, 0)');
    if (isDrawn && display !== 'inline') {
      const layer = layerOf(element);
      const seen = { left: box.left, right: box.right, top: box.top, bottom: box.bottom };
      for (let at = element.parentElement; at && at !== root; at = at.parentElement) {
        const around = at.getBoundingClientRect();
        for (const [axis, low, high] of [['X', 'left', 'right'], ['Y', 'top', 'bottom']]) {
          if (!scrolls(at, axis) && !clips(at, axis)) continue;
          seen[low] = Math.max(seen[low], around[low]);
          seen[high] = Math.min(seen[high], around[high]);
        }
      }
      for (const line of lines) {
        if (line.layer !== layer || element.contains(line.element)) continue;
        if (line.element.closest('label')?.contains(element)) continue;
        if (over(seen, line)) wrong.add(`control over text: ${say(element)} and “${cutName(line.text)}” ${say(line.element)}`);
      }
    }
    if (display === 'inline' && element.localName === 'a') continue;
    const target = element.closest('label') ?? element;
    const size = target.getBoundingClientRect();
    if (size.width < least || size.height < least) small.push([target, element]);
  }
  for (const entry of reach.querySelectorAll('[role=menuitem]')) {
    if (!isShown(entry)) continue;
    entry.scrollIntoView({ block: 'nearest' });
    const { x, y, width: wide, height: high } = entry.getBoundingClientRect();
    const top = document.elementFromPoint(x + wide / 2, y + high / 2);
    if (!entry.contains(top)) wrong.add(`entry of a menu below the screen or covered: ${say(entry)}`);
  }
  for (const [target, element] of small) {
    // The area that answers may be larger than what is drawn.
    target.scrollIntoView({ block: 'center', inline: 'center' });
    const box = target.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const hits = (dx, dy) => {
      const at = document.elementFromPoint(x + dx, y + dy);
      return at != null && target.contains(at);
    };
    const half = least / 2 - 0.5;
    const isWide = box.width >= least || (hits(-half, 0) && hits(half, 0));
    const isHigh = box.height >= least || (hits(0, -half) && hits(0, half));
    if (!isWide || !isHigh) {
      wrong.add(`target ${Math.round(box.width)}×${Math.round(box.height)}: ${say(element)}`);
    }
  }
  scrollTo(0, 0);
  return [...wrong];
}
