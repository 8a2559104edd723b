// Plays on the page's own machine.js what a JSON job on standard input asks for, and writes bytes.
//   tape:    {images, tapes, out}                every image advanced by one tick on its tape
//   inputs:  {switches, inputs, out}             a game under given inputs: its bytes each tick
//   decides: {switches, player, ticks, out}      a player's game: counts, buttons and RAM digest
//                                                of each decision
//   thinks:  {switches, player, ticks, out}      a network's game: the worth of each lane at each
//                                                decision, float64
//   chooses: {codes, player, out}                a network's decision for each observation: counts
//                                                and buttons
// `switches`: the arguments of Game.begin.  `player`: a network's file, or "expert".
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const job = JSON.parse(readFileSync(0, "utf8"));
const { Expert, Game, Machine, Network, Seat } = await import(`${job.folder}/machine.js`);
const machine = await Machine.start(readFileSync(`${job.folder}/tempest.wasm`));
const RAM = 2048, LANES = 16;

function tape({ images, tapes, out }) {
  const given = readFileSync(images), reads = readFileSync(tapes);
  const size = machine.size.tape, count = given.length / RAM;
  const ram = machine.allocate(RAM), at = machine.allocate(size);
  const answer = new Uint8Array(count * (RAM + size));
  for (let i = 0; i < count; i += 1) {
    machine.bytes(ram, RAM).set(given.subarray(i * RAM, (i + 1) * RAM));
    machine.bytes(at, size).set(reads.subarray(i * size, (i + 1) * size));
    machine.calls.tick_on_tape(ram, at);
    answer.set(machine.bytes(ram, RAM), i * (RAM + size));
    answer.set(machine.bytes(at, size), i * (RAM + size) + RAM);
  }
  writeFileSync(out, answer);
}

function inputs({ switches, inputs: file, out }) {
  const given = new Int8Array(readFileSync(file));
  const game = new Game(machine);
  game.begin(switches);
  const size = machine.size.game, count = given.length / 2;
  const answer = new Uint8Array((count + 1) * size);
  answer.set(game.bytes(), 0);
  for (let i = 0; i < count; i += 1) {
    if (!game.over) game.play(given[2 * i], given[2 * i + 1]);
    answer.set(game.bytes(), (i + 1) * size);
  }
  writeFileSync(out, answer);
}

function decides({ switches, player, ticks, out }) {
  const game = new Game(machine);
  game.begin(switches);
  const answer = [];
  const brain = player === "expert" ? new Expert() : new Network(machine, readFileSync(player));
  const spy = {
    decide(each) {
      const digest = createHash("sha256").update(each.ram()).digest();
      const chosen = brain.decide(each);
      answer.push(chosen.spin & 0xFF, chosen.buttons, ...digest.subarray(0, 6));
      return chosen;
    },
  };
  const seat = new Seat(game, spy);
  for (let tick = 0; tick < ticks && !game.over; tick += 1) seat.tick();
  writeFileSync(out, Uint8Array.from(answer));
}

function thinks({ switches, player, ticks, out }) {
  const game = new Game(machine), at = machine.allocate(8 * LANES);
  game.begin(switches);
  const answer = [], brain = new Network(machine, readFileSync(player));
  const spy = {
    decide(each) {
      const chosen = brain.decide(each);
      brain.worth(each, at);
      answer.push(...new Float64Array(machine.memory.buffer, at, LANES));
      return chosen;
    },
  };
  const seat = new Seat(game, spy);
  for (let tick = 0; tick < ticks && !game.over; tick += 1) seat.tick();
  writeFileSync(out, new Uint8Array(Float64Array.from(answer).buffer));
}

function chooses({ codes, player, out }) {
  const given = new Int8Array(readFileSync(codes)), size = machine.size.observation;
  const network = new Network(machine, readFileSync(player));
  const answer = new Int8Array(2 * given.length / size);
  for (let i = 0; i < given.length / size; i += 1) {
    const seen = given.subarray(i * size, (i + 1) * size);
    new Int8Array(machine.memory.buffer, machine.codes, size).set(seen);
    const { spin, buttons } = network.choose(machine);
    answer.set([spin, buttons], 2 * i);
  }
  writeFileSync(out, answer);
}

const began = performance.now();
({ tape, inputs, decides, thinks, chooses })[job.what](job);
console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }));
