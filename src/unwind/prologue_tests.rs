use super::*;
use std::vec::Vec;

const START: u64 = 0x1000;

struct Bytes(Vec<u8>);

impl Memory for Bytes {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let start = (address - START) as usize;
        self.0.get(start..start + out.len()).map(|piece| out.copy_from_slice(piece)).is_some()
    }
}

/// The depth behind the bytes of `before`, in a function that goes on with `behind`.
fn depth_behind(before: &[&[u8]], behind: &[&[u8]]) -> Option<u64> {
    let (before, behind) = (before.concat(), behind.concat());
    let pc = START + before.len() as u64;
    let code = [before, behind].concat();
    let function = Span { start: START, end: START + code.len() as u64 };
    depth(function, pc, &Bytes(code))
}

const LANDING: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
const PUSH_RBP: &[u8] = &[0x55];
const MOV_RBP_RSP: &[u8] = &[0x48, 0x89, 0xe5];
const MOV_RBP_RSP_TOO: &[u8] = &[0x48, 0x8b, 0xec];
const PUSH_R12: &[u8] = &[0x41, 0x54];
const PUSH_RBX: &[u8] = &[0x53];
const PUSH_9: &[u8] = &[0x6a, 9];
const MOV_R12D_EDI: &[u8] = &[0x41, 0x89, 0xfc];
const SUB_RSP_0X18: &[u8] = &[0x48, 0x83, 0xec, 0x18];
const SUB_RSP_0X80: &[u8] = &[0x48, 0x83, 0xc4, 0x80];
const SUB_RSP_0X1000: &[u8] = &[0x48, 0x81, 0xec, 0, 0x10, 0, 0];
const ADD_RSP_0X18: &[u8] = &[0x48, 0x83, 0xc4, 0x18];
const AND_RSP: &[u8] = &[0x48, 0x83, 0xe4, 0xc0];
const SUB_RSP_RAX: &[u8] = &[0x48, 0x29, 0xc4];
const CALL: &[u8] = &[0xe8, 1, 2, 3, 4];
const TEST_EDI: &[u8] = &[0x85, 0xff];
const JE: &[u8] = &[0x74, 1];
const JMP: &[u8] = &[0xeb, 1];
const LEA_RSP_RBP_8: &[u8] = &[0x48, 0x8d, 0x65, 0xf8];
const LEAVE: &[u8] = &[0xc9];
const RET: &[u8] = &[0xc3];

#[test]
fn frames_of_every_usual_kind() {
    let end = &[LEAVE, RET];
    assert_eq!(depth_behind(&[PUSH_RBP, MOV_RBP_RSP, CALL], end), Some(0));
    assert_eq!(depth_behind(&[LANDING, PUSH_RBP, MOV_RBP_RSP_TOO, SUB_RSP_0X80, CALL], end), Some(0x80));
    // What the compiler moved in between.
    let mixed: &[&[u8]] = &[PUSH_RBP, TEST_EDI, MOV_RBP_RSP, PUSH_R12, MOV_R12D_EDI, PUSH_RBX, SUB_RSP_0X18, CALL];
    assert_eq!(depth_behind(mixed, end), Some(0x28));
    // An early way out before the frame, and one inside of it.
    assert_eq!(depth_behind(&[TEST_EDI, JE, RET, PUSH_RBP, MOV_RBP_RSP, PUSH_RBX, CALL], end), Some(8));
    let exit: &[&[u8]] = &[PUSH_RBP, MOV_RBP_RSP, PUSH_RBX, TEST_EDI, JE, CALL, LEAVE, RET, CALL];
    assert_eq!(depth_behind(exit, &[JMP]), Some(8));
    // Arguments of one call, and the call behind it.
    let arguments: &[&[u8]] = &[PUSH_RBP, MOV_RBP_RSP, PUSH_RBX, CALL, PUSH_9, PUSH_9, CALL];
    assert_eq!(depth_behind(arguments, end), Some(0x18));
    let behind: &[&[u8]] = &[arguments.concat().leak(), LEA_RSP_RBP_8, CALL];
    assert_eq!(depth_behind(behind, end), Some(8));
    // A call that never returns is the last instruction.
    assert_eq!(depth_behind(&[PUSH_RBP, MOV_RBP_RSP, CALL], &[]), Some(0));
}

#[test]
fn a_loop_that_touches_each_page() {
    // lea r11, [rsp - 0x5000]; sub rsp, 0x1000; or qword [rsp], 0; cmp rsp, r11; jne; sub rsp, 0x18
    let lea: &[u8] = &[0x4c, 0x8d, 0x9c, 0x24, 0, 0xb0, 0xff, 0xff];
    let touch: &[u8] = &[0x48, 0x83, 0x0c, 0x24, 0, 0x4c, 0x39, 0xdc, 0x75, 0xef];
    let body: &[&[u8]] = &[PUSH_RBP, MOV_RBP_RSP, lea, SUB_RSP_0X1000, touch, SUB_RSP_0X18, CALL];
    assert_eq!(depth_behind(body, &[LEAVE, RET]), Some(0x5018));
    // mov r11, rsp; sub r11, 0x5000
    let mov: &[u8] = &[0x49, 0x89, 0xe3, 0x49, 0x81, 0xeb, 0, 0x50, 0, 0];
    let body: &[&[u8]] = &[PUSH_RBP, MOV_RBP_RSP, mov, SUB_RSP_0X1000, touch, CALL];
    assert_eq!(depth_behind(body, &[LEAVE, RET]), Some(0x5000));
}

#[test]
fn what_only_running_tells_is_not_told() {
    let end = &[LEAVE, RET];
    for moves in [AND_RSP, SUB_RSP_RAX] {
        assert_eq!(depth_behind(&[PUSH_RBP, MOV_RBP_RSP, moves, CALL], end), None);
        // It may have been there before.
        assert_eq!(depth_behind(&[PUSH_RBP, MOV_RBP_RSP, CALL], &[moves, CALL, LEAVE, RET]), None);
    }
    // A loop that takes room each time round: jne back to its begin.
    assert_eq!(depth_behind(&[PUSH_RBP, MOV_RBP_RSP, CALL, SUB_RSP_0X18, CALL, &[0x75, 0xf0]], end), None);
    // No frame record, or one made in another way.
    assert_eq!(depth_behind(&[SUB_RSP_0X18, CALL, ADD_RSP_0X18], &[RET]), None);
    assert_eq!(depth_behind(&[PUSH_RBX, PUSH_RBP, MOV_RBP_RSP, CALL], end), None);
    assert_eq!(depth_behind(&[PUSH_RBP, CALL, MOV_RBP_RSP, CALL], end), None);
}

#[test]
fn what_cannot_be_read_or_decoded_is_not_told() {
    let function = Span { start: START, end: START + 10 };
    let code = [PUSH_RBP, MOV_RBP_RSP, CALL, RET].concat();
    assert_eq!(depth(function, START + 9, &Bytes(code.clone())), Some(0));
    assert_eq!(depth(function, START + 9, &Bytes(code[..9].to_vec())), None, "the end is missing");
    assert_eq!(depth(function, START + 8, &Bytes(code.clone())), None, "inside of the call");
    assert_eq!(depth(function, START + 11, &Bytes(code.clone())), None, "behind it");
    assert_eq!(depth(Span { start: START, end: START + 0x10_0000 }, START + 9, &Bytes(code)), None, "too long");
    // Not an instruction in this mode.
    assert_eq!(depth_behind(&[PUSH_RBP, MOV_RBP_RSP, CALL], &[&[0x06], LEAVE, RET]), None);
}
