//! JSON reports, held against a strict reader.

mod report_common;

use blockcanary::abi::{bc_block_state, bc_cause, bc_sample_method};
use blockcanary::report::block::{
    Block, CpuTick, JavaStack, OtherThread, OtherThreads, Progress, Reasons, Repeats, Scheduling, SystemLoad, TopThread,
};
use blockcanary::sample::short::Short;
use report_common::*;
use serde_json::{Value, json as value};

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

const ENGINE: Option<&[u8]> = Some(b"/data/app/lib/libengine.so");

#[test]
fn every_key_is_there_in_order_and_unknowns_are_null() {
    let evidence = Evidence::default();
    let mut block = block(&evidence);
    block.what = None;
    let bytes = json(&block, &context());
    let keys: Vec<String> = String::from_utf8(bytes.clone())
        .unwrap()
        .lines()
        .filter_map(|line| line.trim_start_matches('{').strip_prefix('"')?.split_once("\":").map(|(key, _)| key.into()))
        .collect();
    let expected = "schema id state loop what tag start_unix_ms wall_ms cpu_ms cpu_uncertainty_ms threshold_ms \
                    run_queue_wait_ms cause progress repeats samples java_stack hot_stacks cpu scheduling top_threads \
                    threads threads_left_out process device app health";
    assert_eq!(keys.join(" "), expected);
    let report = parsed(&bytes);
    assert_eq!(report["schema"], "blockcanary.report/1");
    assert_eq!(report["id"], 9_007_199_254_740_991u64);
    assert_eq!(report["state"], "ended");
    assert_eq!(report["loop"], value!({"name": "engine", "tid": 4243}));
    assert_eq!(report["tag"], "0xfeed");
    assert_eq!(report["start_unix_ms"], START_UNIX_MS);
    assert_eq!(report["wall_ms"], 2000.002);
    assert_eq!(report["cpu_ms"], 3.25);
    assert_eq!(report["cpu_uncertainty_ms"], 0.001);
    assert_eq!(report["threshold_ms"], 1000);
    assert_eq!(report["cause"], value!({"kind": "sleep", "detail": null, "shares": {}}));
    let scheduling = value!({"slices": null, "minor_faults": null, "major_faults": null, "voluntary_switches": null,
        "involuntary_switches": null});
    assert_eq!(report["scheduling"], scheduling);
    assert_eq!(report["repeats"], value!({"count": 0, "wall_ms_total": 0, "last_unix_ms": null}));
    for key in ["what", "run_queue_wait_ms", "progress", "java_stack", "threads", "threads_left_out"] {
        assert!(report[key].is_null(), "{key}");
    }
    for key in ["samples", "hot_stacks", "cpu", "top_threads"] {
        assert_eq!(report[key], value!([]), "{key}");
    }
    assert_eq!(report["process"], value!({"name": "com.example.game", "pid": 4242}));
    let device = value!({"model": null, "api_level": null, "cores": null, "free_memory_kb": null,
        "total_memory_kb": null});
    assert_eq!(report["device"], device);
    let app = value!({"qualifier": null, "version_name": null, "version_code": null, "user_id": null,
        "network_type": null});
    assert_eq!(report["app"], app);
}

#[test]
fn health_is_whole_but_for_its_size() {
    let evidence = Evidence::default();
    let report = parsed(&json(&block(&evidence), &context()));
    let health = report["health"].as_object().unwrap();
    let mut numbers: Vec<u64> = health.values().filter_map(Value::as_u64).collect();
    numbers.sort();
    assert_eq!(numbers, (1..=18).chain([u64::MAX]).collect::<Vec<_>>());
    assert_eq!(health.len(), 23);
    assert_eq!(health["signal_free_available"], true);
    assert_eq!(health["signal_taken_over"], false);
    assert!(!health.contains_key("struct_size"));
}

#[test]
fn a_full_block_tells_all() {
    let mut evidence = Evidence::default();
    let stack: [Spot; 2] = [(ENGINE, 0x12af, Some(b"engine_decode"), 0x1f), (None, 0x55, None, 0)];
    evidence.add(START_NS + 250 * MS, &stack);
    let last = evidence.add(START_NS - 1_500, &[]);
    (last.thread_state, last.truncated, last.frames_cut, last.approximate) = (0, true, 7, true);
    let mut block = block(&evidence);
    block.run_queue_wait_ns = Some(1_234_567);
    block.progress = Some(Progress::Stuck);
    block.repeats = Repeats { count: 3, wall_ns_total: 4 * MS, last_unix_ms: -5 };
    block.cause_detail = Some(b"usleep");
    let load = SystemLoad { busy: 9_999, user: 1, system: 2, io_wait: 3 };
    let cpu = [
        CpuTick { time_ns: START_NS, process: 15_005, system: Some(load) },
        CpuTick { time_ns: START_NS + MS, process: 99_999, system: None },
    ];
    block.cpu = &cpu;
    let mut context = context();
    context.cores = 4;
    (context.model, context.api_level) = (b"Pixel", b"33 13");
    (context.free_memory_kb, context.total_memory_kb) = (100, 200);
    context.qualifier = Some(b"beta");
    let report = parsed(&json(&block, &context));
    let frames = value!([
        {"pc": "0x700012af", "module": "/data/app/lib/libengine.so", "module_offset": "0x12af", "build_id": "00ff12",
         "symbol": "engine_decode", "symbol_offset": "0x1f"},
        {"pc": "0x70000055", "module": null, "module_offset": null, "build_id": null, "symbol": null,
         "symbol_offset": null}]);
    let samples = value!([
        {"offset_ms": 250, "method": "signal", "thread_state": "S", "truncated": false, "frames_cut": 0,
         "approximate": false, "frames": frames},
        {"offset_ms": -0.002, "method": "no_stack", "thread_state": null, "truncated": true, "frames_cut": 7,
         "approximate": true, "frames": []}]);
    assert_eq!(report["samples"], samples);
    assert_eq!(report["hot_stacks"], value!([{"samples": 1, "share": 1, "frames": frames}]));
    assert_eq!(report["run_queue_wait_ms"], 1.235);
    assert_eq!(report["progress"], "stuck");
    assert_eq!(report["repeats"], value!({"count": 3, "wall_ms_total": 4, "last_unix_ms": -5}));
    assert_eq!(report["cause"]["detail"], "usleep");
    let cpu = value!([{"offset_ms": 0, "process_percent": 150.05, "system_percent": 99.99},
        {"offset_ms": 1, "process_percent": 400, "system_percent": null}]);
    assert_eq!(report["cpu"], cpu);
    let device = value!({"model": "Pixel", "api_level": "33 13", "cores": 4, "free_memory_kb": 100,
        "total_memory_kb": 200});
    assert_eq!(report["device"], device);
    assert_eq!(report["app"]["qualifier"], "beta");

    context.redact_paths = true;
    let redacted = json(&block, &context);
    assert_eq!(parsed(&redacted)["samples"][0]["frames"][0]["module"], "libengine.so");
    assert!(!String::from_utf8(redacted).unwrap().contains("/data"));
}

#[test]
fn the_cause_is_told_with_its_reasons() {
    let mut evidence = Evidence::default();
    evidence.add(START_NS + 250 * MS, &[(ENGINE, 0x12af, Some(b"engine_decode"), 0x1f)]);
    let mut holder = Evidence::default();
    holder.add(START_NS + 300 * MS, &[(ENGINE, 0x500, Some(b"load"), 0)]);
    let name = Short::end_of(b"Loader \"1\"");
    let top = [Some(TopThread { tid: 7, name, load: 99_999 }), None];
    holder.add(START_NS + 301 * MS, &[]);
    let whose = [
        Some(OtherThread { tid: 7, name, role: Some("lock holder"), is_watched: false }),
        Some(OtherThread { tid: 9, name: Short::end_of(b"\xff"), role: None, is_watched: true }),
    ];
    let mut block = block(&evidence);
    block.reasons.shares = [0, 15, 0, 985, 0, 0, 0, 0];
    block.reasons.scheduling = Scheduling { minor_faults: Some(1), voluntary_switches: Some(3), ..Scheduling::NONE };
    block.reasons.top = &top;
    block.reasons.others = OtherThreads { whose: &whose, samples: holder.view(), left_out: Some(3) };
    let mut context = context();
    context.cores = 4;
    let report = parsed(&json(&block, &context));
    assert_eq!(report["cause"]["shares"], value!({"running": 0.015, "lock": 0.985}));
    assert_eq!(report["scheduling"]["minor_faults"], 1);
    assert_eq!(report["scheduling"]["voluntary_switches"], 3);
    assert!(report["scheduling"]["major_faults"].is_null());
    // No more than there are processors.
    assert_eq!(report["top_threads"], value!([{"tid": 7, "name": "Loader \"1\"", "percent": 400}]));
    let frames = value!([{"pc": "0x70000500", "module": "/data/app/lib/libengine.so", "module_offset": "0x500",
        "build_id": "00ff12", "symbol": "load", "symbol_offset": "0x0"}]);
    let thread = value!([{"tid": 7, "name": "Loader \"1\"", "role": "lock holder", "watched": false, "offset_ms": 300,
        "method": "signal", "state": "S", "truncated": false, "frames_cut": 0, "approximate": false,
        "frames": frames}, {"tid": 9, "name": "\u{fffd}", "role": null, "watched": true, "offset_ms": 301,
        "method": "no_stack", "state": "S", "truncated": false, "frames_cut": 0, "approximate": false,
        "frames": []}]);
    assert_eq!((&report["threads"], &report["threads_left_out"]), (&thread, &value!(3)));
    // All were asked for, and there was no other.
    block.reasons.others = OtherThreads { left_out: Some(0), ..OtherThreads::default() };
    let report = parsed(&json(&block, &context));
    assert_eq!((&report["threads"], &report["threads_left_out"]), (&value!([]), &value!(0)));
}

#[test]
fn any_bytes_give_strict_json() {
    let all: Vec<u8> = (1..=255).collect();
    let hostile: [&[u8]; 6] = [
        &all,
        b"\"}],\\\"x\":\"\\u0000\r\n\t\0 end",
        b"cut \xe2\x82",
        b"\xed\xa0\x80 \xf0\x9f\x98\x80 \xc0\xaf",
        b"\xff",
        "\u{2028}\u{7f}\u{85}é".as_bytes(),
    ];
    for text in hostile {
        let without_nul: Vec<u8> = text.iter().copied().filter(|&byte| byte != 0).collect();
        let mut evidence = Evidence::default();
        evidence.add(0, &[(Some(&without_nul), 1, Some(&without_nul), 1)]).thread_state = 0xffu8 as _;
        let mut block = block(&evidence);
        (block.loop_name, block.what, block.cause_detail) = (text, Some(text), Some(text));
        let mut context = context();
        (context.qualifier, context.version_name, context.version_code) = (Some(text), Some(text), Some(text));
        (context.user_id, context.network_type) = (Some(text), Some(text));
        (context.process_name, context.model, context.api_level) = (text, text, text);
        let report = parsed(&json(&block, &context));
        let expected = Value::from(String::from_utf8_lossy(text));
        assert_eq!(report["loop"]["name"], expected);
        assert_eq!(report["what"], expected);
        assert_eq!(report["app"]["user_id"], expected);
        assert_eq!(report["device"]["model"], expected);
        assert_eq!(report["samples"][0]["frames"][0]["symbol"], Value::from(String::from_utf8_lossy(&without_nul)));
        assert_eq!(report["samples"][0]["thread_state"], "\u{fffd}");
    }
}

#[test]
fn numbers_at_their_ends() {
    let evidence = Evidence::default();
    let mut block = block(&evidence);
    (block.id, block.tag, block.tid, block.start_unix_ms) = (u64::MAX, u64::MAX, i32::MIN, i64::MIN);
    (block.wall_ns, block.cpu_ns, block.threshold_ns) = (u64::MAX, 0, 999_499);
    let report = parsed(&json(&block, &context()));
    assert_eq!(report["id"], u64::MAX);
    assert_eq!(report["tag"], "0xffffffffffffffff");
    assert_eq!(report["loop"]["tid"], i32::MIN);
    assert_eq!(report["start_unix_ms"], i64::MIN);
    assert_eq!(report["wall_ms"].to_string(), "18446744073709.55");
    assert_eq!(report["cpu_ms"], 0);
    assert_eq!(report["threshold_ms"], 0.999);
    for (ns, text) in
        [(500, "0.001"), (499, "0"), (999_500, "1"), (10_100_000, "10.1"), (u64::MAX, "18446744073709.552")]
    {
        assert_eq!(rendered(|sink| sink.ms(ns)), text.as_bytes());
    }
    // A little before is not minus nothing.
    assert_eq!(rendered(|sink| sink.ms_between(1_499, 1_000)), b"0");
    assert_eq!(rendered(|sink| sink.ms_between(1_500, 1_000)), b"-0.001");
}

#[test]
fn states_and_causes_have_their_words() {
    use bc_block_state::*;
    use bc_cause::*;
    let evidence = Evidence::default();
    let mut block = block(&evidence);
    for (state, word) in
        [(BC_BLOCK_ONGOING, "ongoing"), (BC_BLOCK_HANG, "hang"), (BC_BLOCK_ENDED, "ended"), (BC_BLOCK_KILLED, "killed")]
    {
        block.state = state;
        assert_eq!(parsed(&json(&block, &context()))["state"], word);
    }
    for (cause, word) in [
        (BC_CAUSE_UNKNOWN, "unknown"),
        (BC_CAUSE_RUNNING, "running"),
        (BC_CAUSE_STARVED, "starved"),
        (BC_CAUSE_LOCK, "lock"),
        (BC_CAUSE_IO, "io"),
        (BC_CAUSE_IPC, "ipc"),
        (BC_CAUSE_SLEEP, "sleep"),
        (BC_CAUSE_SUSPENDED, "suspended"),
    ] {
        block.cause = cause;
        assert_eq!(parsed(&json(&block, &context()))["cause"]["kind"], word);
    }
}

#[test]
fn a_java_stack_is_told_in_javas_words() {
    let evidence = Evidence::default();
    let text = b"com.game.Level.load(Level.java:12)\ncom.game.Main$1.run(\"Main\".java)\n";
    let java = JavaStack { time_ns: START_NS + 750 * MS, text, frames_cut: 3 };
    let block = Block { reasons: Reasons { java: Some(java), ..Reasons::default() }, ..block(&evidence) };
    let report = parsed(&json(&block, &context()));
    let frames = value!(["com.game.Level.load(Level.java:12)", "com.game.Main$1.run(\"Main\".java)"]);
    assert_eq!(report["java_stack"], value!({"offset_ms": 750, "frames_cut": 3, "frames": frames}));
}

#[test]
fn hot_stacks_group_by_function() {
    let mut evidence = Evidence::default();
    let stack = |inner: u64, outer: u64| -> [Spot<'static>; 2] {
        [(ENGINE, 0x1000 + inner, Some(b"spin"), inner), (ENGINE, 0x2000 + outer, Some(b"frame"), outer)]
    };
    // The same functions at other places, 5 times; another function, 2 times; deeper, once; nothing known, once.
    for n in 0..5 {
        evidence.add(n, &stack(n, n * 2));
    }
    let other: [Spot; 2] = [(ENGINE, 0x3000, Some(b"decode"), 0), (ENGINE, 0x2000, Some(b"frame"), 0)];
    evidence.add(5, &other);
    evidence.add(6, &[]);
    evidence.add(7, &other);
    let deeper: [Spot; 3] = [stack(1, 1)[0], stack(1, 1)[1], (ENGINE, 0x9000, None, 0)];
    evidence.add(8, &deeper);
    let report = parsed(&json(&block(&evidence), &context()));
    let hot = report["hot_stacks"].as_array().unwrap();
    let told: Vec<_> =
        hot.iter().map(|hot| (hot["samples"].as_u64().unwrap(), hot["share"].as_f64().unwrap())).collect();
    assert_eq!(told, [(5, 0.625), (2, 0.25), (1, 0.125)]);
    assert_eq!(hot[0]["frames"], report["samples"][0]["frames"]);
    assert_eq!(hot[1]["frames"], report["samples"][5]["frames"]);
    assert_eq!(hot[2]["frames"], report["samples"][8]["frames"]);
}

#[test]
fn without_symbols_the_innermost_place_does_not_count_and_return_addresses_do() {
    let mut evidence = Evidence::default();
    for n in 0..4 {
        evidence.add(n, &[(ENGINE, 0x1000 + n, None, 0), (ENGINE, 0x2000, None, 0)]);
    }
    evidence.add(9, &[(ENGINE, 0x1000, None, 0), (ENGINE, 0x2008, None, 0)]);
    evidence.add(10, &[(Some(b"/data/app/lib/libother0.so"), 0x1000, None, 0), (ENGINE, 0x2000, None, 0)]);
    let report = parsed(&json(&block(&evidence), &context()));
    let told: Vec<_> = report["hot_stacks"].as_array().unwrap().iter().map(|hot| hot["samples"].clone()).collect();
    assert_eq!(told, [4, 1, 1]);
}

#[test]
fn more_stacks_than_can_be_counted_at_a_time() {
    let mut evidence = Evidence::default();
    // 1,000 that differ, and among them one that comes 300 times and one that comes 100 times.
    for n in 0..1000u64 {
        evidence.add(n, &[(ENGINE, 0x10_0000 + n * 16, Some(b"one"), 0)]);
        if n.is_multiple_of(10) {
            evidence.add(n, &[(ENGINE, 0x5000, Some(b"second"), 0)]);
        }
        for _ in 0..usize::from(n % 10 < 3) {
            evidence.add(n, &[(ENGINE, 0x4000, Some(b"first"), 0)]);
        }
    }
    let report = parsed(&json(&block(&evidence), &context()));
    let hot = report["hot_stacks"].as_array().unwrap();
    assert_eq!(hot.len(), 16);
    assert_eq!((&hot[0]["samples"], &hot[0]["frames"][0]["symbol"]), (&value!(300), &value!("first")));
    assert_eq!((&hot[1]["samples"], &hot[1]["frames"][0]["symbol"]), (&value!(100), &value!("second")));
    assert_eq!(hot[0]["share"], 0.214);
    assert!(hot[2..].iter().all(|hot| hot["samples"] == 1));
}

#[test]
fn samples_are_walked_by_their_own_sizes() {
    use blockcanary::abi::{bc_frame, bc_sample};
    use blockcanary::report::view::Samples;
    // As a newer caller has them: larger structures, at odd places even.
    const PAD: usize = 13;
    let mut evidence = Evidence::default();
    for n in 0..3 {
        evidence.add(n, &[(ENGINE, n, Some(b"one"), 0), (ENGINE, n + 10, None, 0)]);
    }
    let sample_size = size_of::<bc_sample>() + PAD;
    let frame_size = size_of::<bc_frame>() + PAD;
    let wide_frames: Vec<Vec<u8>> = evidence
        .raw()
        .iter()
        .map(|sample| {
            let mut wide = vec![0xaa; 2 * frame_size];
            for n in 0..2 {
                // SAFETY: two frames are behind the pointer, and the bytes of two wide ones in the vector.
                unsafe {
                    let frame = sample.frames.add(n).read();
                    wide.as_mut_ptr().add(n * frame_size).cast::<bc_frame>().write_unaligned(frame);
                }
            }
            wide
        })
        .collect();
    let mut wide = vec![0xaau8; 3 * sample_size];
    for (n, sample) in evidence.raw().iter().enumerate() {
        let sample = bc_sample { frames: wide_frames[n].as_ptr().cast(), ..*sample };
        // SAFETY: the vector has room for three wide samples.
        unsafe { wide.as_mut_ptr().add(n * sample_size).cast::<bc_sample>().write_unaligned(sample) };
    }
    // A method that is none.
    let method = std::mem::offset_of!(bc_sample, method);
    wide[method..method + 4].copy_from_slice(&99u32.to_ne_bytes());
    // SAFETY: as built above.
    let samples = unsafe { Samples::from_raw(wide.as_ptr().cast(), 3, sample_size, frame_size) };
    let mut walked = block(&evidence);
    walked.samples = samples;
    let report = parsed(&json(&walked, &context()));
    let straight = parsed(&json(&block(&evidence), &context()));
    assert!(report["samples"][0]["method"].is_null());
    assert_eq!(report["samples"][1], straight["samples"][1]);
    assert_eq!(report["hot_stacks"], straight["hot_stacks"]);
    assert_eq!(report["samples"].as_array().unwrap().len(), 3);
    assert_eq!(samples.get(2).unwrap().method, Some(bc_sample_method::BC_SAMPLE_SIGNAL));
    assert!(samples.get(3).is_none());
    // SAFETY: nothing is read of sizes that are too small, or behind NULL.
    let none = unsafe {
        [
            Samples::from_raw(wide.as_ptr().cast(), 3, size_of::<bc_sample>() - 1, frame_size),
            Samples::from_raw(wide.as_ptr().cast(), 3, sample_size, size_of::<bc_frame>() - 1),
            Samples::from_raw(std::ptr::null(), 3, sample_size, frame_size),
        ]
    };
    assert!(none.iter().all(Samples::is_empty));
}
