// Sounds of our own making, from what changes between two ticks.
import { store, stored } from "./kept.js";

const MUTED = "tempest.muted";
const WARP = 0x20; // Game state of the dive.

export class Sounds {
  constructor() {
    this.muted = stored(MUTED) === "yes";
    this.context = null;
    this.before = null;
  }

  toggle() {
    this.muted = !this.muted;
    store(MUTED, this.muted ? "yes" : "no");
  }

  /** Forget the last tick, as at a game's start. */
  restart() { this.before = null; }

  /** Browsers allow sound only after a press. */
  wake() {
    this.context ??= new AudioContext();
    if (this.context.state === "suspended") this.context.resume();
  }

  /** Sound what has happened since the last `facts`. */
  hear(facts) {
    const { before } = this;
    this.before = facts;
    if (before === null || this.muted || this.context?.state !== "running") return;
    if (facts.deaths > before.deaths) this.#noise(0.9, 900, 60, 0.5);
    else if (facts.lives > before.lives) this.#fanfare();
    if (facts.zapTimer > before.zapTimer) this.#tone("sawtooth", 1400, 90, 0.6, 0.16);
    if (facts.state === WARP && before.state !== WARP) this.#tone("sine", 110, 880, 1.6, 0.2);
    if (facts.shots > before.shots) this.#tone("square", 1250, 420, 0.07, 0.04);
    if (facts.score > before.score && facts.deaths === before.deaths) {
      this.#noise(0.16, 3200, 400, 0.16);
    }
  }

  #fanfare() {
    for (const step of [0, 1, 2]) {
      this.#tone("triangle", 660 + 220 * step, 880 + 220 * step, 0.12, 0.2, 0.09 * step);
    }
  }

  #tone(shape, from, to, seconds, loud, wait = 0) {
    const { context } = this;
    const start = context.currentTime + wait, end = start + seconds;
    const source = new OscillatorNode(context, { type: shape, frequency: from });
    source.frequency.setValueAtTime(from, start);
    source.frequency.exponentialRampToValueAtTime(to, end);
    this.#play(source, start, end, loud);
  }

  #noise(seconds, from, to, loud) {
    const { context } = this;
    const start = context.currentTime, end = start + seconds;
    const samples = Math.ceil(seconds * context.sampleRate);
    const buffer = new AudioBuffer({ length: samples, sampleRate: context.sampleRate });
    buffer.getChannelData(0).forEach((_, i, data) => { data[i] = 2 * Math.random() - 1; });
    const filter = new BiquadFilterNode(context, { type: "lowpass", frequency: from });
    filter.frequency.setValueAtTime(from, start);
    filter.frequency.exponentialRampToValueAtTime(to, end);
    this.#play(new AudioBufferSourceNode(context, { buffer }), start, end, loud, filter);
  }

  #play(source, start, end, loud, filter = null) {
    const gain = new GainNode(this.context, { gain: 0 });
    gain.gain.setValueAtTime(loud, start);
    gain.gain.exponentialRampToValueAtTime(0.001, end);
    if (filter === null) source.connect(gain);
    else source.connect(filter).connect(gain);
    gain.connect(this.context.destination);
    source.start(start);
    source.stop(end);
  }
}
