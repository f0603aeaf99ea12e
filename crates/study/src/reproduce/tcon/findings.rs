//! What agrees with the paper and what does not, in sentences that the numbers decide.

use super::load::Load;
use super::measured::{Measured, Setting, settings};
use super::{File, Path, Stack, paper};
use crate::table::number;

/// The sentences, a paragraph each.
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

/// What enforcing gains on a path, with the main file.
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

/// Means of reductions over paths, by both definitions.
fn mean_reduction(settings: &[&Setting]) -> Option<String> {
    let both: Vec<[f64; 2]> = settings.iter().map(|setting| setting.reductions()).collect::<Option<_>>()?;
    let theirs = |setting: &&Setting| paper::times(setting.case().path.name(), &File::MAIN.name());
    let theirs: Vec<[f64; 3]> = settings.iter().map(theirs).collect::<Option<_>>()?;
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    (!both.is_empty()).then(|| {
        format!(
            "The mean reduction of 10 MB over the paths is {} % of CUBIC's times, and {} % of TCon's, by which the paper's \
             times give {} % (it prints {} %, the mean over 630 MB too).",
            number(mean(both.iter().map(|pair| pair[0]).collect())),
            number(mean(both.iter().map(|pair| pair[1]).collect())),
            number(mean(theirs.iter().map(|[cubic, _, tcon]| (cubic / tcon - 1.0) * 100.0).collect())),
            number(paper::MEAN_REDUCTION)
        )
    })
}

/// The most that is set out, what was measured, and whether that is kept.
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

/// How near enforcing comes to the algorithm on the server, and to no enforcer where there is nothing to gain.
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

/// What the enforcer takes of a processor, by what is set out, and whether it was asked as much as was meant.
pub fn overhead(loads: &[Load]) -> Vec<String> {
    let target = |load: &Load| {
        let most = match load.asked {
            2500 => 15.0,
            12_000 => 40.0,
            _ => return None,
        };
        Some(Target { what: format!("{},", load.name()), most, measured: load.processor })
    };
    let about = "The enforcer takes of a processor, percent, the hosts' reception of what it sends included";
    let slow: Vec<String> = loads
        .iter()
        .filter(|load| load.answered < 0.99 * f64::from(load.asked))
        .map(|load| format!("{} ({} answered)", load.name(), number(load.answered)))
        .collect();
    let slow = (!slow.is_empty()).then(|| format!("Answers did not keep up with what was asked: {}.", slow.join(", ")));
    sentence(about, loads.iter().filter_map(target)).into_iter().chain(slow).collect()
}

/// Is it the main file on that path, by the paper's server and algorithm?
fn is_of(setting: &Setting, path: Path) -> bool {
    let case = setting.case();
    case.is_papers() && case.path == path && case.file.kilobytes == File::MAIN.kilobytes
}

/// What the paper does not have: other algorithms, and servers of other stacks.
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

/// What there is to win by the rate of losses.
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
    (!list.is_empty()).then(|| {
        format!("The rate of losses decides what enforcing wins against CUBIC on {name}: {}.", list.join(", "))
    })
}

/// What speaks against the numbers.
fn trouble(measured: &[Measured]) -> Option<String> {
    let bad: Vec<String> = measured
        .iter()
        .filter(|one| one.overlap || one.unfinished > 0)
        .map(|one| format!("{}/{} ({} unfinished)", one.case.setting(), one.case.variant_name(), one.unfinished))
        .collect();
    (!bad.is_empty()).then(|| {
        format!(
            "Downloads met the next one or did not end in time, so these times are not to be trusted: {}.",
            bad.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_out_is_met_or_missed() {
        let load = |asked: u32, answered: f64, processor: f64| Load {
            connections: 20_000,
            asked,
            answered,
            p99_ms: None,
            processor,
        };
        let told = overhead(&[load(1000, 1000.0, 70.0), load(2500, 2499.0, 14.0), load(12_000, 9000.0, 40.5)]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("2500 requests/s, 14 (at most 15: met)"), "{told:?}");
        assert!(told[0].contains("12000 requests/s, 40.5 (at most 40: MISSED)"), "{told:?}");
        assert!(!told[0].contains(" 1000 requests") && told[1].contains("9000 answered"), "{told:?}");
        assert!(overhead(&[]).is_empty());
    }
}
