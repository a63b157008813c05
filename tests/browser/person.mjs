// What a person does with a page: looks for something, reads it, presses it.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { DEADLINE_MS } from './harness.mjs';

/** Selector of a bridge's row. */
export const row = (project, status) =>
  `[data-instance][data-project="${project}"][data-status="${status}"]`;

/** Selector of a part with a name for tests. */
export const part = (name) => `[data-testid="${name}"]`;

/** Waits until `holds` answers true. */
export async function until(holds) {
  const late = Date.now() + DEADLINE_MS;
  while (!(await holds())) {
    if (Date.now() > late) throw new Error(`never: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A person in front of `page`. */
export function person(page) {
  /** Waits for an element that can be seen. */
  const seen = (selector) =>
    page.waitForSelector(selector, { visible: true, timeout: DEADLINE_MS });

  /** Another view of the same document. */
  async function go(path, there) {
    await page.evaluate((to) => {
      history.pushState(null, '', to);
      dispatchEvent(new PopStateEvent('popstate'));
    }, path);
    await seen(there);
  }

  /** Whether something lies over the middle of the element, when it is scrolled into view. */
  const covers = (element, what) =>
    element.evaluate((target, selector) => {
      target.scrollIntoView({ block: 'nearest' });
      const { x, y, width, height } = target.getBoundingClientRect();
      const top = document.elementFromPoint(x + width / 2, y + height / 2);
      return top?.closest(selector) != null;
    }, what);

  /** Clicks. A person tries again when the thing moved or was drawn anew under the pointer. */
  async function press(selector) {
    const until = Date.now() + DEADLINE_MS;
    for (;;) {
      try {
        if (await pressOnce(selector)) return;
        if (Date.now() > until) throw new Error(`${selector} took no click`);
      } catch (error) {
        // A closed page says "detached" as well, for ever.
        const again = /detached|not clickable|not an Element/i.test(error.message);
        if (!again || page.isClosed() || Date.now() > until) throw error;
      }
    }
  }

  /** Whether the click arrived. Messages that lie over the place are put away first. */
  async function pressOnce(selector) {
    const element = await seen(selector);
    // What lies under a bar that stays in its place is scrolled to where it can be seen.
    await element.evaluate((target) => {
      const { x, y, width, height } = target.getBoundingClientRect();
      const at = document.elementFromPoint(x + width / 2, y + height / 2);
      const is_free = !at || target.contains(at) || at.contains(target);
      if (!is_free) target.scrollIntoView({ block: 'center' });
    });
    // A button whose request is on its way takes no second one.
    const is_idle = (target) => target.getAttribute('aria-busy') !== 'true';
    await page.waitForFunction(is_idle, { timeout: DEADLINE_MS }, element);
    while (await covers(element, part('toast'))) {
      const messages = (await page.$$(part('toast'))).length;
      await page.click(part('toast-dismiss'));
      await page.waitForFunction(
        (where, before) => document.querySelectorAll(where).length < before,
        {},
        part('toast'),
        messages,
      );
    }
    // On the window: that hears of it before anything it does can take the page away. A twin that
    // was drawn in the place of the element a moment ago takes the click as well. The page moves
    // its focus with the next frame, which no hand is quick enough to forestall; a window that
    // nobody sees has none.
    await element.evaluate((target, where) => {
      window.hasHit = new Promise((resolve) => {
        const judge = ({ target: at }) => {
          const has_hit = target.contains(at) || at.closest(where) != null;
          requestAnimationFrame(() => resolve(has_hit));
          setTimeout(resolve, 1_000, has_hit);
        };
        window.addEventListener('click', judge, { once: true, capture: true });
      });
    }, selector);
    await element.click();
    // The driver answers before a busy page has handled the event; a press that moved between two
    // elements is no click, and brings none.
    const judged = (_, none_ms) =>
      Promise.race([window.hasHit, new Promise((resolve) => setTimeout(resolve, none_ms, false))]);
    return element.evaluate(judged, 5_000).catch(() => true);
  }

  /** Chooses a value of a list, once that is drawn. */
  async function pick(selector, value) {
    await seen(selector);
    return page.select(selector, value);
  }

  /** Chooses from a menu. It closes when the row below it is drawn again: then it is opened again. */
  async function choose(more, item) {
    const until = Date.now() + DEADLINE_MS;
    for (;;) {
      if (!(await page.$(item))) await press(more);
      const is_open = page.waitForSelector(item, { visible: true, timeout: 2_000 });
      if (await is_open.then(pressOnce.bind(null, item)).catch(() => false)) return;
      if (Date.now() > until) throw new Error(`${item} could not be chosen`);
    }
  }

  /** Waits for an element whose text holds `words`. */
  const says = (selector, words) =>
    page.waitForFunction(
      (where, what) =>
        [...document.querySelectorAll(where)].some((element) =>
          element.textContent.includes(what),
        ),
      { timeout: DEADLINE_MS },
      selector,
      words,
    );

  /** Waits until nothing fits the selector. */
  const gone = (selector) =>
    page.waitForFunction((where) => !document.querySelector(where), {}, selector);

  /** Keeps a picture, where pictures are asked for. */
  async function shot(name) {
    const dir = process.env.SVC_SHOTS;
    if (!dir) return;
    mkdirSync(dir, { recursive: true });
    await page.screenshot({ path: join(dir, `${name}.png`) });
  }

  return { seen, go, covers, press, choose, pick, says, gone, shot };
}
