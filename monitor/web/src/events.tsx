// The last events, newest first. Told politely to screen readers as they come.

import { useMemo } from 'preact/hooks';
import { clockTime } from './format';
import { Panel } from './twin';
import type { Snapshot } from './types';

export function EventsPanel({ snapshot }: { snapshot: Snapshot }) {
  const { head, events } = snapshot;
  const newest = events[events.length - 1]?.id;
  const list = useMemo(
    () => (
      <ol class="events" aria-live="polite" aria-relevant="additions">
        {[...events].reverse().map((event) => (
          <li key={event.id} data-kind={event.kind}>
            <time>{clockTime(event.time_unix_s)}</time> <b>{event.kind}</b> {event.text}
          </li>
        ))}
      </ol>
    ),
    [head, newest],
  );
  return <Panel id="events" title="Events">{list}</Panel>;
}
