// The worker of the page: shows what the service pushes, and answers from a notification.
// It keeps no file and handles no request of the page.
'use strict';

const ROOT = '/__ROOT_PATH__';

/** Browsers without buttons are those that take no silence: every push must show something. */
const hasButtons = () => 'actions' in Notification.prototype;

const BUTTONS = {
  allow: { action: 'allow', title: 'Allow' },
  deny: { action: 'deny', title: 'Deny' },
};

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('push', (event) => event.waitUntil(pushed(event.data)));
self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(clicked(event.action, event.notification));
});
self.addEventListener('pushsubscriptionchange', (event) => event.waitUntil(renewed(event)));

function read(data) {
  try {
    const told = data.json();
    if (typeof told.title === 'string' && typeof told.tag === 'string') return told;
  } catch {
    // Not of this version of the service.
  }
  return { kind: 'show', tag: 'svc', title: 'svc has news', body: 'Open svc to see it.', url: '/ui/' };
}

async function pushed(data) {
  const told = read(data);
  if (told.kind === 'close') return closed(told);
  const windows = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  // Who looks at the page sees it there. A test is looked for.
  const isSeen = windows.some((one) => one.focused && one.visibilityState === 'visible');
  if (isSeen && hasButtons() && told.event !== 'test') return undefined;
  return show(told, told.event === 'permission-needed');
}

function show(told, needsAnswer) {
  const actions = hasButtons() ? (told.actions ?? []).map((word) => BUTTONS[word]).filter(Boolean) : [];
  return self.registration.showNotification(told.title, {
    body: told.body,
    tag: told.tag,
    data: told,
    timestamp: told.at,
    renotify: needsAnswer,
    requireInteraction: needsAnswer,
    actions,
  });
}

/** Says something in the place of a notification, without a sound. */
function replace(told, title, body) {
  const data = { ...told, actions: [] };
  return self.registration.showNotification(title, { body, tag: told.tag, data, silent: true });
}

async function closed(told) {
  const shown = await self.registration.getNotifications({ tag: told.tag });
  if (hasButtons()) {
    for (const one of shown) one.close();
    return undefined;
  }
  return replace(told, told.title, told.body);
}

async function clicked(action, { data: told }) {
  if (told && (action === 'allow' || action === 'deny')) return answer(action, told);
  return open(told?.url ?? '/ui/');
}

function answerPath({ instance_id: instance, request_id: request }) {
  const name = encodeURIComponent(request);
  return instance
    ? `/api/instances/${encodeURIComponent(instance)}/permissions/${name}`
    : `/api/approvals/${name}`;
}

async function answer(decision, told) {
  let status;
  try {
    const response = await send('POST', answerPath(told), { decision });
    status = response.status;
  } catch {
    return replace(told, 'Not answered', 'svc could not be reached. Open svc to answer.');
  }
  if (status === 401) return open(told.url);
  if (status === 404 || status === 409) {
    return replace(told, 'Already answered', 'Somebody was first, or it is withdrawn.');
  }
  if (status >= 400) {
    return replace(told, 'Not answered', 'svc did not take the answer. Open svc to answer.');
  }
  return undefined;
}

/** Shows a place of the page in a tab that is open already, or in a new one. */
async function open(url) {
  const place = new URL(`${ROOT}${url}`, self.location.origin);
  const windows = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const page = windows.find((one) => new URL(one.url).pathname.startsWith(`${ROOT}/`));
  if (page) {
    try {
      await page.focus();
      if (page.url !== place.href) await page.navigate(place.href);
      return;
    } catch {
      // A tab that is not ours to move: a new one does it.
    }
  }
  await self.clients.openWindow(place.href);
}

function send(method, path, body) {
  return fetch(`${ROOT}${path}`, {
    method,
    credentials: 'same-origin',
    headers: body ? { 'Content-Type': 'application/json' } : {},
    body: body && JSON.stringify(body),
  });
}

/** The browser gave the device another address: the service is told. */
async function renewed({ oldSubscription, newSubscription }) {
  let subscription = newSubscription;
  if (!subscription) {
    const options = oldSubscription?.options;
    if (!options) return;
    subscription = await self.registration.pushManager.subscribe(options);
  }
  const { endpoint, keys } = subscription.toJSON();
  await send('POST', '/api/push/subscriptions', { endpoint, keys });
}
