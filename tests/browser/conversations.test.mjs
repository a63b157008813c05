// What was said: the list, the reader with its pages, search and live tail, hostile text, and what
// it cost. At the width of a desk and of a phone.

import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

const ID = '0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1';
const HOSTILE = [
  '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>',
  '[good](https://good.example/a) [bad](javascript:window.hacked=3) [data](data:text/html,x)',
  '![pixel](https://evil.example/pixel.png) **strong** `code`',
].join('\n\n');

let machine, browser, page, complaints, seen, press, shot;
let file, dir;

const record = (role, content, more = {}) =>
  `${JSON.stringify({
    type: role,
    cwd: dir,
    isSidechain: false,
    timestamp: '2026-03-01T10:20:30.123Z',
    message: { role, content, ...more },
  })}\n`;
const say = (...lines) => appendFileSync(file, lines.join(''));
const call = (id, text) =>
  record(
    'assistant',
    [
      { type: 'text', text },
      { type: 'tool_use', name: 'Bash', input: { command: 'npm test' } },
    ],
    {
      id,
      model: 'claude-opus-4-5-20251101',
      usage: { input_tokens: 1_000_000, output_tokens: 200_000, cache_read_input_tokens: 4_000_000 },
    },
  );
const count = (selector) => page.$$eval(selector, (all) => all.length);
const atEnd = () =>
  page.$eval(part('talk-lines'), (it) => it.scrollHeight - it.scrollTop - it.clientHeight < 30);

before(async () => {
  machine = await world({ api: {}, web: {} });
  dir = join(machine.root, 'projects', 'api');
  const place = join(machine.root, 'agent', 'projects', dir.replace(/[^A-Za-z0-9]/g, '-'));
  mkdirSync(place, { recursive: true });
  file = join(place, `${ID}.jsonl`);
  say(record('user', 'Users are signed out too early. Find out why.'));
  for (let n = 0; n < 300; n++) {
    say(n % 2 ? record('user', `question ${n}`) : call(`m${n}`, `answer ${n}`));
  }
  say(call('last', HOSTILE));
  say(record('user', [{ type: 'tool_result', content: '3 passed' }]));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

async function at(width, height, path) {
  await page?.close();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, shot } = person(page));
  await page.setViewport({ width, height });
  await page.goto(machine.url + path, { waitUntil: 'load' });
}

for (const [width, height] of [
  [1440, 900],
  [390, 844],
]) {
  test(`H71: a conversation is read from the list to its begin at ${width} px`, async () => {
    await at(width, height, '/ui/projects/api');
    await press(part('tab-conversations'));
    await seen(part('conversation'));
    await shot(`conversations-${width}`);
    await press(part('conversation'));
    await seen(`${part('turn')}[data-turn="302"]`);
    await until(atEnd);
    assert.equal(await count(part('turn')), 100);
    // H71: words are words.
    const shown = await page.$eval('[data-turn="301"]', (it) => ({
      text: it.innerText,
      images: it.querySelectorAll('img, script').length,
      links: [...it.querySelectorAll('.prose a')].map((a) => [a.href, a.rel]),
      strong: it.querySelector('strong')?.textContent,
    }));
    assert.ok(shown.text.includes('<img src=x onerror='), shown.text);
    assert.equal(shown.images, 0);
    assert.deepEqual(shown.links, [['https://good.example/a', 'noopener noreferrer']]);
    assert.equal(shown.strong, 'strong');
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await press('[data-turn="302"] summary');
    await page.waitForFunction(() =>
      document.querySelector('[data-turn="302"] pre')?.textContent.includes('3 passed'),
    );
    await shot(`conversation-${width}`);
    // Older turns come above, and what is read stays where it is.
    const top = '[data-turn="203"]';
    await page.$eval(part('talk-lines'), (it) => it.scrollTo(0, 0));
    await page.waitForSelector('[data-turn="150"]');
    const place = await page.$eval(top, (it) => {
      const box = it.getBoundingClientRect();
      return box.top - it.parentElement.getBoundingClientRect().top;
    });
    assert.ok(place > -200 && place < height, `${place}`);
    assert.deepEqual(complaints, []);
  });

  test(`a search finds turns that are not loaded and shows them in place at ${width} px`, async () => {
    const [found] = (await machine.api('/api/projects/api/transcripts')).sessions;
    await at(width, height, `/ui/projects/api/c/${found.conversation}`);
    await seen(part('talk-find'));
    await page.type(part('talk-find'), 'QUESTION 17');
    await page.keyboard.press('Enter');
    await seen(`${part('talk-hits')} [data-turn="18"]`);
    // 17 and 171, 173, 175, 177, 179.
    await until(async () => (await count(`${part('talk-hits')} ${part('turn')}`)) === 6);
    await press(`[data-turn="18"] ${part('talk-show-here')}`);
    await seen(`${part('talk-lines')} [data-turn="18"]`);
    assert.ok(page.url().endsWith('?turn=18'), page.url());
    assert.deepEqual(complaints, []);
  });
}

test('new turns come by themselves and do not move what is read', async () => {
  const [found] = (await machine.api('/api/projects/api/transcripts')).sessions;
  await at(1440, 900, `/ui/projects/api/c/${found.conversation}`);
  await seen('[data-turn="302"]');
  await until(atEnd);
  say(record('user', 'and now?'));
  await seen('[data-turn="303"]');
  await until(atEnd);
  await page.$eval(part('talk-lines'), (it) => it.scrollBy(0, -900));
  await page.waitForFunction(
    (lines) => {
      const it = document.querySelector(lines);
      return it.scrollHeight - it.scrollTop - it.clientHeight > 300;
    },
    {},
    part('talk-lines'),
  );
  say(call('new', 'the newest'));
  await seen(part('talk-fresh'));
  assert.equal(await atEnd(), false);
  await press(part('talk-fresh'));
  await until(atEnd);
  assert.deepEqual(complaints, []);
});

test('a copy of a conversation goes on as a new session', async () => {
  const [found] = (await machine.api('/api/projects/api/transcripts')).sessions;
  await at(1440, 900, `/ui/projects/api/c/${found.conversation}`);
  await seen('[data-turn="302"]');
  await press(part('talk-fork'));
  await seen(part('session'));
  const [instance] = await machine.api('/api/instances');
  assert.deepEqual([instance.project, instance.resume_mode], ['api', 'pty']);
  assert.deepEqual(complaints, []);
});

for (const [width, height] of [
  [1440, 900],
  [390, 844],
]) {
  test(`usage is summed by project and model at ${width} px`, async () => {
    await at(width, height, '/ui/usage?range=all');
    await page.waitForFunction(
      (row) => document.querySelector(row)?.textContent.includes('api'),
      {},
      part('usage-row'),
    );
    const figures = await page.$eval(part('usage-figures'), (it) => it.innerText);
    assert.ok(figures.includes('≈ $') && figures.includes('input tokens'), figures);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide}`);
    await shot(`usage-${width}`);
    assert.deepEqual(complaints, []);
  });
}

test('figures of a time that is not chosen any more are not shown', async () => {
  await at(1440, 900, '/ui/usage?range=all');
  const figures = () => page.$eval(part('usage-figures'), (it) => it.innerText);
  await seen(part('usage-figures'));
  const ofAll = await figures();
  await page.setRequestInterception(true);
  let held;
  page.on('request', (request) => {
    if (!held && request.url().includes('/api/usage?since=')) held = request;
    else request.continue();
  });
  // Everything is of an older time, so 7 days have nothing.
  await press(`${part('usage-range')}:nth-child(1)`);
  await until(() => held);
  await seen(`${part('usage')}[aria-busy="true"]`);
  await press(`${part('usage-range')}:nth-child(4)`);
  await seen(`${part('usage')}[aria-busy="false"]`);
  const answered = page.waitForResponse((answer) => answer.url() === held.url());
  held.continue();
  await answered;
  // What the late answer leads to has been drawn by now.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await page.waitForNetworkIdle({ idleTime: 500 });
  assert.equal(await figures(), ofAll);
});
