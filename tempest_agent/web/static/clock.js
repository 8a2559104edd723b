// Ticks at the machine's own rate, and one picture for each frame of the screen that shows news.
import { TICKS_PER_SECOND } from "./machine.js";

const MOST_BEHIND = 0.25; // Seconds that are made up for after a hitch.
const BUDGET = 12; // Milliseconds of one frame for ticks: a fast replay never freezes the page.

/** Calls `tick()` at `speed` times the machine's rate, then `draw()`; `tick` returns false to wait. */
export class Clock {
  constructor(tick, draw) {
    this.tick = tick;
    this.draw = draw;
    this.speed = 1;
    this.paused = false;
    this.due = 0;
    this.last = 0;
    this.frame = (now) => this.#frame(now);
  }

  start() {
    this.last = performance.now();
    requestAnimationFrame(this.frame);
  }

  step() {
    this.tick();
    this.draw();
  }

  #frame(now) {
    const elapsed = Math.min((now - this.last) / 1000, MOST_BEHIND);
    this.last = now;
    if (!this.paused) this.due += elapsed * TICKS_PER_SECOND * this.speed;
    const until = performance.now() + BUDGET;
    let news = false;
    while (this.due >= 1) {
      this.due -= 1;
      news = true;
      if (!this.tick()) this.due = 0;
      if (performance.now() > until) this.due = Math.min(this.due, 1);
    }
    if (news) this.draw();
    requestAnimationFrame(this.frame);
  }
}
