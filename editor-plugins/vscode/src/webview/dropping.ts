/** What is dropped anywhere onto the page. */

/**
 * Take drops, and tell what they have.
 *
 * The editor would take files of this computer that are drawn over the page for itself, and open them: its
 * own listener, on the window, must not see them. What is drawn from the explorer reaches the page only
 * while Shift is held.
 */
export function takeDrops(page: Document, dropped: (data: DataTransfer) => void): void {
  const take = (event: Event): void => {
    event.preventDefault();
    event.stopPropagation();
  };
  page.addEventListener("dragenter", take);
  page.addEventListener("dragover", take);
  page.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer !== null) dropped(event.dataTransfer);
  });
}

/** The addresses of a drop that has no files, such as one from the explorer. */
export function urisOf(data: DataTransfer): string[] {
  const lines = [data.getData("application/vnd.code.uri-list"), data.getData("text/uri-list")].join("\n").split(/\r?\n/u);
  return [...new Set(lines.filter((line) => line !== "" && !line.startsWith("#")))];
}
