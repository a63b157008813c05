// Off the own machine: behind nginx with TLS, below a path, in Chromium and in Firefox.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, launchFirefox, tab } from './harness.mjs';
import { installed, nginx } from './nginx.mjs';
import { part, person, row } from './person.mjs';
import { freePort, world } from './world.mjs';

const PASSWORD = 'correct horse';
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q$dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk';

const missing = ['nginx', 'openssl'].find((name) => !installed(name));
const firefox = process.env.FIREFOX ?? installed('firefox-esr', 'firefox');

let machine, proxy, origin;

before(async () => {
  if (missing) return;
  const port = await freePort();
  origin = `https://localhost:${port}`;
  machine = await world(
    { api: {}, web: { git: true } },
    {
      root_path: '/svc',
      claude: { pty_screen_enabled: true },
      auth: {
        enabled: true,
        password_required: true,
        password_hash: HASH,
        allowed_origins: [origin],
        reverse_proxy: { trusted_ips: ['127.0.0.1'] },
      },
    },
    PASSWORD,
  );
  proxy = await nginx(machine.root, port, machine.url);
});

after(async () => {
  await proxy?.close();
  await machine?.close();
});

/** Sign-in, live page, log, terminal and sign-out, as somebody elsewhere does them. */
async function day(browser) {
  const { page, complaints } = await tab(browser);
  const { seen, press, says, shot } = person(page);
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(`${origin}/svc/ui/`, { waitUntil: 'load' });
  assert.equal(new URL(page.url()).pathname, '/svc/login');
  await page.type('input[type=password]', PASSWORD);
  await Promise.all([page.waitForNavigation({ waitUntil: 'load' }), page.keyboard.press('Enter')]);
  assert.equal(new URL(page.url()).pathname, '/svc/ui/');
  await seen(part('section-projects'));

  const cookies = await page.cookies();
  assert.equal(cookies.length, 1, JSON.stringify(cookies));
  const [{ name, secure, httpOnly, sameSite, path, domain }] = cookies;
  assert.match(name, /^svc_session_[0-9a-f]{12}$/);
  assert.deepEqual(
    { secure, httpOnly, sameSite, path, domain },
    { secure: true, httpOnly: true, sameSite: 'Lax', path: '/svc', domain: 'localhost' },
  );
  const seenByScripts = await page.evaluate(() => document.cookie);
  assert.equal(seenByScripts, '');

  // The page hears of what others do.
  await machine.cli('start', 'api', '--wait', '20');
  await seen(row('api', 'running'));
  await machine.cli('start', 'web', '--mode', 'pty', '--wait', '20');
  await seen(row('web', 'running'));
  const rows = await machine.api('/api/instances');
  const id = (project) =>
    rows.find((one) => one.project === project && one.status === 'running').instance_id;

  await page.goto(`${origin}/svc/ui/s/${id('api')}`, { waitUntil: 'load' });
  await says(part('log-line'), 'Starting poll loop');
  await page.goto(`${origin}/svc/ui/s/${id('web')}`, { waitUntil: 'load' });
  await press('#tab-terminal');
  await seen('.term-screen .term-row span');
  await shot('terminal-behind-nginx');
  for (const project of ['api', 'web']) await machine.cli('stop', id(project));

  for (const away of [part('rail-sign-out'), 'form button']) {
    await Promise.all([page.waitForNavigation({ waitUntil: 'load' }), page.click(away)]);
  }
  assert.equal(new URL(page.url()).pathname, '/svc/login');
  assert.deepEqual(await page.cookies(), []);
  await page.goto(`${origin}/svc/ui/projects`, { waitUntil: 'load' });
  assert.equal(new URL(page.url()).pathname, '/svc/login');
  const heard = [...complaints];
  await refuses(page, complaints);
  return heard;
}

/** What the policy refuses here is refused, and heard of: an empty list means something. */
async function refuses(page, complaints) {
  const directive = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const told = (event) => resolve(event.effectiveDirective);
        document.addEventListener('securitypolicyviolation', told, { once: true });
        const script = document.createElement('script');
        script.textContent = 'window.ranInline = true';
        document.head.append(script);
      }),
  );
  assert.match(directive, /^script-src/);
  assert.equal(await page.evaluate(() => window.ranInline), undefined);
  // Firefox tells of it as of an error, in words of its own.
  assert.match(complaints.join('\n'), /refused: script-src|Content-Security-Policy: .*script-src/);
}

test('a day below a path of nginx over TLS, in Chromium', async (t) => {
  if (missing) return t.skip(`${missing} is not installed`);
  const browser = await launch(['--ignore-certificate-errors']);
  try {
    assert.deepEqual(await day(browser), []);
  } finally {
    await browser.close();
  }
});

test('a day below a path of nginx over TLS, in Firefox', async (t) => {
  if (missing) return t.skip(`${missing} is not installed`);
  if (!firefox) return t.skip('firefox-esr is not installed');
  const browser = await launchFirefox(firefox);
  try {
    assert.deepEqual(await day(browser), []);
  } finally {
    await browser.close();
  }
});
