// Stands in for the service: answers the page from SAMPLES, so that every component can be looked
// at in every state without a record of this machine. `?state=` is one of loading, empty, error,
// stale; `?theme=` is light or dark. Nothing that is pressed here leaves the browser.
//
// The tests that compare pictures lay this over the real page, with SVC_FROZEN set: then time
// stands still.
(() => {
  const frozen = globalThis.SVC_FROZEN === true;
  const asked = new URLSearchParams(location.search);
  const state = asked.get('state') ?? '';
  const begin = Date.parse(SAMPLES.now);
  const loaded = performance.now();
  let later = 0;
  Date.now = () => begin + later + (frozen ? 0 : Math.floor(performance.now() - loaded));
  if (frozen) Math.random = () => 0.5;

  // What this browser keeps for the real page stays as it is.
  for (const name of ['localStorage', 'sessionStorage']) {
    const kept = new Map();
    const value = {
      get length() {
        return kept.size;
      },
      key: (at) => [...kept.keys()][at] ?? null,
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, text) => kept.set(key, String(text)),
      removeItem: (key) => kept.delete(key),
    };
    Object.defineProperty(globalThis, name, { value });
  }
  const theme = asked.get('theme');
  let prefs = { prefs: theme === 'light' || theme === 'dark' ? { theme } : {}, rev: 0 };
  localStorage.setItem('svc.prefs', JSON.stringify(prefs));
  dispatchEvent(new Event('svc-theme'));

  const each = (records, usual, id) =>
    Object.fromEntries(
      Object.entries(records).map(([key, more]) => [key, { ...usual, [id]: key, ...more }]),
    );
  const sessions = (lists) =>
    Object.fromEntries(
      Object.entries(lists).map(([key, list]) => [
        key,
        list.map((more) => ({ ...SAMPLES.session, ...more })),
      ]),
    );
  const nothing = {
    projects: {},
    instances: {},
    jobs: {},
    external: {},
    tracked: {},
    adoptable: [],
  };
  const everything = () => ({
    projects: each(SAMPLES.projects, SAMPLES.project, 'name'),
    instances: each(SAMPLES.instances, SAMPLES.instance, 'instance_id'),
    jobs: each(SAMPLES.jobs, SAMPLES.job, 'id'),
    external: sessions(SAMPLES.external),
    tracked: sessions(SAMPLES.tracked),
    adoptable: SAMPLES.adoptable,
  });
  const records = () => ({
    ...(state === 'empty' ? nothing : everything()),
    clones: state === 'empty' ? {} : SAMPLES.clones,
    preflight: {},
    health: SAMPLES.health,
    login: null,
    shepherd: null,
    counts: {},
  });

  // What the bridges use: waves that are the same on every visit.
  const STEP_MS = 4_000;
  const USED = {
    running: true,
    procs: 3,
    cpu_normalized: true,
    disk_read_bps: null,
    disk_write_bps: null,
  };
  const wave = (id, at) => {
    const seed = Number.parseInt(id.slice(0, 8), 16) % 97;
    const turn = at / STEP_MS / 6 + seed;
    const cpu = Math.max(0, 4 + (seed % 30) + 9 * Math.sin(turn) + 5 * Math.sin(3.1 * turn));
    return { cpu_percent: Math.round(cpu * 10) / 10, rss_bytes: (180 + 4 * seed) * 1024 * 1024 };
  };
  const measured = (at, more) =>
    Object.fromEntries(
      Object.entries(state === 'empty' ? {} : SAMPLES.instances)
        .filter(([, { status }]) => status === 'running')
        .map(([id]) => [id, { ...USED, ...wave(id, at), ...more(id) }]),
    );
  const past = (id) => ({
    history: Array.from({ length: 60 }, (_, back) => {
      const at = begin - (60 - back) * STEP_MS;
      return { time: new Date(at).toISOString(), ...wave(id, at) };
    }),
  });

  const reply = (body, status = 200) =>
    new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });
  const refusal = (status, code, detail) => reply({ detail, code }, status);
  const reads = {
    bootstrap: () => {
      const auth = { ...SAMPLES.bootstrap.auth, allowed_origins: [location.origin] };
      return { ...SAMPLES.bootstrap, auth, ui_prefs: prefs };
    },
    state: () => ({ boot: 'samples', seq: 1, state: records() }),
    doctor: () => SAMPLES.doctor,
    restore: () => (state === 'empty' ? { candidates: [], job: null } : SAMPLES.restore),
    stranded: () => SAMPLES.stranded,
    keepers: () => (state === 'empty' ? [] : SAMPLES.keepers),
    history: (query) => {
      const is = (name, value) => !query.has(name) || query.get(name) === value;
      const events = SAMPLES.history.events.filter(
        (event) => is('instance', event.instance_id) && is('project', event.project),
      );
      return { events: state === 'empty' ? [] : events, next_before: null };
    },
    report: () => ({
      cause: 'Killed by signal KILL (137), possibly out of memory.',
      evidence: ['The signal did not come from this service.'],
      next: [{ says: 'Go on with the same conversation:', command: 'svc resume a1c25d38' }],
      output: [{ source: 'output', lines: ['out of memory: worker 4'] }],
      markdown: '# crash-demo',
    }),
    log: () => ({ lines: [], first: null, cursor: '2:0', generation: 2, eof: true }),
    preflight: () => SAMPLES.preflight,
    metrics: () => measured(begin, past),
    'ui-prefs': () => prefs,
    approvals: () => ({ approvals: state === 'empty' ? [] : [SAMPLES.approval_edit] }),
    'approvals/edit': () => SAMPLES.approval_edit,
    [`approvals/${SAMPLES.approval.request_id}`]: () => SAMPLES.approval,
    sortmeta: () =>
      Object.fromEntries(
        Object.keys(SAMPLES.projects).map((name, at) => {
          const last_used = new Date(begin - at * at * 3_600_000).toISOString();
          return [name, { last_used, cost_usd: null }];
        }),
      ),
  };
  const configuration = (path) => {
    const { agent_config: samples } = SAMPLES;
    if (state === 'error') return refusal(422, 'invalid_value', samples.refusal);
    const answer = samples[path] ?? samples[path.split('/')[0]];
    return answer ? reply({ scope: 'project', exists: true, hash: 'a', ...answer }) : null;
  };
  const answer = (request, path, query) => {
    const { method } = request;
    const tail = path.split('config-write/')[1];
    if (tail && method === 'GET') return configuration(tail);
    if (method === 'PUT' && path === 'ui-prefs') {
      return request.json().then((next) => reply((prefs = { ...next, rev: prefs.rev + 1 })));
    }
    if (method !== 'GET') {
      const why = 'These are samples: nothing is sent to the service.';
      return refusal(403, 'capability_disabled', why);
    }
    const read = Object.keys(reads).find((name) => path === name || path.endsWith(`/${name}`));
    if (!read) return null;
    if (state === 'loading') return new Promise(() => {});
    if (state === 'error') return refusal(503, 'busy', 'The registry is busy.');
    return reply(reads[read](query));
  };
  const real = globalThis.fetch.bind(globalThis);
  globalThis.fetch = async (target, options) => {
    const request = new Request(target, options);
    const { pathname, searchParams } = new URL(request.url);
    const path = pathname.split('/api/')[1];
    return (path && answer(request, path, searchParams)) || real(target, options);
  };
  if (state === 'loading') {
    // Nobody loses patience: a request that stays without answer is what is shown.
    const timer = globalThis.setTimeout.bind(globalThis);
    globalThis.setTimeout = (run, wait, ...rest) =>
      wait >= 20_000 ? 0 : timer(run, wait, ...rest);
  }

  let isLost = false;
  globalThis.WebSocket = class {
    static CONNECTING = 0;
    constructor(url) {
      this.readyState = 0;
      setTimeout(() => this.begin(new URL(url).pathname), 0);
    }

    begin(path) {
      if (isLost) return; // the next try never ends
      this.readyState = 1;
      this.onopen?.(new Event('open'));
      if (path.includes('/ws/bridge-log/')) {
        SAMPLES.log.forEach((frame) => this.say(frame));
        return;
      }
      if (path.includes('/ws/hosted/')) {
        SAMPLES.hosted.forEach((frame) => this.say(frame));
        return;
      }
      if (path.includes('/ws/pty-screen/')) {
        const sample = path.split('sample-')[1] ?? 'live';
        this.isTerminal = true;
        if (sample === 'connecting') return;
        if (sample === 'off') {
          this.readyState = 3;
          this.onclose?.(new CloseEvent('close', { code: 4415 }));
        } else this.say(SAMPLES.terminal[sample]);
        return;
      }
      const time = new Date(Date.now()).toISOString();
      const version = SAMPLES.bootstrap.version;
      const at = { boot: 'samples', seq: 1, server_version: version, resumed: true, time };
      this.say({ type: 'hello', v: 1, ...at });
      const tick = setInterval(() => {
        const now = new Date(Date.now()).toISOString();
        if (this.readyState === 1) this.say({ type: 'tick', seq: 1, time: now });
        else clearInterval(tick);
      }, 15_000);
      if (state === 'stale') {
        isLost = true;
        this.readyState = 3;
        this.onclose?.(new CloseEvent('close', { code: 1006 }));
        later = 95_000;
      }
    }

    say(frame) {
      this.onmessage?.(new MessageEvent('message', { data: JSON.stringify(frame) }));
    }

    send(text) {
      const { type, on, from, n } = JSON.parse(text);
      if (this.isTerminal && type === 'scroll') {
        const line = (number) => ({ t: `line ${number} above the screen`, fg: 8, bg: null, a: 0, w: 30 });
        const lines = Array.from({ length: n }, (_, at) => ({ wrapped: false, runs: [line(from + at)] }));
        setTimeout(() => this.say({ gen: 2, from, oldest: 0, lines }), 0);
      }
      if (type !== 'samples') return;
      clearInterval(this.samples);
      if (!on || state === 'loading') return;
      const sample = () => {
        if (this.readyState !== 1) return clearInterval(this.samples);
        const now = Date.now();
        const metrics = measured(now, () => ({}));
        this.say({ type: 'sample', time: new Date(now).toISOString(), metrics });
      };
      this.samples = setInterval(sample, STEP_MS);
      setTimeout(sample, 0); // no socket answers while it is being written to
    }

    close() {
      this.readyState = 3;
    }
  };

  // What is linked from the samples does not exist; every other link leaves the gallery for good.
  addEventListener(
    'click',
    (event) => {
      const link = event.target.closest?.('a[href]');
      if (!link || !document.querySelector('.sheets')) return;
      if (link.closest('.sheets')) event.preventDefault();
      else event.stopPropagation();
    },
    true,
  );
})();
