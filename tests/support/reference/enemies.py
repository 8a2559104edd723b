"""Enemies in the well: their movement programs, their shots, the pulse of the pulsars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import cells as c
from .programs import LABELS, STEPS

if TYPE_CHECKING:
    from .machine import Machine


def signed(byte: int) -> int:
    """A byte as -128..127."""
    return byte - 256 if byte >= 128 else byte


def move_enemies(g: Machine) -> None:
    """Every enemy's program, slot 6 first, unless the player is dead; then the pulse."""
    m = g.m
    if g.alive():
        for slot in range(6, -1, -1):
            if m[c.DEPTH + slot]:
                Walk(g, slot).run()
    m.add(c.PULSE, m[c.PULSE_STEP])
    pulse = signed(m[c.PULSE])
    if pulse >= 15 or pulse < -63:
        m[c.PULSE_STEP] = -m[c.PULSE_STEP]


def enemies_fire(g: Machine) -> None:
    """Who may shoot, does so with a chance that falls with the shots in flight."""
    m = g.m
    if not g.alive():
        return
    for slot in range(6, -1, -1):
        if m[c.DEPTH + slot] < 0x30 or not m[c.FLAGS + slot] & 0x40:
            continue
        m.add(c.FIRE_TIMER + slot, -1)
        if not m[c.FIRE_TIMER + slot] & 0x80:
            continue
        m.add(c.FIRE_TIMER + slot, 1)
        if m[c.CCW + slot] & 0x80:
            continue
        limit = (0, 0xE0, 0xF0, 0xFA, 0xFF)[m[c.ENEMY_SHOTS]]
        if g.draw(0xA2CC) >= limit:
            launch_enemy_shot(g, slot)


def launch_enemy_shot(g: Machine, slot: int) -> None:
    """A shot from the enemy's place, if one of the wave's shots is free."""
    m = g.m
    for shot in range(8 + m[c.SHOT_TOP_SLOT], 7, -1):
        if m[c.SHOT_DEPTH + shot] == 0:
            m[c.SHOT_DEPTH + shot] = m[c.DEPTH + slot]
            m[c.SHOT_LANE + shot] = m[c.LANE + slot]
            m[c.SHOT_CCW + shot] = m[c.CCW + slot]
            m[c.FIRE_TIMER + slot] = m[c.FIRE_DELAY]
            m.add(c.ENEMY_SHOTS, 1)
            return


class Walk:
    """One tick of one enemy's program."""

    def __init__(self, g: Machine, slot: int) -> None:
        self.g = g
        self.m = g.m
        self.slot = slot
        self.flag = 0
        self.ended = False
        m = g.m
        self.pc = m[c.PC + slot]

    def run(self) -> None:
        """Operations until HALT, or until a split ends the slot's turn."""
        while not self.ended:
            operation, operand = STEPS[self.pc]
            self.pc += 2 if operand else 1
            getattr(self, operation.lower())(*([operand] if operand else []))
        self.m[c.PC + self.slot] = self.pc

    # ---- one method per operation ------------------------------------------------------------

    def halt(self) -> None:
        """The end of this tick's part."""
        self.ended = True

    def loop(self, operand: str) -> None:
        """Set the loop counter."""
        count = self.m[int(operand[1:], 16)] if operand.startswith("@") else int(operand)
        self.m[c.LOOP + self.slot] = count

    def again(self, label: str) -> None:
        """Count down and repeat."""
        self.m.add(c.LOOP + self.slot, -1)
        if self.m[c.LOOP + self.slot]:
            self.pc = LABELS[label]

    def goto(self, label: str) -> None:
        """Jump."""
        self.pc = LABELS[label]

    def if0(self, label: str) -> None:
        """Jump on flag 0."""
        if self.flag == 0:
            self.pc = LABELS[label]

    def skip0(self) -> None:
        """Skip the jump that follows on flag 0."""
        if self.flag == 0:
            self.pc += 2

    def reverse(self) -> None:
        """Turn the other way round the well from now on."""
        self.m[c.KIND + self.slot] ^= 0x40

    def move(self) -> None:
        """Towards the rim or the bottom at the kind's speed."""
        if self.down():
            self.sink(self.speed(self.kind()))
        else:
            self.climb(self.speed(self.kind()))

    def spike(self) -> None:
        """A spiker's trail and its turns."""
        m, s = self.m, self.slot
        self.flag = 1
        spike = c.SPIKE + m[c.LANE + s]
        if m[spike] == 0:
            m[spike] = 0xF1
        if m[c.DEPTH + s] < m[spike]:
            m[spike] = m[c.DEPTH + s]
        if m[c.DEPTH + s] < 0x20:
            m[c.FLAGS + s] |= 0x80
            m[c.DEPTH + s] = 0x20
        elif m[c.DEPTH + s] >= 0xF2:
            self.hop()

    def hop(self) -> None:
        """To the lane with the shortest spike; a last spiker becomes a tanker."""
        m, s = self.m, self.slot
        lane = self.g.draw(0xA031) & 15
        best, best_height = -1, -1
        for _ in range(16):
            if not (lane == 15 and m[c.WELL_OPEN]):
                height = m[c.SPIKE + lane] or 255
                if height >= best_height:
                    best, best_height = lane, height
            lane = (lane - 1) % 16
        m[c.LANE + s] = best
        m[c.CCW + s] = (best + 1) % 16
        m[c.FLAGS + s] &= 0x7F
        m[c.DEPTH + s] = 0xF0
        if m[c.QUEUE_COUNT] == 0:
            m[c.KIND + s] = c.TANKER
            m[c.FLAGS + s] = m[c.FLAGS + s] & 0xFC | 1
            self.flag = 0

    def start_flip(self) -> None:
        """Begin to turn over into the next lane."""
        m, s = self.m, self.slot
        lane = m[c.LANE + s]
        if m[c.WELL_OPEN]:
            if self.ccw() and lane >= 14:
                m[c.KIND + s] &= 0xBF
            elif not self.ccw() and lane == 0:
                m[c.KIND + s] |= 0x40
        m[c.KIND + s] |= 0x80
        pivot = (lane + 1) % 16 if self.ccw() else lane
        m[c.LANE + s] = pivot
        m[c.CCW + s] = 0x80 | (self.far_angle(pivot) if self.ccw() else self.near_angle(pivot))

    def near_angle(self, pivot: int) -> int:
        """Where a clockwise flip about a spoke starts."""
        return self.m[c.ANGLE + pivot]

    def far_angle(self, pivot: int) -> int:
        """Where it ends."""
        return (self.m[c.ANGLE + (pivot - 1) % 16] + 8) % 16

    def flip(self) -> None:
        """One sixteenth of a turn; flag 0 at the end."""
        m, s = self.m, self.slot
        if self.kind() == c.FUSEBALL:
            self.roll()
            return
        pivot = m[c.LANE + s]
        angle = (m[c.CCW + s] + (-1 if self.ccw() else 1)) & 15
        m[c.CCW + s] = 0x80 | angle
        self.flag = 0x80
        end = self.near_angle(pivot) if self.ccw() else self.far_angle(pivot)
        if angle != end:
            return
        self.flag = 0
        m[c.KIND + s] &= 0x7F
        if self.ccw():
            m[c.CCW + s] = (pivot + 1) % 16
        else:
            m[c.CCW + s] = pivot
            m[c.LANE + s] = (pivot - 1) % 16

    def roll(self) -> None:
        """A fuseball's step across a lane."""
        m, s = self.m, self.slot
        at = ((m[c.CCW + s] & 15) + (-1 if self.ccw() else 1)) & 15
        m[c.CCW + s] = 0x80 | at
        self.flag = 0x80
        if at & 7:
            return
        self.flag = 0
        if at & 8:
            m[c.LANE + s] = (m[c.LANE + s] + 1) % 16
        m[c.KIND + s] &= 0x7F
        m[c.CCW + s] = 0x20
        m[c.FLAGS + s] ^= 0x80
        if m[c.QUEUE_COUNT] == 0 and m[c.DEPTH + s] == m[c.PLAYER_DEPTH]:
            self.chase()

    def aim(self) -> None:
        """Rotate towards the player, the shorter way on a closed well."""
        m, s = self.m, self.slot
        distance = m[c.PLAYER_LANE] - m[c.LANE + s]
        if not m[c.WELL_OPEN]:
            distance = (distance + 8) % 16 - 8
        if distance >= 0:
            m[c.KIND + s] |= 0x40
        else:
            m[c.KIND + s] &= 0xBF

    def grab(self) -> None:
        """A rim walker standing in the player's lane takes him."""
        if not self.m[c.KIND + self.slot] & 0x80 and self.in_players_lane():
            self.g.kill_player(5, 0x80)

    def on_spike(self) -> None:
        """Flag 0 while deeper than the lane's spike."""
        m, s = self.m, self.slot
        tip = m[c.SPIKE + m[c.LANE + s]] or 255
        self.flag = 0 if m[c.DEPTH + s] > tip else 1

    def pulsing(self) -> None:
        """Flag 0 if the pulse is off, and still off in four steps."""
        pulse = self.m[c.PULSE]
        later = 4 * self.m[c.PULSE_STEP] + pulse
        self.flag = 0 if pulse & later & 0x80 else 0x80

    def pulsar_move(self) -> None:
        """Oscillate between rim and potency depth while enemies wait; electrify the lane."""
        m, s = self.m, self.slot
        if self.down():
            self.sink(self.speed(c.PULSAR))
            depth = m[c.DEPTH + s] if m[c.QUEUE_COUNT] else 255
            if depth >= m[c.POTENCY]:
                m[c.FLAGS + s] ^= 0x80
        else:
            near = m[c.DEPTH + s] < m[c.POTENCY]
            self.climb(self.speed(c.PULSAR if near else c.FLIPPER))
        on = not m[c.PULSE] & 0x80
        if on and m[c.DEPTH + s] < m[c.POTENCY] and self.in_players_lane():
            self.g.kill_player(1, 0x81)

    def fuse_move(self) -> None:
        """Along the spoke, with turns at the ends and by chance."""
        m, s = self.m, self.slot
        if self.down():
            self.sink(self.speed(c.FUSEBALL))
            if m[c.DEPTH + s] >= 0x80:
                self.turn(chasing=bool(m[c.FUSE_CHASE] & 0x40))
            else:
                self.maybe_turn()
            return
        self.add_depth(self.speed(c.FUSEBALL))
        if m[c.DEPTH + s] < m[c.PLAYER_DEPTH]:
            m[c.DEPTH + s] = m[c.PLAYER_DEPTH]
            self.turn(chasing=bool(m[c.FUSE_CHASE] & 0x80))
        elif m[c.QUEUE_COUNT] == 0:
            return
        elif m[c.CUR_WAVE] < 17 and m[c.DEPTH + s] < 0x20:
            self.turn(chasing=bool(m[c.FUSE_CHASE] & 0x80))
        else:
            self.maybe_turn()

    def fuse_kill(self) -> None:
        """At the rim in the player's lane."""
        m, s = self.m, self.slot
        if m[c.DEPTH + s] == m[c.PLAYER_DEPTH] and m[c.LANE + s] == m[c.PLAYER_LANE]:
            self.g.kill_player(1, 0x81)

    # ---- parts of them -----------------------------------------------------------------------

    def kind(self) -> int:
        """0-4."""
        return self.m[c.KIND + self.slot] & 7

    def ccw(self) -> bool:
        """Rotation bit."""
        return bool(self.m[c.KIND + self.slot] & 0x40)

    def down(self) -> bool:
        """Direction bit."""
        return bool(self.m[c.FLAGS + self.slot] & 0x80)

    def speed(self, kind: int) -> int:
        """Signed 8.8 depth a tick of a kind on its way up."""
        m = self.m
        word = m[c.SPEED_HI + kind] << 8 | m[c.SPEED_LO + kind]
        return word - 0x10000 if word & 0x8000 else word

    def in_players_lane(self) -> bool:
        """Both lane bytes equal; false for a dead player."""
        m, s = self.m, self.slot
        return m[c.LANE + s] == m[c.PLAYER_LANE] and m[c.CCW + s] == m[c.PLAYER_CCW]

    def add_depth(self, amount: int) -> None:
        """16-bit addition to depth and fraction."""
        m, s = self.m, self.slot
        total = (m[c.DEPTH + s] << 8 | m[c.FRAC + s]) + amount
        m[c.DEPTH + s] = total >> 8
        m[c.FRAC + s] = total

    def sink(self, speed: int) -> None:
        """Down, not beyond the bottom."""
        self.add_depth(-speed)
        if self.m[c.DEPTH + self.slot] >= 0xF0:
            self.m[c.DEPTH + self.slot] = 0xF2

    def climb(self, speed: int) -> None:
        """Up; arrive at the rim, or split a loaded tanker just before it."""
        m, s = self.m, self.slot
        self.add_depth(speed)
        if m[c.DEPTH + s] <= m[c.PLAYER_DEPTH]:
            self.arrive()
        elif m[c.DEPTH + s] < 0x20 and m[c.FLAGS + s] & 3:
            children = m[c.FLAGS + s] & 3
            self.g.remove_or_split(s)
            self.pc = LABELS[("", "STRAIGHT", "PULSAR", "FUSE")[children]]
            self.ended = True

    def arrive(self) -> None:
        """At the rim: bounce, wait for the flip to end, or become a rim walker."""
        m, s = self.m, self.slot
        m[c.DEPTH + s] = m[c.PLAYER_DEPTH]
        if self.kind() == c.PULSAR and m[c.QUEUE_COUNT]:
            m[c.FLAGS + s] ^= 0x80
            return
        if m[c.KIND + s] & 0x80:
            m.add(c.DEPTH + s, 1)
            return
        m.add(c.TUBE_COUNT, -1)
        if m[c.RIM_COUNT] == 1:
            other = 0xFF
            for slot in range(7):
                if slot != s and m[c.DEPTH + slot] == m[c.PLAYER_DEPTH]:
                    other = slot
            # The whole byte: an arriving pulsar forgets what it is.
            m[c.KIND + s] = (m[c.KIND + other] & 0x40) ^ 0x40
        else:
            self.aim()
        self.pc = LABELS["RIM"]
        m.add(c.RIM_COUNT, 1)

    def turn(self, chasing: bool) -> None:
        """Leave the spoke, towards the player or to a random side."""
        if chasing:
            self.chase()
        else:
            self.random_side()

    def maybe_turn(self) -> None:
        """In every second stretch of the spoke, by chance; odd slots may hunt."""
        m, s = self.m, self.slot
        if not m[c.DEPTH + s] & 0x20 or self.g.draw(0x9F66) < m[c.FUSE_THRESHOLD]:
            return
        self.turn(chasing=bool(m[c.FUSE_CHASE] & 0x40) and s % 2 == 1)

    def random_side(self) -> None:
        """Either side with equal chance."""
        bit = self.g.draw(0x9F8F) & 0x40
        self.m[c.KIND + self.slot] = self.m[c.KIND + self.slot] & 0xBF | bit
        self.start_roll()

    def chase(self) -> None:
        """Towards the player; a fuseball's rotation bit has the opposite sense."""
        self.aim()
        self.m[c.KIND + self.slot] ^= 0x40
        self.start_roll()

    def start_roll(self) -> None:
        """Begin to roll across the lane on the chosen side."""
        m, s = self.m, self.slot
        edge = m[c.LANE + s] == 0 if self.ccw() else m[c.LANE + s] >= 15
        if m[c.WELL_OPEN] and edge:
            m[c.KIND + s] ^= 0x40
        m[c.KIND + s] |= 0x80
        if self.ccw():
            m[c.LANE + s] = (m[c.LANE + s] - 1) % 16
            m[c.CCW + s] = 0x87
        else:
            m[c.CCW + s] = 0x81
        self.pc = LABELS["FUSE_ROLL_B"]
