// The feed fetches the first document over plain HTTP, so that the page shows something at once. Then it uses
// the WebSocket, with growing pauses between retries while the head is away. Every document is a whole state,
// so nothing has to be caught up with.

import { simulate } from './simulated';
import type { Session, Snapshot } from './types';
import { painted, pause } from './wait';

export type Link = 'connecting' | 'live' | 'lost' | 'simulated';

export interface FeedState {
  link: Link;
  snapshot: Snapshot | null;
  session: Session | null;
  received: number; // performance.now() of the last document
  paused: boolean;
  rate: number;
}

type Listener = (state: FeedState) => void;

const firstPause = 250;
const longestPause = 5000;
const longestFirst = 1000;
// A peer that disappears without notice (a laptop that slept, a cable) never closes the socket. Documents
// come at least once per second.
const silentAfter = 10_000;

export class Feed {
  state: FeedState = {
    link: 'connecting',
    snapshot: null,
    session: null,
    received: 0,
    paused: false,
    rate: window.matchMedia('(prefers-reduced-motion: reduce)').matches ? 1 : 10,
  };

  private listeners = new Set<Listener>();
  private socket: WebSocket | null = null;
  private pause = firstPause;
  private heard = 0; // performance.now() of the last message on the socket, or of its begin

  // Resolves when there is something to show, or nothing came for a second.
  async start(query: URLSearchParams): Promise<void> {
    const size = query.get('simulate');
    if (size !== null) {
      this.change({ link: 'simulated' });
      return new Promise((resolve) =>
        simulate(size, (snapshot) => {
          this.take(snapshot);
          resolve();
        }));
    }
    setInterval(() => this.giveUpSilent(), 1000);
    await Promise.race([this.fetchFirst(), pause(longestFirst)]);
    // The first paint needs only the snapshot and the whole processor.
    void painted().then(() => this.connect());
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  setPaused(paused: boolean): void {
    this.heard = performance.now();
    this.change({ paused });
    this.send({ pause: paused });
  }

  setRate(rate: number): void {
    this.change({ rate });
    this.send({ rate });
  }

  private send(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private change(part: Partial<FeedState>): void {
    this.state = { ...this.state, ...part };
    for (const listener of this.listeners) listener(this.state);
  }

  private take(snapshot: Snapshot): void {
    if (this.state.paused) return;
    this.change({ snapshot, received: performance.now() });
  }

  private async fetchFirst(): Promise<void> {
    try {
      const answer = await fetch('api/v1/snapshot');
      if (answer.ok && this.state.snapshot === null) this.take((await answer.json()) as Snapshot);
    } catch {
      // The WebSocket reports the failure.
    }
  }

  private connect(): void {
    const { rate } = this.state;
    const address = new URL(`api/v1/ws?rate=${rate}`, location.href);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(address);
    this.socket = socket;
    this.heard = performance.now();
    socket.onopen = () => {
      this.pause = firstPause;
      this.change({ link: 'live' });
      if (this.state.rate !== rate) this.send({ rate: this.state.rate });
      if (this.state.paused) this.send({ pause: true });
    };
    socket.onmessage = (message) => {
      this.heard = performance.now();
      this.onDocument(JSON.parse(String(message.data)) as object);
    };
    socket.onclose = () => this.lose(socket);
  }

  private lose(socket: WebSocket): void {
    socket.onopen = socket.onmessage = socket.onclose = null;
    this.socket = null;
    socket.close();
    this.change({ link: 'lost' });
    setTimeout(() => void this.comeBack(), this.pause);
    this.pause = Math.min(this.pause * 2, longestPause);
  }

  // A head that is no longer in charge redirects browsers to the one that is, but a WebSocket cannot follow.
  private async comeBack(): Promise<void> {
    try {
      const answer = await fetch('', {
        method: 'HEAD', redirect: 'manual', cache: 'no-store', signal: AbortSignal.timeout(silentAfter),
      });
      if (answer.type === 'opaqueredirect') return location.reload();
    } catch {
      // The WebSocket reports the failure.
    }
    this.connect();
  }

  private giveUpSilent(): void {
    if (!this.socket || this.state.paused || performance.now() - this.heard < silentAfter) return;
    this.lose(this.socket);
  }

  private onDocument(document: object): void {
    const schema = (document as { schema?: string }).schema ?? '';
    if (schema.startsWith('scored.session/')) this.change({ session: document as Session });
    if (schema.startsWith('scored.stream/')) this.take(document as Snapshot);
  }
}

export interface ActionResult {
  ok: boolean;
  text: string;
}

// Carries out an action of docs/reference/stream.md. It never throws.
export async function act(session: Session, path: string, body: object): Promise<ActionResult> {
  try {
    const answer = await fetch(`api/v1/admin/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Scored-Csrf': session.csrf ?? '' },
      body: JSON.stringify(body),
    });
    const result = (await answer.json()) as { ok: boolean; text?: string; error?: string };
    return { ok: result.ok, text: (result.ok ? result.text : result.error) ?? '' };
  } catch (error) {
    return { ok: false, text: `no answer: ${String(error)}` };
  }
}
