"""The test program: the arcade's clock, controls and states, and just enough of a game.

It keeps to the machine's memory map where the bridge looks: the tick begins with the store of 0
into cell 0x53 at 0xC7AF, nine interrupts apart; the interrupt handler at 0xD704 reads the knob,
the buttons and the coins; a start button with a credit leads through states 00, 16, 02, 1E and 0A
to play, whose lives end in state 06 and whose games end in state 10.  States 02 (its cells that
matter here), 1E, 0A and 06 and the knob follow the real rules on a closed well.

As in the game, a new life draws the lanes of those that wait (``LANES`` of them) from POKEY 1 and
then starts both POKEYs anew, so that games differ by the moment of their start alone.

Play is a toy: every tick with fire held is worth 10 points, a superzap takes one of two uses, a
random byte goes to cell 0x7F1, and the player dies after ``LIFE_TICKS`` ticks.  Dead, he stays so
for ``DEAD_TICKS`` ticks.  It wastes ``DELAY_CYCLES`` cycles as often as the cells ``DELAY_BEFORE``
and ``DELAY_AFTER`` say, before and after it looks at the buttons.
"""

from __future__ import annotations

from pathlib import Path

from .assembler import assemble

LIFE_TICKS = 50
DEAD_TICKS = 5
RANDOM_CELL = 0x7F1
RANDOM_READ = 0x9A61
"""Address of the random read in play, the same as one of the game's."""
LANE_READ = 0x9254
"""Address of the random reads of a new life, the same as the game's."""
LANES = 10
LANE_CELLS = slice(0x203, 0x203 + LANES)
DELAY_BEFORE, DELAY_AFTER = 0x7F2, 0x7F3
DELAY_CYCLES = 1290

PROGRAM_FILES = {
    "tempest1": (
        "113.d1", "114.e1", "115.f1", "116.h1", "117.j1",
        "118.k1", "119.lm1", "120.mn1", "121.p1", "122.r1",
    ),
    "tempest2": (
        "113.d1", "114.e1", "115.f1", "116.h1", "217.j1",
        "118.k1", "119.lm1", "120.mn1", "121.p1", "222.r1",
    ),
    "tempest3": (
        "113.d1", "114.e1", "115.f1", "316.h1", "217.j1",
        "118.k1", "119.lm1", "120.mn1", "121.p1", "222.r1",
    ),
    "tempest": ("133.d1", "134.f1", "235.j1", "136.lm1", "237.p1"),
    "tempest1r": ("133.d1", "134.f1", "135.j1", "136.lm1", "137.p1"),
}  # fmt: skip
"""The program's files of each set, whose names all begin with 136002-."""
SMALL_FILES = {
    "125.d7": 256, "126.a1": 32, "132.l1": 256, "131.k1": 256, "130.j1": 256, "129.h1": 256,
    "128.f1": 256, "127.e1": 256,
}  # fmt: skip
VECTOR_FILES = {
    10: {"123.np3": 2048, "124.r3": 2048},
    5: {"138.np3": 4096},
}
"""By the number of the program's files."""

SOURCE = f"""
.org $9250
draw_lanes:
    LDX #{LANES - 1}
draw_lane:
    NOP
    NOP
    LDA $60CA                   ; POKEY 1's random register, read at $9254
    AND #$0F
    STA $0203,X
    DEX
    BPL draw_lane
restart:                        ; as the start of the sounds does
    LDA #0
    STA $60CF
    STA $60DF
    LDA #7
    STA $60CF
    STA $60DF
    RTS

.org $9A61
random_byte:
    LDA $60DA                   ; POKEY 2's random register
    STA $07F1
    RTS

.org $A270
held_buttons:                   ; where the game looks whether fire is held
    LDA $4D
    RTS

.org $B000
pause:                          ; state 0A
    LDA $03
    AND $016B
    BNE turn
    LDA $04
    BEQ pause_over
    DEC $04
    BNE turn
pause_over:
    LDA $02
    STA $00
    LDA #0
    STA $016B
turn:                           ; the knob moves a living player: at most 31 counts
    LDA $0201
    BMI turned
    LDA $50
    BMI turn_negative
    CMP #32
    BCC turn_by
    LDA #31
    JMP turn_by
turn_negative:
    CMP #$E1
    BCS turn_by
    LDA #$E1
turn_by:
    STA $29
    LDA $51
    SEC
    SBC $29
    STA $51
    LSR
    LSR
    LSR
    LSR
    STA $0200
    CLC
    ADC #1
    AND #$0F
    STA $0201
    LDA #0
    STA $50
turned:
    RTS

new_game:                       ; state 00
    LDA $0D00
    EOR #$02
    STA $09
    LDA $0E00
    STA $0A
    LSR
    LSR
    LSR
    AND #$07
    TAX
    LDA bonus_table,X
    STA $0156
    LDA $0A
    ASL
    LDA #0
    ADC #0
    ASL
    STA $29
    LDA $0A
    AND #$40
    BEQ new_game_lives
    INC $29
new_game_lives:
    LDX $29
    LDA lives_table,X
    STA $0158
    STA $48
    LDA $60D8
    AND #$07
    STA $016A
    LDA #0
    STA $40
    STA $41
    STA $42
    STA $3D
    STA $0106
    LDA #$FF
    STA $46
    LDA #$16
    STA $00
    LDA #$08
    STA $01
    LDA #$10
    STA $04
    RTS
bonus_table:
    .byte 2 1 3 4 5 6 7 0
lives_table:
    .byte 3 4 5 2

level_select:                   ; state 16
    LDA #0
    STA $50
    LDA $4E
    AND #$18
    BEQ select_wait
    LDA #0
    STA $4E
    STA $46
    STA $9F
    STA $0102
    STA $03AA
    LDA #$02
    STA $00
    RTS
select_wait:
    LDA $4E
    AND #$07
    STA $4E
    RTS

new_life:                       ; state 02
    LDA #0
    STA $01
    STA $50
    STA $0123
    STA $0135
    STA $A6
    STA $0116
    STA $0106
    STA $0111                   ; the well is closed
    STA $07F0
    LDA #$1E
    STA $00
    STA $02
    LDA $46
    STA $9F
    LDA #$0E
    STA $0200
    LDA #$0F
    STA $0201
    LDA #$F0
    STA $51
    LDA #$10
    STA $0202
    LDA #$80                    ; one flipper half way down, so that a superzap is legal
    STA $02E5
    LDA #0
    STA $0289
    JMP draw_lanes

new_life_2:                     ; state 1E
    LDA #0
    STA $01
    LDA #$04
    STA $02
    LDA #$14
    STA $04
    LDA #$0A
    STA $00
    RTS

play:                           ; state 04
    INC $07F0
    LDA $0201
    BMI dead
    JSR turn
    JSR random_byte
    LDX $07F2
    JSR delay
    JSR held_buttons
    AND #$10
    BEQ play_zap
    SED
    CLC
    LDA $40
    ADC #$10
    STA $40
    LDA $41
    ADC #0
    STA $41
    LDA $42
    ADC #0
    STA $42
    CLD
play_zap:
    LDA $4E
    AND #$08
    BEQ play_seen
    LDX $03AA
    CPX #2
    BCS play_seen
    INC $03AA
play_seen:
    LDA $4E
    AND #$77
    STA $4E
    LDA $07F0
    CMP #{LIFE_TICKS}
    BCC play_end
    LDA #$80
    STA $0201
play_end:
    LDX $07F3
delay:
    LDY #0
    TXA
    BEQ delay_over
delay_loop:
    DEY
    BNE delay_loop
    DEX
    BNE delay_loop
delay_over:
    RTS
dead:
    LDA $07F0
    CMP #{LIFE_TICKS + DEAD_TICKS}
    BCC play_end
    LDA #$06
    STA $00
    RTS

end_life:                       ; state 06
    LDA #0
    STA $04
    DEC $48
    BNE another_life
    LDA #$10
    STA $00
    RTS
another_life:
    LDA #$02
    STA $02
    LDA #$0A
    STA $00
    RTS

high_score_check:               ; state 10
    LDA #$80
    STA $05
    LDA #$14
    STA $00
    RTS

attract:                        ; state 14, for ever
    LDA #0
    STA $05
    RTS

run_state:
    LDA $00
    CMP #$04
    BEQ go_play
    CMP #$0A
    BEQ go_pause
    CMP #$16
    BEQ go_select
    CMP #$02
    BEQ go_life
    CMP #$1E
    BEQ go_life_2
    CMP #$06
    BEQ go_end
    CMP #$00
    BEQ go_new
    CMP #$10
    BEQ go_check
    JMP attract
go_play:
    JMP play
go_pause:
    JMP pause
go_select:
    JMP level_select
go_life:
    JMP new_life
go_life_2:
    JMP new_life_2
go_end:
    JMP end_life
go_new:
    JMP new_game
go_check:
    JMP high_score_check

start_button:                   ; while no game runs
    LDA $05
    AND #$40
    BNE start_end
    LDA $06
    BEQ start_end
    LDA $4E
    AND #$20
    BEQ start_clear
    DEC $06
    LDA #$C0
    STA $05
    LDA #0
    STA $00
start_clear:
    LDA #0
    STA $4E
start_end:
    RTS

.org $C7A0
main_loop:
    LDA $53
    CMP #9
    BCC main_loop
    LDA #0
    JMP tick
.org $C7AF
tick:
    STA $53
    LDA $4E
    ORA #$80
    STA $4E
    JSR run_state
    JSR start_button
    INC $03
    LDA $4E
    BPL main_loop_far
    LDA #0
    STA $4E
main_loop_far:
    JMP main_loop

.org $D704
interrupt:
    PHA
    TXA
    PHA
    STA $5000                   ; watchdog and acknowledge
    INC $07
    LDA $60C8                   ; knob, inverted
    EOR #$0F
    AND #$0F
    STA $29
    SEC
    SBC $52
    AND #$0F
    CMP #8
    BCC interrupt_knob
    ORA #$F0
interrupt_knob:
    CLC
    ADC $50
    STA $50
    LDA $29
    STA $52
    LDA $0C00
    STA $08
    LDX $60D8
    STA $60CB                   ; scan both ports anew
    STA $60DB
    LDA $4D                     ; majority of the new, the last and the debounced sample
    STA $4F
    TXA
    AND $4C
    STA $2A
    TXA
    ORA $4C
    AND $4D
    ORA $2A
    STA $4D
    TXA
    STA $4C
    LDA $4F
    EOR #$FF
    AND $4D
    ORA $4E
    STA $4E
    INC $53
    LDA $53                     ; no tick for half a second: the watchdog resets
    CMP #128
    BCC interrupt_end
    JMP interrupt_hang
interrupt_end:
    PLA
    TAX
    PLA
    RTI
interrupt_hang:
    JMP interrupt_hang

.org $D800
reset:
    SEI
    CLD
    LDX #$FF
    TXS
    LDA #0
    TAX
clear:
    STA $0000,X
    STA $0100,X
    STA $0200,X
    STA $0300,X
    STA $0400,X
    STA $0500,X
    STA $0600,X
    STA $0700,X
    INX
    BNE clear
    LDA #7                      ; wake the POKEYs, or their random registers stand still
    STA $60CF
    STA $60DF
    LDA #0
    STA $60E0                   ; player 1's controls
    LDA #$14
    STA $00
    CLI
    JMP main_loop

.org $DFFA
    .byte $04 $D7 $00 $D8 $04 $D7
"""


def write_rom_set(folder: Path, name: str = "tempest1") -> Path:
    """Write the program as the files of the set ``name`` below ``folder``; returns it."""
    image = assemble(SOURCE, 0x9000, 0xDFFF)
    target = folder / name
    target.mkdir(parents=True)
    files = PROGRAM_FILES[name]
    size = len(image) // len(files)
    for number, file in enumerate(files):
        (target / f"136002-{file}").write_bytes(image[number * size : (number + 1) * size])
    for file, length in {**VECTOR_FILES[len(files)], **SMALL_FILES}.items():
        (target / f"136002-{file}").write_bytes(bytes(length))
    return folder
