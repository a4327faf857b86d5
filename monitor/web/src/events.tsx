// The panel shows the last events, newest first. Screen readers announce them politely. While the nodes still
// have the switches of that time, an event links to them.

import { useMemo } from 'preact/hooks';
import { clockTime } from './format';
import type { Moment } from './trace';
import { Panel } from './panel';
import type { Event, Snapshot } from './types';

const remembered = 60; // s; with the shortest slices nodes remember less, and report it

function TraceButton({ event, onTrace }: { event: Event; onTrace: (moment: Moment) => void }) {
  const time = clockTime(event.time_unix_s);
  const title = `Switches around ${time}: ${event.text}`;
  const open = () => onTrace({ query: `at=${event.at_s}`, at_s: event.at_s, title });
  return (
    <button type="button" class="link" aria-haspopup="dialog" aria-label={`trace: ${time} ${event.text}`} onClick={open}>
      trace
    </button>
  );
}

interface EventsPanelProps {
  snapshot: Snapshot;
  onTrace: (moment: Moment) => void;
}

export function EventsPanel({ snapshot, onTrace }: EventsPanelProps) {
  const { head, events, time_s } = snapshot;
  const newest = events[events.length - 1]?.id;
  const oldest = events.find(({ at_s }) => time_s - at_s < remembered)?.id ?? Infinity;
  const list = useMemo(
    () => (
      <ol class="events" aria-live="polite" aria-relevant="additions">
        {[...events].reverse().map((event) => (
          <li key={event.id} data-kind={event.kind}>
            <time>{clockTime(event.time_unix_s)}</time> <b>{event.kind}</b> {event.text}{' '}
            {event.id >= oldest && <TraceButton event={event} onTrace={onTrace} />}
          </li>
        ))}
      </ol>
    ),
    [head, newest, oldest],
  );
  return <Panel id="events" title="Events">{list}</Panel>;
}
