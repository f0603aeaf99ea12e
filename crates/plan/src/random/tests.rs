//! Streams of random numbers that belong to names.

use super::*;

fn numbers(mut random: Random) -> [u32; 4] {
    [(); 4].map(|()| random.bits())
}

#[test]
fn each_name_and_each_seed_has_a_stream_of_its_own() {
    let flow = |number| FlowName::new("web", number);
    let streams = [
        numbers(Random::of_entry(1, "web")),
        numbers(Random::of_entry(1, "wob")),
        numbers(Random::of_entry(2, "web")),
        numbers(Random::of_job(1, "web", 0)),
        numbers(Random::of_job(1, "web", 1)),
        numbers(flow(0).random(1)),
        numbers(flow(0).random(2)),
        numbers(flow(1).random(1)),
        numbers(flow(0).application_random(1)),
    ];
    for (i, one) in streams.iter().enumerate() {
        assert!(streams[..i].iter().all(|other| other != one), "stream {i}");
    }
    assert_eq!(streams[0], numbers(Random::of_entry(1, "web")), "the same again");
}

#[test]
fn a_flow_may_take_another_path_each_way() {
    let ways: Vec<(u32, u32)> = (0..64)
        .map(|number| FlowName::new("web", number))
        .map(|name| (name.path_hash(true) % 4, name.path_hash(false) % 4))
        .collect();
    // of 64 flows over four equal paths each path has about 16; 3 or less have a chance of 1 in 10^5
    for path in 0..4 {
        assert!(ways.iter().filter(|(there, _)| *there == path).count() > 3, "{path}: {ways:?}");
        assert!(ways.iter().filter(|(_, back)| *back == path).count() > 3, "{path}: {ways:?}");
    }
    assert!(ways.iter().any(|(there, back)| there != back) && ways.iter().any(|(there, back)| there == back));
}

#[test]
fn an_order_that_was_shuffled_has_everything_once() {
    let mut random = Random::of_entry(1, "order");
    let mut first = [0_u32; 5];
    for _ in 0..5000 {
        let mut items = [0, 1, 2, 3, 4];
        random.shuffle(&mut items);
        first[items[0]] += 1;
        items.sort_unstable();
        assert_eq!(items, [0, 1, 2, 3, 4]);
    }
    // each is first a thousand times; the standard deviation is sqrt(1000 x 0.8) = 28
    assert!(first.iter().all(|times| (870..=1130).contains(times)), "{first:?}");
}

#[test]
fn numbers_below_a_bound_reach_all_of_it_and_times_have_their_mean() {
    let mut random = Random::of_entry(1, "numbers");
    let mut seen = [false; 7];
    (0..500).for_each(|_| seen[random.below(7) as usize] = true);
    assert_eq!(seen, [true; 7]);
    assert_eq!(random.below(1), 0);
    let mean = Time::from_ms(10);
    let sum: u64 = (0..10_000).map(|_| random.exponential(mean).as_us()).sum();
    // the mean of ten thousand is within five times 10 ms / sqrt(10,000) = 0.1 ms
    assert!((9_500..=10_500).contains(&(sum / 10_000)), "{}", sum / 10_000);
    assert_eq!(random.exponential(Time::ZERO), Time::ZERO);
}
