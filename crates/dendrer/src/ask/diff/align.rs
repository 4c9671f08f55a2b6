//! Lining up two sequences: the longest common subsequence, in linear space (Myers 1986), with bounded work.
//!
//! Works on numbers that are equal where the items are. The answer depends on the items alone and not on which side is
//! which: two sequences swapped give the same pairs swapped. A newcomer would break that by taking the first of several
//! equally long answers for the sides as they come; [`lcs`] puts them in an order of their own first.

/// How many steps a search may take: some seconds at most. Two sequences that differ in D items take about D² steps.
pub(super) const STEPS_MAX: u64 = 500_000_000;

/// The sequences differ by more than can be lined up within the steps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooFarApart;

/// Returns the pairs of a longest common subsequence, as indices into both sides, in order. Takes what it needs from
/// `steps`.
pub(super) fn lcs(a: &[u32], b: &[u32], steps: &mut u64) -> Result<Vec<(usize, usize)>, TooFarApart> {
    // What the other side does not have is in no pair, and leaving it out is what makes unrelated runs cheap.
    let (of_a, of_b) = (occurring(a, b), occurring(b, a));
    let (left, right): (Vec<u32>, Vec<u32>) =
        (of_a.iter().map(|at| a[*at]).collect(), of_b.iter().map(|at| b[*at]).collect());
    // Of several longest ones the search takes one that depends on the order of the sides, so that is fixed.
    if right < left {
        let pairs = lcs(b, a, steps)?;
        return Ok(pairs.into_iter().map(|(b, a)| (a, b)).collect());
    }
    let (forward, backward) = (Reached::new(&left, &right), Reached::new(&left, &right));
    let mut search = Search { a: &left, b: &right, forward, backward, steps, pairs: Vec::new() };
    search.between((0, left.len()), (0, right.len()))?;
    Ok(search.pairs.into_iter().map(|(x, y)| (of_a[x], of_b[y])).collect())
}

/// Lists the places of the items that the other side has too.
fn occurring(items: &[u32], other: &[u32]) -> Vec<usize> {
    let mut known = other.to_vec();
    known.sort_unstable();
    (0..items.len()).filter(|at| known.binary_search(&items[*at]).is_ok()).collect()
}

struct Search<'s> {
    a: &'s [u32],
    b: &'s [u32],
    /// From the beginning, and from the end.
    forward: Reached,
    backward: Reached,
    steps: &'s mut u64,
    pairs: Vec<(usize, usize)>,
}

/// How far along `a` the ways of one end come on each diagonal.
struct Reached {
    places: Vec<isize>,
    /// How many items each side has between the corners at hand.
    width: isize,
    height: isize,
}

/// No way comes to this diagonal.
const NOWHERE: isize = -1;

impl Reached {
    fn new(a: &[u32], b: &[u32]) -> Reached {
        Reached { places: vec![NOWHERE; a.len() + b.len() + 3], width: 0, height: 0 }
    }

    fn begin(&mut self, width: isize, height: isize) {
        (self.width, self.height) = (width, height);
        self.places[..(width + height + 3) as usize].fill(NOWHERE);
    }

    /// A place for each diagonal between the corners, and one more on each side that nothing reaches.
    fn on(&mut self, diagonal: isize) -> &mut isize {
        &mut self.places[(diagonal + self.height + 1) as usize]
    }

    /// The diagonals that ways with `d` differences can end on.
    fn diagonals(&self, d: isize) -> impl Iterator<Item = isize> + use<> {
        let (height, width) = (self.height, self.width);
        (-d..=d).step_by(2).filter(move |k| (-height..=width).contains(k))
    }

    /// Returns how far the best way with `d` differences comes on a diagonal, before it follows equal items.
    fn furthest(&mut self, d: isize, k: isize) -> isize {
        if d == 0 {
            return 0;
        }
        let (above, left) = (*self.on(k + 1), *self.on(k - 1));
        let down = if above != NOWHERE && above - k <= self.height { above } else { NOWHERE };
        let right = if left != NOWHERE && left < self.width { left + 1 } else { NOWHERE };
        // Where both lead out of the square, it is as far as it was with fewer differences.
        down.max(right).max(*self.on(k))
    }
}

impl Search<'_> {
    /// Finds the pairs between two places on each side.
    fn between(
        &mut self,
        (mut a0, mut a1): (usize, usize),
        (mut b0, mut b1): (usize, usize),
    ) -> Result<(), TooFarApart> {
        while a0 < a1 && b0 < b1 && self.a[a0] == self.b[b0] {
            self.pairs.push((a0, b0));
            (a0, b0) = (a0 + 1, b0 + 1);
        }
        let mut behind = 0;
        while a0 < a1 && b0 < b1 && self.a[a1 - 1] == self.b[b1 - 1] {
            (a1, b1, behind) = (a1 - 1, b1 - 1, behind + 1);
        }
        if a0 < a1 && b0 < b1 {
            let (x, y) = self.middle((a0, a1), (b0, b1))?;
            self.between((a0, x), (b0, y))?;
            self.between((x, a1), (y, b1))?;
        }
        self.pairs.extend((0..behind).map(|n| (a1 + n, b1 + n)));
        Ok(())
    }

    /// Takes note of work done. Each way costs one step, and one for each item that it follows.
    fn spend(&mut self, steps: isize) -> Result<(), TooFarApart> {
        *self.steps = self.steps.checked_sub(steps as u64).ok_or(TooFarApart)?;
        Ok(())
    }

    /// Finds a place that a shortest way from one corner to the other passes: both ends walk towards each other, one
    /// more difference at a time, until they meet on a diagonal. Neither the first nor the last items are equal here,
    /// so at least two differences lie ahead and the place is neither corner.
    fn middle(
        &mut self,
        (a0, a1): (usize, usize),
        (b0, b1): (usize, usize),
    ) -> Result<(usize, usize), TooFarApart> {
        let (width, height) = ((a1 - a0) as isize, (b1 - b0) as isize);
        let across = width - height;
        let odd = across % 2 != 0;
        self.forward.begin(width, height);
        self.backward.begin(width, height);
        self.spend(width + height)?;
        for d in 0..=(width + height) {
            for k in self.forward.diagonals(d) {
                let from = self.forward.furthest(d, k);
                if from == NOWHERE {
                    continue;
                }
                let (a, b) = (&self.a[a0..a1], &self.b[b0..b1]);
                let (x, y) = (from as usize, (from - k) as usize);
                let alike = a[x..].iter().zip(&b[y..]).take_while(|(a, b)| a == b).count();
                self.spend(1 + alike as isize)?;
                *self.forward.on(k) = from + alike as isize;
                let other = *self.backward.on(across - k);
                if odd && other != NOWHERE && from + alike as isize + other >= width {
                    return Ok((a0 + x + alike, b0 + y + alike));
                }
            }
            for k in self.backward.diagonals(d) {
                let from = self.backward.furthest(d, k);
                if from == NOWHERE {
                    continue;
                }
                let (x, y) = (from as usize, (from - k) as usize);
                let (a, b) = (&self.a[a0..a1 - x], &self.b[b0..b1 - y]);
                let alike = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
                self.spend(1 + alike as isize)?;
                *self.backward.on(k) = from + alike as isize;
                let other = *self.forward.on(across - k);
                if !odd && other != NOWHERE && from + alike as isize + other >= width {
                    return Ok((a1 - x - alike, b1 - y - alike));
                }
            }
        }
        unreachable!("two ways that may take every item each have met")
    }
}

#[cfg(test)]
mod tests {
    use dendrer_testkit::Dice;

    use super::*;

    /// The length of a longest common subsequence, from the table of all prefixes.
    fn length(a: &[u32], b: &[u32]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut before = 0;
            for (at, y) in b.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if x == y { before + 1 } else { above.max(row[at]) };
                before = above;
            }
        }
        row[b.len()]
    }

    #[test]
    fn the_pairs_are_a_longest_common_subsequence_and_swap_with_the_sides() {
        let mut dice = Dice(1);
        for round in 0..20_000 {
            let letters = 1 + dice.below(6);
            let longest = 1 + round % 24;
            let mut word =
                || -> Vec<u32> { (0..dice.below(longest)).map(|_| dice.below(letters) as u32).collect() };
            let (a, b) = (word(), word());
            let pairs = lcs(&a, &b, &mut STEPS_MAX.clone()).unwrap();
            assert_eq!(pairs.len(), length(&a, &b), "{a:?} {b:?}");
            assert!(pairs.iter().all(|(x, y)| a[*x] == b[*y]), "{a:?} {b:?}");
            assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1), "{a:?} {b:?}");
            let swapped = lcs(&b, &a, &mut STEPS_MAX.clone()).unwrap();
            assert_eq!(swapped, pairs.iter().map(|(x, y)| (*y, *x)).collect::<Vec<_>>(), "{a:?} {b:?}");
        }
    }

    #[test]
    fn long_sequences_with_few_differences_take_few_steps_and_work_is_bounded() {
        let a: Vec<u32> = (0..200_000).collect();
        let mut b = a.clone();
        for at in [10, 50_000, 120_000, 199_990] {
            b[at] = 1_000_000;
            b.insert(at / 2, 2_000_000);
        }
        let mut steps = 10_000_000;
        assert_eq!(lcs(&a, &b, &mut steps).unwrap().len(), 199_996);
        // Nothing in common is as good as nothing to do.
        let other: Vec<u32> = (500_000..700_000).collect();
        assert_eq!(lcs(&a, &other, &mut 0), Ok(Vec::new()));
        let mut dice = Dice(2);
        let mut noise = || -> Vec<u32> { (0..50_000).map(|_| dice.below(50) as u32).collect() };
        assert_eq!(lcs(&noise(), &noise(), &mut 1_000_000), Err(TooFarApart));
    }
}
