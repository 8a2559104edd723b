// A human plays: keys, mouse or a finger; the best score of this browser is kept.
import { store, stored } from "./kept.js";
import { Game } from "./machine.js";

const BEST = "tempest.best";
const REST = 25; // Ticks after a game's end before a press starts the next one.

export class Play {
  constructor(machine, controls, page) {
    this.games = [new Game(machine)];
    this.controls = controls;
    this.page = page;
    this.best = Number(stored(BEST)) || 0;
    this.since = 0;
  }

  restart() {
    const { level, seed } = this.page.settings();
    this.games[0].begin({ level, seed });
    this.controls.release();
    this.since = 0;
    this.page.say("");
    this.page.counts(this.games[0].facts(), this.best);
  }

  tick() {
    const inputs = this.controls.take();
    if (this.games[0].over) {
      this.since += 1;
      if (this.since > REST && inputs.buttons !== 0) this.page.nextSeed();
      return true;
    }
    this.games[0].play(inputs.spin, inputs.buttons);
    const facts = this.games[0].facts();
    if (this.games[0].over) this.#end(facts.score);
    this.page.counts(facts, Math.max(this.best, facts.score));
    return true;
  }

  #end(score) {
    const record = score > this.best;
    if (record) {
      this.best = score;
      store(BEST, String(score));
    }
    const what = record ? "New best score" : "Score";
    this.page.say(`Game over\n${what} ${score.toLocaleString("en")}\nFire to play again`);
  }
}
