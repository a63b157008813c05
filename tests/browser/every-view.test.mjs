// The views that need more than a bridge: each at every width, with usual names and with long ones
// without a place to break, in both themes, by the eyes of the width test and of axe-core.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { busy } from './busy.mjs';
import { launch, tab } from './harness.mjs';
import { lostHere } from './lost.mjs';
import { part, person, row } from './person.mjs';
import { sweep } from './sweep.mjs';
import { findings, ruler } from './width.mjs';

const NAMES = {
  usual: { web: 'web-frontend', talk: 'atlas-api', words: 'the release branch' },
  long: { web: 'w'.padEnd(150, 'mnw'), talk: 't'.padEnd(150, 'alk'), words: 'x'.padEnd(240, 'word') },
};

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** A tab that is signed in to a machine of its own. */
async function opened(t, names) {
  const machine = await busy(NAMES[names]);
  t.after(machine.close);
  const { page, complaints } = await tab(browser);
  t.after(() => page.close());
  return { machine, page, complaints, ...person(page) };
}

for (const names of Object.keys(NAMES)) {
  test(`every view of a busy machine fits every width, ${names} names`, async (t) => {
    const { machine, page, complaints, go, gone } = await opened(t, names);
    const { look } = await ruler(page);
    await machine.signIn(page, '/ui/');
    const found = [];
    for (const [path, there] of machine.views) {
      await go(path, there);
      await gone('[aria-busy=true]');
      found.push(...(await look(path.slice(0, 60))));
    }
    const lines = findings(found);
    assert.equal(lines.length, 0, `\n${lines.join('\n')}`);
    assert.deepEqual(complaints, []);
  });
}

test('every view of a busy machine is for everybody', async (t) => {
  const { machine, page, complaints, go, gone } = await opened(t, 'usual');
  const look = await sweep(page);
  await machine.signIn(page, '/ui/');
  const found = [];
  for (const [path, there] of machine.views) {
    await go(path, there);
    await gone('[aria-busy=true]');
    found.push(...(await look(path)));
  }
  const lines = findings(found);
  assert.equal(lines.length, 0, `\n${lines.join('\n')}`);
  assert.deepEqual(complaints, []);
});

test('every view of a busy machine with text twice as large', async (t) => {
  const { machine, page, complaints, go, gone } = await opened(t, 'usual');
  await machine.signIn(page, '/ui/');
  await page.evaluate(() => document.documentElement.style.setProperty('font-size', '200%'));
  const found = [];
  for (const width of [1280, 390]) {
    await page.setViewport({ width, height: 900 });
    for (const [path, there] of machine.views) {
      await go(path, there);
      await gone('[aria-busy=true]');
      found.push(...(await page.evaluate(lostHere)).map((what) => [`${path} ${width}`, what]));
    }
  }
  const lines = findings(found);
  assert.equal(lines.length, 0, `\n${lines.join('\n')}`);
  assert.deepEqual(complaints, []);
});

test('a Direct Session that asks is first on Home, called what it is, and answered there', async (t) => {
  const { machine, page, complaints, seen, press, says, gone } = await opened(t, 'usual');
  await page.setViewport({ width: 1440, height: 900 });
  await machine.signIn(page, '/ui/');
  const asking = `${part('section-waiting')} ${row('atlas-api', 'running')}`;
  await says(`${asking} ${part('status-word')}`, 'Waiting for you');
  const facts = await page.$eval(asking, (element) => element.innerText);
  assert.match(facts, /Direct Session/);
  assert.match(facts, /git push origin/);
  assert.doesNotMatch(facts, /link/, 'it has no remote client');
  assert.match(await page.$eval(part('only-server'), (chip) => chip.innerText), /0$/);
  assert.match(await page.title(), /^\(1\)/);
  await press(`${asking} ${part('allow')}`);
  await seen(`${part('section-live')} ${row('atlas-api', 'running')}`);
  await gone(part('section-waiting'));
  assert.match(await page.$eval(part('only-direct'), (chip) => chip.innerText), /1$/);
  const { approvals } = await machine.api('/api/approvals?state=answered');
  assert.deepEqual(approvals.map(({ decision }) => decision), ['allow']);
  assert.deepEqual(complaints, []);
});
