// nginx with the file of docs/proxies, in front of a service of a test.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';

import { DEADLINE_MS } from './harness.mjs';

const SITE = join(import.meta.dirname, '../../docs/proxies/nginx.conf');

/** A program that is installed here, by the first of its names. */
export function installed(...names) {
  const dirs = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/bin'];
  const places = names.flatMap((name) => dirs.map((dir) => join(dir, name)));
  return places.find((place) => existsSync(place));
}

/** Serves `https://localhost:port/svc/` until it is closed; the service listens at `service`. */
export async function nginx(root, port, service) {
  const dir = join(root, 'edge');
  mkdirSync(dir);
  const pair = ['-keyout', join(dir, 'edge.key'), '-out', join(dir, 'edge.crt')];
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...kind, ...pair, ...name], {
    stdio: 'ignore',
  });
  const site = readFileSync(SITE, 'utf8')
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
    .replaceAll('/etc/ssl/SVC.EXAMPLE.ORG', `${dir}/edge`)
    .replaceAll('SVC.EXAMPLE.ORG', 'localhost')
    .replaceAll('127.0.0.1:7621', new URL(service).host);
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${dir}/${kind};`)
    .join('\n');
  const config = join(dir, 'nginx.conf');
  writeFileSync(
    config,
    `daemon off;\nmaster_process off;\npid ${dir}/nginx.pid;\nerror_log stderr notice;\n` +
      `events {}\nhttp {\naccess_log off;\n${places}\n${site}}\n`,
  );
  const child = spawn(installed('nginx'), ['-e', 'stderr', '-c', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said = [];
  await new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`nginx did not serve:\n${said.join('\n')}`));
    const late = setTimeout(fail, DEADLINE_MS);
    child.once('error', reject);
    child.once('exit', fail);
    createInterface({ input: child.stderr }).on('line', (line) => {
      said.push(line);
      // It says so once its sockets are open.
      if (line.includes('event method')) {
        clearTimeout(late);
        child.removeListener('exit', fail);
        resolve();
      }
    });
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    close: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
