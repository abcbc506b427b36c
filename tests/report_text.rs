//! Text reports, read by the rules of BlockCanary's reader and of ndk-stack.

mod report_common;

use blockcanary::report::block::{
    Block, CpuTick, JavaStack, OtherThread, OtherThreads, Progress, Scheduling, SystemLoad, TopThread,
};
use blockcanary::sample::short::Short;
use report_common::reader::{Read, read_as_block_canary};
use report_common::*;

const ENGINE: Option<&[u8]> = Some(b"/data/app/lib/libengine.so");

fn read(log: &[u8]) -> Read {
    read_as_block_canary(log).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(log)))
}

fn lines(log: &[u8]) -> Vec<String> {
    String::from_utf8(log.to_vec()).unwrap().lines().map(String::from).collect()
}

fn told() -> Evidence {
    let mut evidence = Evidence::default();
    let other: [Spot; 1] = [(ENGINE, 0x500, Some(b"other"), 0)];
    let stack: [Spot; 3] = [
        (ENGINE, 0x12af, Some(b"engine_decode"), 0x1f),
        (Some(b"/data/my app/libgame.so"), 0x2000, Some(b"main_loop"), 0x10),
        (None, 0x77, None, 0),
    ];
    evidence.add(START_NS + 250 * MS, &other);
    evidence.add(START_NS + 500 * MS, &stack);
    evidence.add(START_NS + 750 * MS, &[]);
    let last = evidence.add(START_NS + 1000 * MS, &stack);
    (last.approximate, last.truncated, last.frames_cut) = (true, true, 4);
    evidence
}

#[test]
fn the_log_begins_as_block_canarys_does() {
    let evidence = Evidence::default();
    let log = String::from_utf8(text(&block(&evidence), &context())).unwrap();
    let begin = "\r\n**********************\r\n2024-02-29 13:34:58(write log time)\r\n\r\n\
                 process = com.example.game\r\ntime = 2000\r\nthread-time = 3\r\n\
                 time-start = 02-29 13:34:56.789\r\ntime-end = 02-29 13:34:58.789\r\ncpu-busy = false\r\n\
                 block-id = 9007199254740991\r\n";
    assert!(log.starts_with(begin), "{log}");
    assert!(!log.contains("stack = ") && !log.contains("***  ") && !log.contains("imei"));
}

#[test]
fn a_java_stack_is_the_first_entry() {
    let evidence = told();
    let mut block = block(&evidence);
    let entries = read(&text(&block, &context())).stack;
    let elements = b"java.lang.Thread.sleep(Native Method)\ncom.game.Main.onCreate(Main.java:7)\n";
    block.reasons.java = Some(JavaStack { time_ns: START_NS + 600 * MS, text: elements, frames_cut: 0 });
    let with_java = read(&text(&block, &context())).stack;
    // The reader takes the time for an entry of its own, as of each sample.
    let elements = "java.lang.Thread.sleep(Native Method)\ncom.game.Main.onCreate(Main.java:7)\n";
    assert_eq!(with_java[..2], ["02-29 13:34:57.389", elements]);
    assert_eq!((&with_java[2], &with_java[3..]), (&format!("{}\n", entries[0]), &entries[1..]));
    // Alone, too.
    let nothing = Evidence::default();
    let block = Block { reasons: block.reasons, ..report_common::block(&nothing) };
    assert_eq!(read(&text(&block, &context())).stack, with_java[..2]);
}

#[test]
fn the_reader_gets_every_value() {
    let evidence = told();
    let mut block = block(&evidence);
    let load = SystemLoad { busy: 7_599, user: 5_000, system: 2_000, io_wait: 99 };
    let cpu = [
        CpuTick { time_ns: START_NS + 250 * MS, process: 15_000, system: Some(load) },
        CpuTick { time_ns: START_NS + 500 * MS, process: 39_999, system: None },
    ];
    block.cpu = &cpu;
    block.progress = Some(Progress::Busy);
    block.run_queue_wait_ns = Some(1_500_000);
    let mut context = context();
    context.qualifier = Some(b"beta");
    context.version_name = Some(b"1.2");
    context.version_code = Some(b"102");
    context.user_id = Some(b"somebody");
    context.network_type = Some(b"wifi");
    (context.model, context.api_level, context.cores) = (b"Pixel 7", b"33 13", 4);
    (context.free_memory_kb, context.total_memory_kb) = (100, 200);
    let log = text(&block, &context);
    let read = read(&log);
    let expected = [
        ("qua", "beta"),
        ("versionName", "1.2"),
        ("versionCode", "102"),
        ("uid", "somebody"),
        ("network", "wifi"),
        ("model", "Pixel 7"),
        ("api-level", "33 13"),
        ("cpu-core", "4"),
        ("process", "com.example.game"),
        ("freeMemory", "100"),
        ("totalMemory", "200"),
        ("time", "2000"),
        ("thread-time", "3"),
        ("time-start", "02-29 13:34:56.789"),
        ("time-end", "02-29 13:34:58.789"),
        ("cpu-busy", "false"),
    ];
    assert_eq!(read.values, expected.map(|(key, value)| (key, value.to_string())));
    assert_eq!(
        read.cpu_rates,
        ["02-29 13:34:57.039 cpu:75% app:37% [user:50% system:20% ioWait:0% ]", "02-29 13:34:57.289 app:99% "]
    );
    assert_eq!(
        read.stack,
        [
            "02-29 13:34:57.039",
            "other+0x0 (libengine.so 0x500)\n",
            "02-29 13:34:57.289\n",
            "engine_decode+0x1f (libengine.so 0x12af)\nmain_loop+0x10 (libgame.so 0x2000)\n?? (0x70000077)\n",
            "02-29 13:34:57.789\n",
            "engine_decode+0x1f (libengine.so 0x12af)\nmain_loop+0x10 (libgame.so 0x2000)\n?? (0x70000077)\n\
             (4 more frames)\n(some of these frames could not be verified)\n",
        ]
    );
    let lines = lines(&log);
    for own in [
        "block-state = ended",
        "block-cause = sleep",
        "block-progress = busy",
        "loop-name = engine",
        "loop-tid = 4243",
        "dispatch-what = frame",
        "dispatch-tag = 0xfeed",
        "limit-ms = 1000",
        "run-queue-wait-ms = 1.5",
        "repeat-count = 0",
    ] {
        let place = lines.iter().position(|line| line == own).unwrap_or_else(|| panic!("{own}"));
        assert!(place < lines.iter().position(|line| line.starts_with("stack")).unwrap());
    }
}

#[test]
fn ndk_stack_finds_the_most_frequent_stack() {
    let evidence = told();
    let log = text(&block(&evidence), &context());
    let banner = format!("{}\n", ["***"; 16].join(" "));
    let log = String::from_utf8(log).unwrap();
    let (_, section) = log.split_once(&banner).unwrap();
    let (section, _) = section.split_once("\nstack = ").unwrap();
    let step = match () {
        () if cfg!(target_arch = "aarch64") => 4,
        () if cfg!(any(target_arch = "x86", target_arch = "x86_64")) => 1,
        () => 2,
    };
    let (pc, offset, raw) = (0x2000 - step, 0x10 - step, 0x7000_0077 - step);
    let expected = format!(
        "pid: 4242, tid: 4243, name: engine  >>> com.example.game <<<\n\
         \x20   #00 pc 00000000000012af  /data/app/lib/libengine.so (engine_decode+31) (BuildId: 00ff12)\n\
         \x20   #01 pc {pc:016x}  libgame.so (main_loop+{offset}) (BuildId: 00ff12)\n\
         \x20   #02 pc {raw:016x}  <unknown>\n"
    );
    assert_eq!(section, expected);
    assert_eq!(log.matches("*** ***").count(), 8, "the banner stands there once");
}

#[test]
fn the_cause_stands_under_keys_of_ours() {
    let evidence = told();
    let mut holder = Evidence::default();
    holder.add(START_NS + 300 * MS, &[(ENGINE, 0x500, Some(b"load"), 0x20)]);
    let name = Short::end_of(b"Loader");
    let top = [Some(TopThread { tid: 7, name, load: 8_799 }), Some(TopThread { tid: 8, name, load: 100 }), None];
    holder.add(START_NS + 301 * MS, &[]);
    let whose = [
        Some(OtherThread { tid: 7, name, role: Some("lock holder"), is_watched: false }),
        Some(OtherThread { tid: 9, name: Short::end_of(b"a\nstack = "), role: None, is_watched: true }),
    ];
    let mut block = block(&evidence);
    block.cause_detail = Some("futex 0x7f00 held by tid 7 'Loader' = \"x\"".as_bytes());
    block.reasons.shares = [0, 15, 4, 981, 0, 0, 0, 0];
    block.reasons.scheduling = Scheduling { major_faults: Some(2), voluntary_switches: Some(3), ..Scheduling::NONE };
    block.reasons.top = &top;
    let without = text(&block, &context());
    block.reasons.others = OtherThreads { whose: &whose, samples: holder.view(), left_out: Some(3) };
    let log = text(&block, &context());
    // All of it is beside what the reader takes.
    assert_eq!(read(&log).stack, read(&without).stack);
    assert_eq!(read(&log).values, read(&without).values);
    let lines = lines(&log);
    for own in [
        "block-cause-detail = futex 0x7f00 held by tid 7 'Loader':\"x\"",
        "block-cause-shares = lock 98 %, running 2 %",
        "faults-major = 2",
        "switches-voluntary = 3",
        "more-threads = 3",
        "busiest-threads = 7 'Loader' 87 %, 8 'Loader' 1 %",
    ] {
        let place = lines.iter().position(|line| line == own).unwrap_or_else(|| panic!("{own}: {lines:#?}"));
        assert!(place < lines.iter().position(|line| line.starts_with("***") && line.len() > 30).unwrap());
    }
    // A section of its own, which ndk-stack takes for another crash.
    let log = String::from_utf8(log).unwrap();
    let (before, _) = log.split_once("\nstack = ").unwrap();
    let sections: Vec<&str> = before.split(&["***"; 16].join(" ")).skip(1).collect();
    assert_eq!(sections.len(), 3);
    let expected = "\npid: 4242, tid: 7, name: Loader  >>> com.example.game <<<\n\
                    state: S (sleeping), lock holder\n    #00 pc 0000000000000500  /data/app/lib/libengine.so (load+32) (BuildId: 00ff12)\n\n";
    assert_eq!(sections[1], expected);
    let expected = "\npid: 4242, tid: 9, name: a?stack =   >>> com.example.game <<<\n\
                    state: S (sleeping), watched\n    (no stack)\n";
    assert_eq!(sections[2], expected);
    assert!(sections[0].ends_with("\n\n"), "a line that is no frame ends the first");
}

#[test]
fn line_ends_are_cr_lf_but_for_ndk_stacks_section() {
    let evidence = told();
    let log = String::from_utf8(text(&block(&evidence), &context())).unwrap();
    let begin = log.find("*** ***").unwrap();
    let end = log.find("stack = ").unwrap();
    assert!(!log[begin..end].contains('\r'));
    for part in [&log[..begin], &log[end..]] {
        assert_eq!(part.matches('\n').count(), part.matches("\r\n").count());
        assert_eq!(part.matches('\r').count(), part.matches("\r\n").count());
        assert!(part.ends_with("\r\n"));
    }
}

/// A log in which every value is this one.
fn log_of(text_of: &[u8]) -> Vec<u8> {
    let mut evidence = Evidence::default();
    evidence.add(START_NS, &[(Some(text_of), 1, Some(text_of), 1)]);
    let mut block = block(&evidence);
    (block.loop_name, block.what, block.cause_detail) = (text_of, Some(text_of), Some(text_of));
    let mut context = context();
    (context.qualifier, context.version_name, context.version_code) = (Some(text_of), Some(text_of), Some(text_of));
    (context.user_id, context.network_type) = (Some(text_of), Some(text_of));
    (context.process_name, context.model, context.api_level) = (text_of, text_of, text_of);
    text(&block, &context)
}

/// However lines are told apart: by Java, by Python, by Unicode.
fn line_breaks(log: &[u8]) -> usize {
    let breaks = |char: &char| {
        matches!(char, '\n' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    std::str::from_utf8(log).unwrap().replace("\r\n", "\n").replace('\r', "\n").chars().filter(breaks).count()
}

#[test]
fn no_value_breaks_the_log_whatever_it_holds() {
    let all: Vec<u8> = (1..=255).collect();
    let hostile: [&[u8]; 12] = [
        &all,
        b" = ",
        b"a = b",
        b"a  =  b",
        b"a = = b = ",
        b"= = =",
        b"x\r\n\r\nstack = y\r\n\r\n",
        b"\n",
        b"\rtime = x",
        b"*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***",
        b"    #00 pc 0000000000000001  /x",
        "\u{2028}stack\u{85}stack\u{b}stack".as_bytes(),
    ];
    let harmless = log_of(b"harmless");
    for text_of in hostile {
        let log = log_of(text_of);
        let read = read(&log);
        let keys: Vec<_> = read.values.iter().map(|(key, _)| *key).collect();
        let expected =
            "qua versionName uid network model api-level process time thread-time time-start time-end cpu-busy";
        assert_eq!(keys.join(" "), expected, "{}", String::from_utf8_lossy(text_of));
        assert_eq!(read.stack.len(), 2, "{:?}", read.stack);
        assert_eq!(line_breaks(&log), line_breaks(&harmless));
    }
    assert_eq!(read(&log_of(b"a = b")).get("uid"), Some("a:b"));
    assert_eq!(read(&log_of("Zoë=1".as_bytes())).get("uid"), Some("Zoë=1"));
    assert_eq!(read(&log_of(b"a\xffb\nc")).get("uid"), Some("a\u{fffd}b?c"));
}

#[test]
fn values_that_are_missing_or_empty_have_no_line() {
    let evidence = Evidence::default();
    let mut block = block(&evidence);
    block.what = Some(b"");
    let mut context = context();
    context.qualifier = Some(b"");
    context.version_code = Some(b"");
    context.process_name = b"";
    let log = text(&block, &context);
    let read = read(&log);
    assert!(read.get("qua").is_none() && read.get("versionCode").is_none() && read.get("process").is_none());
    assert!(lines(&log).iter().all(|line| !line.ends_with("= ") && !line.ends_with('=')));
}

#[test]
fn a_version_code_that_is_no_java_int_stands_under_a_key_of_ours() {
    let evidence = Evidence::default();
    for code in ["2024.1", "2147483648", "1e5", "v7"] {
        let mut context = context();
        context.version_code = Some(code.as_bytes());
        let log = text(&block(&evidence), &context);
        assert!(read(&log).get("versionCode").is_none());
        assert!(lines(&log).contains(&format!("app-version-code = {code}")));
    }
}

#[test]
fn cpu_is_busy_when_its_sampler_came_late_around_the_begin() {
    let evidence = Evidence::default();
    let context = context();
    let interval = context.sample_interval_ns;
    let ticks = |times: &[i64]| -> Vec<CpuTick> {
        let at = |offset: &i64| START_NS.wrapping_add_signed(offset * MS as i64);
        times.iter().map(|offset| CpuTick { time_ns: at(offset), process: 0, system: None }).collect()
    };
    // The interval is 250 ms: a gap counts from 300 ms on, between ticks from -250 to 250, both excluded.
    for (times, busy) in [
        (&[][..], false),
        (&[0, 240], false),
        (&[-240, 59], false),
        (&[-240, 60], false),
        (&[-240, 61], true),
        (&[-100, 249], true),
        (&[-251, 100, 400], false),
        (&[10, 900, 1800], false),
        (&[-240, -100, 210, 240], true),
    ] {
        let cpu = ticks(times);
        let mut block = block(&evidence);
        block.cpu = &cpu;
        block.wall_ns = 2 * interval;
        let log = text(&block, &context);
        assert_eq!(read(&log).get("cpu-busy"), Some(if busy { "true" } else { "false" }), "{times:?}");
        // A block no longer than one interval never is.
        block.wall_ns = interval;
        assert_eq!(read(&text(&block, &context)).get("cpu-busy"), Some("false"));
    }
}

#[test]
fn hidden_paths_stay_hidden() {
    let evidence = told();
    let mut context = context();
    context.redact_paths = true;
    let log = String::from_utf8(text(&block(&evidence), &context)).unwrap();
    assert!(log.contains("  libengine.so (engine_decode+31)") && !log.contains("/data"));
}
