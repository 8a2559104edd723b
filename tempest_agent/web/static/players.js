// The players of this page, by name; a network's file is fetched when it is first asked for.
import { Expert, Network, Seat } from "./machine.js";

export class Players {
  /** `listed`: the entries of players.json, `{name, label, file, frameSkip}`; no file is the expert. */
  constructor(machine, listed) {
    this.machine = machine;
    this.listed = listed;
    this.ready = new Map();
  }

  /** Seat the player `name` at `game`. */
  async seat(name, game) {
    if (!this.ready.has(name)) this.ready.set(name, this.#make(name));
    const { frameSkip } = this.#entry(name);
    return new Seat(game, await this.ready.get(name), frameSkip);
  }

  #entry(name) { return this.listed.find((each) => each.name === name); }

  async #make(name) {
    const { file } = this.#entry(name);
    if (file === undefined) return new Expert();
    const response = await fetch(file);
    if (!response.ok) throw new Error(`${file}: the server answers ${response.status}`);
    return new Network(this.machine, new Uint8Array(await response.arrayBuffer()));
  }
}
