// A line for the terminal of a session: what is not sent stays where it was typed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { proxy } from './proxy.mjs';
import { world } from './world.mjs';

let wire, machine, browser, page;
let seen, press, says, gone;

before(async () => {
  wire = await proxy();
  const origin = `http://127.0.0.1:${wire.port}`;
  machine = await world(
    { api: { knobs: { ready_ms: 0 } } },
    { claude: { pty_screen_enabled: true, terminal_input: true }, auth: { allowed_origins: [origin] } },
  );
  wire.to(Number(new URL(machine.url).port));
  browser = await launch();
  ({ page } = await tab(browser));
  ({ seen, press, says, gone } = person(page));
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
  await machine.cli('start', 'api', '--mode', 'pty', '--wait');
  const [{ instance_id: id }] = await machine.api('/api/instances');
  await page.goto(`${origin}/ui/s/${id}`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
  wire?.close();
});

const line = () => page.$eval(part('terminal-line'), (field) => field.value);

test('a line that cannot be sent stays, and is sent when the service is back', async () => {
  await press('#tab-terminal');
  await seen(part('terminal-line'));
  await says(part('terminal-state'), 'Live');
  await page.type(part('terminal-line'), 'one');
  await page.keyboard.press('Enter');
  await until(async () => (await line()) === '');
  wire.to(1); // nobody listens there
  wire.cut();
  await seen('[data-link="lost"], [data-link="connecting"], [data-testid="offline-banner"]');
  await page.type(part('terminal-line'), 'a line that nobody heard');
  await page.keyboard.press('Enter');
  await says(part('toast'), 'Not connected');
  assert.equal(await line(), 'a line that nobody heard');
  wire.to(Number(new URL(machine.url).port));
  await gone(part('offline-banner'));
  await page.waitForSelector('[data-link="live"]');
  await page.focus(part('terminal-line'));
  await until(async () => {
    if ((await line()) !== '') await page.keyboard.press('Enter');
    return (await line()) === '';
  });
});

test('a line that the service refuses comes back', async () => {
  // 4200 bytes in 2100 characters.
  const long = 'я'.repeat(2100);
  await page.$eval(
    part('terminal-line'),
    (field, text) => {
      field.value = text;
      field.dispatchEvent(new Event('input', { bubbles: true }));
      field.focus();
    },
    long,
  );
  await page.keyboard.press('Enter');
  await says(part('toast'), 'Nothing was typed');
  await says(part('toast'), 'send less at once');
  await until(async () => (await line()) === long);
});
