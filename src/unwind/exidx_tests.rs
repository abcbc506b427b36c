use super::*;

/// What a compiler (gcc 12, Thumb) and its linker made of seven functions, from `.ARM.extab` on:
///
/// | from  | table says |
/// | ----- | --- |
/// | 0x288 | vsp + 16, pop r4 lr |
/// | 0x2a0 | vsp = r7, pop r4 r5 r7 lr |
/// | 0x2c4 | vsp + 4004, pop r4 r5 lr |
/// | 0x2e0 | vsp + 8, pop d8 to d10, pop r4 lr |
/// | 0x32c | nothing: a leaf |
/// | 0x330 | vsp + 16, pop r4 r5 r6 lr |
/// | 0x378 | cannot unwind |
const TABLES: [u32; 20] = [
    0x8101_b2e8,
    0x06a9_b0b0,
    0,
    0x8101_01c9,
    0x82a8_b0b0,
    0,
    0x7fff_fef8,
    0x8003_a8b0,
    0x7fff_ff08,
    0x8097_840b,
    0x7fff_ff24,
    0x7fff_ffd4,
    0x7fff_ff38,
    0x7fff_ffd8,
    0x7fff_ff7c,
    0x80b0_b0b0,
    0x7fff_ff78,
    0x8003_aab0,
    0x7fff_ffb8,
    1,
];
const BASE: u64 = 0x378;
const TABLE: Span = Span { start: 0x390, end: 0x3c8 };
const STACK: u32 = 0x10_0000;

/// Tables, and a stack whose words tell their place.
struct Fake<'t>(u64, &'t [u32]);

impl Memory for Fake<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let byte = |at: u64| {
            let word = match at.checked_sub(self.0).and_then(|at| self.1.get(at as usize / 4)) {
                Some(word) => *word,
                None if (0x10_0000..0x11_0000).contains(&at) => 0x5000_0000 + (at as u32 - STACK) / 4,
                None => return None,
            };
            Some(word.to_le_bytes()[at as usize % 4])
        };
        out.iter_mut().zip(address..).all(|(to, at)| byte(at).map(|byte| *to = byte).is_some())
    }
}

fn registers() -> Registers {
    let mut registers = Registers { values: [0; 16], known: 0xffff };
    registers.values.iter_mut().zip(0..).for_each(|(value, number)| *value = 0x7000_0000 + number);
    (registers.values[SP], registers.values[7]) = (STACK, STACK + 0x400);
    registers
}

fn caller(lookup: u64) -> Result<Option<Registers>, Error> {
    step(&registers(), TABLE, &Fake(BASE, &TABLES), lookup)
}

/// Stack pointer, return address, r4 and r5 of the caller, the saved ones as places on the stack.
fn seen(lookup: u64) -> (u32, u32, u32, u32) {
    let caller = caller(lookup).unwrap().unwrap();
    (caller.values[SP] - STACK, caller.values[PC], caller.values[4], caller.values[5])
}

#[test]
fn what_a_compiler_wrote() {
    let saved = |place: u32| 0x5000_0000 + place;
    let (r4, r5) = (0x7000_0004, 0x7000_0005);
    for inside in [0x288, 0x28a, 0x29e] {
        assert_eq!(seen(inside), (24, saved(5), saved(4), r5));
    }
    assert_eq!(seen(0x2a0), (0x410, saved(0x103), saved(0x100), saved(0x101)));
    assert_eq!(seen(0x2c4), (4016, saved(1003), saved(1001), saved(1002)));
    assert_eq!(seen(0x2e0), (40, saved(9), saved(8), r5));
    assert_eq!(seen(0x32e), (0, 0x7000_000e, r4, r5));
    assert_eq!(seen(0x376), (32, saved(7), saved(4), saved(5)));
    assert_eq!(caller(0x378), Ok(None));
}

#[test]
fn only_what_a_call_preserves_is_still_known() {
    let caller = caller(0x288).unwrap().unwrap();
    assert_eq!(caller.known, 0xff0 | 1 << SP | 1 << PC);
    let mut registers = registers();
    registers.known = 1 << SP;
    let step = |lookup| step(&registers, TABLE, &Fake(BASE, &TABLES), lookup);
    assert_eq!(step(0x288).unwrap().unwrap().known, 1 << 4 | 1 << SP | 1 << PC);
    assert_eq!((step(0x2a0), step(0x32c)), (Err(Error::Unknown(7)), Err(Error::Unknown(14))));
}

/// The table of one function whose instructions are these three bytes.
fn compact(instructions: u32) -> Result<Option<Registers>, Error> {
    let table = [0x7fff_fff8, 0x8000_0000 | instructions];
    let registers = registers();
    step(&registers, Span { start: 0x1000, end: 0x1008 }, &Fake(0x1000, &table), 0xff8)
}

#[test]
fn instructions_of_every_kind() {
    let sp = |instructions| compact(instructions).unwrap().unwrap().values[SP].wrapping_sub(STACK);
    for (instructions, moved) in [
        (0x3f_b0b0, 256),
        (0x40_b0b0, 0_u32.wrapping_sub(4)),
        (0xb2_00b0, 0x204),
        (0xb3_02b0, 28),
        (0xb4_b0b0, 4),
        (0xba_b0b0, 28),
        (0xc1_b0b0, 16),
        (0xc6_01b0, 16),
        (0xc7_05b0, 8),
        (0xc8_03b0, 32),
        (0xd7_b0b0, 64),
        (0xb1_03b0, 8),
    ] {
        assert_eq!(sp(instructions), moved, "{instructions:#x}");
    }
    // Registers, the stack pointer itself and the pc among them.
    let popped = compact(0xa1_88_00).unwrap().unwrap();
    assert_eq!((popped.values[4], popped.values[5]), (0x5000_0000, 0x5000_0001));
    assert_eq!(popped.values[PC], 0x5000_0002);
    assert_eq!(compact(0x82_00b0).unwrap().unwrap().values[SP], 0x5000_0000);
    for unknown in [0x9d_b0b0, 0x9f_b0b0, 0xb1_00b0, 0xb1_10b0, 0xb5_b0b0, 0xca_b0b0, 0xff_b0b0] {
        assert_eq!(compact(unknown), Err(Error::Unsupported), "{unknown:#x}");
    }
    assert_eq!(compact(0x80_00b0), Err(Error::NoEntry));
    assert_eq!(compact(0xb2_ffff), Err(Error::Corrupt), "it lacks its end");
}

#[test]
fn a_language_s_own_routine_comes_first() {
    // The entry's place, the routine, two words of instructions.
    let table = [0x7fff_fff8, 4, 0x7fff_0000, 0x01_03_00_00, 0xa8b0_b0b0];
    let span = Span { start: 0x1000, end: 0x1008 };
    let caller = step(&registers(), span, &Fake(0x1000, &table), 0xff8).unwrap().unwrap();
    assert_eq!((caller.values[SP] - STACK, caller.values[PC]), (16 + 4 + 4 + 8, 0x5000_0007));
}

#[test]
fn broken_tables_are_harmless() {
    let step = |table, lookup| step(&registers(), table, &Fake(BASE, &TABLES), lookup);
    assert_eq!(step(Span::default(), 0x288), Err(Error::NoTable));
    assert_eq!(step(TABLE, 0x287), Err(Error::NoEntry));
    assert_eq!(step(Span { start: 0x8000, end: 0x9000 }, 0x287), Err(Error::Corrupt));
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut stepped = 0;
    for case in 0..50_000 {
        let mut tables = TABLES;
        for _ in 0..1 + case % 3 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            tables[seed as usize % tables.len()] ^= 1 << ((seed >> 32) % 32);
        }
        let lookup = 0x280 + seed % 0x100;
        stepped += super::step(&registers(), TABLE, &Fake(BASE, &tables), lookup).is_ok() as u32;
    }
    assert!((10_000..50_000).contains(&stepped), "{stepped}");
}
