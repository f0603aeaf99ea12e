//! Which of the paper's statements hold, in sentences computed from the numbers.

use super::load::Load;
use super::measured::{Measured, Setting, settings};
use super::{File, Path, Stack, paper};
use crate::table::number;

/// The sentences, one paragraph each.
pub fn findings(measured: &[Measured]) -> Vec<String> {
    let all: Vec<Setting> = settings(measured).collect();
    let main = |path: Path| all.iter().find(|one| one.case().path == path && one.case().is_main());
    let mut list: Vec<String> = Path::ALL.into_iter().filter_map(|path| gain(main(path)?)).collect();
    list.extend(targets(&all));
    list.extend(mean_reduction(&Path::ALL.into_iter().filter_map(main).collect::<Vec<_>>()));
    list.extend(Path::WAN.into_iter().filter_map(|path| losses(&all, path)));
    list.extend(beyond(&all));
    list.extend(trouble(measured));
    list
}

/// The gain by enforcing on a path, with the main file.
fn gain(setting: &Setting) -> Option<String> {
    let (path, file) = (setting.case().path.name(), setting.case().file.name());
    let [cubic, bbr, tcon] = [setting.cubic.mean()?, setting.native.mean()?, setting.tcon.mean()?];
    let times = format!("{path}, {file}: CUBIC {} s, BBR {} s, TCon {} s", number(cubic), number(bbr), number(tcon));
    let theirs = paper::times(path, &file);
    let paper = theirs.map_or_else(String::new, |[cubic, bbr, tcon]| {
        let kept = (cubic - tcon) / (cubic - bbr);
        format!(" (paper: {}, {}, {} s, {} of the gain)", number(cubic), number(bbr), number(tcon), number(kept))
    });
    Some(match setting.kept_of_gain() {
        Some(kept) => {
            let verdict = if kept >= 0.9 { "which is 0.9 or more" } else { "which is less than 0.9" };
            format!("{times}: {} of BBR's gain is kept, {verdict}{paper}.", number(kept))
        }
        None => format!("{times}: BBR gains less than 1 % here, so there is nothing to keep{paper}."),
    })
}

/// Mean reductions over paths, by both definitions.
fn mean_reduction(settings: &[&Setting]) -> Option<String> {
    let both: Vec<[f64; 2]> = settings.iter().map(|setting| setting.reductions()).collect::<Option<_>>()?;
    let theirs = |setting: &&Setting| paper::times(setting.case().path.name(), &File::MAIN.name());
    let theirs: Vec<[f64; 3]> = settings.iter().map(theirs).collect::<Option<_>>()?;
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    (!both.is_empty()).then(|| {
        format!(
            "The mean reduction of 10 MB over the paths is {} % of CUBIC's times, and {} % of TCon's, for which the paper's \
             times give {} % (it prints {} %, a mean that includes 630 MB).",
            number(mean(both.iter().map(|pair| pair[0]).collect())),
            number(mean(both.iter().map(|pair| pair[1]).collect())),
            number(mean(theirs.iter().map(|[cubic, _, tcon]| (cubic / tcon - 1.0) * 100.0).collect())),
            number(paper::MEAN_REDUCTION)
        )
    })
}

/// Goals for a quantity: the maximum, the measured value, and whether it is met.
struct Target {
    what: String,
    most: f64,
    measured: f64,
}

impl Target {
    fn words(&self) -> String {
        let Target { what, most, measured } = self;
        let verdict = if measured <= most { "met" } else { "MISSED" };
        format!("{what} {} (at most {}: {verdict})", number(*measured), number(*most))
    }
}

fn sentence(about: &str, targets: impl Iterator<Item = Target>) -> Option<String> {
    let list: Vec<String> = targets.map(|target| target.words()).collect();
    (!list.is_empty()).then(|| format!("{about}: {}.", list.join(", ")))
}

/// Enforcing compared with the algorithm on the server, and with no enforcer where there is nothing to gain.
fn targets(all: &[Setting]) -> Vec<String> {
    let printed = || all.iter().filter(|one| one.case().is_printed());
    let over_native = printed().filter(|one| Path::WAN.contains(&one.case().path)).filter_map(|one| {
        let what = format!("{}, {}", one.case().path.name(), one.case().file.name());
        Some(Target { what, most: 1.05, measured: one.over_native()? })
    });
    let over_direct = printed()
        .filter(|one| one.case().path == Path::Lan && one.case().file.is_large())
        .filter_map(|one| Some(Target { what: one.case().file.name(), most: 1.02, measured: one.over_direct()? }));
    let native = sentence("TCon's mean time over that of a server that runs BBR itself", over_native);
    let direct = sentence("TCon's time over CUBIC's on the LAN, the median of pairs", over_direct);
    native.into_iter().chain(direct).collect()
}

/// The enforcer's CPU use, its goals, and whether the requested rate was reached.
pub fn overhead(loads: &[Load]) -> Vec<String> {
    let target = |load: &Load| {
        let most = match load.asked {
            2500 => 15.0,
            12_000 => 40.0,
            _ => return None,
        };
        Some(Target { what: format!("{},", load.name()), most, measured: load.cpu })
    };
    let about = "The enforcer's CPU use, % of a core, including the hosts' reception of what it sends";
    let slow: Vec<String> = loads
        .iter()
        .filter(|load| load.answered < 0.99 * f64::from(load.asked))
        .map(|load| format!("{} ({} answered)", load.name(), number(load.answered)))
        .collect();
    let slow = (!slow.is_empty()).then(|| format!("The requested rates were not reached: {}.", slow.join(", ")));
    sentence(about, loads.iter().filter_map(target)).into_iter().chain(slow).collect()
}

/// Whether it is the main file on that path, with the paper's server and algorithm.
fn is_of(setting: &Setting, path: Path) -> bool {
    let case = setting.case();
    case.is_papers() && case.path == path && case.file.kilobytes == File::MAIN.kilobytes
}

/// Beyond the paper: other algorithms, and servers with other stacks.
fn beyond(all: &[Setting]) -> Option<String> {
    let words = |one: &Setting| {
        let case = one.case();
        let name = if case.stack == Stack::Linux { case.algorithm } else { case.stack.name() };
        Some(format!("{name} {}", number(one.over_native()?)))
    };
    let list: Vec<String> = all.iter().filter(|one| !one.case().is_papers()).filter_map(words).collect();
    (!list.is_empty()).then(|| {
        format!(
            "Means of enforced downloads over those of a server that runs the algorithm itself (BBR on the other stacks): {}.",
            list.join(", ")
        )
    })
}

/// The gain by loss rate.
fn losses(all: &[Setting], path: Path) -> Option<String> {
    let mut swept: Vec<&Setting> = all.iter().filter(|one| is_of(one, path)).collect();
    swept.sort_by_key(|one| one.case().loss);
    let words = |one: &&Setting| {
        let reduction = one.reductions()?[0];
        let kept = one.kept_of_gain().map_or_else(|| "no gain".to_string(), |kept| format!("{} kept", number(kept)));
        Some(format!("{} %: {} % ({kept})", number(f64::from(one.case().loss) / 10.0), number(reduction)))
    };
    let list: Vec<String> = swept.iter().filter_map(words).collect();
    let name = path.name();
    (!list.is_empty()).then(|| format!("The gain over CUBIC depends on the loss rate, on {name}: {}.", list.join(", ")))
}

/// Reasons to distrust the numbers.
fn trouble(measured: &[Measured]) -> Option<String> {
    let bad: Vec<String> = measured
        .iter()
        .filter(|one| one.overlap || one.unfinished > 0)
        .map(|one| format!("{}/{} ({} unfinished)", one.case.setting(), one.case.variant_name(), one.unfinished))
        .collect();
    (!bad.is_empty()).then(|| {
        format!("Downloads overlapped or did not end in time, so these times are not valid: {}.", bad.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_out_is_met_or_missed() {
        let load =
            |asked: u32, answered: f64, cpu: f64| Load { connections: 20_000, asked, answered, p99_ms: None, cpu };
        let sentences = overhead(&[load(1000, 1000.0, 70.0), load(2500, 2499.0, 14.0), load(12_000, 9000.0, 40.5)]);
        assert_eq!(sentences.len(), 2, "{sentences:?}");
        assert!(sentences[0].contains("2500 requests/s, 14 (at most 15: met)"), "{sentences:?}");
        assert!(sentences[0].contains("12000 requests/s, 40.5 (at most 40: MISSED)"), "{sentences:?}");
        assert!(!sentences[0].contains(" 1000 requests") && sentences[1].contains("9000 answered"), "{sentences:?}");
        assert!(overhead(&[]).is_empty());
    }
}
