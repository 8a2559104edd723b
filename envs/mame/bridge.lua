-- Runs inside MAME: hands the machine's RAM out at the start of every game tick, and takes the
-- controls in.
--
-- It talks over two anonymous pipes that the Python process made (file descriptors in the
-- environment), so nobody else can reach it.  Reads block without using the processor, and end
-- when the other side is gone: then MAME ends too.
--
-- Every message out is "TPST", a kind, a length (u32) and as many bytes; every command in is a
-- letter, a length (u16) and as many bytes.  protocol.py describes both.

-- MAME runs this script again after a soft reset, while the callbacks of the first run live on.
if tempest_bridge then return end
tempest_bridge = {}
local bridge = tempest_bridge -- What MAME's callbacks hang on must not be collected.

local PROTOCOL = 1
local MAGIC = "TPST"
local RAM_LAST = 0x7FF
local TICK_CELL, TICK_PC = 0x53, 0xC7AF
local KNOB, SAMPLE, HELD, LATCHED = 0x50, 0x4C, 0x4D, 0x4E
local BUTTONS = 0x18
local INTERRUPT_FIRST, INTERRUPT_LAST = 0xD700, 0xD7FF
local INTERRUPTS_OFF = 0x04 -- In the processor's status register.
local CPU_CLOCK = 1512000
local RANDOM_CYCLE = 131071 -- Clock cycles after which a POKEY's random register repeats itself.
local STALL_FRAMES = 1800 -- 30 emulated seconds: the self-test after power-on takes less.

local incoming = io.open("/dev/fd/" .. os.getenv("TEMPEST_AGENT_COMMANDS"), "rb")
local outgoing = io.open("/dev/fd/" .. os.getenv("TEMPEST_AGENT_IMAGES"), "wb")
outgoing:setvbuf("full", 65536)

-- machine:exit() crashes now and then with a script loaded; this does not.
local function leave()
  os.exit(0, false)
end

local function send(kind, payload)
  local sent = outgoing:write(MAGIC, kind, string.pack("<I4", #payload), payload)
  if not (sent and outgoing:flush()) then leave() end
end

local function fail(text)
  send("E", text)
  leave()
end

local function receive()
  local head = incoming:read(3)
  if not head or #head < 3 then leave() end
  local command, length = string.unpack("<c1I2", head)
  local payload = ""
  if length > 0 then
    payload = incoming:read(length)
    if not payload or #payload < length then leave() end
  end
  return command, payload
end

local machine = manager and manager.machine
local cpu = machine and machine.devices[":maincpu"]
local space = cpu and cpu.spaces["program"]
if not (space and space.install_write_tap and space.read_range) then
  fail("this MAME's Lua interface lacks memory taps")
end

local ticks = 0
local frames_since_tick = 0
local free_frames = 0 -- Frames still to run without the bridge, for the measurement of its cost.
local busy = false -- Our own reads and writes fire our own taps.
local stream = 0 -- State of the random stream instead of the POKEYs'; 0: the machine's own bytes.
local log -- What the program read and wrote in this tick, while a recording is made.

local function now()
  local time = machine.time
  return time.seconds * CPU_CLOCK + math.floor(time.attoseconds // 1000000000 * CPU_CLOCK / 1e9 + 0.5)
end

local tick_began = 0

local function note(kind, address, value, written, pc)
  log[#log + 1] =
    string.pack("<c1I2I2BBI4", kind, address, pc, value, written, (now() - tick_began) & 0xFFFFFFFF)
end

local function program_counter()
  return cpu.state["CURPC"].value
end

-- The handler's own code reads the controls; the sound that it also drives lies elsewhere, and is
-- recognised by the flag that keeps interrupts off meanwhile.
local flags = cpu.state["P"]
local function in_interrupt(address, pc)
  if pc >= INTERRUPT_FIRST and pc <= INTERRUPT_LAST then return true end
  return address > RAM_LAST and flags ~= nil and flags.value & INTERRUPTS_OFF ~= 0
end

-- xorshift64*, as the simulator draws its bytes.
local function draw()
  local x = stream
  x = x ~ (x >> 12)
  x = x ~ (x << 25)
  x = x ~ (x >> 27)
  stream = x
  return (x * 0x2545F4914F6CDD1D) >> 56
end

-- Reads for the display, for checks of the POKEYs and for the firework are no part of play.
local function is_play_read(pc)
  return not (
    pc == 0xC705
    or (pc >= 0xCDA2 and pc <= 0xCDAD)
    or (pc >= 0xAE20 and pc <= 0xAE33)
    or (pc >= 0xA66C and pc <= 0xA69C)
    or pc >= 0xD800
  )
end

local function on_random(address, value)
  if busy then return end
  local pc = program_counter()
  local byte = value
  if stream ~= 0 and is_play_read(pc) then byte = draw() end
  if log then note("R", address, byte, 0, pc) end
  if byte ~= value then return byte end
end

local function on_access(address, value, written)
  if busy or not log then return end
  local pc = program_counter()
  note(in_interrupt(address, pc) and "I" or "A", address, value, written, pc)
end

-- Narrow taps: every access within one costs time.
local function watch(first, last, handler)
  local function on_read(offset, value) return handler(offset, value, 0) end
  local tap = space:install_read_tap(first, last, "tempest_read_" .. first, on_read)
  bridge[#bridge + 1] = tap
  return tap
end

local function watch_random()
  if bridge.random then return end
  bridge.random = true
  watch(0x60CA, 0x60CA, on_random)
  watch(0x60DA, 0x60DA, on_random)
end

local function watch_everything()
  watch_random()
  if bridge.everything then return end
  bridge.everything = true
  for _, range in ipairs({
    { 0x4C, 0x50 }, { 0x0C00, 0x0C00 }, { 0x0D00, 0x0D00 }, { 0x0E00, 0x0E00 },
    { 0x60C0, 0x60C9 }, { 0x60CB, 0x60CF }, { 0x60D0, 0x60D9 }, { 0x60DB, 0x60DF },
  }) do
    watch(range[1], range[2], on_access)
  end
  local function on_write(offset, value) on_access(offset, value, 1) end
  for _, range in ipairs({ { 0x4C, 0x50 }, { 0x60C0, 0x60DF } }) do
    bridge[#bridge + 1] =
      space:install_write_tap(range[1], range[2], "tempest_write_" .. range[1], on_write)
  end
end

local function press(cell, buttons)
  space:write_u8(cell, (space:read_u8(cell) & ~BUTTONS & 0xFF) | buttons)
end

-- An interrupt makes a held button the majority of its own sample, of the last one (SAMPLE) and of
-- what was held.  One that comes before the game has looked finds two of three as they were put.
local function put_in_controls(payload)
  local spin, held, latched = string.unpack("<BBB", payload)
  space:write_u8(KNOB, spin)
  press(SAMPLE, held)
  press(HELD, held)
  press(LATCHED, latched)
end

-- Put POKEY 1's random register at a place of its cycle, and POKEY 2's as far from it as it was.
local function set_moment(payload)
  local place = string.unpack("<I4", payload)
  local registers = {}
  for number = 1, 2 do
    local pokey = machine.devices[":pokey" .. number]
    local index = pokey and pokey.items["0/m_p17"]
    if not index then fail("this MAME's Lua interface lacks the POKEYs' random registers") end
    registers[number] = emu.item(index)
  end
  local apart = registers[2]:read(0) - registers[1]:read(0)
  registers[1]:write(0, place)
  registers[2]:write(0, (place + apart) % RANDOM_CYCLE)
end

local function set_switch(payload)
  local port, field, value = payload:match("^([^\n]+)\n([^\n]+)\n(%d+)$")
  local found = port and machine.ioport.ports[port]
  found = found and found.fields[field]
  if not found then fail("this machine has no switch " .. payload:gsub("\n", " ")) end
  found.user_value = tonumber(value)
end

local commands = {
  W = function(payload) -- Write RAM: address (u16) and byte, any number of times.
    for at = 1, #payload, 3 do
      local address, value = string.unpack("<I2B", payload, at)
      space:write_u8(address, value)
    end
  end,
  S = function() machine:save("tempest_agent") end,
  L = function() machine:load("tempest_agent") end,
  D = set_switch,
  M = set_moment,
  X = function(payload)
    stream = string.unpack("<i8", payload)
    if stream ~= 0 then watch_random() end
  end,
  R = function(payload)
    if payload == "\1" then
      watch_everything()
      log = log or {}
    else
      log = nil
    end
  end,
  F = function(payload) free_frames = string.unpack("<I4", payload) end,
  Q = leave,
}

-- Obey commands until one lets the machine continue.
local function obey()
  while true do
    local command, payload = receive()
    if command == "C" then return end
    if command == "G" then return put_in_controls(payload) end
    local handler = commands[command]
    if not handler then fail("unknown command " .. string.format("%q", command)) end
    handler(payload)
  end
end

local function on_tick()
  ticks = ticks + 1
  frames_since_tick = 0
  busy = true
  local cycle = now()
  local entries = log and table.concat(log) or ""
  if log then log = {} end
  tick_began = cycle
  send("T", string.pack("<I4I8i8I4", ticks, cycle, stream, #entries // 11)
    .. space:read_range(0, RAM_LAST, 8) .. entries)
  obey()
  busy = false
end

local function install_tick_tap()
  bridge.tick = space:install_write_tap(TICK_CELL, TICK_CELL, "tempest_tick", function(_, value)
    -- An increment of the cell writes its old value first: only one instruction starts a tick.
    if value ~= 0 or busy or free_frames > 0 then return end
    if program_counter() == TICK_PC then on_tick() end
  end)
end

local function on_frame()
  if free_frames > 0 then
    if bridge.tick then
      bridge.tick:remove()
      bridge.tick = nil
    end
    free_frames = free_frames - 1
    frames_since_tick = 0
    if free_frames == 0 then install_tick_tap() end
    return
  end
  frames_since_tick = frames_since_tick + 1
  if frames_since_tick > STALL_FRAMES then
    fail("no game tick for 30 emulated seconds: this program is not the game's")
  end
end

if emu.add_machine_frame_notifier then
  bridge.frames = emu.add_machine_frame_notifier(on_frame)
elseif emu.register_frame_done then
  emu.register_frame_done(on_frame)
else
  fail("this MAME's Lua interface has no notice of a finished frame")
end
install_tick_tap()

local version = type(emu.app_version) == "function" and emu.app_version() or "unknown"
send("H", string.pack("<I2", PROTOCOL) .. version)
obey()
