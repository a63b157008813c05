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
