//! The two reports of one block say the same: the log, as BlockCanary's reader takes it, and the JSON beside it.

use super::reader::Read;
use serde_json::Value;

const DAY_MS: i64 = 86_400_000;

/// What differs, or how many stacks both have.
pub fn agree(read: &Read, json: &Value) -> Result<usize, String> {
    let number = |key: &str| json[key].as_f64().ok_or(format!("{key} is no number"));
    let text = |key: &str| read.get(key).ok_or(format!("no {key}"));
    for (key, member) in [("time", "wall_ms"), ("thread-time", "cpu_ms")] {
        let whole: f64 = text(key)?.parse().map_err(|error| format!("{key}: {error}"))?;
        // One is cut to whole milliseconds, the other rounded to microseconds.
        let exact = number(member)?;
        if exact < whole || exact > whole + 1.0 {
            return Err(format!("{key} {whole}, {member} {exact}"));
        }
    }
    let start = of_day(text("time-start")?)?;
    let utc = json["start_unix_ms"].as_i64().ok_or("start_unix_ms is no number")?;
    // Time zones lie quarters of an hour apart.
    if (start - utc).rem_euclid(900_000) != 0 {
        return Err(format!("time-start {}, start_unix_ms {utc}", text("time-start")?));
    }
    let since = |stamp: &str| of_day(stamp).map(|end| (end - start).rem_euclid(DAY_MS));
    let duration = since(text("time-end")?)?;
    if duration.to_string() != text("time")? && number("wall_ms")? < DAY_MS as f64 {
        return Err(format!("{duration} ms from time-start to time-end, time {}", text("time")?));
    }
    let empty = Vec::new();
    let list = |key: &str| json[key].as_array().unwrap_or(&empty).clone();
    let offset = |item: &Value| item["offset_ms"].as_f64().unwrap_or(f64::NAN);
    let has_frames = |sample: &&Value| sample["frames"].as_array().is_some_and(|frames| !frames.is_empty());
    let stacks: Vec<f64> = list("samples").iter().filter(has_frames).map(offset).collect();
    // A stack is two entries of the reader's: its time and its frames.
    let mut told: Vec<&str> = read.stack.iter().step_by(2).map(|stamp| stamp.trim_end()).collect();
    if read.stack.len() != 2 * stacks.len() {
        return Err(format!("{} entries for {} stacks", read.stack.len(), stacks.len()));
    }
    // The stack of a module of concern leads.
    told.sort();
    same_times("stack", &told, &stacks, since)?;
    let rates: Vec<&str> = read.cpu_rates.iter().map(|line| line.split(" cpu:").next().unwrap_or(line)).collect();
    let rates: Vec<&str> = rates.iter().map(|line| line.split(" app:").next().unwrap_or(line)).collect();
    same_times("cpu-rate", &rates, &list("cpu").iter().map(offset).collect::<Vec<_>>(), since)?;
    for (key, value) in [("process", &json["process"]["name"]), ("qua", &json["app"]["qualifier"])] {
        let plain = |text: &str| !text.contains(|letter: char| letter.is_control() || letter == '=');
        if let Some(value) = value.as_str().filter(|value| !value.is_empty() && plain(value))
            && read.get(key) != Some(value)
        {
            return Err(format!("{key} {:?}, not {value:?}", read.get(key)));
        }
    }
    Ok(stacks.len())
}

fn same_times(
    what: &str,
    stamps: &[&str],
    offsets: &[f64],
    since: impl Fn(&str) -> Result<i64, String>,
) -> Result<(), String> {
    if stamps.len() != offsets.len() {
        return Err(format!("{} lines of {what}, {} in the JSON", stamps.len(), offsets.len()));
    }
    for (stamp, offset) in stamps.iter().zip(offsets) {
        let stamped = since(stamp)?;
        let told = (*offset as i64).rem_euclid(DAY_MS);
        let apart = (stamped - told).rem_euclid(DAY_MS);
        if apart.min(DAY_MS - apart) > 1 {
            return Err(format!("{what} at {stamp}, {offset} ms from the begin"));
        }
    }
    Ok(())
}

/// Milliseconds since midnight of `MM-dd HH:mm:ss.SSS`.
fn of_day(stamp: &str) -> Result<i64, String> {
    let wrong = || format!("no time: {stamp:?}");
    let fields: Vec<i64> =
        stamp.split(['-', ' ', ':', '.']).map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    match fields[..] {
        [month, day, hour, minute, second, milli] if (1..=12).contains(&month) && (1..=31).contains(&day) => {
            Ok(((hour * 60 + minute) * 60 + second) * 1000 + milli)
        }
        _ => Err(wrong()),
    }
}
