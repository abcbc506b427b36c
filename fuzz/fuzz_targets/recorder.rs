//! What a flight recorder holds, from the input: as a whole half, and as what a half with a right sum may hold.
#![no_main]

use blockcanary::report::recorder::decode::Record;
use blockcanary::report::recorder::layout::{places_in, read_half, read_head};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = (read_head(data), places_in(data.len() as u64));
    if let Some(half) = read_half(data) {
        assert!(half.held.len() <= data.len());
    }
    let Some(record) = Record::read(data) else { return };
    let text = record.loop_name.len() + record.what.map_or(0, <[u8]>::len) + record.surroundings.model.len();
    assert!(text <= 3 * data.len());
    assert!(record.top().count() <= data.len() && record.ticks().count() <= data.len());
    assert!(record.java().is_none_or(|java| java.text.len() <= data.len() && java.elements().count() <= data.len()));
    // No stack is longer than the input, however often samples refer to it.
    for item in record.items().take(1000) {
        for frame in record.frames(item.stack) {
            let module = frame.module.map_or(0, <[u8]>::len);
            assert!(module <= data.len());
        }
    }
});
