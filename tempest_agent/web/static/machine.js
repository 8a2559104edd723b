// The compiled rules: one WebAssembly module, and games, players and observations in its memory.
// Runs in pages and in node.  All numbers of the layout come from the module itself.

const SIZES = [
  "game", "tape", "plan", "observation", "networkScratch", "weights", "facts", "segments",
  "observing",
];
const FACTS = [
  "score", "level", "lives", "ticks", "state", "waiting", "over", "alive", "zapLegal",
  "lane", "zapsUsed", "spin", "buttons", "shots", "zapTimer", "deaths",
];

export const TICKS_PER_SECOND = 1_512_000 / 6_144 / 9;
export const FIRE = 1, ZAP = 2;
export const SPINNER_MAX = 31;
export const WAITING = 1, OVER = 2, DEAD = 4;
export const DIFFICULTIES = { medium: 0, easy: 1, hard: 2 };
const PAGE = 65_536;
const RAM_BYTES = 2_048;

/** A loaded module and the part of its memory that has been given out. */
export class Machine {
  constructor(instance) {
    this.calls = instance.exports;
    this.memory = instance.exports.memory;
    this.free = instance.exports.__heap_base.value;
    this.size = {};
    const at = this.allocate(4 * SIZES.length);
    this.calls.sizes(at);
    const numbers = new Int32Array(this.memory.buffer, at, SIZES.length);
    SIZES.forEach((name, i) => { this.size[name] = numbers[i]; });
    this.weights = this.allocate(this.size.weights);
    this.calls.expert_weights(this.weights);
    this.scratch = this.allocate(this.size.networkScratch);
    this.codes = this.allocate(this.size.observation);
    this.small = this.allocate(64);
    this.observing = this.allocate(this.size.observing);
    this.factsAt = this.allocate(this.size.facts);
  }

  /** Compile and start the module in `bytes` (an ArrayBuffer). */
  static async start(bytes) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Machine(instance);
  }

  /** The numbers that turn a display list into a picture, by their `names`. */
  view(names) {
    this.calls.view(this.small);
    const numbers = new Float64Array(this.memory.buffer, this.small, names.length);
    return Object.fromEntries(names.map((name, i) => [name, numbers[i]]));
  }

  /** Give out `bytes` of memory, zeroed and at a multiple of 16; they are never taken back. */
  allocate(bytes) {
    const at = Math.ceil(this.free / 16) * 16;
    this.free = at + bytes;
    const missing = this.free - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
    return at;
  }

  /** The bytes at an address; valid until the next `allocate`. */
  bytes(at, length) {
    return new Uint8Array(this.memory.buffer, at, length);
  }

  /** Put `content` (a Uint8Array) into memory of its own. */
  place(content) {
    const at = this.allocate(content.length);
    this.bytes(at, content.length).set(content);
    return at;
  }
}

/** One game; its bytes are those of Python's `GameBatch.clone()`. */
export class Game {
  constructor(machine) {
    this.machine = machine;
    this.at = machine.allocate(machine.size.game);
    this.plan = machine.allocate(machine.size.plan);
    this.flags = 0;
  }

  /** Start a new game as the environment does for this seed. */
  begin({ seed = 0, level = 1, lives = 3, bonusLife = 2, difficulty = "medium", bonus = 0 } = {}) {
    const { calls, small } = this.machine;
    this.bytes().fill(0);
    const wide = BigInt(seed);
    calls.seed(this.at, Number(wide & 0xFFFFFFFFn) | 0, Number(wide >> 32n) | 0, small);
    const switches = [level - 1, lives, bonusLife, DIFFICULTIES[difficulty], bonus];
    this.machine.bytes(small, switches.length).set(switches);
    calls.begin(this.at, small);
    this.flags = 0;
  }

  /** Play one tick; `spin` counts lower the lane where positive. */
  play(spin, buttons) {
    this.flags = this.machine.calls.play(this.at, spin, buttons);
    return this.flags;
  }

  get over() { return (this.flags & OVER) !== 0; }

  /** Whether the next tick needs no input: players are not asked then. */
  get waiting() { return (this.flags & WAITING) !== 0; }

  bytes() { return this.machine.bytes(this.at, this.machine.size.game); }

  ram() { return this.machine.bytes(this.at, RAM_BYTES); }

  facts() {
    const { calls, factsAt, memory } = this.machine;
    calls.facts(this.at, factsAt);
    const numbers = new Int32Array(memory.buffer, factsAt, FACTS.length);
    return Object.fromEntries(FACTS.map((name, i) => [name, numbers[i]]));
  }

  /** The observation, int8 codes; valid until the next call. */
  observe() {
    const { calls, codes, observing, memory, size } = this.machine;
    calls.observe(this.at, codes, observing);
    return new Int8Array(memory.buffer, codes, size.observation);
  }
}

const action = (packed) => ({ spin: (packed << 24) >> 24, buttons: packed >> 8 });

/** The scripted expert. */
export class Expert {
  decide(game) {
    const { calls, weights } = game.machine;
    return action(calls.ask_expert(game.at, game.plan, weights));
  }

  /** Write what each lane is worth to it, float64, after `decide`; false: these are no chances. */
  worth(game, out) {
    game.machine.calls.worth_to_expert(game.at, game.plan, out);
    return false;
  }
}

/** A trained network, from the bytes that Python's `network_file.py` writes. */
export class Network {
  constructor(machine, content) {
    this.at = machine.place(content);
  }

  decide(game) {
    game.observe();
    return this.choose(game.machine);
  }

  /** Decide by the observation in the memory of `machine`. */
  choose({ calls, codes, scratch }) { return action(calls.ask_network(codes, this.at, scratch)); }

  /**
   * Write what each lane is worth to it, float64, after `decide`; true if these numbers are the
   * chances that its policy goes there.
   */
  worth(game, out) {
    const { calls, scratch } = game.machine;
    return calls.worth_to_network(game.at, this.at, scratch, out) !== 0;
  }
}

/** A game with its player, whose action holds for `frameSkip` ticks. */
export class Seat {
  constructor(game, player, frameSkip = 1) {
    this.game = game;
    this.player = player;
    this.frameSkip = frameSkip;
    this.left = 0;
    this.held = null;
  }

  /** Play one tick; the player is asked where an input matters and the last one has run out. */
  tick() {
    const { game } = this;
    if (game.waiting) {
      this.left = 0;
      return game.play(0, 0);
    }
    if (this.left === 0) {
      this.held = this.player.decide(game);
      this.left = this.frameSkip;
    }
    this.left -= 1;
    return game.play(this.held.spin, this.held.buttons);
  }
}
