// A device that can be notified, without the service of the browser's maker.

import { generateKeyPairSync, randomBytes } from 'node:crypto';

/** The keys of a subscription, as a browser makes them. */
export function keys() {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' });
  const point = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  return { p256dh: point.toString('base64url'), auth: randomBytes(16).toString('base64url') };
}

/** What the maker of the browser would do, in the page. */
export function stub({ keys, endpoint }) {
  const KEY = 'stub-subscription';
  const made = () => ({
    endpoint,
    toJSON: () => ({ endpoint, expirationTime: null, keys }),
    unsubscribe: async () => {
      sessionStorage.removeItem(KEY);
      return true;
    },
  });
  const as = (it) => Object.setPrototypeOf(it, PushSubscription.prototype);
  PushManager.prototype.getSubscription = async () => (sessionStorage.getItem(KEY) ? as(made()) : null);
  PushManager.prototype.subscribe = async (options) => {
    sessionStorage.setItem(KEY, options.applicationServerKey);
    return as(made());
  };
}

/** The worker, and how a message of the browser's maker comes to it. */
export async function delivered(browser, page) {
  const client = await page.createCDPSession();
  const registration = await new Promise((resolve) => {
    client.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      if (registrations[0]) resolve(registrations[0]);
    });
    client.send('ServiceWorker.enable');
  });
  const { registrationId } = registration;
  const target = await browser.waitForTarget((one) => one.type() === 'service_worker');
  const worker = await target.worker();
  // Without a desktop a notification that is shown may be gone at once, so that what the browser
  // would show is kept here.
  await worker.evaluate(() => {
    self.all = [];
    self.registration.showNotification = async (title, { body, tag, data, actions }) => {
      const close = () => (self.all = self.all.filter((one) => one.tag !== tag));
      close();
      self.all.push({ title, body, tag, data, actions, close });
    };
    self.registration.getNotifications = async ({ tag }) => self.all.filter((one) => one.tag === tag);
    // A click on a button of a notification.
    self.click = (tag, action) => {
      const event = new ExtendableEvent('notificationclick');
      let work;
      Object.assign(event, {
        notification: self.all.find((one) => one.tag === tag),
        action,
        waitUntil: (promise) => (work = promise),
      });
      self.dispatchEvent(event);
      return work;
    };
  });
  const push = (told) =>
    client.send('ServiceWorker.deliverPushMessage', {
      origin: new URL(page.url()).origin,
      registrationId,
      data: JSON.stringify(told),
    });
  return { worker, push };
}
