//! Shares of a batch between workspaces, and the position from which to look for them. Pure.
//!
//! Fairness is virtual time: each admitted item moves its workspace's clock by 1/weight, and the lowest clock is served
//! first. Within one claim the batch is shared in the same way, so that one claim is fair by itself.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// What one workspace brings to the sharing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Slots that are free.
    pub free: u32,
    /// The plan's weight, positive.
    pub weight: f64,
    /// Where its clock stands.
    pub virtual_time: f64,
}

/// The next item of a workspace, by the time at which it would be through: the lowest goes first.
#[derive(PartialEq)]
struct Turn {
    finish: f64,
    index: usize,
}

impl Eq for Turn {}

impl Ord for Turn {
    fn cmp(&self, other: &Self) -> Ordering {
        // A heap gives the greatest first, so the order is turned round.
        other
            .finish
            .total_cmp(&self.finish)
            .then_with(|| other.index.cmp(&self.index))
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Shares `batch` between workspaces as if their items were taken one by one, each time from the one whose clock would
/// be lowest afterwards; never more than is free.
#[must_use]
pub fn share(batch: u32, demands: &[Demand]) -> Vec<u32> {
    let mut shares = vec![0_u32; demands.len()];
    let turn = |index: usize, nth: u32| Turn {
        finish: demands[index].virtual_time + f64::from(nth) / demands[index].weight,
        index,
    };
    let mut turns: BinaryHeap<Turn> = (0..demands.len())
        .filter(|&index| demands[index].free > 0)
        .map(|index| turn(index, 1))
        .collect();
    for _ in 0..batch {
        let Some(Turn { index, .. }) = turns.pop() else {
            break;
        };
        shares[index] += 1;
        if shares[index] < demands[index].free {
            turns.push(turn(index, shares[index] + 1));
        }
    }
    shares
}

/// A remembered position in an ordered index, before which there is nothing alive to find.
///
/// When something keeps vacuum from its work, dead entries pile up before the position, and a look from the very
/// beginning has to walk over them. So looks start at the position, and a full look is taken only as often as costs a
/// tenth of the time: with a healthy index that is nearly always.
#[derive(Debug)]
pub(crate) struct LowWater {
    position: f64,
    clock: f64,
    full_look_at: Instant,
}

impl LowWater {
    pub(crate) fn new() -> Self {
        Self {
            position: 0.0,
            clock: 0.0,
            full_look_at: Instant::now(),
        }
    }

    /// Where to start looking now.
    pub(crate) fn from(&self) -> f64 {
        if self.is_full_look_due() {
            f64::NEG_INFINITY
        } else {
            self.position
        }
    }

    /// How far virtual time has come: whoever enters anew enters here, not before.
    pub(crate) fn floor(&self) -> f64 {
        self.clock
    }

    /// A claim has served workspaces; the one that is furthest behind now stands at `behind`.
    pub(crate) fn served(&mut self, behind: f64) {
        self.clock = self.clock.max(behind);
    }

    fn is_full_look_due(&self) -> bool {
        Instant::now() >= self.full_look_at
    }

    /// A look that started `from` took this long; the first thing it found lies at `first`.
    pub(crate) fn looked(&mut self, from: f64, took: Duration, first: Option<f64>) {
        if let Some(first) = first {
            self.position = first;
        }
        if from == f64::NEG_INFINITY {
            self.full_look_at = Instant::now() + (took * 10).min(Duration::from_secs(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(of: &[(u32, f64)]) -> Vec<Demand> {
        of.iter()
            .map(|&(free, weight)| Demand {
                free,
                weight,
                virtual_time: 0.0,
            })
            .collect()
    }

    #[test]
    fn nobody_gets_more_than_is_free_and_nothing_is_left_that_somebody_could_use() {
        assert_eq!(share(100, &demands(&[(3, 1.0), (5, 1.0)])), [3, 5]);
        assert_eq!(share(10, &demands(&[(3, 1.0), (500, 1.0)])), [3, 7]);
    }

    #[test]
    fn the_batch_is_shared_by_weight() {
        assert_eq!(
            share(70, &demands(&[(500, 1.0), (500, 2.0), (500, 4.0)])),
            [10, 20, 40]
        );
    }

    #[test]
    fn whoever_is_behind_catches_up_first() {
        let behind = Demand {
            free: 10,
            weight: 1.0,
            virtual_time: 5.0,
        };
        let ahead = Demand {
            virtual_time: 8.0,
            ..behind
        };
        assert_eq!(share(3, &[ahead, behind]), [0, 3]);
        assert_eq!(share(7, &[ahead, behind]), [2, 5]);
    }

    #[test]
    fn a_full_workspace_gets_nothing() {
        assert_eq!(share(10, &demands(&[(0, 1.0), (2, 1.0)])), [0, 2]);
        assert_eq!(share(10, &[]), Vec::<u32>::new());
    }

    #[test]
    fn shares_never_exceed_the_batch_whatever_the_weights() {
        for batch in 0..50 {
            for seed in 1..50_u32 {
                let demands: Vec<Demand> = (0..seed % 13)
                    .map(|index| Demand {
                        free: (index * seed) % 7,
                        weight: f64::from((index * 31 + seed) % 19) + 0.01,
                        virtual_time: f64::from(index % 3),
                    })
                    .collect();
                let shares = share(batch, &demands);
                let free: u32 = demands.iter().map(|demand| demand.free).sum();
                assert_eq!(
                    shares.iter().sum::<u32>(),
                    batch.min(free),
                    "batch {batch}, seed {seed}"
                );
                assert!(
                    shares
                        .iter()
                        .zip(&demands)
                        .all(|(share, demand)| *share <= demand.free)
                );
            }
        }
    }

    #[test]
    fn an_expensive_full_look_is_taken_seldom_and_a_cheap_one_at_once() {
        let mut cheap = LowWater::new();
        cheap.looked(f64::NEG_INFINITY, Duration::ZERO, Some(7.0));
        assert!(cheap.from().is_infinite());
        let mut expensive = LowWater::new();
        expensive.looked(f64::NEG_INFINITY, Duration::from_secs(1), Some(7.0));
        assert!((expensive.from() - 7.0).abs() < f64::EPSILON);
    }
}
