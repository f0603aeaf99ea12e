//! One colour per algorithm, the same in every chart and every report. The ten colours (Paul Tol's "muted" scheme,
//! the two palest darkened for lines on white, and a grey) can be distinguished by colour-blind readers; `report.css` holds the values for
//! light and dark.

/// Number of colours.
pub(crate) const COLOURS: usize = 10;

/// The algorithms with a fixed colour, by its index.
const OWNERS: [&str; COLOURS] =
    ["newreno", "vegas", "highspeed", "scalable", "westwood", "bic", "cubic", "yeah", "dctcp", "bbr"];

/// The colours of one report's names.
#[derive(Debug, Default)]
pub(crate) struct Palette {
    names: Vec<(String, usize)>,
}

impl Palette {
    /// Gives each name its colour: an algorithm its own, others those that are free, in order of appearance.
    pub fn of<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Self {
        let own = |name: &str| OWNERS.iter().position(|owner| *owner == name);
        let taken: Vec<usize> = names.clone().filter_map(own).collect();
        let free: Vec<usize> = (0..COLOURS).filter(|c| !taken.contains(c)).collect();
        let mut palette = Self::default();
        let mut others = 0;
        for name in names {
            if palette.names.iter().any(|(known, _)| known == name) {
                continue;
            }
            let colour = own(name).unwrap_or_else(|| {
                let colour = if free.is_empty() { others % COLOURS } else { free[others % free.len()] };
                others += 1;
                colour
            });
            palette.names.push((name.to_owned(), colour));
        }
        palette
    }

    /// The colour of a name; the first one for a name that the palette was not made for.
    pub fn colour(&self, name: &str) -> usize {
        let found = self.names.iter().find(|(known, _)| known == name);
        found.map_or(0, |(_, colour)| *colour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_keep_their_colour_beside_any_others() {
        let alone = Palette::of(["cubic"].into_iter());
        let among = Palette::of(["mine", "cubic", "vegas"].into_iter());
        assert_eq!(alone.colour("cubic"), among.colour("cubic"));
        assert_eq!(among.colour("mine"), 0);
        let many = Palette::of(["newreno", "mine", "other"].into_iter());
        assert_eq!((many.colour("mine"), many.colour("other")), (1, 2));
    }
}
