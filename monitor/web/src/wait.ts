// Provides the waits of the page.

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const longestFrame = 1000; // ms: a page in the background gets no frames

// Resolves when the frame with the present content of the document has been shown, which is when the next one
// begins.
export function painted(): Promise<void> {
  const shown = new Promise<void>((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)));
  });
  return Promise.race([shown, pause(longestFrame)]);
}
