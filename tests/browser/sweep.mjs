// Looks at one state of the page in every width and theme: axe-core, sideways scrolling, targets for
// a thumb, one heading and one main.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { given } from './harness.mjs';

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
const WIDTHS = [1440, 768, 390, 320];
const HEIGHT = 900;

function axeSource() {
  const require = createRequire(join(given('SVC_BROWSER_MODULES'), 'resolve.js'));
  return readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
}

/** Prepares `page`; call it before its first document. The answer looks at states. */
export async function sweep(page) {
  await page.evaluateOnNewDocument(axeSource());
  // A colour on its way from one theme to the other is in neither.
  await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]);
  await page.setViewport({ width: WIDTHS[0], height: HEIGHT });

  /** What is wrong in the state that is shown, in every width and theme: pairs of where and what. */
  return async function look(name, { widths = WIDTHS } = {}) {
    const found = [];
    for (const width of widths) {
      if (width !== WIDTHS[0] || widths.length === 1) await page.setViewport({ width, height: HEIGHT });
      for (const theme of ['light', 'dark']) {
        const wrong = await page.evaluate(examine, theme, TAGS, width < 640);
        found.push(...wrong.map((what) => [`${name} ${width} ${theme}`, what]));
      }
    }
    await page.setViewport({ width: WIDTHS[0], height: HEIGHT });
    return found;
  };
}

/** Runs in the page. */
async function examine(theme, tags, isPhone) {
  document.documentElement.dataset.theme = theme;
  await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
  const wrong = [];

  const short = (element) => element.outerHTML.replace(/\s+/g, ' ').slice(0, 140);
  // The themes differ in colours alone: the second look is for what colours decide.
  const again = theme !== 'light';
  const { violations } = await window.axe.run(document, {
    runOnly: again
      ? { type: 'rule', values: ['color-contrast', 'link-in-text-block'] }
      : { type: 'tag', values: tags },
    resultTypes: ['violations'],
  });
  for (const { id, impact, nodes } of violations) {
    for (const { html, failureSummary } of nodes) {
      const why = failureSummary.split('\n').slice(1).join(' ').trim();
      wrong.push(`${id} (${impact}) ${html.slice(0, 140)} ${why}`);
    }
  }

  if (again) return wrong;

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const widest = [...document.body.querySelectorAll('*')].find(
      (element) =>
        element.getBoundingClientRect().right > root.clientWidth + 1 &&
        !element.closest('.log-lines, .output, pre, .sr-only'),
    );
    wrong.push(`${root.scrollWidth} px wide: ${widest ? short(widest) : '?'}`);
  }

  const reach = document.querySelector('dialog[open]') ?? document.body;
  const isShown = (element) =>
    element.checkVisibility({ visibilityProperty: true }) &&
    !element.closest('[inert], .sr-only, .skip') &&
    element.getBoundingClientRect().width > 1;
  for (const [tag, most] of [['h1', 1], ['main', 1]]) {
    const many = [...document.querySelectorAll(tag)].filter((e) => !e.closest('[inert]')).length;
    if (many !== most) wrong.push(`${many} <${tag}>`);
  }

  if (isPhone) {
    const boxes = 'a[href], button, input, select, textarea, summary, [role=button], [role=tab], [role=menuitem], [role=option]';
    for (const element of reach.querySelectorAll(boxes)) {
      if (!isShown(element)) continue;
      if (element.tagName === 'A' && getComputedStyle(element).display === 'inline') continue;
      const target = element.closest('label') ?? element;
      const { width, height } = target.getBoundingClientRect();
      if (width >= 43.5 && height >= 43.5) continue;
      // The area that answers may be larger than what is drawn.
      target.scrollIntoView({ block: 'center', inline: 'center' });
      const box = target.getBoundingClientRect();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      const hits = (dx, dy) => {
        const at = document.elementFromPoint(x + dx, y + dy);
        return at != null && target.contains(at);
      };
      const isWide = width >= 43.5 || (hits(-21.5, 0) && hits(21.5, 0));
      const isHigh = height >= 43.5 || (hits(0, -21.5) && hits(0, 21.5));
      if (!isWide || !isHigh) {
        wrong.push(`target ${Math.round(width)}×${Math.round(height)} ${short(element)}`);
      }
    }
    window.scrollTo(0, 0);
  }
  return wrong;
}
