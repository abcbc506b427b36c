use super::*;
use std::vec::Vec;

const START: u64 = 0x1000;
const SP: u64 = 0x8000;

struct Words(Vec<u32>);

impl Memory for Words {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let start = address.wrapping_sub(START) as usize;
        let end = start.wrapping_add(out.len());
        bytes.get(start..end).map(|piece| out.copy_from_slice(piece)).is_some()
    }
}

/// For each instruction that may be the next one: where the caller's stack pointer is, less `SP`.
fn in_stubs(words: &[u32]) -> Vec<Option<u64>> {
    let memory = Words(words.to_vec());
    let kept = |index| in_stub(START + 4 * index, SP, &memory);
    (0..words.len() as u64).map(|index| kept(index).map(|kept| kept.sp.unwrap() - SP)).collect()
}

const NOP: u32 = 0xd503_201f;
const RETURN: u32 = 0xd65f_03c0;
const CALL: u32 = 0x9400_0010;
const CALL_REGISTER: u32 = 0xd63f_0020;

#[test]
fn everywhere_in_a_stub_the_caller_is_in_the_link_register() {
    // adrp x16; ldr x17, [x16, #8]; add x16, x16, #8; br x17; twice
    let stub = [0xf000_00f0, 0xf940_0611, 0x9100_2210, 0xd61f_0220];
    let table = [&stub[..], &stub[..]].concat();
    assert_eq!(in_stubs(&table), [Some(0); 8]);
    // bti c; adrp; ldr; add; autia1716; br x17; ret
    let guarded = [0xd503_245f, stub[0], stub[1], stub[2], 0xd503_219f, stub[3], RETURN];
    assert_eq!(in_stubs(&guarded), [Some(0), Some(0), Some(0), Some(0), Some(0), Some(0), None]);
    // The one before all others: stp x16, x30, [sp, #-16]!; ...; nop; and the next one.
    let binding = [&[0xa9bf_7bf0], &stub[..], &[NOP], &stub[..]].concat();
    let moved = [0, 16, 16, 16, 16, 0, 0, 0, 0, 0];
    assert_eq!(in_stubs(&binding), moved.map(Some));
    // movz x16, #1; movk x16, #2, lsl #16; br x16
    assert_eq!(in_stubs(&[0xd280_0030, 0xf2a0_0050, 0xd61f_0200]), [Some(0); 3]);
    // ldr x17, #8; adr x16, #0; add x16, x16, x17; br x16
    assert_eq!(in_stubs(&[0x5800_0051, 0x1000_0010, 0x8b11_0210, 0xd61f_0200]), [Some(0); 4]);
}

#[test]
fn what_merely_resembles_a_stub_is_none() {
    // A jump to where an argument says, and one through a table of the function's own: ldr x1, [x0]; br x1; br x16.
    assert_eq!(in_stubs(&[0xf940_0001, 0xd61f_0020, 0xd61f_0200]), [None; 3]);
    // adrp x16; ldr x17; add x16; and a call by it, or no jump at all.
    assert_eq!(in_stubs(&[0xf000_00f0, 0xf940_0611, 0x9100_2210, 0xd63f_0220]), [None; 4]);
    assert_eq!(in_stubs(&[0xf000_00f0, 0xf940_0611, 0x9100_2210, NOP, RETURN]), [None; 5]);
}

const KEPT: Option<Kept> = Some(Kept { sp: Some(SP), preserved: true, frame_pointer: None });

fn kept(sp: u64) -> Option<Kept> {
    Some(Kept { sp: Some(sp), preserved: false, frame_pointer: None })
}

/// For each instruction that may be the next one, and behind the last.
fn along(words: &[u32]) -> Vec<Option<Kept>> {
    let memory = Words(words.to_vec());
    (0..=words.len() as u64).map(|index| since(START, START + 4 * index, SP, &memory)).collect()
}

#[test]
fn a_function_that_calls_nothing_keeps_the_link_register() {
    // ldr w2, [x0]; cbnz w2; subs w1, w1, #1; b.ne; mov w0, w2; ret
    let leaf = [0xb940_0002, 0x3500_0062, 0x7100_0421, 0x54ff_ffa1, 0x2a02_03e0, RETURN];
    assert_eq!(along(&leaf), [KEPT; 7]);
    // sub sp, sp, #32; str w0, [sp]; add sp, sp, #32; ret
    let with_locals = [0xd100_83ff, 0xb900_03e0, 0x9100_83ff, RETURN];
    assert_eq!(along(&with_locals), [KEPT, kept(SP + 32), kept(SP + 32), KEPT, kept(SP + 32)]);
}

#[test]
fn a_frame_record_leads_back_from_where_it_is_made_to_where_it_is_left() {
    // stp x29, x30, [sp, #-48]!; mov x29, sp; bl; ldp x29, x30, [sp], #48; ret; bl; b
    let framed = [0xa9bd_7bfd, 0x9100_03fd, CALL, 0xa8c3_7bfd, RETURN, CALL, 0x17ff_fffd];
    let saved = kept(SP + 48);
    let left = KEPT;
    assert_eq!(along(&framed), [KEPT, saved, None, None, left, None, None, None]);
    // paciasp; sub sp, sp, #48; stp x29, x30, [sp, #32]; add x29, sp, #32; blr x1; ldp x29, x30, [sp, #32]; add sp; retaa
    let signed =
        [0xd503_233f, 0xd100_c3ff, 0xa902_7bfd, 0x9100_83fd, CALL_REGISTER, 0xa942_7bfd, 0x9100_c3ff, 0xd65f_0bff];
    assert_eq!(along(&signed), [KEPT, KEPT, saved, saved, None, None, saved, KEPT, None]);
}

#[test]
fn behind_a_call_the_link_register_is_the_callees() {
    // str x30, [sp, #-16]!; mov w1, w0; cbz w1; bl; ldr x30, [sp], #16; ret
    let frameless = [0xf81f_0ffe, 0x2a00_03e1, 0x3400_0041, CALL, 0xf841_07fe, RETURN];
    let saved = kept(SP + 16);
    assert_eq!(along(&frameless), [KEPT, saved, saved, None, None, KEPT, None]);
    // mov x9, x30; bl; mov x30, x9; ret
    assert_eq!(along(&[0xaa1e_03e9, CALL, 0xaa09_03fe, RETURN]), [KEPT, KEPT, None, None, None]);
}

#[test]
fn a_stack_pointer_that_only_running_tells_is_not_told() {
    // sub sp, sp, x0
    let unknown = Some(Kept { sp: None, preserved: false, frame_pointer: None });
    assert_eq!(along(&[0xcb20_63ff, NOP]), [KEPT, unknown, unknown]);
    // Not within reach of what is looked through.
    assert_eq!(since(START, START + 64 * 1024, SP, &Words(std::vec![NOP; 64 * 256])), None);
    assert_eq!(since(START + 4, START, SP, &Words(std::vec![NOP; 2])), None);
}
