/** Work that is done once for all that asked for it within a moment, however fast an agent makes them ask. */

export class Gathered {
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly work: () => void,
    private readonly milliseconds: number,
  ) {}

  readonly ask = (): void => {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.work();
    }, this.milliseconds);
  };

  dispose(): void {
    clearTimeout(this.#timer);
  }
}
