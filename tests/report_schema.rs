//! Reports keep to `docs/report.schema.json`, and the two forms of a block say the same.

mod report_common;

use blockcanary::abi::{bc_block_state, bc_cause, bc_sample_method};
use blockcanary::report::block::{CpuTick, OtherThread, OtherThreads, Progress, Scheduling, SystemLoad, TopThread};
use blockcanary::sample::short::Short;
use jsonschema::Validator;
use report_common::pair::agree;
use report_common::reader::read_as_block_canary;
use report_common::*;
use serde_json::{Value, json as value};

fn schema() -> Validator {
    let schema: Value = serde_json::from_str(include_str!("../docs/report.schema.json")).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn check(schema: &Validator, report: &Value) {
    let errors: Vec<String> =
        schema.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

const HOSTILE: &[u8] = b"\"\\\x01\x7f\xff\xfe\n\r\t/\xe2\x80\xa8 = stack = ";

/// Calls `with` with a block of which everything is known, and everything is odd.
fn with_everything(with: impl FnOnce(Vec<u8>, Vec<u8>)) {
    let long: &[u8] = &HOSTILE.repeat(10_240 / HOSTILE.len() + 1);
    let mut evidence = Evidence::default();
    let stack: [Spot; 2] = [(Some(long), 0x12af, Some(long), u64::MAX), (None, 0, None, 0)];
    evidence.add(START_NS + 250 * MS, &stack);
    evidence.add(START_NS + 251 * MS, &[]);
    let other = evidence.add(START_NS + 500 * MS, &stack[1..]);
    (other.method, other.thread_state) = (bc_sample_method::BC_SAMPLE_KERNEL_STATE, 0);
    let mut holder = Evidence::default();
    holder.add(START_NS + 300 * MS, &stack);
    let name = Short::end_of(HOSTILE);
    let top = [Some(TopThread { tid: 7, name, load: u32::MAX }), None];
    let whose = [Some(OtherThread { tid: 7, name, role: Some("holder"), is_watched: true })];
    let load = SystemLoad { busy: u16::MAX, user: 1, system: 2, io_wait: 3 };
    let cpu = [
        CpuTick { time_ns: START_NS - 10 * MS, process: u32::MAX, system: Some(load) },
        CpuTick { time_ns: START_NS + 90 * MS, process: 0, system: None },
    ];
    let mut block = block(&evidence);
    (block.loop_name, block.what, block.cause_detail) = (long, Some(long), Some(long));
    (block.state, block.cause) = (bc_block_state::BC_BLOCK_KILLED, bc_cause::BC_CAUSE_LOCK);
    (block.progress, block.run_queue_wait_ns, block.cpu) = (Some(Progress::Progressing), Some(1), &cpu);
    block.reasons.shares = [0, 15, 4, 981, 0, 0, 0, 0];
    block.reasons.scheduling = Scheduling { slices: Some(u64::MAX), major_faults: Some(0), ..Scheduling::NONE };
    block.reasons.top = &top;
    block.reasons.others = OtherThreads { whose: &whose, samples: holder.view(), left_out: Some(3) };
    let mut context = context();
    context.cores = 4;
    (context.process_name, context.model, context.api_level) = (long, long, long);
    (context.qualifier, context.version_name, context.version_code) = (Some(long), Some(long), Some(long));
    (context.user_id, context.network_type) = (Some(long), Some(long));
    with(text(&block, &context), json(&block, &context));
}

#[test]
fn what_is_written_keeps_to_the_schema() {
    let schema = schema();
    let nothing = Evidence::default();
    check(&schema, &serde_json::from_slice(&json(&block(&nothing), &context())).unwrap());
    with_everything(|_, json| check(&schema, &serde_json::from_slice(&json).unwrap()));
}

#[test]
fn the_schema_refuses_what_is_none() {
    let schema = schema();
    let nothing = Evidence::default();
    let whole: Value = serde_json::from_slice(&json(&block(&nothing), &context())).unwrap();
    assert!(schema.is_valid(&whole));
    let keys: Vec<String> = whole.as_object().unwrap().keys().cloned().collect();
    for key in keys {
        let mut without = whole.clone();
        without.as_object_mut().unwrap().remove(&key);
        assert!(!schema.is_valid(&without), "without {key}");
        let mut other = whole.clone();
        other[&key] = value!({"of": "another kind"});
        assert!(!schema.is_valid(&other), "{key}");
    }
    for (place, wrong) in [
        ("/more", value!(1)),
        ("/state", value!("over")),
        ("/tag", value!("feed")),
        ("/wall_ms", value!(-1)),
        ("/cause/kind", value!("RUNNING")),
        ("/cause/shares", value!({"lock": 2})),
        ("/loop/more", value!(1)),
        ("/health/blocks_seen", value!(-1)),
        ("/cpu", value!([{"offset_ms": 0, "process_percent": 1, "system_percent": 101}])),
    ] {
        let mut other = whole.clone();
        let (parent, name) = place.rsplit_once('/').unwrap();
        other.pointer_mut(parent).unwrap()[name] = wrong;
        assert!(!schema.is_valid(&other), "{place}");
    }
}

#[test]
fn the_two_forms_say_the_same() {
    with_everything(|text, json| {
        let json: Value = serde_json::from_slice(&json).unwrap();
        let read = read_as_block_canary(&text).unwrap();
        assert_eq!(agree(&read, &json), Ok(2));
        for (place, other) in [
            ("/wall_ms", value!(2002)),
            ("/cpu_ms", value!(2)),
            ("/start_unix_ms", value!(START_UNIX_MS + 1)),
            ("/samples/0/frames", value!([])),
            ("/samples/0/offset_ms", value!(253)),
            ("/cpu/0/offset_ms", value!(12)),
            ("/cpu", value!([])),
        ] {
            let mut json = json.clone();
            *json.pointer_mut(place).unwrap() = other;
            assert!(agree(&read, &json).is_err(), "{place}");
        }
    });
}

#[test]
fn the_examples_keep_to_it_too() {
    let example: Value = serde_json::from_str(include_str!("../docs/report.json")).unwrap();
    check(&schema(), &example);
    let read = read_as_block_canary(include_bytes!("../docs/report.log")).unwrap();
    assert!(agree(&read, &example).unwrap() > 0);
}
