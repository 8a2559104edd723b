// You and a player on the same seed and level, side by side.
import { Game, TICKS_PER_SECOND } from "./machine.js";

const SECOND = Math.round(TICKS_PER_SECOND);
const REST = 25; // Ticks after both games' end before a press starts the next duel.

export class Duel {
  constructor(machine, players, controls, page) {
    this.games = [new Game(machine), new Game(machine)];
    this.players = players;
    this.controls = controls;
    this.page = page;
    this.seat = null;
    this.race = new Race(document.getElementById("race"));
  }

  async restart() {
    const { level, seed, player } = this.page.settings();
    const [own, other] = this.games;
    this.seat = null;
    for (const game of this.games) game.begin({ level, seed });
    this.controls.release();
    this.ticks = 0;
    this.since = 0;
    this.race.clear();
    this.page.say("");
    this.page.counts(own.facts(), 0);
    const seat = await this.players.seat(player, other);
    if (this.page.settings().player === player) this.seat = seat;
  }

  tick() {
    if (this.seat === null) return false;
    const [own, other] = this.games;
    const inputs = this.controls.take();
    if (own.over && other.over) {
      this.since += 1;
      if (this.since > REST && inputs.buttons !== 0) this.page.nextSeed();
      return true;
    }
    if (!own.over) own.play(inputs.spin, inputs.buttons);
    if (!other.over) this.seat.tick();
    this.ticks += 1;
    const [mine, its] = [own.facts(), other.facts()];
    this.page.counts(mine, its.score);
    if (this.ticks % SECOND === 0) this.race.add(mine.score, its.score);
    if (own.over && other.over) this.#end(mine.score, its.score);
    else if (own.over) this.page.say("Your game is over: it plays on");
    return true;
  }

  #end(mine, its) {
    const result = mine > its ? "You win" : mine < its ? "It wins" : "A draw";
    this.page.say(`${result}\n${mine.toLocaleString("en")} to ${its.toLocaleString("en")}`);
  }
}

/** Both scores over time as two lines; yours is the bright one. */
class Race {
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
  }

  clear() {
    this.scores = [[0], [0]];
    this.#draw();
  }

  add(...scores) {
    scores.forEach((score, i) => this.scores[i].push(score));
    this.#draw();
  }

  #draw() {
    const { canvas, scores } = this;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    const most = Math.max(1, ...scores[0].slice(-1), ...scores[1].slice(-1));
    const length = Math.max(1, scores[0].length - 1);
    scores.forEach((line, i) => {
      context.beginPath();
      line.forEach((score, at) => {
        context.lineTo(at / length * canvas.width, (1 - score / most) * (canvas.height - 4) + 2);
      });
      context.strokeStyle = ["#ffe92b", "#6d7dff"][i];
      context.lineWidth = 2;
      context.stroke();
    });
  }
}
