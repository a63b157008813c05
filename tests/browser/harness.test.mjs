// The harness notices what it exists to notice: every other test trusts an empty list.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { launch, tab } from './harness.mjs';

let browser;
let server;
let root;

before(async () => {
  const pages = {
    '/quiet': '<link rel="icon" href="data:,"><p>nothing to say</p>',
    '/loud': '<link rel="icon" href="data:,"><script nonce="n">console.info("hello")</script>',
    '/inline': '<link rel="icon" href="data:,"><p style="color: red">refused</p>',
    '/thrown': '<link rel="icon" href="data:,"><script nonce="n">throw new Error("oh")</script>',
    '/missing': '<link rel="icon" href="data:,"><img src="/nowhere.png">',
  };
  server = createServer((request, response) => {
    const body = pages[request.url];
    response.writeHead(body ? 200 : 404, {
      'content-type': 'text/html',
      'content-security-policy': "default-src 'self'; img-src 'self' data:; script-src 'nonce-n'",
    });
    response.end(`<!doctype html>${body ?? ''}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  root = `http://127.0.0.1:${server.address().port}`;
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.close();
});

async function complaintsOf(path) {
  const { page, complaints } = await tab(browser);
  await page.goto(root + path, { waitUntil: 'networkidle0' });
  await page.close();
  return complaints.join('\n');
}

test('a page without faults leaves no complaint', async () => {
  assert.equal(await complaintsOf('/quiet'), '');
});

test('every console message is a complaint', async () => {
  assert.match(await complaintsOf('/loud'), /console info: hello/);
});

test('content refused by the policy is a complaint', async () => {
  assert.match(await complaintsOf('/inline'), /refused: style-src/);
});

test('an uncaught error is a complaint', async () => {
  assert.match(await complaintsOf('/thrown'), /uncaught: oh/);
});

test('a missing file is a complaint', async () => {
  assert.match(await complaintsOf('/missing'), /404: .*nowhere\.png/);
});
