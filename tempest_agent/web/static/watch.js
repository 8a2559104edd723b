// A player's game: the trained champion, the scripted expert, or a checkpoint of yours.
import { Game } from "./machine.js";

const REST = 80; // Ticks of a finished game's picture before the next one starts.

export class Watch {
  constructor(machine, players, page) {
    this.game = new Game(machine);
    this.players = players;
    this.page = page;
    this.seat = null;
    this.since = 0;
  }

  async restart() {
    const { level, seed, player } = this.page.settings();
    this.seat = null;
    this.game.begin({ level, seed });
    this.since = 0;
    this.page.say("");
    this.page.counts(this.game.facts(), 0);
    const seat = await this.players.seat(player, this.game);
    if (this.page.settings().player === player) this.seat = seat;
  }

  tick() {
    if (this.seat === null) return false;
    if (this.game.over) {
      this.since += 1;
      if (this.since > REST) this.page.nextSeed();
      return true;
    }
    this.seat.tick();
    const facts = this.game.facts();
    this.page.counts(facts, 0);
    if (this.game.over) {
      this.page.say(`Game over\n${facts.score.toLocaleString("en")} points, level ${facts.level}`);
    }
    return true;
  }
}
