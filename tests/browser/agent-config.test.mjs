// The agent's own configuration: edited, compared, saved, put back, and changed underneath, at desk
// and phone width.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';
import { part, person, until } from './person.mjs';
import { world } from './world.mjs';

const SECRET = 'hunter2hunter2hunter2';
let machine, browser, page, complaints, dir;
let seen, go, press, gone, says, pick, shot;

before(async () => {
  const config_write = { enabled: true, allow_user_scope: true };
  machine = await world({ ledger: { git: true }, other: {} }, { config_write });
  dir = join(machine.root, 'projects', 'ledger');
  mkdirSync(join(dir, '.claude'));
  browser = await launch();
  ({ page, complaints } = await tab(browser));
  ({ seen, go, press, gone, says, pick, shot } = person(page));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${machine.url}/ui/projects/ledger`, { waitUntil: 'load' });
});

after(async () => {
  await browser?.close();
  await machine?.close();
});

const settings = () => JSON.parse(readFileSync(join(dir, '.claude/settings.json'), 'utf8'));
const write = (value) =>
  writeFileSync(join(dir, '.claude/settings.json'), JSON.stringify(value, null, 2));
const at = (place) => `[data-at="${place}"]`;
const open = (surface, more = '') =>
  go(`/ui/agent-config/${surface}?project=ledger${more}`, `[data-part="${surface}"][data-scope]`);

/** Replaces the text of a field. */
async function fill(selector, text) {
  const field = await seen(selector);
  await field.evaluate((it) => it.scrollIntoView({ block: 'center' }));
  await field.focus();
  await field.evaluate((it) => it.select());
  if (text) await page.keyboard.type(text);
  else await page.keyboard.press('Backspace');
}

/** Types the word and saves; on a phone by way of the differences. */
async function save(word = 'ledger') {
  const bar = await page.$(part('config-to-review'));
  if (await bar?.isVisible()) await press(part('config-to-review'));
  await fill(part('config-typed'), word);
  await press(`${part('config-save')}:not([aria-disabled])`);
}

const hook = (command, timeout) => ({ hooks: [{ type: 'command', command, ...(timeout && { timeout }) }] });
const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

test('the page of a project leads to it, and the palette does', async () => {
  await press(part('agent-config-link'));
  await seen('[data-part="claude-md"][data-scope="project"]');
  assert.equal(await page.$eval(part('config-project'), (it) => it.value), 'ledger');
  await page.keyboard.down('Control');
  await page.keyboard.press('k');
  await page.keyboard.up('Control');
  await seen(part('palette-field'));
  await page.keyboard.type('agent config other');
  await seen('#palette [role=option]');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.search.includes('project=other'));
});

for (const [width, height, name] of [
  [1440, 900, 'desk'],
  [390, 844, 'phone'],
]) {
  test(`hooks are edited, compared, saved and put back, ${name}`, async () => {
    await page.setViewport({ width, height });
    write({ model: 'opus', hooks: { PostToolUse: [{ matcher: 'Edit', ...hook('npm run format') }] } });
    await go('/ui/agent-config?project=ledger', part('agent-config'));
    await open('hooks');
    await fill(at('/PostToolUse/0/matcher'), 'Edit|Write');
    await fill(at('/PostToolUse/0/hooks/0/timeout'), 'soon');
    await says('.help-error', 'number of seconds');
    await fill(at('/PostToolUse/0/hooks/0/timeout'), '30');
    await pick(part('hook-event'), 'Stop');
    await fill(at('/Stop/0/hooks/0/command'), './scripts/notify.sh "$SESSION"');
    await shot(`agent-config-${name}-form`);
    if (name === 'phone') await press(part('config-to-review'));
    await says(part('config-review-title'), '3 changes will be written');
    await fill(part('config-typed'), 'led');
    await says('#config-why', '3 letters missing');
    await shot(`agent-config-${name}-review`);
    assert.deepEqual(Object.keys(settings().hooks), ['PostToolUse'], 'nothing is written yet');
    assert.ok((await sideways()) <= 0, 'no sideways scrolling');
    await save();
    await gone(part('config-review'));
    assert.deepEqual(settings().hooks.PostToolUse[0], {
      matcher: 'Edit|Write',
      ...hook('npm run format', 30),
    });
    assert.equal(settings().model, 'opus', 'the rest of the file stays');
    if (name === 'desk') await says('.config-parts a[aria-current]', '2');

    await press(part('config-versions-open'));
    await press(part('config-compare'));
    await says(part('config-review-title'), 'comes back');
    await shot(`agent-config-${name}-undo`);
    await fill(part('config-typed'), 'ledger');
    await press(`${part('config-save')}:not([aria-disabled])`);
    await gone(part('config-review'));
    await until(() => settings().hooks.Stop === undefined);
    assert.equal(settings().hooks.PostToolUse[0].matcher, 'Edit');
  });

  test(`a file that changes underneath is never overwritten unseen, ${name}`, async () => {
    write({ hooks: { Stop: [hook('one')] } });
    await open('permissions');
    await open('hooks');
    await fill(at('/Stop/0/hooks/0/command'), 'mine');
    write({ model: 'sonnet', hooks: { Stop: [hook('one')], SessionEnd: [hook('theirs')] } });
    await save();
    await seen(`${part('config-meanwhile')}[data-open="false"]`);
    assert.equal(settings().hooks.Stop[0].hooks[0].command, 'one');
    await press(part('config-show-change'));
    await says(part('config-their-change'), 'SessionEnd');
    await shot(`agent-config-${name}-changed`);
    await save();
    await gone(part('config-review'));
    assert.deepEqual(Object.keys(settings().hooks).sort(), ['SessionEnd', 'Stop']);
    assert.equal(settings().hooks.Stop[0].hooks[0].command, 'mine');

    // The same place: the person decides.
    for (const [mine, choice, wanted] of [
      ['a', 'config-theirs', 'by hand'],
      ['b', 'config-mine', 'b'],
    ]) {
      await fill(at('/Stop/0/hooks/0/command'), mine);
      write({ hooks: { Stop: [hook('by hand')] } });
      await save();
      await seen(`${part('config-meanwhile')}[data-open="true"]`);
      assert.equal(settings().hooks.Stop[0].hooks[0].command, 'by hand');
      await press(part(choice));
      if (choice === 'config-mine') await save();
      await gone(part('config-review'));
      await until(() => settings().hooks.Stop[0].hooks[0].command === wanted);
      write({ hooks: { Stop: [hook('one')] } });
      await open('permissions');
      await open('hooks');
      await seen(at('/Stop/0/hooks/0/command'));
    }
  });
}

test('secrets stay where they are, and none is shown', async () => {
  await page.setViewport({ width: 1440, height: 900 });
  write({ env: { API_TOKEN: SECRET, DEBUG: '1' } });
  await open('settings');
  await fill(`[data-group="env"] li:last-child input[type=password]`, '2');
  const text = await page.$eval(part('agent-config'), (it) => it.innerText);
  const values = await page.$$eval('[data-group="env"] input[type=password]', (all) => all.map((it) => it.value));
  assert.ok(!text.includes(SECRET) && !values.includes(SECRET), `${text} ${values}`);
  await fill(`${part('config-new')} input`, 'hooks');
  await press(part('config-new-add'));
  await says('.help-error', 'a part of its own');
  await fill(`${part('config-new')} input`, 'model');
  await press(part('config-new-add'));
  await fill(at('/model'), 'opus');
  await save();
  await gone(part('config-review'));
  assert.deepEqual(settings(), { env: { API_TOKEN: SECRET, DEBUG: '2' }, model: 'opus' });
  await press(part('config-effective-open'));
  await says(part('config-effective'), 'opus');
});

test('edits are still there after a look at another part', async () => {
  await open('hooks');
  await pick(part('hook-event'), 'SessionEnd');
  await fill(at('/SessionEnd/0/hooks/0/command'), 'bye');
  await open('permissions');
  await seen(part('config-add'));
  await open('hooks');
  await seen(part('config-review'));
  assert.equal(await page.$eval(at('/SessionEnd/0/hooks/0/command'), (it) => it.value), 'bye');
  await press(part('config-discard'));
  await gone(part('config-review'));
  assert.equal(await page.$(at('/SessionEnd/0/hooks/0/command')), null);
  await open('claude-md');
  await fill(part('config-text'), 'never mind');
  await press(part('config-discard'));
  await gone(part('config-review'));
  assert.equal(await page.$eval(part('config-text'), (it) => it.value), '', 'the field is empty again');
  await open('permissions');
  await open('hooks');
  await seen(part('hook-event'));
  assert.equal(await page.$(part('config-review')), null);
});

test('rules are added, and what is wrong stands at its field', async () => {
  await open('permissions');
  await press(`[aria-label="Allow"] ${part('config-add')}`);
  await says('.help-error', 'Write a rule');
  await fill(at('/allow/0'), 'Bash(npm run test:*)');
  await pick(at('/defaultMode'), 'plan');
  await save();
  await gone(part('config-review'));
  assert.deepEqual(settings().permissions, { allow: ['Bash(npm run test:*)'], defaultMode: 'plan' });
  await press(part('config-raw-open'));
  await fill(at('/'), '{"allow": [}');
  await says('.help-error', 'line 1, column 12');
  await fill(at('/'), '{"defaultMode": "bypassPermissions"}');
  await save();
  await says(part('config-refused'), 'defaultMode');
  await press(part('config-discard'));
});

test('a server is added, edited, removed and decided about', async () => {
  await open('mcp');
  await fill(`${part('config-new')} input`, 'mine');
  await press(part('config-new-add'));
  await fill(at('/mine/command'), 'npx');
  await press(`[aria-label="Arguments"] ${part('config-add')}`);
  await fill(at('/mine/args/0'), '-y');
  await press(`[aria-label="Environment variables"] ${part('config-add')}`);
  await fill('[data-group="mine-env"] li:last-child input[type=text]', 'KEY');
  await fill('[data-group="mine-env"] input[type=password]', SECRET);
  assert.ok(!(await page.$eval(part('config-review'), (it) => it.innerText)).includes(SECRET));
  await save();
  await gone(part('config-review'));
  const file = () => JSON.parse(readFileSync(join(dir, '.mcp.json'), 'utf8')).mcpServers;
  assert.deepEqual(file(), { mine: { command: 'npx', args: ['-y'], env: { KEY: SECRET } } });

  await open('approvals');
  await press(`[data-name="mine"] ${part('config-decide')}`);
  await save();
  await gone(part('config-review'));
  const decided = await machine.api('/api/config-write/mcp/approvals?project=ledger');
  assert.deepEqual(decided.enabled, ['mine']);

  await open('mcp', '&scope=user');
  await fill(`${part('config-new')} input`, 'remote');
  await press(part('config-new-add'));
  await pick('[data-server="remote"] select', 'http');
  await fill(at('/remote/url'), 'ftp://x');
  await says('.help-error', 'begins with https://');
  await fill(at('/remote/url'), 'https://mcp.example/x');
  await save('USER SCOPE');
  await gone(part('config-review'));
  const { servers } = await machine.api('/api/config-write/mcp?scope=user');
  assert.deepEqual(servers, { remote: { type: 'http', url: 'https://mcp.example/x' } });

  await open('mcp');
  await press(`[data-server="mine"] .config-group-head ${part('config-remove')}`);
  await save();
  await gone(part('config-review'));
  assert.deepEqual(file(), {});
});

test('a subagent is made, changed, removed, and its text is still there', async () => {
  await open('subagents');
  await fill(`${part('config-new')} input`, 'Bad Name');
  await press(part('config-new-add'));
  await says('.help-error', 'small letters');
  await fill(`${part('config-new')} input`, 'reviewer');
  await press(part('config-new-add'));
  await seen(part('config-text'));
  await fill(part('config-text'), '---\nname: reviewer\ndescription: Reads changes.\n---\n\nBe brief.\n');
  await save();
  await gone(part('config-review'));
  const file = join(dir, '.claude/agents/reviewer.md');
  assert.ok(readFileSync(file, 'utf8').includes('Be brief.'));
  await shot('agent-config-subagent');
  await press(part('config-delete'));
  await fill(part('config-delete-typed'), 'ledger');
  await press(`${part('config-delete-yes')}:not([aria-disabled])`);
  await seen(part('config-new'));
  assert.ok(!existsSync(file));
  await open('subagents', '&name=reviewer');
  await press(part('config-discard'));
  await press(part('config-versions-open'));
  await press(part('config-compare'));
  await fill(part('config-typed'), 'ledger');
  await press(`${part('config-save')}:not([aria-disabled])`);
  await until(() => existsSync(file));
});

test('plugins come and go by the agent itself, after two words', async () => {
  const market = join(machine.root, 'market');
  mkdirSync(join(market, '.claude-plugin'), { recursive: true });
  mkdirSync(join(market, 'one/.claude-plugin'), { recursive: true });
  writeFileSync(
    join(market, '.claude-plugin/marketplace.json'),
    JSON.stringify({ name: 'market', owner: { name: 'x' }, plugins: [{ name: 'one', source: './one' }] }),
  );
  writeFileSync(join(market, 'one/.claude-plugin/plugin.json'), JSON.stringify({ name: 'one', version: '1.0.0' }));
  await open('marketplaces');
  await fill(`${part('config-new')} input`, market);
  await press(part('config-new-add'));
  await fill(part('plugin-typed'), 'ledger');
  await press(`${part('plugin-yes')}:not([aria-disabled])`);
  await seen('[data-name="market"]');
  await open('plugins');
  await fill(`${part('config-new')} input`, 'one@market');
  await press(part('config-new-add'));
  await fill(part('plugin-typed'), 'ledger');
  await says(part('plugin-ask'), '10 letters missing');
  await fill(part('plugin-again'), 'one@market');
  await shot('agent-config-plugin');
  await press(`${part('plugin-yes')}:not([aria-disabled])`);
  await seen('[data-name="one@market"]');
  assert.deepEqual(settings().enabledPlugins, { 'one@market': true });
  await press(part('plugin-details'));
  await says(part('config-output'), 'Component inventory');
  await press(part('plugin-disable'));
  await fill(part('plugin-typed'), 'ledger');
  await press(`${part('plugin-yes')}:not([aria-disabled])`);
  await seen(part('plugin-enable'));
  assert.deepEqual(settings().enabledPlugins, { 'one@market': false });
});

test('instructions and skills of each scope have their own file', async () => {
  await open('claude-md', '&scope=local');
  await fill(part('config-text'), 'Only for me.');
  await save('ledger (local)');
  await gone(part('config-review'));
  assert.equal(readFileSync(join(dir, 'CLAUDE.local.md'), 'utf8'), 'Only for me.');
  await open('skills');
  await seen('[aria-label="Skills with their files"] ' + part('config-new'));
  await fill(`.config-body > ${part('config-new')} input`, 'deploy');
  await press(`.config-body > ${part('config-new')} ${part('config-new-add')}`);
  await pick(at('/deploy'), 'name-only');
  await save();
  await gone(part('config-review'));
  assert.deepEqual(settings().skillOverrides, { deploy: 'name-only' });
});

test('a skill is made with a script that was read, changed and removed', async () => {
  await open('skills');
  await fill(`[aria-label="Skills with their files"] ${part('config-new')} input`, '../x');
  await press(`[aria-label="Skills with their files"] ${part('config-new-add')}`);
  await says('.help-error', 'Use letters');
  await fill(`[aria-label="Skills with their files"] ${part('config-new')} input`, 'release');
  await press(`[aria-label="Skills with their files"] ${part('config-new-add')}`);
  await seen(part('config-text'));
  await save();
  await gone(part('config-review'));
  const skill = join(dir, '.claude/skills/release');
  assert.ok(readFileSync(join(skill, 'SKILL.md'), 'utf8').includes('name: release'));
  await fill(`${part('config-new')} input`, 'scripts/run.sh');
  await press(part('config-new-add'));
  await seen('[data-file="scripts/run.sh"][aria-pressed="true"]');
  await fill(part('config-text'), 'echo done\n');
  await fill(part('config-typed'), 'ledger');
  await says('#config-why', '29 letters missing');
  await fill(part('config-reviewed'), 'I HAVE REVIEWED THESE SCRIPTS');
  await shot('agent-config-skill');
  await press(`${part('config-save')}:not([aria-disabled])`);
  await gone(part('config-review'));
  assert.equal(readFileSync(join(skill, 'scripts/run.sh'), 'utf8'), 'echo done\n');
  await press(part('config-delete'));
  await fill(part('config-delete-typed'), 'ledger');
  await press(`${part('config-delete-yes')}:not([aria-disabled])`);
  await until(() => !existsSync(skill));
  await seen(part('config-new'));
});

test('a file that cannot be read has no editor', async () => {
  writeFileSync(join(dir, '.claude/settings.json'), '{ not json');
  await open('claude-md');
  await open('hooks');
  await seen(part('config-unread'));
  assert.equal(await page.$(part('hook-event')), null);
  // The browser itself notes each refusal.
  const known = /409|422|400|Password field/;
  assert.ok(complaints.every((line) => known.test(line)), complaints.join('\n'));
});
