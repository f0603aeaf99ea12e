//! A study without the command, as another front end would call it: `cargo run --release -p study --example cfi16 FOLDER`.
use study::{Event, Failure, Monitor, Request, Stop, reproduce};

fn main() -> Result<(), Failure> {
    let out = std::env::args_os().nth(1).unwrap_or_else(|| "opentcp-results/cfi16".into()).into();
    let sets = vec!["duration=2 s".to_string()];
    let request = Request { out, sets, ..Request::new("cfi16") };
    let show = |event: Event<'_>| match event {
        Event::Began { runs } => eprintln!("{runs} runs"),
        Event::Finished { name, words } => eprintln!("{name}: {words}"),
        Event::Note(words) => eprintln!("{words}"),
        _ => {}
    };
    let done = reproduce(&request, Monitor::new(&show, &Stop::default()))?;
    for row in &done.comparisons {
        let paper = row.paper.map_or("none".to_string(), |paper| paper.to_string());
        println!("{} {}: {:.3} {}, the paper's: {paper}", row.case, row.quantity, row.ours, row.unit);
    }
    Ok(())
}
