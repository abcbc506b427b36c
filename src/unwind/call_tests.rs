use super::*;
use crate::unwind::modules::Module;

/// Code from 0x1000 to 0x2000 whose words are all nops but for these bytes, and slots from 0x3000 on.
struct Code<'c>(&'c [(u64, &'c [u8])]);

impl Memory for Code<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let byte = |at: u64| {
            let placed = self.0.iter().find_map(|(start, bytes)| bytes.get(at.checked_sub(*start)? as usize));
            placed.copied().or((0x1000..0x2000).contains(&at).then_some(0x90))
        };
        out.iter_mut().zip(address..).all(|(to, at)| byte(at).map(|byte| *to = byte).is_some())
    }
}

fn with_modules(check: impl Fn(&ModuleTable)) {
    let (mut slots, mut text) = ([Module::default(); 2], [0; 64]);
    let mut modules = ModuleTable::new(&mut slots, &mut text);
    modules.refresh(b"1000-2000 r-xp 00000000 00:01 5 /code\n".as_slice(), &Code(&[])).unwrap();
    check(&modules);
}

fn call(bytes: &[u8]) -> Option<Call> {
    let mut found = None;
    let cell = std::cell::RefCell::new(&mut found);
    with_modules(|modules| {
        **cell.borrow_mut() = before(0x1100, &Code(&[(0x1100 - bytes.len() as u64, bytes)]), modules)
    });
    found
}

#[test]
fn calls_of_every_form() {
    assert_eq!(call(&[0xe8, 0, 1, 0, 0]), Some(Call::Direct(0x1200)));
    assert_eq!(call(&[0xe8, 0xf0, 0xff, 0xff, 0xff]), Some(Call::Direct(0x10f0)));
    assert_eq!(call(&[0xe8, 0, 0, 1, 0]), None, "it leads out of code");
    let indirect: [&[u8]; 9] = [
        &[0xff, 0xd0],                   // rax
        &[0x41, 0xff, 0xd3],             // r11
        &[0xff, 0x10],                   // [rax]
        &[0xff, 0x50, 0x10],             // [rax + 16]
        &[0xff, 0x54, 0x24, 0x10],       // [rsp + 16]
        &[0xff, 0x14, 0xc8],             // [rax + 8 * rcx]
        &[0xff, 0x92, 0, 1, 0, 0],       // [rdx + 256]
        &[0xff, 0x94, 0xc8, 0, 1, 0, 0], // [rax + 8 * rcx + 256]
        &[0xff, 0x15, 0, 0x10, 0, 0],    // [rip + 4096], unreadable
    ];
    for bytes in indirect {
        assert_eq!(call(bytes), Some(Call::Indirect), "{bytes:x?}");
    }
    let none: [&[u8]; 5] = [&[0x90], &[0xff, 0xe0], &[0xff, 0xd0, 0x90], &[0xff, 0x50], &[0xff, 0x54, 0x24]];
    for bytes in none {
        assert_eq!(call(bytes), None, "{bytes:x?}");
    }
}

#[test]
fn stubs_lead_to_functions() {
    let slot = 0x1800_u64.to_le_bytes();
    // jmp [rip + 0x1dfa] and the same behind a landing mark, to the slot at 0x3000; a call through it.
    let stubs: [(u64, &[u8]); 4] = [
        (0x1200, &[0xff, 0x25, 0xfa, 0x1d, 0, 0]),
        (0x1210, &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xe5, 0x1d, 0, 0]),
        (0x1300, &[0xff, 0x15, 0xfa, 0x1c, 0, 0]),
        (0x3000, &slot),
    ];
    let code = Code(&stubs);
    with_modules(|modules| {
        for stub in [0x1200, 0x1210, 0x1800] {
            assert!(is_of(Call::Direct(stub), 0x1800, &code, modules), "{stub:#x}");
        }
        assert_eq!(before(0x1306, &code, modules), Some(Call::Direct(0x1800)));
        assert!(!is_of(Call::Direct(0x1200), 0x1801, &code, modules));
        assert!(!is_of(Call::Direct(0x1300), 0x1800, &code, modules), "a function like any other");
        assert!(!is_of(Call::Indirect, 0x1800, &code, modules));
        assert!(may_return_to(0x1306, &code, modules) && !may_return_to(0x1307, &code, modules));
    });
}
