"""One tick of a one-player game, in plain Python on 2,048 bytes.

Written for being obviously right, not for speed: one integer at a time, no compiled code, and
nothing taken from the simulator.  ``Machine(ram, draw).tick()`` is the whole interface.
"""

from __future__ import annotations

from collections.abc import Callable

from . import cells as c
from .tables import SELECT_LEVELS, START_BONUS, wave_cells
from .wells import ORDER, WELLS

Draw = Callable[[int], int]
"""Gives the next random byte to the instruction at an address."""


def signed(byte: int) -> int:
    """A byte as -128..127."""
    return byte - 256 if byte >= 128 else byte


def to_bcd(number: int) -> int:
    """0-99 as two decimal digits in one byte."""
    return number // 10 * 16 + number % 10


def from_bcd(byte: int) -> int:
    """Two decimal digits in one byte as 0-99."""
    return byte // 16 * 10 + byte % 16


class Memory:
    """2,048 bytes; every store keeps the low eight bits."""

    def __init__(self, ram: bytearray) -> None:
        if len(ram) != 2048:
            raise ValueError(f"the machine has 2048 bytes of RAM, not {len(ram)}")
        self.ram = ram

    def __getitem__(self, address: int) -> int:
        return self.ram[address]

    def __setitem__(self, address: int, value: int) -> None:
        self.ram[address] = value & 0xFF

    def add(self, address: int, amount: int) -> None:
        """Add to one byte, wrapping."""
        self[address] = self[address] + amount

    def fill(self, address: int, count: int, value: int) -> None:
        """Set ``count`` bytes."""
        for i in range(count):
            self[address + i] = value


class Machine:
    """The machine's RAM and its source of random bytes."""

    def __init__(self, ram: bytearray, draw: Draw) -> None:
        self.m = Memory(ram)
        self.draw = draw

    # ---- one tick ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Star field, the state's routine, the end-of-tick code."""
        m = self.m
        self.step_stars()
        m[c.LATCHED] |= 0x80
        routines = {
            0x00: self.state_new_game,
            0x02: self.state_new_life,
            0x04: self.state_play,
            0x06: self.state_end_life,
            0x0A: self.state_pause,
            0x0E: self.state_end_wave,
            0x16: self.state_level_select,
            0x18: self.state_level_entry,
            0x1E: self.state_new_life_2,
            0x20: self.state_warp,
        }
        routines[m[c.GAME_STATE]]()
        m.add(c.FRAME, 1)
        if m[c.LATCHED] & 0x80:
            m[c.LATCHED] = 0

    def step_stars(self) -> None:
        """Eight planes of stars, each 7 nearer a tick; they touch no rule."""
        m = self.m
        if m[c.STAR_FIELD] == 0:
            return
        growing = m[c.STAR_FIELD] & 0x80
        for plane in range(7, -1, -1):
            at = c.STAR_PLANE + plane
            if m[at] != 0:
                nearer = m[at] - 7
                if nearer < 0x10:
                    m[at] = 0xF0 if growing else 0
                else:
                    m[at] = nearer
            elif growing and plane < 7:
                after = m[at + 1]
                if 0xD5 - 7 <= after < 0xD5:
                    m[at] = 0xF0
        if all(m[c.STAR_PLANE + plane] == 0 for plane in range(8)):
            m[c.STAR_FIELD] = 0

    # ---- states other than play and warp -----------------------------------------------------

    def state_new_game(self) -> None:
        """Clear the scores, offer start levels, and take the first step of the level select."""
        m = self.m
        self.set_up_well(m[c.WAVE_INDEX + m[c.PLAYER_UP]], new_life=False)
        m[c.CUR_WAVE] = 0
        m.fill(c.SCORE, 6, 0)
        m[c.PLAYER_UP] = 0
        m[c.NEXT_PLAYER] = 0
        m[c.LIVES] = m[c.LIVES_PER_GAME]
        m[c.LIVES + 1] = 0
        m[c.WAVE_INDEX] = 0xFF
        m[c.STAR_FIELD] = 0
        reached = max(i for i, level in enumerate(SELECT_LEVELS) if level <= m[c.LAST_TOP_WAVE])
        offered = 4
        if m[c.OPTIONS] & 4:
            offered += sum(m[c.BEST_SCORE_TOP] >= limit for limit in (0x30, 0x50, 0x70))
        if m[c.DSW1] & 0x43 == 0x40:
            offered = 27
        m[c.SELECT_TOP] = max(reached, offered)
        m[c.LAST_TOP_WAVE] = 0
        m[c.PLAYER_LANE] = 0
        m[c.RIM_POS] = 0
        m[c.SPIN] = 0
        m[c.PAUSE_TIMER] = 0x10
        m[c.SECOND_TIMER] = 20
        m[c.EYE_HI] = 0xFF
        m[c.WELL_OPEN] = 0xFF
        m[c.DISPLAY_STATE] = 8
        m[c.GAME_STATE] = 0x16
        self.state_level_select()

    def state_level_select(self) -> None:
        """Count down, move the cursor, take a choice."""
        m = self.m
        timed_out = False
        m.add(c.SECOND_TIMER, -1)
        if m[c.SECOND_TIMER] & 0x80:
            m[c.SECOND_TIMER] = 20
            m[c.PAUSE_TIMER] = to_bcd((from_bcd(m[c.PAUSE_TIMER]) - 1) % 100)
            timed_out = m[c.PAUSE_TIMER] == 0x99
        moved = m[c.RIM_POS] + ((8 * m[c.SPIN]) & 0xFF)
        index = m[c.PLAYER_LANE] + (moved >> 8) - (1 if m[c.SPIN] & 0x80 else 0)
        m[c.RIM_POS] = moved
        m[c.PLAYER_LANE] = min(max(index, 0), m[c.SELECT_TOP])
        m[c.SPIN] = 0
        accepted = 0x18 | (0x60 if m[c.PAUSE_TIMER] < 8 else 0)
        if not timed_out and not m[c.LATCHED] & accepted:
            m[c.LATCHED] &= 7
            return
        m[c.LATCHED] = 0
        player = m[c.PLAYER_UP]
        index = m[c.PLAYER_LANE]
        m[c.START_BONUS + player] = index
        m[c.WAVE_INDEX + player] = SELECT_LEVELS[index]
        m[c.CUR_WAVE] = SELECT_LEVELS[index]
        self.set_up_wave_tables()
        self.fill_spikes_and_count()
        self.reset_superzapper()
        m[c.GAME_STATE] = 2

    def state_new_life(self) -> None:
        """Everything a life starts with."""
        m = self.m
        m[c.DISPLAY_STATE] = 0
        m[c.GAME_STATE] = 0x1E
        m[c.NEXT_STATE] = 0x1E
        m[c.PLAYER_UP] = m[c.NEXT_PLAYER]
        wave = m[c.WAVE_INDEX + m[c.PLAYER_UP]]
        m[c.CUR_WAVE] = wave
        m[c.PLAYER_LANE] = 0x0E
        m[c.PLAYER_CCW] = 0x0F
        m[c.RIM_POS] = 0xF0
        m[c.PLAYER_DEPTH] = 0x10
        m[c.WARP_FLAG] = 0
        self.set_up_wave_tables()
        self.clear_objects()
        self.set_up_well(wave, new_life=True)
        m[c.SPIKE_FLAG] = 0

    def state_new_life_2(self) -> None:
        """Twenty ticks to get ready."""
        m = self.m
        m[c.DISPLAY_STATE] = 0
        m[c.NEXT_STATE] = 4
        m[c.PAUSE_TIMER] = 0x14
        m[c.GAME_STATE] = 0x0A

    def state_end_life(self) -> None:
        """One life fewer: another, or the end of the game."""
        m = self.m
        m[c.PAUSE_TIMER] = 0
        m.add(c.LIVES + m[c.PLAYER_UP], -1)
        if m[c.LIVES] == 0 and m[c.LIVES + 1] == 0:
            m[c.LAST_TOP_WAVE] = max(0, m[c.WAVE_INDEX] - 1)
            m[c.GAME_STATE] = 0x10
            return
        m[c.NEXT_STATE] = 2
        m[c.GAME_STATE] = 0x0A

    def state_pause(self) -> None:
        """Wait; the player may move."""
        m = self.m
        if m[c.FRAME] & m[c.PAUSE_MASK] == 0:
            if m[c.PAUSE_TIMER] != 0:
                m.add(c.PAUSE_TIMER, -1)
            if m[c.PAUSE_TIMER] == 0:
                m[c.GAME_STATE] = m[c.NEXT_STATE]
                m[c.PAUSE_MASK] = 0
        self.move_player()

    def state_end_wave(self) -> None:
        """The next level, the start bonus, a new wave."""
        m = self.m
        player = m[c.PLAYER_UP]
        if m[c.WAVE_INDEX + player] < 0x62:
            m.add(c.WAVE_INDEX + player, 1)
            m.add(c.CUR_WAVE, 1)
        m[c.GAME_STATE] = 0x18
        if m[c.START_BONUS + player]:
            self.add_large(START_BONUS[m[c.START_BONUS + player]])
        self.set_up_wave_tables()
        self.fill_spikes_and_count()
        self.clear_objects()
        self.set_up_well(m[c.WAVE_INDEX + player], new_life=False)
        self.reset_superzapper()
        m[c.EYE_HI] = 0xFA
        m[c.EYE_LO] = 0
        m[c.WARP_FLAG] = 0
        m[c.SPIKE_FLAG] = 0

    def state_level_entry(self) -> None:
        """The eye approaches the new well."""
        m = self.m
        m[c.PLAYER_DEPTH] = 0x10
        slide = m[c.SCREEN_Z_HI] << 16 | m[c.SCREEN_Z_LO] << 8 | m[c.SLIDE_FRAC]
        slide += 64 * signed(m[c.SLIDE_STEP])
        m[c.SCREEN_Z_HI] = slide >> 16
        m[c.SCREEN_Z_LO] = slide >> 8
        m[c.SLIDE_FRAC] = slide
        eye = ((m[c.EYE_HI] << 8 | m[c.EYE_LO]) + 0x18) & 0xFFFF
        if eye >= 0xFC00:
            m[c.STAR_FIELD] = 1
        home = 0xFF00 | m[c.EYE_HOME]
        arrived = eye >= home or eye < 0x100
        if arrived:
            eye = home
            m[c.GAME_STATE] = 4
            m[c.START_BONUS + m[c.PLAYER_UP]] = 0
        m[c.EYE_HI] = eye >> 8
        m[c.EYE_LO] = eye
        self.move_player()

    # ---- setting up --------------------------------------------------------------------------

    def set_up_wave_tables(self) -> None:
        """Parameters of the wave; level 99 draws one of the levels 65-96."""
        m = self.m
        wave = m[c.CUR_WAVE]
        level = wave + 1
        if wave >= 0x62:
            level = 65 + (self.draw(0x92CB) & 0x1F)
        for address, value in wave_cells(level, m[c.OPTIONS] & 3, wave).items():
            m[address] = value

    def fill_spikes_and_count(self) -> None:
        """The wave's queue size and its first spikes."""
        m = self.m
        m[c.QUEUE_COUNT] = m[c.QUEUE_START]
        m.fill(c.SPIKE, 16, m[c.SPIKE_START])

    def reset_superzapper(self) -> None:
        """Two uses again."""
        self.m[c.ZAP_USES] = 0
        self.m[c.ZAP_TIMER] = 0

    def clear_objects(self) -> None:
        """No shots, enemies or explosions; a fresh queue; the knob and the pulse at rest."""
        m = self.m
        self.clear_shots()
        m.fill(c.DEPTH, 7, 0)
        m[c.TUBE_COUNT] = 0
        m[c.RIM_COUNT] = 0
        m.fill(c.KIND_COUNT, 5, 0)
        self.refill_queue()
        m.fill(c.BOOM_DEPTH, 8, 0)
        m[c.BOOM_COUNT] = 0
        m[c.SPIN] = 0
        m[c.PULSE] = 0xFF
        m[c.LIFE_FLASH] = 0xFF

    def clear_shots(self) -> None:
        """All twelve shots and both counts."""
        m = self.m
        m.fill(c.SHOT_DEPTH, 12, 0)
        m[c.PLAYER_SHOTS] = 0
        m[c.ENEMY_SHOTS] = 0

    def refill_queue(self) -> None:
        """Random lanes for everybody who waits; counts of 0 and above 64 write out of bounds."""
        m = self.m
        m.fill(c.QUEUE_TIMER, 64, 0)
        index = (m[c.QUEUE_COUNT] - 1) & 0xFF
        while True:
            lane = self.draw(0x9254) & 0x0F
            m[c.QUEUE_LANE + index] = lane
            m[c.QUEUE_TIMER + index] = ((index * 16) & 0xFF | lane) or 0x0F
            if index == 0 or m[c.QUEUE_COUNT] == 0:
                break
            index -= 1

    def set_up_well(self, wave: int, new_life: bool) -> None:
        """Shape, lane angles and where the eye is."""
        m = self.m
        slot = wave % 16
        if wave >= 0x62:
            slot = (self.draw(0xC2EE) & 0x5F) % 16
        shape = ORDER[slot]
        is_open, x, z, angle, eye, vanish = WELLS[shape]
        m[c.WELL_SHAPE] = shape
        m[c.WELL_OPEN] = 0xFF if is_open else 0
        for i in range(16):
            m[c.LANE_X + i] = int(x[2 * i : 2 * i + 2], 16)
            m[c.LANE_Z + i] = int(z[2 * i : 2 * i + 2], 16)
            m[c.ANGLE + i] = int(angle[i], 16)
        m[c.EYE_HOME] = 256 - eye
        m[c.EYE_HI] = 0xFF
        m[c.EYE_LO] = 256 - eye
        if new_life:
            m[c.SCREEN_Z_LO] = vanish
            m[c.SCREEN_Z_HI] = vanish >> 8
        else:
            now = m[c.SCREEN_Z_HI] << 8 | m[c.SCREEN_Z_LO]
            m[c.SLIDE_STEP] = (vanish - now) >> 4

    # ---- play and warp -----------------------------------------------------------------------

    def state_play(self) -> None:
        """One tick of play, in the machine's order."""
        from .enemies import enemies_fire, move_enemies
        from .queue import move_queue

        self.move_player()
        self.fire()
        self.superzapper()
        move_queue(self)
        move_enemies(self)
        self.move_shots()
        enemies_fire(self)
        for shot in range(7, -1, -1):
            if self.m[c.SHOT_DEPTH + shot]:
                self.collide(shot)
        self.step_explosions()
        self.analyse()

    def state_warp(self) -> None:
        """One tick of the dive."""
        m = self.m
        m[c.SPIKE_FLAG] &= 0x7F
        self.move_player()
        if self.alive():
            self.dive()
        self.step_explosions()
        self.fire()
        self.move_shots()
        if not self.alive():
            self.analyse()

    def alive(self) -> bool:
        """Whether the player lives."""
        return not self.m[c.PLAYER_CCW] & 0x80

    def move_player(self) -> None:
        """The knob: 16 counts a lane, at most 31 a tick, positive towards lower lanes."""
        m = self.m
        if not self.alive():
            return
        position = m[c.RIM_POS] - min(max(signed(m[c.SPIN]), -31), 31)
        m[c.SPIN] = 0
        if m[c.WELL_OPEN]:
            position = min(max(position, 0), 0xEF)
        m[c.RIM_POS] = position
        m[c.PLAYER_LANE] = m[c.RIM_POS] >> 4
        m[c.PLAYER_CCW] = (m[c.PLAYER_LANE] + 1) % 16

    def fire(self) -> None:
        """One shot a tick while the button is held."""
        m = self.m
        if not self.alive() or not m[c.HELD] & 0x10:
            return
        for shot in range(7, -1, -1):
            if m[c.SHOT_DEPTH + shot] == 0:
                m[c.SHOT_DEPTH + shot] = m[c.PLAYER_DEPTH]
                m[c.SHOT_LANE + shot] = m[c.PLAYER_LANE]
                m[c.SHOT_CCW + shot] = m[c.PLAYER_CCW]
                m[c.SHOT_HITS + shot] = 0
                m.add(c.PLAYER_SHOTS, 1)
                self.collide(shot)
                return

    def superzapper(self) -> None:
        """Start on a press, run, kill the highest slot on every second tick."""
        m = self.m
        m[c.LATCHED] &= 0x7F
        if m[c.ZAP_TIMER] == 0:
            if self.alive() and m[c.LATCHED] & 8:
                m[c.LATCHED] &= ~8
                if m[c.ZAP_USES] < 2:
                    m.add(c.ZAP_USES, 1)
                    m[c.ZAP_TIMER] = 1
            return
        m.add(c.ZAP_TIMER, 1)
        if m[c.ZAP_TIMER] >= (0, 0x13, 5)[m[c.ZAP_USES]]:
            m[c.ZAP_TIMER] = 0
        if m[c.ZAP_TIMER] < 3 or m[c.ZAP_TIMER] % 2:
            return
        for slot in range(6, -1, -1):
            if m[c.DEPTH + slot]:
                m[c.FLAGS + slot] &= 0xFC
                self.kill_enemy(slot, by_shot=False)
                return
        m[c.ZAP_TIMER] = 0

    def move_shots(self) -> None:
        """Enemy shots towards the rim, then the player's into the well."""
        m = self.m
        for slot in range(3, -1, -1):
            if m[c.SHOT_DEPTH + 8 + slot]:
                self.move_enemy_shot(8 + slot)
        for shot in range(7, -1, -1):
            if m[c.SHOT_DEPTH + shot]:
                self.move_player_shot(shot)

    def move_enemy_shot(self, shot: int) -> None:
        """A shot that comes nearer than the player hits his lane."""
        m = self.m
        depth = m[c.SHOT_DEPTH + shot] << 8 | m[c.SHOT_FRAC + shot]
        depth += m[c.SHOT_SPEED_HI] << 8 | m[c.SHOT_SPEED_LO]
        m[c.SHOT_DEPTH + shot] = depth >> 8
        m[c.SHOT_FRAC + shot] = depth
        if m[c.SHOT_DEPTH + shot] >= m[c.PLAYER_DEPTH]:
            return
        m.add(c.ENEMY_SHOTS, -1)
        m[c.SHOT_DEPTH + shot] = 0
        if m[c.SHOT_LANE + shot] == m[c.PLAYER_LANE] and self.alive():
            self.kill_player(1, 0x81)

    def move_player_shot(self, shot: int) -> None:
        """Nine deeper, five once it has cut a spike; cut the lane's spike; end at the bottom."""
        m = self.m
        at = c.SHOT_DEPTH + shot
        m.add(at, 5 if m[c.SHOT_HITS + shot] else 9)
        spike = c.SPIKE + m[c.SHOT_LANE + shot]
        if m[spike]:
            if m[at] >= m[spike]:
                m[spike] = 0 if m[at] >= 0xF0 else m[at]
                m.add(c.SHOT_HITS + shot, 1)
                self.add_large(1)
            if m[c.SHOT_HITS + shot] >= 2:
                m[at] = 0
                m.add(c.PLAYER_SHOTS, -1)
        if m[at] >= 0xF0:
            m[at] = 0
            m.add(c.PLAYER_SHOTS, -1)

    def collide(self, shot: int) -> None:
        """One player shot against everything; it may hit several things in one scan."""
        m = self.m
        depth = m[c.SHOT_DEPTH + shot]
        lane = m[c.SHOT_LANE + shot]
        ccw = m[c.SHOT_CCW + shot]
        hit = False
        for slot in range(6, -1, -1):
            if m[c.DEPTH + slot] and self.is_hit(slot, depth, lane, ccw):
                self.kill_enemy(slot, by_shot=True)
                hit = True
        for other in range(11, 7, -1):
            other_depth = m[c.SHOT_DEPTH + other]
            near = abs(other_depth - depth) < m[c.SHOT_SHOT_RANGE]
            if other_depth and near and m[c.SHOT_LANE + other] == lane:
                self.explode(0, m[c.SHOT_LANE + other], other_depth)
                m[c.SHOT_DEPTH + other] = 0
                m.add(c.ENEMY_SHOTS, -1)
                hit = True
        if hit:
            m[c.SHOT_DEPTH + shot] = 0
            m[c.SHOT_HITS + shot] = 0
            m.add(c.PLAYER_SHOTS, -1)

    def is_hit(self, slot: int, depth: int, lane: int, ccw: int) -> bool:
        """Whether a shot at ``depth`` in ``lane`` hits the enemy of a slot."""
        m = self.m
        kind = m[c.KIND + slot] & 7
        if abs(m[c.DEPTH + slot] - depth) >= m[c.HIT_RANGE + kind]:
            return False
        moving = bool(m[c.CCW + slot] & 0x80)
        at_rim = m[c.DEPTH + slot] == m[c.PLAYER_DEPTH]
        own = m[c.LANE + slot]
        if kind == c.FUSEBALL:
            return moving and not at_rim and own == lane
        if moving:
            return own in (lane, ccw)
        return not at_rim and own == lane

    def kill_enemy(self, slot: int, by_shot: bool) -> None:
        """Explosion, removal or split, points."""
        m = self.m
        kind = m[c.KIND + slot] & 7
        lane = m[c.LANE + slot]
        depth = m[c.DEPTH + slot]
        if kind == c.FUSEBALL and by_shot:
            prize = self.draw(0xA31A) & 7
            self.explode({1: 3, 2: 4}.get(prize, 2), lane, depth)
            self.remove_enemy(slot)
            self.add_points({1: 500, 2: 750}.get(prize, 250))
            return
        if m[c.KIND + slot] & 0xC0 == 0xC0:
            lane = (lane - 1) % 16
        self.explode(0, lane, depth)
        self.remove_or_split(slot)
        # The machine looks the points up only now, when a child may sit in the slot already.
        self.add_points((150, 200, 100, 50, 150)[m[c.KIND + slot] & 7])

    def remove_enemy(self, slot: int) -> int:
        """Free a slot and correct the counts; returns its depth."""
        m = self.m
        kind = m[c.KIND + slot] & 7
        depth = m[c.DEPTH + slot]
        m[c.DEPTH + slot] = 0
        at_rim = depth == m[c.PLAYER_DEPTH] and kind != c.FUSEBALL
        m.add(c.RIM_COUNT if at_rim else c.TUBE_COUNT, -1)
        m.add(c.KIND_COUNT + kind, -1)
        return depth

    def remove_or_split(self, slot: int) -> None:
        """A tanker with cargo leaves two children, as far as there are free slots."""
        from .queue import place_enemy

        m = self.m
        cargo = m[c.FLAGS + slot] & 3
        lane = m[c.LANE + slot]
        depth = self.remove_enemy(slot)
        if cargo == 0:
            return
        kind = (c.FLIPPER, c.FLIPPER, c.PULSAR, c.FUSEBALL)[cargo]
        first = (lane - 1) % 16
        if first == 15 and m[c.WELL_OPEN]:
            first = 0
        second = (first + 2) % 16
        if second == 15 and m[c.WELL_OPEN]:
            second = 14
        if place_enemy(self, kind, first, depth, 0):
            place_enemy(self, kind, second, depth, 0x40)

    def explode(self, kind: int, lane: int, depth: int) -> None:
        """Take the highest free explosion, else the oldest one."""
        m = self.m
        free = [i for i in range(8) if m[c.BOOM_DEPTH + i] == 0]
        if free:
            at = free[-1]
            m.add(c.BOOM_COUNT, 1)
        else:
            oldest = max(m[c.BOOM_SEQ + i] for i in range(8))
            at = next(i for i in range(8) if m[c.BOOM_SEQ + i] == oldest)
        m[c.BOOM_LANE + at] = lane
        m[c.BOOM_TYPE + at] = kind
        m[c.BOOM_DEPTH + at] = depth
        m[c.BOOM_SEQ + at] = 0

    def step_explosions(self) -> None:
        """Advance every explosion; end those that reach their limit."""
        m = self.m
        for i in range(8):
            if m[c.BOOM_DEPTH + i] == 0:
                continue
            kind = m[c.BOOM_TYPE + i]
            m.add(c.BOOM_SEQ + i, (3, 1, 3, 3, 3, 3)[kind])
            if m[c.BOOM_SEQ + i] >= (16, 21, 32, 32, 32, 16)[kind]:
                m[c.BOOM_DEPTH + i] = 0
                m.add(c.BOOM_COUNT, -1)

    def kill_player(self, explosion: int, mark: int) -> None:
        """The player dies where he is."""
        m = self.m
        self.explode(explosion, m[c.PLAYER_LANE], m[c.PLAYER_DEPTH])
        m[c.PLAYER_CCW] = mark

    # ---- points ------------------------------------------------------------------------------

    def add_points(self, points: int) -> None:
        """Ordinary points; a life when the ten-thousands reach a multiple of the interval."""
        carried = self._add(points)
        if carried and self._at_multiple():
            self.give_life()

    def add_large(self, points: int) -> None:
        """Points by amount (start bonus, spikes); one amount gives at most one life."""
        m = self.m
        top = points // 10_000
        carried = self._add(points)
        interval = m[c.BONUS_INTERVAL]
        whole = top != 0 and interval != 0 and interval <= top
        if whole or ((top or carried) and self._at_multiple()):
            self.give_life()

    def _add(self, points: int) -> bool:
        m = self.m
        at = c.SCORE + 3 * m[c.PLAYER_UP]
        score = from_bcd(m[at]) + 100 * from_bcd(m[at + 1]) + 10_000 * from_bcd(m[at + 2])
        carried = score % 10_000 + points % 10_000 >= 10_000
        score = (score + points) % 1_000_000
        for i in range(3):
            m[at + i] = to_bcd(score // 100**i % 100)
        return carried

    def _at_multiple(self) -> bool:
        m = self.m
        interval = m[c.BONUS_INTERVAL]
        tens = from_bcd(m[c.SCORE + 3 * m[c.PLAYER_UP] + 2])
        if interval == 0:
            return False
        if interval <= 2:
            return tens % interval == 0
        return tens > 0 and tens % interval == 0

    def give_life(self) -> None:
        """At six lives the award is lost."""
        m = self.m
        at = c.LIVES + m[c.PLAYER_UP]
        if m[at] < 6:
            m.add(at, 1)
            m[c.LIFE_FLASH] = 0x20

    # ---- end of life and of wave -------------------------------------------------------------

    def analyse(self) -> None:
        """Sink when dead, dive when the wave is cleared."""
        m = self.m
        if not self.alive():
            if m[c.PLAYER_SHOTS] | m[c.ENEMY_SHOTS] | m[c.BOOM_COUNT] == 0:
                self.sink()
            return
        if m[c.WARP_FLAG]:
            return
        enemies_left = any(m[c.DEPTH + slot] >= 0x11 for slot in range(7))
        if m[c.QUEUE_COUNT] == 0 and m[c.BOOM_COUNT] == 0 and not enemies_left:
            self.start_warp()
            self.clear_shots()
        skip = m[c.HELD] & 0x60 and m[c.MODE] & 0x40
        if skip and m[c.DSW1] & 0x43 == 0x40:
            self.start_warp()

    def sink(self) -> None:
        """One step of the fall; at its end everybody alive goes back into the queue."""
        m = self.m
        for slot in range(7):
            if m[c.DEPTH + slot]:
                deeper = m[c.DEPTH + slot] + 0x0F
                m[c.DEPTH + slot] = 0 if deeper >= 0xF0 else deeper
        if m[c.LIVES + m[c.PLAYER_UP]] == 1:
            eye = (m[c.EYE_HI] << 8 | m[c.EYE_LO]) - 0x20
            m[c.EYE_HI] = eye >> 8
            m[c.EYE_LO] = eye
            finished = m[c.EYE_HI] == 0xFA
        else:
            deeper = m[c.PLAYER_DEPTH] + 0x0F
            m[c.PLAYER_DEPTH] = deeper
            finished = deeper >= 0xF0
        if finished:
            m[c.GAME_STATE] = 6
            self.clear_shots()
            left = (m[c.TUBE_COUNT] + m[c.RIM_COUNT] + m[c.QUEUE_COUNT]) & 0xFF
            m[c.QUEUE_COUNT] = min(0x3F, left)

    def start_warp(self) -> None:
        """The dive, after a warning where spikes stand on the first seven levels."""
        m = self.m
        m[c.GAME_STATE] = 0x20
        m[c.WARP_FLAG] |= 0x80
        m[c.WARP_SPEED_HI] = 2
        m[c.WARP_SPEED_LO] = 0
        m[c.PLAYER_FRAC] = 0
        m[c.EYE_FRAC] = 0
        m[c.ZAP_TIMER] = 0xFF
        m[c.SPIKE_FLAG] = sum(m[c.SPIKE + lane] != 0 for lane in range(16))
        if m[c.SPIKE_FLAG] and m[c.CUR_WAVE] < 7:
            m[c.GAME_STATE] = 0x0A
            m[c.PAUSE_TIMER] = 0x1E
            m[c.NEXT_STATE] = 0x20
            m[c.SPIKE_FLAG] = 0x80

    def dive(self) -> None:
        """Fall, faster every tick; a spike nearer than the player in his lane kills."""
        m = self.m
        if not m[c.WARP_FLAG] & 0x80:
            return
        speed = m[c.WARP_SPEED_HI] << 8 | m[c.WARP_SPEED_LO]
        depth = (m[c.PLAYER_DEPTH] << 8 | m[c.PLAYER_FRAC]) + speed
        m[c.PLAYER_FRAC] = depth
        if depth >= 0xF000:
            m[c.GAME_STATE] = 0x0E
            m[c.PLAYER_DEPTH] = 0xFF
        else:
            m[c.PLAYER_DEPTH] = depth >> 8
        if m[c.PLAYER_DEPTH] >= 0x50 and m[c.STAR_FIELD] == 0:
            m[c.STAR_FIELD] = 0xFF
            m.fill(c.STAR_PLANE, 7, 0)
            m[c.STAR_PLANE + 7] = 0xF0
        eye = (m[c.EYE_HI] << 16 | m[c.EYE_LO] << 8 | m[c.EYE_FRAC]) + speed
        m[c.EYE_HI] = eye >> 16
        m[c.EYE_LO] = eye >> 8
        m[c.EYE_FRAC] = eye
        speed += 0x20 + min(0x30, (4 * m[c.CUR_WAVE]) & 0xFF)
        m[c.WARP_SPEED_HI] = speed >> 8
        m[c.WARP_SPEED_LO] = speed
        spike = m[c.SPIKE + m[c.PLAYER_LANE]]
        if m[c.PLAYER_DEPTH] < 0xF0 and 0 < spike < m[c.PLAYER_DEPTH]:
            self.kill_player(1, 0x81)
            m[c.STAR_FIELD] = 0
            self.clear_shots()
