// What agents write down of the calls of their tools.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The results of calls that the conversations of a machine show. */
export function resultsOf(root) {
  const dir = join(root, 'agent', 'projects');
  const files = readdirSync(dir, { recursive: true }).filter((name) => name.endsWith('.jsonl'));
  const lines = files.flatMap((name) => readFileSync(join(dir, name), 'utf8').split('\n'));
  const parts = lines.filter(Boolean).map((line) => JSON.parse(line).message?.content);
  return parts.filter(Array.isArray).flat().filter((one) => one.type === 'tool_result');
}
