// A canvas that fills its box at the screen's own resolution and is redrawn when the component is rendered.
// It has a name for screen readers; a table has the same data. On a large screen all is drawn larger, as
// style.css does with text.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { themeOf, type Theme } from './colours';

export interface Size {
  w: number;
  h: number;
}

const large = window.matchMedia('(min-width: 2000px) and (min-height: 1100px)');

// Returns how much larger than usual things are drawn; style.css has the same number.
export function enlargement(): number {
  return large.matches ? 1.5 : 1;
}

// Returns the height of a drawing, in pixels of a usual screen: a large one has room for more.
export function tall(height: number): number {
  return large.matches ? Math.round(1.6 * height) : height;
}

interface CanvasProps {
  label: string;
  height: number;
  draw: (context: CanvasRenderingContext2D, size: Size, theme: Theme) => void;
  onPoint?: (x: number, y: number, size: Size) => void;
  onKey?: (key: string) => boolean; // true: the key was handled
}

export function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [width, setWidth] = useState(0);
  const observer = useRef<ResizeObserver | null>(null);
  const attach = useRef((element: HTMLElement | null) => {
    observer.current?.disconnect();
    if (!element) return;
    observer.current = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.current.observe(element);
    setWidth(element.clientWidth);
  });
  return [attach.current, width];
}

export function Canvas({ label, height, draw, onPoint, onKey }: CanvasProps) {
  const [attach, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const larger = enlargement();

  useLayoutEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context || width === 0) return;
    const scale = (window.devicePixelRatio || 1) * larger;
    const w = Math.round((width / larger) * scale);
    const h = Math.round(height * scale);
    if (element.width !== w) element.width = w;
    if (element.height !== h) element.height = h;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width / larger, height);
    draw(context, { w: width / larger, h: height }, themeOf(element));
  });

  const point = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    if (box) onPoint?.((event.clientX - box.left) / larger, (event.clientY - box.top) / larger, { w: width / larger, h: height });
  };
  const key = (event: KeyboardEvent) => {
    if (onKey?.(event.key)) event.preventDefault();
  };
  return (
    <div class="canvas" ref={attach}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={label}
        tabIndex={onKey ? 0 : undefined}
        style={{ width: '100%', height: `${height * larger}px` }}
        onMouseMove={point}
        onClick={point}
        onKeyDown={key}
      />
    </div>
  );
}
