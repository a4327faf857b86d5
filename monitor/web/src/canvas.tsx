// A canvas that fills its box at the screen's own resolution and is redrawn when the component is rendered.
// It has a name for screen readers; a table has the same data.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { themeOf, type Theme } from './colours';

export interface Size {
  w: number;
  h: number;
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

  useLayoutEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context || width === 0) return;
    const scale = window.devicePixelRatio || 1;
    const w = Math.round(width * scale);
    const h = Math.round(height * scale);
    if (element.width !== w) element.width = w;
    if (element.height !== h) element.height = h;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, { w: width, h: height }, themeOf(element));
  });

  const point = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    if (box) onPoint?.(event.clientX - box.left, event.clientY - box.top, { w: width, h: height });
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
        style={{ width: '100%', height: `${height}px` }}
        onMouseMove={point}
        onClick={point}
        onKeyDown={key}
      />
    </div>
  );
}
