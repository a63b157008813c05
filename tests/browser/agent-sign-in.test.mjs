// The agent is signed in from a phone: the link, the code, and every end.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person } from './person.mjs';
import { world } from './world.mjs';

let machine, browser, page, complaints;
let seen, press, says, gone, shot;

/** How the next sign-ins go. */
const set = (login) => {
  const knobs = JSON.stringify({ auth: 'logged_out', login });
  writeFileSync(join(machine.root, 'state', '.agent-sim.json'), knobs);
};

before(async () => {
  const more = { login_shepherd: { enabled: true, allow_setup_token: true } };
  machine = await world({ api: {} }, more, undefined, 0, { AGENT_SIM_AUTH: 'logged_out' });
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, press, says, gone, shot } = person(page));
  await page.setViewport({ width: 390, height: 844 });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const type = async (field, words) => {
  await page.$eval(part(field), (input) => {
    input.focus();
    input.select();
  });
  await page.keyboard.type(words);
};

test('a refused sign-in says why, and can be begun again', async () => {
  set('reject');
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await says(part('strip'), 'not signed in');
  await press(`${part('strip')} ${part('agent-sign-in')}`);
  await seen(part('agent-sign-in-begin'));
  await shot('agent-sign-in-begin-phone');
  await press(part('agent-sign-in-start'));
  await seen(part('agent-sign-in-code'));
  const { href, target, rel } = await page.$eval(part('agent-sign-in-link'), (link) => ({
    href: link.href,
    target: link.target,
    rel: link.rel,
  }));
  assert.equal(new URL(href).host, 'claude.com');
  assert.deepEqual([target, rel], ['_blank', 'noopener noreferrer']);
  await press('summary');
  await page.waitForFunction(
    (picture) => document.querySelector(picture)?.naturalWidth > 0,
    {},
    part('agent-sign-in-qr'),
  );
  await shot('agent-sign-in-code-phone');
  await type('agent-sign-in-field', 'half');
  await press(part('agent-sign-in-send'));
  await says(part('agent-sign-in-problem'), 'Invalid code');
  await type('agent-sign-in-field', ' whole#state ');
  await press(part('agent-sign-in-send'));
  await says(part('agent-sign-in-failed'), '400');
  await shot('agent-sign-in-failed-phone');
  set('ok');
  await press(part('agent-sign-in-again'));
  await press(part('agent-sign-in-start'));
  await seen(part('agent-sign-in-code'));
});

test('a closed and reloaded page goes on where it stood, and the sign-in succeeds', async () => {
  await press(part('dialog-close'));
  await gone(part('agent-sign-in-dialog'));
  await page.goto(`${machine.url}/ui/`, { waitUntil: 'load' });
  await says(`${part('strip')} ${part('agent-sign-in')}`, 'Continue');
  await press(`${part('strip')} ${part('agent-sign-in')}`);
  await seen(part('agent-sign-in-code'));
  await type('agent-sign-in-field', 'whole#state');
  await press(part('agent-sign-in-send'));
  await seen(part('agent-sign-in-done'));
  await shot('agent-sign-in-done-phone');
  await press(`${part('agent-sign-in-dialog')} .dialog-foot button`);
  await gone(part('strip'));
  assert.deepEqual(complaints, []);
});

test('a token is shown until somebody says that it is stored', async () => {
  await page.goto(`${machine.url}/ui/agent-login`, { waitUntil: 'load' });
  await seen(part('agent-sign-in-begin'));
  await press(part('sign-in-mode-setup-token'));
  await press(part('agent-sign-in-start'));
  await seen(part('agent-sign-in-code'));
  await type('agent-sign-in-field', 'whole#state');
  await press(part('agent-sign-in-send'));
  await says(part('agent-token'), 'sk-ant-oat01-');
  await page.keyboard.press('Escape');
  await shot('agent-token-phone');
  await press(part('agent-token-stored'));
  await gone(part('agent-token'));
});

test('a cancelled sign-in leaves nothing', async () => {
  await page.goto(`${machine.url}/ui/agent-login`, { waitUntil: 'load' });
  await press(part('agent-sign-in-start'));
  await press(part('agent-sign-in-cancel'));
  await gone(part('agent-sign-in-dialog'));
  await gone(part('strip'));
  const state = await machine.api('/api/login-shepherd/state');
  assert.deepEqual(state, { active: false });
});
