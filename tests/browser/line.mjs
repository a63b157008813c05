// The line between page and service in the hand of a test, without a complaint in the console: the
// socket cut, requests held back or answered otherwise.

/** Prepares `page`; call it before its first document. */
export async function line(page) {
  await page.evaluateOnNewDocument(() => {
    const sockets = new Set();
    const rules = new Map(JSON.parse(sessionStorage.getItem('__rules') ?? '[]'));
    const Real = window.WebSocket;
    let closed = null;
    /** A socket that does not come about. */
    class Refused {
      constructor(code) {
        this.readyState = Real.CLOSED;
        setTimeout(() => this.onclose?.(new CloseEvent('close', { code })));
      }
      send() {}
      close() {}
    }
    window.WebSocket = new Proxy(Real, {
      construct(target, given) {
        if (closed !== null) return new Refused(closed);
        const socket = new target(...given);
        sockets.add(socket);
        socket.addEventListener('close', () => sockets.delete(socket));
        return socket;
      },
    });
    const real = window.fetch.bind(window);
    window.fetch = (request, ...more) => {
      const url = new URL(request.url ?? request, location.href);
      const rule = [...rules].find(([path]) => url.pathname.endsWith(path))?.[1];
      if (!rule) return real(request, ...more);
      if (rule === 'hold') return new Promise(() => {});
      const headers = { 'Content-Type': 'application/json' };
      const answer = { code: rule.code, detail: rule.detail ?? rule.code };
      return Promise.resolve(new Response(JSON.stringify(answer), { status: rule.status, headers }));
    };
    window.__line = {
      sockets,
      cut(code, stays) {
        if (stays) closed = code;
        for (const socket of sockets) {
          const tell = socket.onclose;
          socket.onclose = socket.onmessage = null;
          socket.close();
          tell?.(new CloseEvent('close', { code }));
        }
      },
      mend() {
        closed = null;
      },
      rule(path, what) {
        if (what) rules.set(path, what);
        else rules.delete(path);
        sessionStorage.setItem('__rules', JSON.stringify([...rules]));
      },
    };
  });
  const told = (name) => (...given) =>
    page.evaluate((what, args) => window.__line[what](...args), name, given);
  const cut = told('cut');
  return {
    /** Closes every socket with a code, and refuses new ones until `mend`. */
    cut: (code = 1006) => cut(code, true),
    /** Closes every socket once. */
    drop: (code = 1006) => cut(code, false),
    mend: told('mend'),
    /** Requests to paths with this end wait (`hold`) or are answered `{ status, code }`; also after
     * a reload. Nothing takes it back. */
    rule: told('rule'),
  };
}
