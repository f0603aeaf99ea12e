//! From the file to the policy.

use crate::algorithm::{AlgorithmFacts, Known};
use crate::cue::TEXT_MAX;
use crate::expression::{Expression, Place};
use crate::model::{
    Algorithm, Collect, Constraint, Design, FlapLimit, Guard, HostMatch, Mode, Objective, Policy, Rollout, Rule, Stage,
};
use crate::select::{Hosts, Sessions};
use crate::settings::{CWND_CLAMP, DELAYED_ACK_MOST, INITIAL_CWND, RTO_MIN_MOST, Settings, TIME_LEAST, WINDOW_TOTAL};
use crate::variable::{Scope, Variable, sources};
use crate::zone::Zone;
use document::tree::{Entry, Node, Origin, Value, parse_document};
use document::{Diagnostic, Problem, Source, Values, suggestion};
use std::collections::BTreeMap;
use std::ops::Deref;
use units::{Bytes, Rate, Time};

type Section<'n, 'a> = document::Section<'n, Reader<'a>>;

/// Most rules, host patterns, and labels: CUEs carry them.
const RULES_MAX: usize = 256;
const LIST_MAX: usize = 8;
/// Longest period: a day.
const PERIOD_MAX: Time = Time::from_secs(86_400);
/// Longest lifetime of a CUE: what a network may keep from an Oracle that is gone.
const LIFETIME_MAX: Time = Time::from_secs(864_000);

impl Policy {
    /// Checks a policy's text; `name` is the file's, for messages, and its stem the policy's default name.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn parse(name: &str, text: &str, known: Known<'_>) -> Result<Policy, Diagnostic> {
        let sources = [Source { name: name.to_string(), text: text.into() }];
        Policy::read((name, text), 0, known).map_err(|problems| Diagnostic::new(problems, &sources))
    }

    /// The same for a text that another file names: `source` is its number among the caller's sources.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read((name, text): (&str, &str), source: usize, known: Known<'_>) -> Result<Policy, Vec<Problem>> {
        let root = parse_document(source, text).map_err(|errors| {
            let problem = |error: document::tree::Syntax| Problem {
                message: format!("this is not TOML: {}", error.message),
                at: Origin { source, span: error.span },
                help: None,
            };
            errors.into_iter().map(problem).collect::<Vec<_>>()
        })?;
        let reader = Reader { values: Values::default(), text, known };
        let stem = name.rsplit('/').next().unwrap_or(name);
        let stem = stem.strip_suffix(".toml").unwrap_or(stem);
        let policy = reader.policy(&root, stem);
        let problems = reader.values.into_problems();
        match policy {
            Some(policy) if problems.is_empty() => Ok(policy),
            _ => Err(problems),
        }
    }
}

/// Reads one policy.
struct Reader<'a> {
    values: Values,
    text: &'a str,
    known: Known<'a>,
}

impl Deref for Reader<'_> {
    type Target = Values;
    fn deref(&self) -> &Values {
        &self.values
    }
}

impl<'a> Reader<'a> {
    fn policy(&self, root: &Node, stem: &str) -> Option<Policy> {
        let section = Section::of(self, root, "the policy")?;
        let name = section.get("name", |r, n| r.identifier(n)).unwrap_or_else(|| stem.to_string());
        let title = section.get("title", |r, n| r.text(n).map(str::to_string));
        let modes = [("observe", Mode::Observe), ("enforce", Mode::Enforce)];
        let mode = section.require("mode", |r, n| r.word(n, &modes));
        let period = section.require("period", |r, n| r.span(n, PERIOD_MAX));
        // What is checked against an unreadable period has been given enough of it.
        let t = period.unwrap_or(Time::from_secs(60));
        let lifetime = section.get("lifetime", |r, n| r.lifetime(n, t)).unwrap_or(t + t / 2);
        let time_zone = section.get("time_zone", Reader::time_zone).unwrap_or_default();
        let smoothing = section.get("smoothing", |r, n| r.span(n, PERIOD_MAX));
        let allow_mixed_measures = section.get("allow_mixed_measures", |r, n| r.boolean(n)).unwrap_or(false);
        let flap_limit =
            section.get("flap_limit", Reader::flap_limit).unwrap_or(FlapLimit { changes: 6, within: t * 60 });
        let written = section.get("collect", Reader::collect).unwrap_or_default();
        let objective = section.get("objective", Reader::objective);
        let constraints = section.get("constraint", |r, n| r.values.each(n, |n| r.constraint(n))).unwrap_or_default();
        let rules = section.require("rule", |r, n| r.rules(n, t));
        let rollout = section.get("rollout", Reader::rollout).unwrap_or_else(everybody);
        section.finish();
        let rules = rules?;
        if !allow_mixed_measures {
            self.compatible(&section, &rules);
        }
        let collect = completed(written, objective.as_ref(), &constraints, &rules);
        Some(Policy {
            name,
            title,
            mode: mode?,
            period: period?,
            lifetime,
            time_zone,
            smoothing,
            allow_mixed_measures,
            flap_limit,
            collect,
            objective,
            constraints,
            rules,
            rollout,
            algorithms: self.known.algorithms.iter().map(owned).collect(),
        })
    }

    /// A span more than zero.
    fn span(&self, node: &Node, most: Time) -> Option<Time> {
        self.within(node, |time: &Time| *time > Time::ZERO && *time <= most, &format!("more than zero, at most {most}"))
    }

    fn lifetime(&self, node: &Node, period: Time) -> Option<Time> {
        let lifetime = self.span(node, LIFETIME_MAX)?;
        if lifetime > period {
            return Some(lifetime);
        }
        let message = format!("a CUE that lasts {lifetime} expires before the next one, which comes after {period}");
        let help = format!("choose a lifetime longer than the period, for example \"{}\"", period + period / 2);
        self.problem(&node.at, message, help)
    }

    fn time_zone(&self, node: &Node) -> Option<Zone> {
        let name = self.text(node)?;
        let unknown = |help| self.problem(&node.at, format!("there is no time zone `{name}`"), help);
        Zone::named(name).map_or_else(unknown, Some)
    }

    fn flap_limit(&self, node: &Node) -> Option<FlapLimit> {
        let section = Section::of(self, node, "`flap_limit`")?;
        let changes = section.require("changes", |r, n| r.count(n, 1, 1000));
        let within = section.require("within", |r, n| r.span(n, LIFETIME_MAX));
        section.finish();
        Some(FlapLimit { changes: changes?, within: within? })
    }

    fn collect(&self, node: &Node) -> Option<Collect> {
        let section = Section::of(self, node, "`[collect]`")?;
        let of = |key, scope| section.get(key, |r, n| r.values.each(n, |n| r.field(n, scope))).unwrap_or_default();
        let collect = Collect {
            links: of("links", Scope::Link),
            hosts: of("hosts", Scope::Host),
            groups: of("groups", Scope::Group),
        };
        section.finish();
        Some(collect)
    }

    /// A variable by its name without whose it is.
    fn field(&self, node: &Node, scope: Scope) -> Option<&'static Variable> {
        let written = self.text(node)?;
        let of_scope = || Variable::all().iter().filter(|variable| variable.scope() == scope);
        of_scope().find(|variable| variable.field() == written).or_else(|| {
            let fields: Vec<&str> = of_scope().map(Variable::field).collect();
            let message = format!("a {} has no statistic `{written}`", scope.name());
            self.problem(&node.at, message, suggestion(written, &fields))
        })
    }

    /// An expression; its mistakes get their places in the file.
    fn expression(&self, node: &Node, place: Place) -> Option<Expression> {
        let text = self.text(node)?;
        match Expression::compile(text, place) {
            Ok(expression) => Some(expression),
            Err(error) => {
                let raw = &self.text[node.at.span.clone()];
                // With escapes in it the text is not in the file as such: then the whole of it is pointed at.
                let at = raw.find(text).filter(|_| !text.is_empty()).map_or_else(
                    || node.at.clone(),
                    |start| {
                        let start = node.at.span.start + start;
                        Origin { source: node.at.source, span: start + error.span.start..start + error.span.end }
                    },
                );
                self.problem(&at, error.message, error.help)
            }
        }
    }

    fn objective(&self, node: &Node) -> Option<Objective> {
        let section = Section::of(self, node, "`[objective]`")?;
        section.exclusive("minimize", "maximize");
        let minimize = section.get("minimize", |r, n| r.expression(n, Place::Objective));
        let maximize = section.get("maximize", |r, n| r.expression(n, Place::Objective));
        let worse = section.get("worse_at_most", |r, n| r.percentage(n)).unwrap_or(5.0);
        if !section.has("minimize") && !section.has("maximize") {
            let help = "write for example `minimize = \"network.fct_p99\"`".to_string();
            section.reader.problem::<()>(&section.at, "`[objective]` lacks `minimize` or `maximize`", help);
        }
        section.finish();
        let is_small = minimize.is_some();
        Some(Objective { of: minimize.or(maximize)?, minimize: is_small, worse_at_most: worse / 100.0 })
    }

    fn constraint(&self, node: &Node) -> Option<Constraint> {
        let section = Section::of(self, node, "`[[constraint]]`")?;
        let name = section.require("name", |r, n| r.text(n).map(str::to_string));
        let holds = section.require("holds", |r, n| r.expression(n, Place::Network));
        section.finish();
        Some(Constraint { name: name?, holds: holds? })
    }

    fn rules(&self, node: &Node, period: Time) -> Option<Vec<Rule>> {
        let rules = self.values.each(node, |n| self.rule(n, period))?;
        if rules.is_empty() {
            return self.problem(&node.at, "a policy needs at least one rule", "write `[[rule]]`".to_string());
        }
        if rules.len() > RULES_MAX {
            return self.problem(&node.at, format!("a policy has at most {RULES_MAX} rules"), None);
        }
        let Value::Array(nodes) = &node.value else { return Some(rules) };
        for (i, rule) in rules.iter().enumerate() {
            if rules[..i].iter().any(|other| other.name == rule.name) {
                let help = "CUEs and reports identify rules by name".to_string();
                self.problem::<()>(name_at(&nodes[i]), format!("a second rule `{}`", rule.name), help);
            }
        }
        Some(rules)
    }

    fn rule(&self, node: &Node, period: Time) -> Option<Rule> {
        let section = Section::of(self, node, "`[[rule]]`")?;
        let name = section.require("name", Reader::rule_name);
        let when = section.require("when", |r, n| r.expression(n, Place::Rule));
        let until = section.get("until", |r, n| r.expression(n, Place::Rule));
        let hold = section.get("hold", |r, n| r.span(n, LIFETIME_MAX)).unwrap_or(period);
        let matched = section.get("match", Reader::matched);
        let set = section.require("set", Reader::settings);
        let guard = section.get("guard", |r, n| r.guard(n, period));
        section.finish();
        let (hosts, sessions) = matched.unwrap_or_else(treated);
        Some(Rule { name: name?, when: when?, until, hold, hosts, sessions, set: set?, guard })
    }

    /// A short text in one line: every CUE carries it.
    fn rule_name(&self, node: &Node) -> Option<String> {
        const MOST: usize = 64;
        let text = self.text(node)?;
        if !text.is_empty() && text.len() <= MOST && !text.contains(char::is_control) {
            return Some(text.to_string());
        }
        self.problem(
            &node.at,
            format!("a rule's name has 1 to {MOST} bytes in one line"),
            "every CUE carries it".to_string(),
        )
    }

    fn matched(&self, node: &Node) -> Option<(HostMatch, Sessions)> {
        let section = Section::of(self, node, "`match`")?;
        let which = section.get("hosts", Reader::hosts).unwrap_or(Hosts::Treated);
        let labels = section.get("labels", Reader::labels).unwrap_or_default();
        let remote = section.get("remote", |r, n| r.quantity(n));
        let port = section.get("port", |r, n| r.count(n, 1, u32::from(u16::MAX))).map(|port| port as u16);
        let cgroup = section.get("cgroup", Reader::cgroup);
        section.finish();
        Some((HostMatch { which, labels }, Sessions { remote, port, cgroup }))
    }

    fn hosts(&self, node: &Node) -> Option<Hosts> {
        if let Value::Array(_) = node.value {
            let names = self.values.each(node, |n| self.short(n))?;
            if names.len() > LIST_MAX {
                return self.problem(
                    &node.at,
                    format!("at most {LIST_MAX} patterns"),
                    "give the hosts a label".to_string(),
                );
            }
            if names.is_empty() {
                return self.problem(
                    &node.at,
                    "an empty list matches no host",
                    "leave out `hosts` to match all treated hosts".to_string(),
                );
            }
            return Some(Hosts::Named(names));
        }
        let word = self.word(node, &[("treated", false), ("all", true)])?;
        Some(if word { Hosts::All } else { Hosts::Treated })
    }

    fn labels(&self, node: &Node) -> Option<BTreeMap<String, String>> {
        let Value::Table(entries) = &node.value else {
            return self.expected(node, "labels are a table, such as `{ role = \"storage\" }`");
        };
        if entries.len() > LIST_MAX {
            return self.problem(&node.at, format!("at most {LIST_MAX} labels"), None);
        }
        let label = |entry: &Entry| {
            if entry.key.len() > TEXT_MAX {
                return self.problem(&entry.key_at, format!("a label has at most {TEXT_MAX} bytes"), None);
            }
            Some((entry.key.clone(), self.short(&entry.value)?))
        };
        entries.iter().map(label).collect()
    }

    /// A text that a CUE can carry.
    fn short(&self, node: &Node) -> Option<String> {
        let text = self.text(node)?;
        if text.len() <= TEXT_MAX {
            return Some(text.to_string());
        }
        self.problem(&node.at, format!("this has more than {TEXT_MAX} bytes"), "every CUE carries it".to_string())
    }

    fn cgroup(&self, node: &Node) -> Option<String> {
        let text = self.text(node)?;
        if text.starts_with('/') && text.len() <= TEXT_MAX {
            return Some(text.to_string());
        }
        let help =
            "a cgroup is written from the root, such as `/system.slice/mpi.service`, in at most 255 bytes".to_string();
        self.problem(&node.at, format!("`{text}` is not a cgroup"), help)
    }

    fn guard(&self, node: &Node, period: Time) -> Option<Guard> {
        let section = Section::of(self, node, "`guard`")?;
        let revert_if = section.require("revert_if", |r, n| r.short(n).and_then(|_| r.expression(n, Place::Guard)));
        let hold = section.get("hold", |r, n| r.span(n, LIFETIME_MAX)).unwrap_or(period);
        section.finish();
        Some(Guard { revert_if: revert_if?, hold })
    }

    fn settings(&self, node: &Node) -> Option<Settings> {
        let section = Section::of(self, node, "`set`")?;
        let time = |key, most: Time| {
            let rule = format!("from {TIME_LEAST} to {most}");
            section.get(key, |r, n| r.within(n, |t: &Time| *t >= TIME_LEAST && *t <= most, &rule))
        };
        let (least, most) = (Bytes::new(WINDOW_TOTAL.0), Bytes::new(WINDOW_TOTAL.1));
        let (in_total, total) = (|bytes: &Bytes| (least..=most).contains(bytes), format!("from {least} to {most}"));
        let settings = Settings {
            initial_cwnd: section.get("initial_cwnd", |r, n| r.count(n, INITIAL_CWND.0, INITIAL_CWND.1)),
            rto_min: time("rto_min", RTO_MIN_MOST),
            cc: section.get("cc", Reader::algorithm),
            pacing: section.get("pacing", |r, n| r.boolean(n)),
            cwnd_clamp: section.get("cwnd_clamp", |r, n| r.count(n, CWND_CLAMP.0, CWND_CLAMP.1)),
            max_pacing_rate: section.get("max_pacing_rate", |r, n| r.positive::<Rate>(n)),
            delayed_ack_max: time("delayed_ack_max", DELAYED_ACK_MOST),
            window_clamp: section.get("window_clamp", |r, n| r.positive::<Bytes>(n)),
            window_total: section.get("window_total", |r, n| r.within(n, in_total, &total)),
            ecn: section.get("ecn", |r, n| r.boolean(n)),
        };
        let complete = section.finish();
        if settings.pacing == Some(false) && settings.max_pacing_rate.is_some() {
            let help = "pacing enforces the rate: leave out one of the two".to_string();
            section.problem::<()>("max_pacing_rate", "a pacing rate without pacing", help);
        }
        if settings.is_empty() && complete && matches!(&node.value, Value::Table(entries) if entries.is_empty()) {
            return self.problem(
                &node.at,
                "`set` sets nothing",
                "write for example `set = { initial_cwnd = 20 }`".to_string(),
            );
        }
        Some(settings)
    }

    fn algorithm(&self, node: &Node) -> Option<String> {
        let written = self.text(node)?;
        if self.known.named(written).is_some() {
            return Some(written.to_string());
        }
        let (message, help) = self.known.unknown(written);
        self.problem(&node.at, message, help)
    }

    fn rollout(&self, node: &Node) -> Option<Rollout> {
        let section = Section::of(self, node, "`[rollout]`")?;
        let designs = [("split", false), ("switchback", true)];
        let switchback = section.get("design", |r, n| r.word(n, &designs)).unwrap_or(false);
        let periods = section.get("periods", |r, n| r.count(n, 1, 100_000));
        if section.has("periods") && !switchback {
            let help = "write `design = \"switchback\"`, or leave `periods` out".to_string();
            section.problem::<()>("periods", "`periods` is for the switchback design only", help);
        }
        section.exclusive("fraction", "stages");
        let fraction = section.get("fraction", |r, n| r.number(n, 1.0));
        let stages = section.get("stages", Reader::stages);
        let labels = section.get("labels", Reader::labels).unwrap_or_default();
        section.finish();
        let all = if switchback { 1.0 } else { 0.5 };
        let single = || vec![Stage { after: Time::ZERO, fraction: fraction.unwrap_or(all) }];
        let design = if switchback { Design::Switchback { periods: periods.unwrap_or(1) } } else { Design::Split };
        Some(Rollout { design, stages: stages.unwrap_or_else(single), labels })
    }

    fn stages(&self, node: &Node) -> Option<Vec<Stage>> {
        let stages = self.values.each(node, |node| {
            let section = Section::of(self, node, "a stage")?;
            let fraction = section.require("fraction", |r, n| r.number(n, 1.0));
            let after = section.get("after", |r, n| r.quantity(n)).unwrap_or(Time::ZERO);
            section.finish();
            Some(Stage { after, fraction: fraction? })
        })?;
        let first_at_once = stages.first().is_some_and(|stage| stage.after == Time::ZERO);
        if first_at_once && stages.windows(2).all(|pair| pair[0].after < pair[1].after) {
            return Some(stages);
        }
        let help =
            "the first stage has no `after`; each further stage has a larger one than the stage before".to_string();
        self.problem(&node.at, "the stages are not in order of time", help)
    }

    /// Reports rules whose algorithms react to different signals.
    fn compatible(&self, section: &Section<'_, 'a>, rules: &[Rule]) {
        let nodes = match section.take("rule").map(|node| &node.value) {
            Some(Value::Array(nodes)) => nodes.as_slice(),
            _ => &[],
        };
        for (i, rule) in rules.iter().enumerate() {
            let Some(cc) = &rule.set.cc else { continue };
            let clash = rules[..i].iter().find_map(|other| {
                let earlier = other.set.cc.as_deref()?;
                self.known.clash(earlier, cc).map(|measures| (earlier, measures))
            });
            let Some((earlier, (theirs, ours))) = clash else { continue };
            let message = format!(
                "`{cc}` reacts to {ours}, `{earlier}` of an earlier rule to {theirs}: one may starve the other"
            );
            let help = "if they never share a queue, write `allow_mixed_measures = true` at the top".to_string();
            let at = nodes.get(i).map_or(&section.at, |node| inner(node, &["set", "cc"]));
            self.problem::<()>(at, message, help);
            return;
        }
    }
}

fn owned(facts: &AlgorithmFacts<'_>) -> Algorithm {
    Algorithm { name: facts.name.to_string(), measures: facts.measures, needs_ecn: facts.needs_ecn }
}

/// Without a rollout every host is treated.
fn everybody() -> Rollout {
    Rollout { design: Design::Split, stages: vec![Stage { after: Time::ZERO, fraction: 1.0 }], labels: BTreeMap::new() }
}

fn treated() -> (HostMatch, Sessions) {
    (HostMatch { which: Hosts::Treated, labels: BTreeMap::new() }, Sessions::default())
}

fn name_at(rule: &Node) -> &Origin {
    inner(rule, &["name"])
}

/// Where the value at this path is written, or what is nearest around it.
fn inner<'n>(node: &'n Node, path: &[&str]) -> &'n Origin {
    let Some((key, rest)) = path.split_first() else { return &node.at };
    match &node.value {
        Value::Table(entries) => {
            entries.iter().find(|entry| entry.key == *key).map_or(&node.at, |entry| inner(&entry.value, rest))
        }
        _ => &node.at,
    }
}

/// What is written, and what the expressions need beside it.
fn completed(written: Collect, objective: Option<&Objective>, constraints: &[Constraint], rules: &[Rule]) -> Collect {
    let mut collect = written;
    let of_rules = rules.iter().flat_map(|rule| {
        let guard = rule.guard.as_ref().map(|guard| &guard.revert_if);
        [Some(&rule.when), rule.until.as_ref(), guard].into_iter().flatten()
    });
    let others = objective.map(|objective| &objective.of).into_iter().chain(constraints.iter().map(|c| &c.holds));
    let asked = of_rules.chain(others).flat_map(Expression::variables).flat_map(sources);
    // The period is compared with RTTs, whatever the rules ask for.
    let stability = Variable::named("host.srtt_p99");
    for variable in asked.chain(stability) {
        let list = match variable.scope() {
            Scope::Link => &mut collect.links,
            Scope::Host => &mut collect.hosts,
            Scope::Group => &mut collect.groups,
            Scope::Network => continue,
        };
        if !list.contains(&variable) {
            list.push(variable);
        }
    }
    collect
}
