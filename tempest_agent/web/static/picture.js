// Draws the display list of the compiled rules: lines of light that add up, with a halo.

const VIEW = ["width", "height", "across", "up", "left", "middle", "subunits", "normal"];
const COLUMNS = 6; // Of a line: x and z of both ends, colour index, brightness.
const COLOURS = 16;
const LEVELS = 16;
const PALETTE_AT = 8, LINES_AT = PALETTE_AT + 3 * COLOURS;
const SHRUNK = 4; // The halo is drawn on a canvas that many times smaller.
const MOST_PIXELS = 2_400; // Of the canvas' height: sharper than any screen shows.
const BEAM = 1.25, SPOT = 1.9; // Widths in pixels of the full picture.
const HALO = [[16, 0.05], [9, 0.1], [5, 0.22]]; // Widths, and shares of the light.

export class Picture {
  constructor(machine, canvas) {
    this.machine = machine;
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.halo = document.createElement("canvas");
    this.soft = this.halo.getContext("2d", { alpha: false });
    this.at = machine.allocate(machine.size.segments);
    this.view = machine.view(VIEW);
    this.fit();
    new ResizeObserver(() => { this.fit(); this.again?.(); }).observe(canvas);
  }

  fit() {
    const box = this.canvas.getBoundingClientRect();
    const height = Math.min(MOST_PIXELS, Math.max(1, Math.round(box.height * devicePixelRatio)));
    const width = Math.max(1, Math.round(height * this.view.width / this.view.height));
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.halo.width = Math.ceil(width / SHRUNK);
    this.halo.height = Math.ceil(height / SHRUNK);
  }

  /**
   * Draw `game`; it is drawn again when the canvas changes its size.  `add(at, count)` may add
   * lines to the display list at an address; it returns their number.
   */
  draw(game, add = (_at, count) => count) {
    this.again = () => this.draw(game, add);
    const paths = this.#paths(add(this.at, this.machine.calls.draw(game.at, this.at)));
    const { context, canvas, halo, soft } = this;
    const scale = canvas.height / this.view.height;
    clear(soft, halo);
    for (const [width, light] of HALO) {
      soft.globalAlpha = light;
      stroke(soft, paths, scale / SHRUNK, width, width);
    }
    clear(context, canvas);
    context.globalCompositeOperation = "lighter";
    context.drawImage(halo, 0, 0, SHRUNK * halo.width, SHRUNK * halo.height);
    stroke(context, paths, scale, Math.max(BEAM, 1 / scale), SPOT);
  }

  /** The `count` lines of the display list, one path for each colour and brightness. */
  #paths(count) {
    const { buffer } = this.machine.memory;
    const palette = new Uint8Array(buffer, this.at + PALETTE_AT, 3 * COLOURS);
    const rows = new Int16Array(buffer, this.at + LINES_AT, count * COLUMNS);
    const { left, middle, across, up, subunits, normal } = this.view;
    const wide = across / subunits, high = up / subunits;
    const paths = new Array(COLOURS * LEVELS);
    for (let i = 0; i < rows.length; i += COLUMNS) {
      const colour = rows[i + 4], key = colour * LEVELS + rows[i + 5];
      // The phosphor's light grows faster than the current of the beam.
      const light = Math.min((rows[i + 5] / normal) ** 2, 1);
      paths[key] ??= { ink: ink(palette, colour, light), lines: new Path2D(), dots: new Path2D() };
      const x = left + rows[i] * wide, y = middle - rows[i + 1] * high;
      if (rows[i] === rows[i + 2] && rows[i + 1] === rows[i + 3]) {
        paths[key].dots.moveTo(x, y - 0.3);
        paths[key].dots.lineTo(x, y + 0.3);
      } else {
        paths[key].lines.moveTo(x, y);
        paths[key].lines.lineTo(left + rows[i + 2] * wide, middle - rows[i + 3] * high);
      }
    }
    return paths.filter((each) => each !== undefined);
  }
}

function ink(palette, colour, light) {
  const [red, green, blue] = palette.subarray(3 * colour, 3 * colour + 3);
  return `rgb(${red * light} ${green * light} ${blue * light})`;
}

function clear(context, { width, height }) {
  context.globalCompositeOperation = "source-over";
  context.globalAlpha = 1;
  context.fillStyle = "#000";
  context.fillRect(0, 0, width, height);
}

function stroke(context, paths, scale, beam, spot) {
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.globalCompositeOperation = "lighter";
  context.lineCap = "round";
  for (const { ink: colour, lines, dots } of paths) {
    context.strokeStyle = colour;
    context.lineWidth = beam;
    context.stroke(lines);
    context.lineWidth = spot;
    context.stroke(dots);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}
