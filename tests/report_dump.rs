//! A dump's text, as `ndk-stack` and eyes read it.

use blockcanary::abi::bc_sample_method;
use blockcanary::report::dump::Page;
use blockcanary::report::resolve::{Copy, Resolver, unknown};
use blockcanary::report::sink::{Memory, Sink};
use blockcanary::report::text_space::TextSpace;
use blockcanary::sample::doing::Doing;
use blockcanary::sample::evidence::{OtherThread, Sample};
use blockcanary::sample::named::{Found, Key, Module, Named, PLACES, Place, Search, WAYS};
use blockcanary::sample::short::Short;
use blockcanary::sample::strings::Strings;
use blockcanary::sample::survey::Member;
use blockcanary::sys::lock::Lock;
use std::sync::atomic::AtomicI32;

fn leak<T: Clone>(value: T, count: usize) -> &'static mut [T] {
    vec![value; count].leak()
}

fn named() -> &'static Lock<Named> {
    let strings = Strings::new(leak(0, 1 << 16), leak(0, 1024));
    let mut named = Named::new(leak(Place::EMPTY, PLACES), leak(0, PLACES / WAYS), strings);
    let path = b"/data/app/lib/arm64/libgame.so";
    for (pc, is_outer, module_offset, symbol) in [
        (0x7000_1000, false, 0x1000, None),
        (0x7000_2008, true, 0x2008, Some((b"load_level".as_slice(), 0x18))),
        (0x7000_3000, true, 0x3000, Some((b"ends_in_a_call".as_slice(), 0))),
    ] {
        let module = Module { path, build_id: b"00ff12", file: (1, 2), file_offset: 0, is_whole: true };
        let found = Found { module, identity: 7, module_offset, symbol, search: Search::Done };
        named.put(Key { pc, is_outer, table: 3 }, &found);
    }
    Box::leak(Box::new(Lock::new(named)))
}

fn page(redact_paths: bool) -> Page {
    static OFFSET: AtomicI32 = AtomicI32::new(3600);
    Page {
        resolver: Resolver::new(named(), leak(Copy::NONE, 16), redact_paths),
        frames: vec![unknown(0); 4].leak(),
        text: TextSpace::new(leak(0, 4096)),
        pid: 4242,
        process_name: b"com.example.game",
        redact_paths,
        utc_offset_s: &OFFSET,
    }
}

fn member(tid: i32, name: &[u8], state: u8, frames: u32) -> Member {
    let mut member = Member::NONE;
    member.thread = OtherThread { tid, name: Short::end_of(name), role: None, is_watched: false };
    member.sample = Sample::EMPTY;
    (member.sample.thread_state, member.sample.table, member.sample.frame_count) = (state, 3, frames);
    if frames > 0 {
        member.sample.method = bc_sample_method::BC_SAMPLE_KERNEL_STATE;
    }
    member
}

fn written(write: impl FnOnce(&mut Sink)) -> String {
    let mut bytes = vec![0; 1 << 16];
    let mut memory = Memory::new(&mut bytes);
    let mut sink = Sink::new(&mut memory, &mut []);
    write(&mut sink);
    sink.finish().unwrap();
    let length = memory.needed();
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

const BANNER: &str = "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\n";
const PCS: [u64; 4] = [0x7000_1000, 0x7000_2008, 0x7000_3000, 0x1234];

#[test]
fn head_and_end() {
    let page = page(false);
    let head = written(|sink| page.begin(sink, 1_700_000_000_123, 12));
    assert_eq!(head, "----- pid 4242 at 2023-11-14 23:13:20.123 -----\nCmd line: com.example.game\nthreads: 12\n\n");
    assert_eq!(written(|sink| page.end(sink, 0)), "----- end 4242 -----\n");
    assert_eq!(written(|sink| page.end(sink, 3)), "(3 more threads)\n\n----- end 4242 -----\n");
}

#[test]
fn a_watched_thread_with_its_stack() {
    let mut page = page(false);
    let mut member = member(7, b"Render\n#00 pc 0", b'S', 4);
    member.thread.is_watched = true;
    member.loop_name[..9].copy_from_slice(b"the \"loop");
    member.sample.doing = Doing::Waits((libc::SYS_futex as u32, [0; 6]));
    let expected = format!(
        "{BANNER}pid: 4242, tid: 7, name: Render?#00 pc 0  >>> com.example.game <<<\n\
         state: S (sleeping) in futex, watched as \"the \"loop\"\n    \
         #00 pc 0000000000001000  /data/app/lib/arm64/libgame.so (BuildId: 00ff12)\n    \
         #01 pc {:016x}  /data/app/lib/arm64/libgame.so (load_level+{}) (BuildId: 00ff12)\n    \
         #02 pc {:016x}  /data/app/lib/arm64/libgame.so (BuildId: 00ff12)\n    \
         #03 pc {:016x}  <unknown>\n\n",
        0x2008 - BACK,
        0x18 - BACK,
        0x3000 - BACK,
        0x1234 - BACK,
    );
    assert_eq!(written(|sink| page.thread(sink, &member, &PCS)), expected);
}

/// How far a tombstone steps back from a return address.
const BACK: u64 = if cfg!(target_arch = "aarch64") {
    4
} else if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
    1
} else {
    2
};

#[test]
fn what_is_not_known_is_said() {
    let mut page = page(true);
    let mut cut = member(8, b"Audio", b'D', 1);
    (cut.sample.truncated, cut.sample.frames_cut, cut.sample.approximate) = (true, 5, true);
    let text = written(|sink| page.thread(sink, &cut, &PCS[..1]));
    let frames = "    #00 pc 0000000000001000  libgame.so (BuildId: 00ff12)\n    (5 more frames)\n    \
                  (some of these frames could not be verified)\n\n";
    assert!(text.ends_with(frames) && text.contains("\nstate: D (waiting for a device)\n"), "{text}");
    let mut open = member(8, b"Audio", b'S', 1);
    open.sample.truncated = true;
    let text = written(|sink| page.thread(sink, &open, &PCS[..1]));
    assert!(text.ends_with("    (the thread's outermost frames were not found)\n\n"), "{text}");
    for (state, words, reason) in [
        (b'R', "R (running)", "(no stack: it was running)"),
        (b'Z', "Z (ended)", "(no stack: it has ended)"),
        (b'T', "T (stopped)", "(no stack)"),
        (b't', "t (held by a debugger)", "(no stack)"),
        (0, "unknown", "(no stack)"),
    ] {
        let mut own = member(9, b"bc-monitor", state, 0);
        own.thread.role = Some("internal");
        let expected = format!(
            "{BANNER}pid: 4242, tid: 9, name: bc-monitor  >>> com.example.game <<<\nstate: {words}, internal\n    {reason}\n\n"
        );
        assert_eq!(written(|sink| page.thread(sink, &own, &[])), expected);
    }
}

/// A loop that has its thread's name is told once.
#[test]
fn a_loop_with_its_threads_name() {
    let mut page = page(false);
    let mut member = member(7, b"Render", b'S', 0);
    member.thread.is_watched = true;
    member.loop_name[..6].copy_from_slice(b"Render");
    assert!(written(|sink| page.thread(sink, &member, &[])).contains("\nstate: S (sleeping), watched\n"));
}
