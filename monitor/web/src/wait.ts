// What the page waits for.

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const longestFrame = 1000; // ms: a page in the background gets no frames

// The frame with what is in the document now has been shown: the one after it begins.
export function painted(): Promise<void> {
  const shown = new Promise<void>((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)));
  });
  return Promise.race([shown, pause(longestFrame)]);
}
