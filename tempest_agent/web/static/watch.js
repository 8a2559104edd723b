// A player's game: the trained champion, the scripted expert, or a checkpoint of yours.
import { Game } from "./machine.js";

const REST = 80; // Ticks of a finished game's picture before the next one starts.

export class Watch {
  /** `mind`: draws the player's thoughts; none in the plain view. */
  constructor(machine, players, page, mind = null) {
    this.mind = mind;
    this.games = [new Game(machine)];
    this.players = players;
    this.page = page;
    this.seat = null;
    this.since = 0;
  }

  async restart() {
    const { level, seed, player } = this.page.settings();
    this.seat = null;
    this.games[0].begin({ level, seed });
    this.since = 0;
    this.page.say("");
    this.page.counts(this.games[0].facts(), 0);
    const seat = await this.players.seat(player, this.games[0]);
    if (this.page.settings().player === player) this.seat = seat;
  }

  /** Add to the display list of the game's picture. */
  add(list, count) {
    if (this.mind === null || this.seat === null) return count;
    const length = this.mind.draw(this.seat, list, count);
    this.page.think(this.mind.words);
    return length;
  }

  tick() {
    if (this.seat === null) return false;
    if (this.games[0].over) {
      this.since += 1;
      if (this.since > REST) this.page.nextSeed();
      return true;
    }
    this.seat.tick();
    const facts = this.games[0].facts();
    this.page.counts(facts, 0);
    if (this.games[0].over) {
      this.page.say(`Game over\n${facts.score.toLocaleString("en")} points, level ${facts.level}`);
    }
    return true;
  }
}
