//! One dump of all threads: asks the monitor for round after round, and writes each.

use super::life::{self, Refusal, Use};
use crate::report::dump::Page;
use crate::report::sink::{Output, Sink};
use crate::sample::survey::Survey;
use crate::sys::clock;
use crate::sys::errno::Errno;
use crate::sys::{stream, thread};

/// How long the monitor may take for a round, which is far less than a second of its own time, and another dump until it
/// is done.
const PATIENCE_NS: u64 = 30_000_000_000;
/// How long the descriptor may take for some bytes.
const READER_NS: u64 = 5_000_000_000;

struct Stream(i32);

impl Output for Stream {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        // An uninstall does not wait for what nobody reads.
        stream::write_all(self.0, bytes, READER_NS, &|| life::check_installed().is_ok())
    }
}

/// Writes all threads with their stacks.
pub fn dump(fd: i32) -> Result<(), Refusal> {
    let user = life::use_it()?;
    stream::check_writable(fd).map_err(Refusal::Output)?;
    let survey = user.handover.take(PATIENCE_NS).ok_or(Refusal::Timeout)?;
    survey.begin(thread::tid(), life::look_for_waiters(&user));
    let mut page = user.page.lock();
    let (page, buffer) = &mut *page;
    let mut stream = Stream(fd);
    let mut sink = Sink::new(&mut stream, buffer);
    let Some(survey) = write(&user, survey, page, &mut sink) else { return Err(Refusal::Timeout) };
    // The last bytes may wait for their reader: who has the survey has the page, too.
    let finished = sink.finish();
    user.handover.give_back(survey);
    match finished {
        Ok(()) => Ok(()),
        Err(Errno(libc::ETIMEDOUT)) => Err(Refusal::Timeout),
        Err(Errno(libc::ECANCELED)) => Err(Refusal::State),
        Err(error) => Err(Refusal::Output(error)),
    }
}

/// `None`: the monitor has not done its part in time.
fn write(user: &Use, survey: &'static mut Survey, page: &mut Page, sink: &mut Sink) -> Option<&'static mut Survey> {
    let mut survey = user.handover.ask(survey, PATIENCE_NS)?;
    let all = survey.listed().saturating_add(survey.beyond());
    page.begin(sink, clock::unix_ms(), all);
    loop {
        for (member, pcs) in survey.members() {
            page.thread(sink, member, pcs);
        }
        if survey.is_over() || sink.failed() {
            break;
        }
        survey.begin_round();
        survey = user.handover.ask(survey, PATIENCE_NS)?;
    }
    page.end(sink, survey.beyond());
    Some(survey)
}
