// The page: loads the rules, and lets one view run at a time on the one canvas.
import { Clock } from "./clock.js";
import { Controls, PLAYING_KEYS } from "./controls.js";
import { Machine } from "./machine.js";
import { Picture } from "./picture.js";
import { Play, store, stored } from "./play.js";
import { Players } from "./players.js";
import { Watch } from "./watch.js";

const element = (id) => document.getElementById(id);
const SENSITIVITY = "tempest.sensitivity";
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

  counts({ score, level, lives }, best) {
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

class App {
  constructor(machine, listed) {
    const canvas = element("picture");
    this.page = new Page();
    this.page.restart = () => this.restart();
    this.picture = new Picture(machine, canvas);
    this.controls = new Controls(canvas);
    this.views = {
      play: new Play(machine, this.controls, this.page),
      watch: new Watch(machine, new Players(machine, listed), this.page),
    };
    this.clock = new Clock(() => this.view.tick(), () => this.picture.draw(this.view.game));
    this.#listPlayers(listed);
    this.#listen(canvas);
    this.show();
    this.clock.start();
  }

  get name() { return location.hash === "#play" ? "play" : "watch"; }

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
    this.clock.speed = name === "play" ? 1 : Number(element("speed").value);
    this.restart();
  }

  restart() {
    this.pause(false);
    Promise.resolve(this.view.restart()).catch(failed);
    this.picture.draw(this.view.game);
  }

  pause(paused) {
    this.clock.paused = paused;
    element("pause").textContent = paused ? "Go on" : "Pause";
    if (this.name === "play" && !this.view.game.over) this.page.say(paused ? "Paused" : "");
  }

  #listPlayers(listed) {
    for (const { name, label } of listed) element("player").add(new Option(label, name));
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
      if (document.hidden && this.name === "play") this.pause(true);
    });
    for (const id of ["start-level", "seed", "player"]) {
      element(id).addEventListener("change", () => this.restart());
    }
    element("speed").addEventListener("change", (event) => {
      this.clock.speed = Number(event.target.value);
    });
    element("restart").addEventListener("click", () => this.restart());
    element("pause").addEventListener("click", () => this.pause(!this.clock.paused));
    element("step").addEventListener("click", () => { this.pause(true); this.clock.step(); });
    element("touch-zap").addEventListener("pointerdown", () => this.controls.zap());
    element("panel").addEventListener("submit", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => this.#click(event, canvas));
  }

  #click(event, canvas) {
    canvas.focus();
    if (this.name !== "play") location.hash = "#play";
    if (event.pointerType === "mouse" && !this.controls.locked) canvas.requestPointerLock();
    if (this.clock.paused) this.pause(false);
  }

  #key(event) {
    if (event.ctrlKey && event.code !== "ControlLeft" && event.code !== "ControlRight") return;
    if (event.altKey || event.metaKey || event.target.matches("input, select, button, a")) return;
    if (event.code === "KeyP") this.pause(!this.clock.paused);
    else if (event.code === "KeyR") this.restart();
    else if (event.code === "Period" && this.name === "watch") element("step").click();
    else if (!PLAYING_KEYS.has(event.code)) return;
    else if (this.name === "watch") { if (event.code === "Space") location.hash = "#play"; }
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
