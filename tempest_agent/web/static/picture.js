// Draws a display list of the compiled rules: coloured segments that add up, with a halo.

const WIDTH = 480, HEIGHT = 640; // Of the display list's coordinates.
const NUMBERS = 6; // Of a segment: x, y, x, y, colour, width.
const SHRUNK = 4; // The halo is drawn on a canvas that many times smaller.
const MOST_PIXELS = 2_400; // Of the canvas' height: sharper than any screen shows.

export class Picture {
  constructor(machine, canvas) {
    this.machine = machine;
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.halo = document.createElement("canvas");
    this.soft = this.halo.getContext("2d", { alpha: false });
    this.at = machine.allocate(machine.size.segments);
    this.fit();
    new ResizeObserver(() => { this.fit(); this.again?.(); }).observe(canvas);
  }

  fit() {
    const box = this.canvas.getBoundingClientRect();
    const height = Math.min(MOST_PIXELS, Math.max(1, Math.round(box.height * devicePixelRatio)));
    const width = Math.max(1, Math.round(height * WIDTH / HEIGHT));
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.halo.width = Math.ceil(width / SHRUNK);
    this.halo.height = Math.ceil(height / SHRUNK);
  }

  /** Draw `game`; it is drawn again when the canvas changes its size. */
  draw(game) {
    this.again = () => this.draw(game);
    const { calls, memory } = this.machine;
    const count = calls.draw(game.at, this.at);
    const list = new Float32Array(memory.buffer, this.at, count * NUMBERS);
    const paths = byColour(list);
    const { context, canvas, halo, soft } = this;
    const scale = canvas.height / HEIGHT;
    clear(soft, halo);
    stroke(soft, paths, scale / SHRUNK, Math.max(1, 4 * scale / SHRUNK));
    clear(context, canvas);
    context.globalCompositeOperation = "lighter";
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    context.globalAlpha = 0.35;
    context.drawImage(halo, 0, 0, canvas.width, canvas.height);
    const spread = 2.5 * scale;
    context.globalAlpha = 0.12;
    for (const [x, y] of [[-spread, 0], [spread, 0], [0, -spread], [0, spread]]) {
      context.drawImage(halo, x, y, canvas.width, canvas.height);
    }
    context.globalAlpha = 1;
    stroke(context, paths, scale, Math.max(1, 1.3 * scale));
  }
}

function clear(context, { width, height }) {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalCompositeOperation = "source-over";
  context.globalAlpha = 1;
  context.fillStyle = "#000";
  context.fillRect(0, 0, width, height);
}

/** One path for each colour and width. */
function byColour(list) {
  const paths = new Map();
  for (let i = 0; i < list.length; i += NUMBERS) {
    const key = list[i + 4] * 16 + list[i + 5];
    let entry = paths.get(key);
    if (entry === undefined) {
      const colour = `#${(list[i + 4] | 0).toString(16).padStart(6, "0")}`;
      entry = { path: new Path2D(), colour, width: list[i + 5] };
      paths.set(key, entry);
    }
    entry.path.moveTo(list[i], list[i + 1]);
    entry.path.lineTo(list[i + 2], list[i + 3]);
  }
  return [...paths.values()];
}

function stroke(context, paths, scale, width) {
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.globalCompositeOperation = "lighter";
  context.lineCap = "round";
  context.lineJoin = "round";
  for (const each of paths) {
    context.strokeStyle = each.colour;
    context.lineWidth = each.width * width / scale;
    context.stroke(each.path);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}
