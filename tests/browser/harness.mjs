// Starts what a browser test needs: a real Chromium, pages that record every complaint, and a
// service of its own. `cargo xtask test` sets the environment that is read here.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Long enough for a busy machine with two cores; nothing waits for it when all is well. */
export const DEADLINE_MS = 60_000;

/** Address of a module with views that are not in the page's own. */
export const IS_LATE_MODULE = /\/static\/svc-web-(sessions|owner|chunk[^/]*)-[0-9a-f]+\.wasm$/;

const CHROMIUM_FLAGS = [
  '--no-sandbox', // tests run as root in containers, and only open pages of their own
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
];

export function given(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run the tests by \`cargo xtask test\``);
  return value;
}

/** The driver, which lies outside the checkout, where `import` does not look. */
function driver() {
  const require = createRequire(join(given('SVC_BROWSER_MODULES'), 'resolve.js'));
  return require('puppeteer-core').default;
}

/** A headless Chromium with a profile of its own, and `more` flags. The caller closes it. */
export async function launch(more = []) {
  return driver().launch({
    executablePath: given('CHROMIUM'),
    args: [...CHROMIUM_FLAGS, ...more],
    timeout: DEADLINE_MS,
    protocolTimeout: DEADLINE_MS,
  });
}

/** A headless Firefox, driven by WebDriver BiDi, that takes any certificate. */
export async function launchFirefox(program) {
  return driver().launch({
    browser: 'firefox',
    executablePath: program,
    acceptInsecureCerts: true,
    timeout: DEADLINE_MS,
    protocolTimeout: DEADLINE_MS,
  });
}

/**
 * A new tab. `complaints` collects what a person with open developer tools would see: console
 * messages, uncaught errors, refused content, failed requests. A good page leaves it empty.
 */
export async function tab(browser) {
  const page = await browser.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  const complaints = [];
  page.on('console', (message) => complaints.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? '';
    // Firefox tells of a request that was under way when the page was left.
    if (why === 'NS_BINDING_ABORTED') return;
    // The modules of the other views come in the background, also when the page is left meanwhile.
    if (why === 'net::ERR_ABORTED' && IS_LATE_MODULE.test(request.url())) return;
    complaints.push(`failed: ${request.url()} ${why}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()}: ${response.url()}`);
  });
  await page.exposeFunction('__refused', (text) => complaints.push(`refused: ${text}`));
  await page.evaluateOnNewDocument(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      window.__refused(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  return { page, complaints };
}

/**
 * Runs `without`, which takes the service away, while the tab shows nothing: a page that is open
 * rightly complains about a service that went, and not always at once.
 */
export async function away({ page, complaints }, without) {
  const before = complaints.length;
  await page.goto('about:blank');
  await without();
  complaints.length = before;
}

/**
 * Starts `svc` with `args`, `svc demo` when none are given, and waits for the address it prints.
 * `stop` asks it to end as a terminal would and answers with its exit code.
 */
export async function serve({ args = ['demo'], env = {}, cwd } = {}) {
  const child = spawn(given('SVC_BIN'), args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = [];
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
  const url = await new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`svc ${args.join(' ')} ${why}:\n${said.join('\n')}`));
    const late = setTimeout(() => {
      child.kill('SIGKILL');
      fail('printed no address');
    }, DEADLINE_MS);
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        said.push(line);
        const address = line.match(/http:\/\/[\d.]+:\d+/);
        if (address) {
          clearTimeout(late);
          resolve(address[0]);
        }
      });
    }
    ended.then(
      (code) => {
        clearTimeout(late);
        fail(`ended with ${code}`);
      },
      (error) => {
        clearTimeout(late);
        reject(error);
      },
    );
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const insist = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS);
    const code = await ended;
    clearTimeout(insist);
    return code;
  };
  return { url, said, pid: child.pid, stop };
}
