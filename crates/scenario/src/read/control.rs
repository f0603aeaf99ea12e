//! The `[policy]` table.

use super::Reader;
use crate::model::Control;
use document::Source;
use document::tree::Node;
use policy::Policy;
use units::Time;

/// Least period: what a simulated Oracle is asked for is still a decision now and then.
const PERIOD_MIN: Time = Time::from_ms(1);

impl Reader<'_, '_> {
    /// The `[policy]` table: reads the file that it names.
    pub(super) fn control(&self, node: &Node, end: Time) -> Option<Control> {
        let section = self.section(node, "`[policy]`")?;
        let file = section.require("file", Self::file);
        let period = section.get("period", |r, n| {
            let rule = format!("at least {PERIOD_MIN}, at most the run's {end}");
            r.within(n, |time: &Time| *time >= PERIOD_MIN && *time <= end, &rule)
        });
        section.finish();
        let file = file?;
        let source = Source { name: file.file.written.clone(), text: file.text.clone() };
        let index = self.context.source(source);
        match Policy::read((&file.file.written, &file.text), index, self.context.known.policy) {
            Ok(policy) => {
                let scale = period.map_or(1.0, |period| period.as_secs_f64() / policy.period.as_secs_f64());
                let policy = match period {
                    Some(period) => policy.with_period(period),
                    None => policy,
                };
                Some(Control { file, period, day: Time::from_secs_f64(86_400.0 * scale), policy })
            }
            Err(problems) => {
                self.add_problems(problems);
                None
            }
        }
    }
}
