// The first gamepad that is connected: stick or cross turns, A or a trigger fires, B zaps.

const DEAD = 0.2; // Of the stick's way: thumbs rest here.
const FULL = 16; // Knob counts a tick with the stick at its end: a lane.
const LEFT = 14, RIGHT = 15;
const FIRES = [0, 5, 7], ZAPS = [1, 2, 4, 6];

let zapped = false;

/** Counts, whether fire is held, and whether the superzapper has just been pressed. */
export function readGamepad() {
  const pad = [...(navigator.getGamepads?.() ?? [])].find((each) => each !== null);
  if (pad === undefined) return { spin: 0, fire: false, zap: false };
  const held = (buttons) => buttons.some((button) => pad.buttons[button]?.pressed);
  const tilt = pad.axes[0] ?? 0;
  let way = Math.abs(tilt) < DEAD ? 0 : tilt;
  if (held([LEFT])) way = -1;
  if (held([RIGHT])) way = 1;
  const zaps = held(ZAPS);
  const zap = zaps && !zapped;
  zapped = zaps;
  return { spin: -Math.round(way * Math.abs(way) * FULL), fire: held(FIRES), zap };
}
