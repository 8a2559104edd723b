// The controls of a human: keys that are down, a mouse as the spinner, a finger that drags, a pad.
import { readGamepad } from "./gamepad.js";
import { FIRE, SPINNER_MAX, ZAP } from "./machine.js";

const LEFT = new Set(["ArrowLeft", "KeyA"]);
const RIGHT = new Set(["ArrowRight", "KeyD"]);
const FIRES = new Set(["Space", "KeyF", "ControlLeft", "ControlRight"]);
const ZAPS = new Set(["ShiftLeft", "ShiftRight", "KeyZ", "KeyX", "KeyS"]);
export const PLAYING_KEYS = new Set([...LEFT, ...RIGHT, ...FIRES, ...ZAPS]);

const RAMP = [8, 8, 10, 12, 14, 16]; // Knob counts by ticks held: a tap is about one lane.
const DRAG = 0.6; // Knob counts for each pixel that a finger moves.
const MOST_KEPT = 2 * SPINNER_MAX; // Turning is never carried on for longer than two ticks.

export class Controls {
  constructor(canvas) {
    this.canvas = canvas;
    this.sensitivity = 0.5;
    this.down = new Set();
    this.tapped = new Set();
    this.held = 0;
    this.turned = 0;
    this.firing = false;
    this.zapping = false;
    this.finger = null;
    this.#listen();
  }

  /** The inputs of the next tick. */
  take() {
    const is = (keys) => [...keys].some((key) => this.down.has(key) || this.tapped.has(key));
    const way = (is(LEFT) ? 1 : 0) - (is(RIGHT) ? 1 : 0);
    let spin = 0;
    if (way !== 0) {
      spin = way * RAMP[Math.min(this.held, RAMP.length - 1)];
      this.held += 1;
    } else {
      this.held = 0;
    }
    const turn = Math.max(-SPINNER_MAX, Math.min(SPINNER_MAX, Math.trunc(this.turned)));
    this.turned -= turn;
    const pad = readGamepad();
    spin = Math.max(-SPINNER_MAX, Math.min(SPINNER_MAX, spin + turn + pad.spin));
    const fire = is(FIRES) || this.firing || this.finger !== null || pad.fire;
    const buttons = (fire ? FIRE : 0) | (this.zapping || pad.zap ? ZAP : 0);
    this.zapping = false;
    this.tapped.clear();
    return { spin, buttons };
  }

  /** Let go of everything, as when the page loses the keyboard. */
  release() {
    this.down.clear();
    this.tapped.clear();
    this.turned = 0;
    this.firing = false;
    this.zapping = false;
    this.finger = null;
  }

  zap() { this.zapping = true; }

  key(event) {
    if (!event.repeat) {
      this.down.add(event.code);
      this.tapped.add(event.code);
      if (ZAPS.has(event.code)) this.zap();
    }
  }

  #turn(counts) {
    this.turned = Math.max(-MOST_KEPT, Math.min(MOST_KEPT, this.turned + counts));
  }

  #listen() {
    const { canvas } = this;
    addEventListener("keyup", (event) => this.down.delete(event.code));
    addEventListener("blur", () => this.release());
    document.addEventListener("pointerlockchange", () => this.release());
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const kind of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(kind, (event) => this.#lift(event));
    }
  }

  get locked() { return document.pointerLockElement === this.canvas; }

  #press(event) {
    if (event.pointerType === "mouse") {
      if (!this.locked) return;
      if (event.button === 0) this.firing = true;
      if (event.button === 2) this.zap();
    } else if (this.finger === null) {
      this.finger = { id: event.pointerId, x: event.clientX };
      this.canvas.setPointerCapture(event.pointerId);
    }
  }

  #move(event) {
    if (event.pointerType === "mouse") {
      if (this.locked) this.#turn(-event.movementX * this.sensitivity);
    } else if (this.finger !== null && event.pointerId === this.finger.id) {
      this.#turn(-(event.clientX - this.finger.x) * DRAG);
      this.finger.x = event.clientX;
    }
  }

  #lift(event) {
    if (event.pointerType === "mouse") {
      if (event.button === 0) this.firing = false;
    } else if (this.finger !== null && event.pointerId === this.finger.id) {
      this.finger = null;
    }
  }
}
