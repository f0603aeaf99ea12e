//! What agrees with the paper and what does not, in sentences that the numbers decide.

use super::measured::{Measured, Setting, settings};
use super::{File, Path, Stack, paper};
use crate::table::number;

/// The sentences, a paragraph each.
pub fn findings(measured: &[Measured]) -> Vec<String> {
    let all: Vec<Setting> = settings(measured).collect();
    let main = |path: Path| all.iter().find(|one| one.case().path == path && one.case().is_main());
    let mut list: Vec<String> = Path::ALL.into_iter().filter_map(|path| gain(main(path)?)).collect();
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
    let mean = |at: usize| both.iter().map(|pair| pair[at]).sum::<f64>() / both.len().max(1) as f64;
    (!both.is_empty()).then(|| {
        format!(
            "The mean reduction of 10 MB over the paths is {} % of CUBIC's times, and {} % of TCon's, by which the paper has {} %.",
            number(mean(0)),
            number(mean(1)),
            number(paper::MEAN_REDUCTION)
        )
    })
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
