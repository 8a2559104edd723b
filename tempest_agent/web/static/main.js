// The page: loads the rules, and lets one view run at a time on the one canvas.
import { Clock } from "./clock.js";
import { Controls, PLAYING_KEYS } from "./controls.js";
import { Duel } from "./duel.js";
import { store, stored } from "./kept.js";
import { Machine } from "./machine.js";
import { Mind } from "./mind.js";
import { Picture } from "./picture.js";
import { Play } from "./play.js";
import { Players } from "./players.js";
import { Sounds } from "./sounds.js";
import { Watch } from "./watch.js";

const element = (id) => document.getElementById(id);
const SENSITIVITY = "tempest.sensitivity";
const FASTEST_HEARD = 2; // Times the machine's speed: beyond it sounds run together.
const MOST_SEED = 2 ** 32;

async function fetched(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: the server answers ${response.status}`);
  return response;
}

/** What views see of the page. */
class Page {
  constructor() {
    this.shown = {};
    this.sounds = new Sounds();
    this.quiet = false;
  }

  settings() {
    const whole = (input) => {
      const value = Math.round(Number(input.value)) || 0;
      return Math.min(Number(input.max), Math.max(Number(input.min), value));
    };
    return {
      level: whole(element("start-level")),
      seed: whole(element("seed")),
      player: element("player").value,
    };
  }

  /** Show, and sound, what has become of a game in a tick. */
  counts(facts, best) {
    const { score, level, lives } = facts;
    if (!this.quiet) this.sounds.hear(facts);
    this.#show("score", score.toLocaleString("en"));
    this.#show("level", level);
    this.#show("lives", lives);
    this.#show("best", best.toLocaleString("en"));
  }

  say(text) {
    const banner = element("banner");
    banner.textContent = text;
    banner.hidden = text === "";
  }

  think(words) { this.#show("thoughts", words); }

  /** Start a game of the next seed. */
  nextSeed() {
    element("seed").value = (this.settings().seed + 1) % MOST_SEED;
    this.restart();
  }

  #show(id, value) {
    if (this.shown[id] === value) return;
    this.shown[id] = value;
    element(id).textContent = value;
  }
}

const HUMAN = new Set(["play", "duel"]); // Views in which a human plays.

class App {
  constructor(machine, listed) {
    const canvas = element("picture");
    this.page = new Page();
    this.page.restart = () => this.restart();
    this.pictures = [canvas, element("other")].map((each) => new Picture(machine, each));
    this.controls = new Controls(canvas);
    const players = new Players(machine, listed);
    this.views = {
      play: new Play(machine, this.controls, this.page),
      watch: new Watch(machine, players, this.page),
      mind: new Watch(machine, players, this.page, new Mind(machine)),
      duel: new Duel(machine, players, this.controls, this.page),
    };
    this.clock = new Clock(() => this.view.tick(), () => this.draw());
    this.#listPlayers(listed);
    this.#listen(canvas);
    this.show();
    this.clock.start();
  }

  get name() {
    const name = location.hash.slice(1);
    return Object.hasOwn(this.views, name) ? name : "watch";
  }

  get human() { return HUMAN.has(this.name); }

  /** Bring up the view that the address names. */
  show() {
    const { name } = this;
    document.body.dataset.view = name;
    for (const link of document.querySelectorAll("nav a")) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (document.pointerLockElement !== null) document.exitPointerLock();
    this.view = this.views[name];
    element("best-name").textContent = name === "duel" ? "Its score" : "Best";
    this.pace();
    this.restart();
  }

  pace() {
    this.clock.speed = this.human ? 1 : Number(element("speed").value);
    this.page.quiet = this.clock.speed > FASTEST_HEARD;
  }

  restart() {
    this.pause(false);
    this.page.sounds.restart();
    Promise.resolve(this.view.restart()).catch(failed);
    this.draw();
  }

  draw() {
    const { view } = this;
    view.games.forEach((game, i) => {
      this.pictures[i].draw(game, (list, count) => view.add?.(list, count) ?? count);
    });
  }

  pause(paused) {
    this.clock.paused = paused;
    element("pause").textContent = paused ? "Go on" : "Pause";
    if (this.human && !this.view.games[0].over) this.page.say(paused ? "Paused" : "");
  }

  /** Show whether sound is on; `change`: turn it on or off first. */
  mute(change) {
    const { sounds } = this.page;
    if (change) sounds.toggle();
    const button = element("sound");
    button.textContent = sounds.muted ? "Sound off" : "Sound on";
    button.setAttribute("aria-pressed", String(!sounds.muted));
  }

  #listPlayers(listed) {
    for (const { name, label } of listed) element("player").add(new Option(label, name));
    const name = () => { element("opponent").textContent = element("player").selectedOptions[0].label; };
    element("player").addEventListener("change", name);
    name();
  }

  #listen(canvas) {
    const sensitivity = element("sensitivity");
    sensitivity.value = stored(SENSITIVITY) ?? sensitivity.value;
    this.controls.sensitivity = Number(sensitivity.value);
    sensitivity.addEventListener("input", () => {
      this.controls.sensitivity = Number(sensitivity.value);
      store(SENSITIVITY, sensitivity.value);
    });
    addEventListener("hashchange", () => this.show());
    addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && this.human) this.pause(true);
    });
    for (const id of ["start-level", "seed", "player"]) {
      element(id).addEventListener("change", () => this.restart());
    }
    element("speed").addEventListener("change", () => this.pace());
    for (const press of ["pointerdown", "keydown"]) {
      addEventListener(press, () => this.page.sounds.wake());
    }
    element("sound").addEventListener("click", () => this.mute(true));
    this.mute(false);
    element("restart").addEventListener("click", () => this.restart());
    element("pause").addEventListener("click", () => this.pause(!this.clock.paused));
    element("step").addEventListener("click", () => { this.pause(true); this.clock.step(); });
    element("touch-zap").addEventListener("pointerdown", () => this.controls.zap());
    element("panel").addEventListener("submit", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => this.#click(event, canvas));
  }

  #click(event, canvas) {
    canvas.focus();
    if (!this.human) location.hash = "#play";
    if (event.pointerType === "mouse" && !this.controls.locked) canvas.requestPointerLock();
    if (this.clock.paused) this.pause(false);
  }

  #key(event) {
    if (event.ctrlKey && event.code !== "ControlLeft" && event.code !== "ControlRight") return;
    if (event.altKey || event.metaKey || event.target.matches("input, select, button, a")) return;
    if (event.code === "KeyP") this.pause(!this.clock.paused);
    else if (event.code === "KeyR") this.restart();
    else if (event.code === "KeyM") this.mute(true);
    else if (event.code === "Period" && !this.human) element("step").click();
    else if (!PLAYING_KEYS.has(event.code)) return;
    else if (!this.human) { if (event.code === "Space") location.hash = "#play"; }
    else {
      if (this.clock.paused) this.pause(false);
      this.controls.key(event);
    }
    event.preventDefault();
  }
}

function failed(error) {
  console.error(error);
  const banner = element("banner");
  banner.hidden = false;
  banner.textContent = `This page cannot run here:\n${error.message}`;
}

async function start() {
  const [module, players] = await Promise.all([fetched("tempest.wasm"), fetched("players.json")]);
  const machine = await Machine.start(await module.arrayBuffer());
  return new App(machine, (await players.json()).players);
}

start().catch(failed);
