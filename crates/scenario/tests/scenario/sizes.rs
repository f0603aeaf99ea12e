//! Distributions of flow sizes, by hand.

use proptest::prelude::*;
use scenario::SizeDistribution;

#[test]
fn the_published_means_are_those_of_their_tables() {
    // Web search, packets of 1460 B: 0.15·6 + 0.05·9.5 + 0.1·16 + 0.1·26 + 0.13·43 + 0.07·93 + 0.1·400 + 0.1·1000
    // + 0.1·2333 + 0.07·5000 + 0.03·13333.5 = 1140.98 packets.
    let mean = SizeDistribution::published("web-search").unwrap().mean();
    assert!((mean / 1460.0 - 1140.98).abs() < 0.01, "{}", mean / 1460.0);
    // Data mining: 0.5·1 + 0.1·1.5 + 0.1·2.5 + 0.1·5 + 0.1·137 + 0.05·1187 + 0.04·34387 + 0.01·366667 = 5116.6 packets.
    let mean = SizeDistribution::published("data-mining").unwrap().mean();
    assert!((mean / 1460.0 - 5116.6).abs() < 0.1, "{}", mean / 1460.0);
    // Hadoop: at most 300 B 1 in 20, half up to 700 B, 97.5 % up to 1 MB.
    let hadoop = SizeDistribution::published("hadoop").unwrap();
    assert_eq!([0.05, 0.5, 0.975, 1.0].map(|u| hadoop.quantile(u)), [300, 700, 1_000_000, 10_000_000]);
    // Cache followers: half up to 28 kB, none over 3.84 MB.
    let cache = SizeDistribution::published("cache").unwrap();
    assert_eq!([0.478, 0.5, 1.0].map(|u| cache.quantile(u)), [10_000, 28_000, 3_840_000]);
    assert!(SizeDistribution::published("nothing").is_none());
}

#[test]
fn memcached_values_follow_the_published_formula() {
    let sizes = SizeDistribution::published("memcached").unwrap();
    // The two commonest small values, of 2 and 11 bytes: from 0.00583 to 0.18403, and from 0.32768 to 0.41757.
    assert_eq!([0.006, 0.184, 0.33, 0.417].map(|u| sizes.quantile(u)), [2, 2, 11, 11]);
    // Above 14 bytes F(x) = 1 - (1 + 0.348238 x / 214.476)^(-1 / 0.348238). F(14) = 0.06251 and F(1000) = 0.93733, so the share of at
    // most 1000 bytes is 0.44155 + 0.55845 (0.93733 - 0.06251) / (1 - 0.06251) = 0.96268.
    let share = 0.44155 + 0.55845 * (0.93733 - 0.06251) / (1.0 - 0.06251);
    assert!((995..=1005).contains(&sizes.quantile(share)), "{}", sizes.quantile(share));
}

#[test]
fn quantiles_are_straight_between_points_and_jump_where_sizes_repeat() {
    let sizes = SizeDistribution::parse("bytes,cdf\n100,0.2\n100,0.4\n200,0.5\n1000,1\n").unwrap();
    let cases = [
        (0.0, 100),
        (0.2, 100),
        (0.3, 100),
        (0.4, 100),
        (0.45, 150),
        (0.5, 200),
        (0.75, 600),
        (1.0, 1000),
        (2.0, 1000),
    ];
    for (u, bytes) in cases {
        assert_eq!(sizes.quantile(u), bytes, "u = {u}");
    }
    // 0.4·100 + 0.1·150 + 0.5·600.
    assert!((sizes.mean() - 355.0).abs() < 1e-9);
    // A probability that jumps at one size, and no empty flow.
    let jump = SizeDistribution::parse("packets_of_10_bytes,cdf\n0,0\n0,0.5\n3,0.5\n3,1\n").unwrap();
    assert_eq!([0.5, 0.500_001, 1.0].map(|u| jump.quantile(u)), [1, 30, 30]);
}

proptest! {
    #[test]
    fn the_mean_of_quantiles_is_the_mean(name in prop_oneof![Just("web-search"), Just("data-mining"), Just("hadoop"), Just("cache"), Just("memcached")]) {
        let sizes = SizeDistribution::published(name).unwrap();
        let n = 200_000;
        let sum: f64 = (0..n).map(|i| sizes.quantile((f64::from(i) + 0.5) / f64::from(n)) as f64).sum();
        prop_assert!((sum / f64::from(n) / sizes.mean() - 1.0).abs() < 1e-3);
    }

    #[test]
    fn any_text_is_a_distribution_or_an_error(text in "(bytes,cdf\n)?([0-9.e,x-]{0,12}\n){0,6}") {
        if let Ok(sizes) = SizeDistribution::parse(&text) {
            prop_assert!(sizes.quantile(0.0) <= sizes.quantile(1.0));
        }
    }
}
