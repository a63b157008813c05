// A git server on this machine that a service with fail points takes for one in the internet.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { given } from './harness.mjs';

/** Why a test that clones cannot run here. */
export const skip = process.env.SVC_FAILPOINTS_BIN ? false : 'needs a service with fail points';

/**
 * Serves `https://git.test/plain/NAME` and `/held/NAME`, which waits for `open()`. `repository`
 * makes one of files; `variables` belong into the environment of the service.
 */
export async function gitServer() {
  process.env.SVC_BIN = process.env.SVC_FAILPOINTS_BIN;
  const root = mkdtempSync(join(tmpdir(), 'svc-git-'));
  const program = join(dirname(given('SVC_SIM_BIN')), 'svc-git-server');
  const server = spawn(program, [root], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [port] = await once(createInterface({ input: server.stdout }), 'line');
  const points = `clone.dns=git.test:1.1.1.1/inside.test:10.0.0.1;clone.dial=1.1.1.1:443>127.0.0.1:${port}`;
  const variables = {
    SVC_FAILPOINTS: points,
    GIT_SSL_CAINFO: fileURLToPath(new URL('../git-server/ca.pem', import.meta.url)),
  };
  const repository = (name, files) => {
    const dir = join(root, name);
    mkdirSync(dir);
    const run = (...args) =>
      execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', ...args], {
        cwd: dir,
        env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
      });
    run('init', '-q', '-b', 'main');
    for (const [file, content] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, file)), { recursive: true });
      writeFileSync(join(dir, file), content);
    }
    run('add', '-A');
    run('commit', '-q', '-m', 'one');
  };
  const open = () => writeFileSync(join(root, 'open'), '');
  const close = () => {
    server.stdin.end();
    rmSync(root, { recursive: true, force: true });
  };
  return { repository, variables, open, close };
}
