// A machine on which every view has something to show: sessions of all kinds, changes, worktrees,
// conversations, usage, requests, devices, tokens, settings. All parts are real.

import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

import { part, until } from './person.mjs';
import { world } from './world.mjs';

const PASSWORD = 'correct horse';
const HASH =
  '$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q$dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk';
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1';
const SECRET = `sk-ant-api03-${'a1B2'.repeat(10)}`;
const CONVERSATION = '0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1';

/**
 * `web` and `talk` are the names of its projects, `words` is what is said in them; a long text
 * without a blank shows what has no place to break.
 */
export async function busy({ web, talk, words }) {
  const tool = { name: 'Bash', input: { command: `git push origin ${words}` }, ask: true };
  const replies = [{ match: '^push', chunks: [`First I push ${words}`], tool }, { chunks: [words] }];
  const auth = { enabled: true, password_required: true, password_hash: HASH };
  const machine = await world(
    { [web]: { git: true }, [talk]: { knobs: { hosted: { replies } } } },
    {
      auth,
      hosted: { enabled: true },
      config_write: { enabled: true },
      claude: { pty_screen_enabled: true },
    },
    PASSWORD,
  );
  const root = join(machine.root, 'projects', web);
  const git = (...args) =>
    execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@b.invalid', ...args], {
      env: machine.env,
    });
  const folder = `src/${words.slice(0, 60)}`;
  const file = `${folder}/session-${words.slice(0, 80)}.ts`;
  mkdirSync(join(root, folder), { recursive: true });
  const lines = Array.from({ length: 60 }, (_, at) => `const line${at + 1} = ${at + 1};`);
  writeFileSync(join(root, file), `${lines.join('\n')}\n`);
  writeFileSync(join(root, 'gone.txt'), 'bye\n');
  writeFileSync(join(root, 'CLAUDE.md'), `# Rules\n\nWrite the test first. ${words}\n`);
  writeFileSync(join(root, '.gitignore'), '.claude/\n');
  git('add', '.');
  git('commit', '-q', '-m', 'first');

  const said = join(machine.root, 'agent', 'projects', root.replace(/[^A-Za-z0-9]/g, '-'));
  mkdirSync(said, { recursive: true });
  const record = (role, content, more) =>
    appendFileSync(
      join(said, `${CONVERSATION}.jsonl`),
      `${JSON.stringify({
        type: role,
        cwd: root,
        isSidechain: false,
        timestamp: new Date().toISOString(),
        message: { role, content, ...more },
      })}\n`,
    );
  record('user', `Users are signed out too early. Find out why. ${words}`);
  for (const n of [1, 2, 3]) {
    record(
      'assistant',
      [
        { type: 'thinking', thinking: 'The clock went back.' },
        { type: 'text', text: `The cause is \`age = now() - issued_at\`.\n\n- first\n- ${words}\n\n\`\`\`\n${words}\n\`\`\`` },
        { type: 'tool_use', name: 'Bash', input: { command: `npm test -- ${words}` } },
      ],
      {
        id: `m${n}`,
        model: n === 3 ? `model-without-price-${words.slice(0, 60)}` : 'claude-opus-4-5-20251101',
        usage: { input_tokens: 1_000_000, output_tokens: 200_000, cache_read_input_tokens: 4_000_000 },
      },
    );
    record('user', [{ type: 'tool_result', content: `3 passed ${words}` }]);
    record('user', `question ${n}`);
  }

  await machine.cli('start', web, '--mode', 'pty', '--spawn-mode', 'worktree', '--wait', '20');
  const session = (await machine.api('/api/instances')).find(({ project }) => project === web);
  const tree = join(root, '.claude/worktrees', session.worktree_name);
  lines[3] = `const line4 = "${words}";`;
  lines.splice(49, 1, 'const line50 = now();', `const key = "${SECRET}";`);
  writeFileSync(join(tree, file), `${lines.join('\n')}\n`);
  writeFileSync(join(tree, 'notes of mine.txt'), 'one\ntwo\n');
  writeFileSync(join(tree, 'picture.png'), Buffer.from([0x89, 0x50, 0, 1, 2]));
  rmSync(join(tree, 'gone.txt'));

  await machine.cli('start', talk, '--mode', 'hosted', '--name', words.slice(0, 120));
  const direct = (await machine.api('/api/hosted'))[0];
  await machine.cli('message', direct.instance_id, 'push the branch');
  await until(async () => (await machine.api('/api/approvals')).approvals.length === 1);

  await machine.cli('api-token', 'issue', `status ${words.slice(0, 50)}`, '--scope', 'read');
  await machine.cli('api-token', 'issue', 'nightly jobs', '--expires', '30d');
  const headers = { 'Content-Type': 'application/json', Origin: machine.url, 'User-Agent': IPHONE };
  await machine.ask('/login', { method: 'POST', headers, body: JSON.stringify({ password: PASSWORD }) });

  const { sessions } = await machine.api(`/api/projects/${web}/transcripts`);
  const { conversation: ref } = sessions.at(-1);
  const project = `/ui/projects/${web}`;
  /** Address, and what is there once the view is. */
  const views = [
    ['/ui/', part('section-projects')],
    ['/ui/inbox', part('inbox-item')],
    ['/ui/projects', part('project-row')],
    [`${project}?tab=conversations`, part('conversation')],
    [`${project}?tab=changes`, part('changes')],
    [`${project}?tab=worktrees`, part('worktree')],
    [`${project}?tab=instructions`, part('instructions')],
    [`${project}?tab=activity`, part('event')],
    [`${project}/c/${ref}`, part('turn')],
    [`/ui/s/${session.instance_id}?tab=changes`, part('changes-file')],
    [`/ui/s/${session.instance_id}?tab=changes&file=${encodeURIComponent(file)}`, part('diff')],
    [`/ui/s/${session.instance_id}?tab=terminal`, part('terminal-rows')],
    [`/ui/s/${session.instance_id}?tab=details`, part('details')],
    [`/ui/s/${direct.instance_id}`, part('question')],
    ['/ui/usage?range=all', part('usage-row')],
    ['/ui/tokens', part('token')],
    ['/ui/settings', part('settings')],
    ['/ui/doctor', part('check')],
    ['/ui/about', part('about')],
  ];

  /** Signs a tab in at an address. */
  async function signIn(page, path) {
    await page.goto(machine.url + path, { waitUntil: 'load' });
    await page.waitForSelector('input[type=password]', { visible: true });
    await page.type('input[type=password]', PASSWORD);
    await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  }

  async function close() {
    for (const row of await machine.api('/api/hosted')) {
      if (row.status === 'running') await machine.cli('stop', row.instance_id);
    }
    // The daemon outlives the service on purpose.
    const dir = join(machine.root, 'state', 'hosted');
    const token = readFileSync(join(dir, 'token'), 'utf8').trim();
    const socket = connect(join(dir, 'daemon.sock'));
    const shutdown = { jsonrpc: '2.0', id: 1, method: 'server.shutdown', params: {}, auth: token };
    socket.write(`${JSON.stringify(shutdown)}\n`);
    await new Promise((resolve) => socket.on('close', resolve).on('error', resolve).resume());
    await machine.close();
  }

  return { ...machine, views, signIn, close };
}
