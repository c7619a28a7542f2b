/**
 * When requests must have been answered, soonest first: a binary heap whose members know their places, so that any of
 * them leaves in O(log n). Deadlines that only grow, the usual case, enter in O(1). Invariant: `members[i].place === i`.
 */

export interface Due {
  /** On the monotonic clock. Must not change while it is a member. */
  readonly dueUs: number;
  /** Set here; -1 outside. */
  place: number;
}

export class Deadlines<Member extends Due> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  get first(): Member | undefined {
    return this.#members[0];
  }

  add(member: Member): void {
    this.#rise(member, this.#members.push(member) - 1);
  }

  /** No-op for what is not a member. */
  remove(member: Member): void {
    const { place } = member;
    if (place < 0) return;
    member.place = -1;
    const last = this.#members.pop() as Member;
    if (last === member) return;
    this.#rise(last, place);
    this.#sink(last, last.place);
  }

  #rise(member: Member, from: number): void {
    const members = this.#members;
    let at = from;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const above = members[up] as Member;
      if (above.dueUs <= member.dueUs) break;
      members[at] = above;
      above.place = at;
      at = up;
    }
    members[at] = member;
    member.place = at;
  }

  #sink(member: Member, from: number): void {
    const members = this.#members;
    let at = from;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= members.length) break;
      if (down + 1 < members.length && (members[down + 1] as Member).dueUs < (members[down] as Member).dueUs) down += 1;
      const below = members[down] as Member;
      if (below.dueUs >= member.dueUs) break;
      members[at] = below;
      below.place = at;
      at = down;
    }
    members[at] = member;
    member.place = at;
  }
}
