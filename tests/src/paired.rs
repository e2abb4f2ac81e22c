//! What something costs on top of something else, by measurements of both in each of
//! many rounds.

use std::fmt;

/// The ratios of the rounds. Its `Display` is their median, and between which ratios it
/// is with 95 % of confidence, such as `1.04 (0.99-1.08)`.
#[derive(Debug, Clone)]
pub struct Ratios(Vec<f64>);

impl Ratios {
    /// Of rounds in which something took so long, and what it is compared with.
    #[must_use]
    pub fn of(rounds: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let ratios = rounds.into_iter().map(|(ours, other)| ours / other);
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        Self(ratios)
    }

    /// The ratio that half of the rounds are below.
    #[must_use]
    pub fn median(&self) -> f64 {
        median(&self.0)
    }

    /// Between which ratios the median of endless rounds is, with 95 % of confidence:
    /// that many of the rounds are below and above by the binomial distribution,
    /// whatever the ratios' own is.
    #[must_use]
    pub fn between(&self) -> (f64, f64) {
        let rounds = self.0.len();
        let below = (rounds as f64 - 1.96 * (rounds as f64).sqrt()) / 2.0;
        let below = (below.max(1.0) as usize).min(rounds) - usize::from(rounds > 0);
        let at = |place: usize| self.0.get(place).copied().unwrap_or(f64::NAN);
        (at(below), at(rounds.wrapping_sub(1 + below)))
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.between();
        write!(f, "{:.2} ({low:.2}-{high:.2})", self.median())
    }
}

/// The one in the middle of values that are in order.
fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_rounds_are_below() {
        let rounds = (1..=21).rev().map(|nth| (f64::from(nth), 10.0));
        // Of 21 values in order, the 6th and the 16th.
        assert_eq!(Ratios::of(rounds).to_string(), "1.10 (0.60-1.60)");
    }

    #[test]
    fn few_rounds_say_little() {
        assert_eq!(Ratios::of([(3.0, 2.0)]).to_string(), "1.50 (1.50-1.50)");
        let two = Ratios::of([(3.0, 2.0), (1.0, 2.0)]);
        assert_eq!(two.to_string(), "1.50 (0.50-1.50)");
        assert_eq!(Ratios::of([]).to_string(), "NaN (NaN-NaN)");
    }
}
