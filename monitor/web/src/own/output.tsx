// The output of a job, live until it ends. The text is written into the element directly, because a job may
// write faster than a component can be rendered.

import { useEffect, useRef, useState } from 'preact/hooks';
import { pause } from '../wait';
import { searchLines } from './words';

const mostCharacters = 1_000_000; // the end is kept
const pauseOfRetry = 1000; // ms

export type StreamName = '' | 'stdout' | 'stderr';

// Reads the output and calls `take` with each piece until the job ends or `signal` aborts. A lost
// connection is repeated from where it was lost. Returns a fault in words, or "".
async function follow(job: number, stream: StreamName, signal: AbortSignal, take: (text: string) => void): Promise<string> {
  const decoder = new TextDecoder();
  for (let offset = 0; !signal.aborted; await pause(pauseOfRetry)) {
    try {
      const query = `follow=1&offset=${offset}${stream ? `&stream=${stream}` : ''}`;
      const response = await fetch(`api/v1/jobs/${job}/output?${query}`, { signal });
      if (!response.ok) return ((await response.json()) as { message: string }).message;
      const reader = response.body!.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return '';
        offset += value.length;
        take(decoder.decode(value, { stream: true }));
      }
    } catch {
      // The head is away, or the view was left.
    }
  }
  return '';
}

interface Shown {
  fault: string;
  isOver: boolean;
  isCut: boolean;
  count: number | null;
}

export function Output({ job, stream, onStream }: { job: number; stream: StreamName; onStream: (stream: StreamName) => void }) {
  const box = useRef<HTMLPreElement>(null);
  const text = useRef('');
  const [words, setWords] = useState('');
  const [isTail, setTail] = useState(true);
  const [shown, setShown] = useState<Shown>({ fault: '', isOver: false, isCut: false, count: null });
  const draw = useRef(() => {});
  draw.current = () => {
    const element = box.current;
    if (!element) return;
    const found = searchLines(text.current, words);
    if (element.textContent !== found.text) element.textContent = found.text;
    if (isTail) element.scrollTop = element.scrollHeight;
    setShown((known) => (known.count === found.count ? known : { ...known, count: found.count }));
  };
  useEffect(() => draw.current(), [words, isTail]);
  useEffect(() => {
    const aborter = new AbortController();
    let isDue = false;
    text.current = '';
    setShown({ fault: '', isOver: false, isCut: false, count: null });
    const take = (piece: string) => {
      text.current += piece;
      if (text.current.length > mostCharacters) {
        text.current = text.current.slice(-mostCharacters);
        setShown((known) => (known.isCut ? known : { ...known, isCut: true }));
      }
      if (isDue) return;
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        draw.current();
      });
    };
    draw.current();
    void follow(job, stream, aborter.signal, take).then((fault) => {
      if (!aborter.signal.aborted) setShown((known) => ({ ...known, fault, isOver: true }));
    });
    return () => aborter.abort();
  }, [job, stream]);
  const query = stream ? `?stream=${stream}` : '';
  return (
    <section id="output" class="panel" aria-labelledby="output-title">
      <div class="panel-head">
        <h2 id="output-title">Output</h2>
        <span class="tools">
          <label>
            Stream{' '}
            <select name="stream" value={stream} onChange={(event) => onStream(event.currentTarget.value as StreamName)}>
              <option value="">both</option>
              <option value="stdout">stdout</option>
              <option value="stderr">stderr</option>
            </select>
          </label>
          <label>
            Search <input type="search" name="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
          </label>
          <label><input type="checkbox" name="tail" checked={isTail} onChange={() => setTail(!isTail)} /> Stay at the end</label>
          <a href={`api/v1/jobs/${job}/output${query}`} download={`job-${job}.txt`}>Download</a>
        </span>
      </div>
      <pre ref={box} tabIndex={0} role="group" aria-label={`Output of job ${job}`} />
      <p class="hint" role="status">
        {shown.fault || (shown.isOver ? 'The job writes no more.' : 'Live.')}
        {shown.count !== null && ` ${shown.count} lines have “${words}”.`}
        {shown.isCut && ' Only the end is shown.'}
        {shown.isOver && !shown.fault && ' The head keeps the end of the output, unless it goes to a file.'}
      </p>
    </section>
  );
}
