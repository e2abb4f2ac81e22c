//! Merges several rankings into one.

use std::collections::HashMap;

use super::document::Ranked;

/// The rank constant of reciprocal rank fusion, at its usual value. With a higher one, the
/// scores of successive places differ less.
const EVENNESS: f64 = 60.0;

/// One ranking of several, by reciprocal rank fusion: scores of different kinds are not compared,
/// only places are. Each ranking has a weight. At most `limit` tools.
pub fn fuse<'a>(rankings: &[(f64, Vec<Ranked<'a>>)], limit: usize) -> Vec<Ranked<'a>> {
    let mut fused: HashMap<&str, Ranked<'a>> = HashMap::new();
    for (weight, ranking) in rankings {
        for (place, ranked) in ranking.iter().enumerate() {
            let score = weight / (EVENNESS + place as f64 + 1.0);
            let known = fused.entry(ranked.function);
            let known = known.or_insert(Ranked {
                score: 0.0,
                ..*ranked
            });
            known.score += score;
        }
    }
    let mut fused: Vec<Ranked<'a>> = fused.into_values().collect();
    fused.sort_unstable_by(Ranked::order);
    fused.truncate(limit);
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_in_several_rankings_come_first() {
        let ranking = |functions: &[&'static str]| -> Vec<Ranked<'static>> {
            let ranked = |function: &&'static str| Ranked {
                function,
                server: "s",
                score: 1.0,
            };
            functions.iter().map(ranked).collect()
        };
        let check = |rankings: &[&[&'static str]], expected: &[&str]| {
            let rankings: Vec<_> = rankings
                .iter()
                .map(|functions| (1.0, ranking(functions)))
                .collect();
            let fused = fuse(&rankings, 3);
            let fused: Vec<&str> = fused.iter().map(|ranked| ranked.function).collect();
            assert_eq!(fused, expected);
        };
        check(&[&["a", "b", "c"], &["d", "b", "e"]], &["b", "a", "d"]);
        check(&[&["z", "y"], &["y", "z"]], &["y", "z"]);
        check(&[&["a", "b"], &[]], &["a", "b"]);
        check(&[], &[]);
        let weighed = [(1.0, ranking(&["a"])), (2.0, ranking(&["b"]))];
        assert_eq!(fuse(&weighed, 3)[0].function, "b");
    }
}
