//! A reader of logs that keeps to the rules of BlockCanary's own, `BlockInfoEx`.

/// What BlockCanary's own reader makes of a log: keys, CPU rates, stack entries.
#[derive(Debug, Default)]
pub struct Read {
    pub values: Vec<(&'static str, String)>,
    pub cpu_rates: Vec<String>,
    pub stack: Vec<String>,
}

impl Read {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    }
}

/// In the order in which the reader tries them; a line belongs to the first whose letters it begins with.
const KEYS: [&str; 19] = [
    "qua",
    "model",
    "api-level",
    "imei",
    "cpu-core",
    "uid",
    "time-start",
    "time-end",
    "time",
    "thread-time",
    "process",
    "versionName",
    "versionCode",
    "network",
    "totalMemory",
    "freeMemory",
    "cpu-busy",
    "cpu-rate",
    "stack",
];
const INTEGERS: [&str; 4] = ["cpu-core", "time", "thread-time", "versionCode"];

/// Reads a log by the rules of BlockCanary's reader; an error where that one would give up.
pub fn read_as_block_canary(log: &[u8]) -> Result<Read, String> {
    let log = std::str::from_utf8(log).map_err(|error| error.to_string())?;
    let log = log.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines = log.lines();
    let mut read = Read::default();
    while let Some(line) = lines.next() {
        let Some(key) = KEYS.into_iter().find(|key| line.starts_with(key)) else { continue };
        let mut parts: Vec<&str> = line.split(" = ").collect();
        while parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
        let value = parts.get(1).ok_or(format!("no value: {line:?}"))?.to_string();
        if INTEGERS.contains(&key) {
            value.parse::<i64>().map_err(|error| format!("{line:?}: {error}"))?;
        }
        match key {
            "cpu-rate" => {
                read.cpu_rates.push(value);
                read.cpu_rates.extend(lines.by_ref().take_while(|line| !line.is_empty()).map(String::from));
            }
            "stack" => {
                let mut entry = value;
                for line in lines.by_ref() {
                    if !line.is_empty() {
                        entry += line;
                        entry += "\n";
                    } else if !entry.is_empty() {
                        read.stack.push(std::mem::take(&mut entry));
                    }
                }
            }
            _ => read.values.push((key, value)),
        }
    }
    Ok(read)
}
