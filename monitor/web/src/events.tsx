// The last events, newest first. Told politely to screen readers as they come.

import { clockTime } from './format';
import { Panel } from './twin';
import type { Snapshot } from './types';

export function EventsPanel({ snapshot }: { snapshot: Snapshot }) {
  return (
    <Panel id="events" title="Events">
      <ol class="events" aria-live="polite" aria-relevant="additions">
        {[...snapshot.events].reverse().map((event) => (
          <li key={event.id} data-kind={event.kind}>
            <time>{clockTime(event.time_unix_s)}</time> <b>{event.kind}</b> {event.text}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
