/** Files that several loaded versions may need: given back when the last of those that hold them lets go. */
export class HeldFiles {
  #holders = 1;

  /** @param release gives the files back; undefined where they are nobody's to give. The maker is the first holder. */
  constructor(private readonly release: (() => Promise<void>) | undefined) {}

  hold(): this {
    this.#holders += 1;
    return this;
  }

  /** Never rejects; each holder calls it once. */
  async letGo(): Promise<void> {
    this.#holders -= 1;
    if (this.#holders === 0) await this.release?.();
  }
}
