// What a player thinks in this tick, as bars on the well and as words.
import { Expert } from "./machine.js";

const LANES = 16;
const KNOWN = -1e299; // Lanes below it are worth nothing that is known.

export class Mind {
  constructor(machine) {
    this.machine = machine;
    this.teacher = new Expert();
    this.at = machine.allocate(8 * LANES);
  }

  /** Add the thoughts of the player in `seat` to a display list; returns its new length. */
  draw(seat, list, count) {
    const { game, player } = seat;
    this.words = "";
    if (game.waiting || game.over) return count;
    const taught = this.teacher.decide(game);
    const chosen = player.decide(game);
    const chances = player.worth(game, this.at);
    this.words = this.#words(chosen, taught, chances, player instanceof Expert);
    const { draw_mind } = this.machine.calls;
    return draw_mind(game.at, list, this.at, chances ? 1 : 0, chosen.spin, taught.spin);
  }

  #words(chosen, taught, chances, isTeacher) {
    const worth = [...new Float64Array(this.machine.memory.buffer, this.at, LANES)];
    const best = worth.filter((each) => each > KNOWN).sort((one, other) => other - one);
    const lines = [`Its action: ${described(chosen)}`];
    if (!isTeacher) lines.push(`The expert's: ${described(taught)}`);
    if (best.length > 1) {
      const shown = (each) => chances ? `${(100 * each).toFixed(1)} %` : each.toFixed(2);
      const label = chances ? "Chance of its likeliest lane" : "Value of its best lane";
      lines.push(`${label} ${shown(best[0])}, of the next ${shown(best[1])}`);
    }
    return lines.join("\n");
  }
}

function described({ spin, buttons }) {
  const turn = spin === 0 ? "stay" : `${spin > 0 ? "down" : "up"} ${Math.abs(spin)}`;
  return [turn, ...(buttons & 1 ? ["fire"] : []), ...(buttons & 2 ? ["zap"] : [])].join(", ");
}
