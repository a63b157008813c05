// A wire between browser and service that a test can cut.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** Listens at a port of its own; `to(port)` says where it leads, `cut` ends what goes through. */
export async function proxy() {
  const open = new Set();
  let target;
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    const pair = { near, far };
    open.add(pair);
    const end = () => {
      open.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      socket.on('error', end);
      socket.on('close', end);
    }
    near.pipe(far);
    far.pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    to: (port) => {
      target = port;
    },
    /** Ends every connection, in the middle of whatever it carries. */
    cut: () => {
      for (const { near, far } of open) {
        near.resetAndDestroy();
        far.destroy();
      }
    },
    close: () => {
      for (const { near, far } of open) {
        near.destroy();
        far.destroy();
      }
      server.close();
    },
  };
}
