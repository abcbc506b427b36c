use super::*;
use crate::unwind::instruction_riscv64::tests::{Code, START};
use std::vec::Vec;

const STACK: u64 = 0x8000;

/// For each instruction of four bytes that may be the next one.
fn in_stubs(words: &[u32]) -> Vec<bool> {
    let code = Code::of(words);
    (0..words.len() as u64).map(|index| in_stub(START + 4 * index, STACK, &code) == KEPT).collect()
}

const NOP: u32 = 0x0000_0013;

#[test]
fn everywhere_in_a_stub_the_caller_is_in_the_link_register() {
    // auipc t3; ld t3, (t3); jalr t1, t3; nop
    let stub = [0x0010_0e17, 0xd50e_3e03, 0x000e_0367, NOP];
    // auipc t2; sub t1, t1, t3; ld t3, (t2); addi t1; addi t0, t2; srli t1; ld t0, 8(t0); jr t3
    let binding =
        [0x0010_0397, 0x41c3_0333, 0xd603_be03, 0xfd43_0313, 0xd603_8293, 0x0013_5313, 0x0082_b283, 0x000e_0067];
    assert_eq!(in_stubs(&[&binding[..], &stub[..], &stub[..]].concat()), [true; 16]);
    let code = Code::of(&stub);
    assert_eq!(in_stub(START + 2, STACK, &code), None);
    // A call instead of a jump, an address from elsewhere, a load by another register.
    assert_eq!(in_stubs(&[stub[0], stub[1], 0x000e_00e7, NOP]), [false; 4]);
    assert_eq!(in_stubs(&[NOP, stub[1], stub[2], NOP]), [false; 4]);
    assert_eq!(in_stubs(&[stub[0], 0xd603_be03, stub[2], NOP]), [false; 4]);
}

const KEPT: Option<Kept> = Some(Kept { sp: Some(STACK), preserved: true, frame_pointer: None });

fn kept(sp: u64) -> Option<Kept> {
    Some(Kept { sp: Some(sp), preserved: false, frame_pointer: None })
}

/// For each instruction that may be the next one, and behind the last.
fn along(parts: &[u32]) -> Vec<Option<Kept>> {
    let code = Code::of(parts);
    let ends = (0..=parts.len()).map(|count| parts.get(..count).map_or(0, |parts| Code::of(parts).0.len() as u64));
    ends.map(|length| since(START, START + length, STACK, &code)).collect()
}

const CALL: u32 = 0x0100_00ef;
const RETURN: u32 = 0x8082;

#[test]
fn a_function_that_calls_nothing_keeps_the_link_register() {
    // lw a2, (a0); bnez a2; addiw a1, a1, -1; mv a0, a2; ret
    assert_eq!(along(&[0x4110, 0xfe3d, 0x35fd, 0x8532, RETURN]), [KEPT; 6]);
    // addi sp, sp, -16; sd a0, 8(sp); addi sp, sp, 16; ret
    let moved = kept(STACK + 16);
    assert_eq!(along(&[0x1141, 0xe42a, 0x0141, RETURN]), [KEPT, moved, moved, KEPT, moved]);
}

#[test]
fn a_function_that_calls_nothing_may_have_a_frame_pointer() {
    // addi sp, sp, -16; sd s0, 8(sp); addi s0, sp, 16; nop; ld s0, 8(sp); addi sp, sp, 16; ret
    let moved = kept(STACK + 16);
    let framed = Some(Kept { sp: Some(STACK + 16), preserved: false, frame_pointer: Some(STACK + 8) });
    let leaf = [0x1141, 0xe422, 0x0800, 0x0001, 0x6422, 0x0141, RETURN];
    assert_eq!(along(&leaf), [KEPT, moved, moved, framed, framed, moved, KEPT, framed]);
    // Its stack pointer moved by a register: where the caller's frame pointer lies is not known.
    let unknown = Some(Kept { sp: None, preserved: false, frame_pointer: Some(0) });
    assert_eq!(along(&[0x1141, 0xe422, 0x0800, 0x40a1_0133])[4], unknown);
}

#[test]
fn a_frame_record_leads_back_from_where_it_is_made_to_where_it_is_left() {
    // addi sp, sp, -48; sd ra; sd s0; addi s0, sp, 48; jal; ld ra; ld s0; addi sp, sp, 48; ret; jal
    let framed = [0x7179, 0xf406, 0xf022, 0x1800, CALL, 0x70a2, 0x7402, 0x6145, RETURN, CALL];
    let saved = kept(STACK + 48);
    let restored = Some(Kept { sp: Some(STACK + 48), preserved: false, frame_pointer: Some(STACK + 32) });
    assert_eq!(along(&framed), [KEPT, saved, saved, saved, None, None, restored, saved, KEPT, None, None]);
}

#[test]
fn behind_a_call_the_link_register_is_the_callees() {
    // addi sp, sp, -16; sd ra, 8(sp); bnez; jal; ld ra, 8(sp); addi sp, sp, 16; ret
    let saved = kept(STACK + 16);
    let frameless = [0x1141, 0xe406, 0xfe3d, CALL, 0x60a2, 0x0141, RETURN];
    assert_eq!(along(&frameless), [KEPT, saved, saved, None, None, saved, KEPT, None]);
    // mv a0, ra; jalr a5; mv ra, a0; ret
    assert_eq!(along(&[0x8506, 0x9782, 0x80aa, RETURN]), [KEPT, KEPT, None, None, None]);
}

#[test]
fn a_stack_pointer_that_only_running_tells_is_not_told() {
    let unknown = Some(Kept { sp: None, preserved: false, frame_pointer: None });
    assert_eq!(along(&[0x40a1_0133, NOP]), [KEPT, unknown, unknown]);
    // Not within reach of what is looked through.
    assert_eq!(since(START, START + 64 * 1024, STACK, &Code::of(&std::vec![NOP; 64 * 256])), None);
    assert_eq!(since(START + 4, START, STACK, &Code::of(&[NOP; 2])), None);
}
