//! x86_64 instructions, as far as they matter to a stack pointer: how long they are and what they do to it.

/// No instruction is longer.
pub const LONGEST: usize = 15;

/// What an instruction does to the stack pointer, and where it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Neither moves the stack pointer nor goes elsewhere for good.
    Other,
    /// Pushes eight bytes.
    Push,
    /// Pushes rbp.
    PushFramePointer,
    /// `mov rbp, rsp`.
    SetFramePointer,
    /// Moves it by a constant; a pop and a `sub` are such.
    Add(i64),
    /// Sets it to rbp and a constant.
    FromFramePointer(i64),
    /// Sets r11 so far below it: to where a loop that touches each page of a large frame will take it.
    ProbeBelow(i64),
    /// Takes so much from r11: the second step, where r11 was set to the stack pointer itself.
    ProbeSub(i64),
    /// Jumps back where two things differ, as the end of such a loop does.
    JumpBack,
    /// Calls, and goes on behind itself.
    Call,
    /// Jumps on a condition.
    Branch,
    /// Never goes on behind itself.
    End,
    /// Moves it in a way that only running it tells.
    Moves,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its bytes.
    pub length: usize,
    /// See there.
    pub effect: Effect,
}

const SP: u8 = 4;
const FP: u8 = 5;

/// The next instruction, or `None` where the bytes are too few or not one that is known here.
pub fn decode(bytes: &[u8]) -> Option<Instruction> {
    let mut reader = Reader { bytes, at: 0, wide: false, narrow: false, extend_reg: 0, extend_rm: 0 };
    let effect = reader.instruction()?;
    (reader.at <= bytes.len().min(LONGEST)).then_some(Instruction { length: reader.at, effect })
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Operands of 64 bits.
    wide: bool,
    /// Operands of 16 bits.
    narrow: bool,
    extend_reg: u8,
    extend_rm: u8,
}

/// The operands' byte: what is in `rm` is memory unless `direct`.
struct Operands {
    direct: bool,
    reg: u8,
    rm: u8,
    /// The memory is at rbp, rsp, or neither, and so far from it.
    base: Option<(u8, i64)>,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    fn constant8(&mut self) -> Option<i64> {
        Some(i64::from(self.byte()? as i8))
    }

    fn constant32(&mut self) -> Option<i64> {
        let value = self.bytes.get(self.at..)?.first_chunk()?;
        self.at += 4;
        Some(i64::from(i32::from_le_bytes(*value)))
    }

    /// An immediate of the operand's size, which is four bytes for eight-byte operands.
    fn skip_immediate(&mut self) {
        self.skip(if self.narrow { 2 } else { 4 });
    }

    fn operands(&mut self) -> Option<Operands> {
        let byte = self.byte()?;
        let (mode, reg, rm) = (byte >> 6, byte >> 3 & 7, byte & 7);
        let mut operands =
            Operands { direct: mode == 3, reg: reg | self.extend_reg, rm: rm | self.extend_rm, base: None };
        if operands.direct {
            return Some(operands);
        }
        let (mut base, mut indexed) = (rm | self.extend_rm, false);
        if rm == 4 {
            let sib = self.byte()?;
            base = sib & 7 | self.extend_rm;
            indexed = sib >> 3 & 7 != 4;
        }
        let offset = match mode {
            0 if base & 7 == 5 => {
                self.skip(4);
                return Some(operands);
            }
            0 => 0,
            1 => self.constant8()?,
            _ => self.constant32()?,
        };
        operands.base = (!indexed && (base == SP || base == FP)).then_some((base, offset));
        Some(operands)
    }

    fn instruction(&mut self) -> Option<Effect> {
        let mut opcode = self.byte()?;
        while matches!(opcode, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0xf0) {
            self.narrow |= opcode == 0x66;
            // Addresses of 32 bits change the length of one rare instruction only, which is not known here.
            opcode = self.byte()?;
        }
        if opcode & 0xf0 == 0x40 {
            self.wide = opcode & 8 != 0;
            self.extend_reg = (opcode & 4) << 1;
            self.extend_rm = (opcode & 1) << 3;
            opcode = self.byte()?;
        }
        match opcode {
            0x0f => self.two_bytes(),
            0xc4 | 0xc5 | 0x62 => self.vector(opcode),
            _ => self.one_byte(opcode),
        }
    }

    fn one_byte(&mut self, opcode: u8) -> Option<Effect> {
        Some(match opcode {
            0x00..=0x3f => match opcode & 7 {
                0..=3 => return self.arithmetic(opcode),
                4 => self.done(1),
                5 => self.immediate(),
                _ => return None,
            },
            0x50..=0x57 if opcode & 7 == FP && self.extend_rm == 0 => Effect::PushFramePointer,
            0x50..=0x57 => Effect::Push,
            // What pop does to rsp itself, nobody uses.
            0x58..=0x5f if opcode & 7 | self.extend_rm == SP => Effect::Moves,
            0x58..=0x5f => Effect::Add(8),
            0x63 => return self.writes_reg(0),
            0x68 => {
                self.skip_immediate();
                Effect::Push
            }
            0x6a => {
                self.skip(1);
                Effect::Push
            }
            0x69 => return self.writes_reg(if self.narrow { 2 } else { 4 }),
            0x6b => return self.writes_reg(1),
            0x70..=0x7f => match self.constant8()? {
                back if opcode == 0x75 && back < 0 => Effect::JumpBack,
                _ => Effect::Branch,
            },
            0x80 => self.plain(1)?,
            0x81 | 0x83 => return self.by_constant(opcode),
            0x84 | 0x85 | 0x88 | 0x8a | 0x8c | 0x8e => self.plain(0)?,
            0x86 | 0x87 => {
                let operands = self.operands()?;
                let moves = operands.reg == SP || operands.direct && operands.rm == SP;
                if moves && opcode == 0x87 { Effect::Moves } else { Effect::Other }
            }
            0x89 => return self.mov_to_rm(),
            0x8b => return self.mov_to_reg(),
            0x8d => return self.lea(),
            0x8f => Effect::Add(if self.operands()?.direct { return None } else { 8 }),
            0x94 if self.extend_rm == 0 => Effect::Moves,
            0x90..=0x99 | 0x9b | 0x9e | 0x9f | 0xa4..=0xa7 | 0xaa..=0xaf | 0xec..=0xef | 0xf5 | 0xf8..=0xfd => {
                Effect::Other
            }
            0x9c => Effect::Push,
            0x9d => Effect::Add(8),
            0xa0..=0xa3 => self.done(8),
            0xa8 | 0xb0..=0xb7 | 0xcd | 0xe4..=0xe7 => self.done(1),
            0xa9 => self.immediate(),
            0xb8..=0xbf => {
                self.skip(if self.wide { 8 } else { if self.narrow { 2 } else { 4 } });
                if opcode & 7 | self.extend_rm == SP { Effect::Moves } else { Effect::Other }
            }
            0xc0 => self.plain(1)?,
            0xc1 => return self.writes_rm(1),
            0xd1 | 0xd3 => return self.writes_rm(0),
            0xc2 => self.ended(2),
            0xc3 | 0xf4 => Effect::End,
            0xc6 => self.plain(1)?,
            0xc7 => self.plain(if self.narrow { 2 } else { 4 })?,
            0xc8 => Effect::Moves,
            0xc9 => Effect::FromFramePointer(8),
            0xcc => Effect::Other,
            0xd0 | 0xd2 | 0xd8..=0xdf | 0xfe => self.plain(0)?,
            0xe0..=0xe3 => {
                self.skip(1);
                Effect::Branch
            }
            0xe8 => {
                self.skip(4);
                Effect::Call
            }
            0xe9 => self.ended(4),
            0xeb => self.ended(1),
            0xf6 | 0xf7 => {
                let operands = self.operands()?;
                if operands.reg & 7 < 2 {
                    self.skip(if opcode == 0xf6 { 1 } else { if self.narrow { 2 } else { 4 } });
                }
                let moves = opcode == 0xf7 && operands.direct && operands.rm == SP && operands.reg & 6 == 2;
                if moves { Effect::Moves } else { Effect::Other }
            }
            0xff => {
                let operands = self.operands()?;
                match operands.reg & 7 {
                    0 | 1 if operands.direct && operands.rm == SP => Effect::Moves,
                    0 | 1 => Effect::Other,
                    2 => Effect::Call,
                    4 => Effect::End,
                    6 => Effect::Push,
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    fn done(&mut self, more: usize) -> Effect {
        self.skip(more);
        Effect::Other
    }

    fn ended(&mut self, more: usize) -> Effect {
        self.skip(more);
        Effect::End
    }

    fn immediate(&mut self) -> Effect {
        self.skip_immediate();
        Effect::Other
    }

    /// With operands that cannot be the whole stack pointer's register.
    fn plain(&mut self, more: usize) -> Option<Effect> {
        self.operands()?;
        Some(self.done(more))
    }

    fn writes_rm(&mut self, more: usize) -> Option<Effect> {
        let operands = self.operands()?;
        self.skip(more);
        Some(if operands.direct && operands.rm == SP { Effect::Moves } else { Effect::Other })
    }

    fn writes_reg(&mut self, more: usize) -> Option<Effect> {
        let operands = self.operands()?;
        self.skip(more);
        Some(if operands.reg == SP { Effect::Moves } else { Effect::Other })
    }

    /// add, or, adc, sbb, and, sub, xor, cmp.
    fn arithmetic(&mut self, opcode: u8) -> Option<Effect> {
        match opcode & 7 {
            _ if opcode >> 3 == 7 => self.plain(0),
            1 => self.writes_rm(0),
            3 => self.writes_reg(0),
            // Of eight bits: what they change of it isn't used by anybody.
            _ => self.plain(0),
        }
    }

    fn by_constant(&mut self, opcode: u8) -> Option<Effect> {
        let operands = self.operands()?;
        let value = match opcode {
            0x83 => self.constant8()?,
            _ if self.narrow => {
                self.skip(2);
                return Some(Effect::Other);
            }
            _ => self.constant32()?,
        };
        Some(match (operands.reg & 7, operands.direct.then_some(operands.rm)) {
            (7, _) => Effect::Other,
            (0, Some(SP)) if self.wide => Effect::Add(value),
            (5, Some(SP)) if self.wide => Effect::Add(-value),
            (5, Some(11)) if self.wide => Effect::ProbeSub(value),
            (_, Some(SP)) => Effect::Moves,
            _ => Effect::Other,
        })
    }

    fn mov_to_rm(&mut self) -> Option<Effect> {
        let operands = self.operands()?;
        Some(if operands.direct { self.moved(operands.rm, operands.reg) } else { Effect::Other })
    }

    fn mov_to_reg(&mut self) -> Option<Effect> {
        let operands = self.operands()?;
        Some(match operands.direct {
            true => self.moved(operands.reg, operands.rm),
            false if operands.reg == SP => Effect::Moves,
            false => Effect::Other,
        })
    }

    fn moved(&self, to: u8, from: u8) -> Effect {
        match (to, from) {
            (SP, FP) if self.wide => Effect::FromFramePointer(0),
            (SP, _) => Effect::Moves,
            (FP, SP) if self.wide => Effect::SetFramePointer,
            (11, SP) if self.wide => Effect::ProbeBelow(0),
            _ => Effect::Other,
        }
    }

    fn lea(&mut self) -> Option<Effect> {
        let operands = self.operands()?;
        Some(match (operands.reg, operands.base) {
            (SP, Some((FP, offset))) if self.wide => Effect::FromFramePointer(offset),
            (SP, Some((SP, offset))) if self.wide => Effect::Add(offset),
            (SP, _) => Effect::Moves,
            (11, Some((SP, offset))) if self.wide => Effect::ProbeBelow(offset.wrapping_neg()),
            _ => Effect::Other,
        })
    }

    fn two_bytes(&mut self) -> Option<Effect> {
        let opcode = self.byte()?;
        Some(match opcode {
            0x05 | 0x08 | 0x09 | 0x30..=0x37 | 0x77 | 0xa2 | 0xaa | 0xc8..=0xcb | 0xcd..=0xcf => Effect::Other,
            0x0b => Effect::End,
            0x38 => {
                self.byte()?;
                self.plain(0)?
            }
            0x3a => {
                self.byte()?;
                self.plain(1)?
            }
            0x40..=0x4f | 0xb6 | 0xb7 | 0xbe | 0xbf | 0xaf | 0xbc | 0xbd | 0xb8 => return self.writes_reg(0),
            0x80..=0x8f => match self.constant32()? {
                back if opcode == 0x85 && back < 0 => Effect::JumpBack,
                _ => Effect::Branch,
            },
            0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => self.plain(1)?,
            0x00..=0x03 | 0x0d | 0x10..=0x23 | 0x28..=0x2f | 0x50..=0x6f | 0x74..=0x76 | 0x78..=0x7f | 0x90..=0x9f => {
                self.plain(0)?
            }
            0xa3 | 0xa5 | 0xab | 0xad | 0xae | 0xb0..=0xb5 | 0xb9 | 0xbb | 0xc0 | 0xc1 | 0xc3 | 0xc7 | 0xd0..=0xff => {
                self.plain(0)?
            }
            0xcc if self.extend_rm == 0 => Effect::Moves,
            0xcc => Effect::Other,
            _ => return None,
        })
    }

    /// VEX and EVEX: vectors, and arithmetic that nobody does on rsp.
    fn vector(&mut self, prefix: u8) -> Option<Effect> {
        let first = self.byte()?;
        let map = match prefix {
            0xc5 => 1,
            0xc4 => first & 0x1f,
            _ => first & 7,
        };
        self.skip(match prefix {
            0xc5 => 0,
            0xc4 => 1,
            _ => 2,
        });
        let opcode = self.byte()?;
        match (map, opcode) {
            (1, 0x77) => Some(Effect::Other),
            (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) | (3, _) => self.vector_operands(1),
            (1 | 2 | 5 | 6, _) => self.vector_operands(0),
            _ => None,
        }
    }

    fn vector_operands(&mut self, more: usize) -> Option<Effect> {
        (self.extend_reg, self.extend_rm) = (0, 0);
        self.plain(more)
    }
}
