//! Which filter arguments are looked at with: as long as the target and one other server
//! have said anything, the one of what the other said, which the processor has nearer at
//! hand than one of everything.

use std::collections::TryReserveError;

use super::grams::{Filter, GRAM, Key};
use super::index::{MAX_BYTES, pieces};

/// How many servers have a filter each. Every one more would be asked besides.
const MAX_APART: usize = 2;

/// The server that said something, and the strings of one result of its, each of them
/// with its end.
pub(super) type Said<'a> = (&'a str, &'a [u8]);

/// Filters of what servers said.
#[derive(Debug, Clone, Default)]
pub(super) struct Filters {
    /// By server; the only one if it is everybody's.
    filters: Vec<Words>,
}

/// Somebody's words.
#[derive(Debug, Clone)]
struct Words {
    whose: Whose,
    filter: Filter,
    /// How many bytes of them are in it.
    bytes: usize,
}

/// Whose words are in a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    Server(String),
    Everybody,
}

/// One of the filters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(usize);

impl Place {
    /// One with nothing in it.
    pub(super) const NOTHING: Self = Self(usize::MAX);
}

static NOTHING: Filter = Filter::empty();

impl Filters {
    /// Which filter is that of all that others than this server said, until the next
    /// [`Filters::join`] or [`Filters::fill`]. `None` if there is none for all of them together.
    pub(super) fn others(&self, server: &str) -> Option<Place> {
        let is_other = |whose: &Whose| *whose == Whose::Everybody || !whose.includes(server);
        let mut others = self.filters.iter().map(|words| is_other(&words.whose));
        let first = others.position(|is_other| is_other);
        match others.any(|is_other| is_other) {
            true => None,
            false => Some(first.map_or(Place::NOTHING, Place)),
        }
    }

    /// Makes one filter of `said`, all that was said, in place of those there are.
    ///
    /// # Errors
    ///
    /// Where there is no memory.
    pub(super) fn join(&mut self, key: Key, said: &[Said<'_>]) -> Result<Place, TryReserveError> {
        self.filters = vec![Words::of(Whose::Everybody)];
        self.fill(key, said, 0)?;
        Ok(Place(0))
    }

    /// Which filter has all that this server said, and maybe what others did, until the next
    /// [`Filters::join`] or [`Filters::fill`].
    pub(super) fn own(&self, server: &str) -> Place {
        let mut filters = self.filters.iter();
        let own = filters.position(|words| words.whose.includes(server));
        own.map_or(Place::NOTHING, Place)
    }

    /// The filter itself.
    #[inline]
    pub(super) fn get(&self, place: Place) -> &Filter {
        let filter = self.filters.get(place.0);
        filter.map_or(&NOTHING, |words| &words.filter)
    }

    /// Whether what these servers said besides, of so many bytes, has room in the filters that
    /// there are, or in new ones.
    pub(super) fn have_room(&self, said: &[(&str, usize)]) -> bool {
        let has_room = |words: &Words| {
            let said = said
                .iter()
                .filter(|(server, _)| words.whose.includes(server));
            let bytes: usize = said.map(|(_, bytes)| bytes).sum();
            words.filter.has_room(words.bytes + bytes)
        };
        let mut said = said.iter();
        self.filters.iter().all(has_room)
            && (self.filters.len() < MAX_APART || said.all(|(server, _)| self.has_one(server)))
    }

    fn has_one(&self, server: &str) -> bool {
        let mut filters = self.filters.iter();
        filters.any(|words| words.whose.includes(server))
    }

    /// Takes in what was said after the first results of `said`, which are `known`
    /// already. All of `said` is for filters that have to be made anew.
    ///
    /// # Errors
    ///
    /// Where there is no memory: then not everything is in.
    pub(super) fn fill(
        &mut self,
        key: Key,
        said: &[Said<'_>],
        known: usize,
    ) -> Result<(), TryReserveError> {
        let new = said.get(known..).unwrap_or_default();
        for (server, text) in new {
            let has_one = self.has_one(server);
            if !text.is_empty() && !has_one {
                let whose = Whose::Server((*server).to_owned());
                self.filters.push(Words::of(whose));
            }
        }
        if self.filters.len() > MAX_APART {
            self.filters = vec![Words::of(Whose::Everybody)];
        }
        for Words {
            whose,
            filter,
            bytes,
        } in &mut self.filters
        {
            let texts = said.iter().filter(|(server, _)| whose.includes(server));
            *bytes = texts.map(|(_, text)| text.len()).sum();
            let mut added = new;
            if !filter.has_room(*bytes) {
                // Once for what there is, and four times as much when that is not
                // enough: making it anew costs a third more than having known.
                let grown = (filter.room() * 4).min(MAX_BYTES);
                *filter = Filter::with_room(grown.max(*bytes))?;
                added = said;
            }
            for (_, text) in added.iter().filter(|(server, _)| whose.includes(server)) {
                insert(filter, key, text);
            }
        }
        Ok(())
    }
}

impl Words {
    /// None of them yet.
    fn of(whose: Whose) -> Self {
        Self {
            whose,
            filter: Filter::empty(),
            bytes: 0,
        }
    }
}

impl Whose {
    fn includes(&self, server: &str) -> bool {
        match self {
            Self::Server(name) => name == server,
            Self::Everybody => true,
        }
    }
}

fn insert(filter: &mut Filter, key: Key, text: &[u8]) {
    for piece in pieces(text) {
        for window in piece.windows(GRAM).filter_map(<[u8]>::first_chunk) {
            filter.insert(key.window(window));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::normal::END;
    use super::*;

    /// Which servers' words are in the filter for what goes to this one.
    fn known_to(filters: &mut Filters, key: Key, to: &str, said: &[Said<'_>]) -> Vec<&'static str> {
        let others = others(filters, key, to, said);
        let filter = filters.get(others);
        let is_known = |said: &&str| filter.has(key.gram(said.as_bytes(), 0).expect("a piece"));
        [ALICE, BOB, CAROL].into_iter().filter(is_known).collect()
    }

    fn others(filters: &mut Filters, key: Key, to: &str, said: &[Said<'_>]) -> Place {
        let known = filters.others(to);
        known.unwrap_or_else(|| filters.join(key, said).expect("memory"))
    }

    const ALICE: &str = "alice's own words";
    const BOB: &str = "what bob has said";
    const CAROL: &str = "carol says another thing";

    fn ended(text: &str) -> Vec<u8> {
        [text.as_bytes(), &[END]].concat()
    }

    #[test]
    fn what_two_servers_said_is_apart_and_of_more_together() {
        let key = Key::new();
        let texts = [ALICE, BOB, "", CAROL].map(ended);
        let [alice, bob, nothing, carol] = texts.each_ref().map(Vec::as_slice);
        let mut filters = Filters::default();
        assert_eq!(known_to(&mut filters, key, "bob", &[]), [""; 0]);

        let mut said = vec![("alice", alice)];
        filters.fill(key, &said, 0).expect("memory");
        assert_eq!(known_to(&mut filters, key, "bob", &said), [ALICE]);
        assert_eq!(known_to(&mut filters, key, "alice", &said), [""; 0]);

        // One that said nothing needs no filter.
        said.extend([("bob", bob), ("dave", &[][..]), ("bob", nothing)]);
        filters.fill(key, &said, 1).expect("memory");
        assert_eq!(known_to(&mut filters, key, "bob", &said), [ALICE]);
        assert_eq!(known_to(&mut filters, key, "alice", &said), [BOB]);

        said.push(("carol", carol));
        filters.fill(key, &said, 4).expect("memory");
        assert_eq!(
            known_to(&mut filters, key, "alice", &said),
            [ALICE, BOB, CAROL]
        );
        assert_eq!(
            known_to(&mut filters, key, "dave", &said),
            [ALICE, BOB, CAROL]
        );
    }

    #[test]
    fn what_two_servers_said_is_together_for_a_third_one() {
        let key = Key::new();
        let texts = [ALICE, BOB].map(ended);
        let [alice, bob] = texts.each_ref().map(Vec::as_slice);
        let said = [("alice", alice), ("bob", bob)];
        let mut filters = Filters::default();
        filters.fill(key, &said, 0).expect("memory");
        assert_eq!(known_to(&mut filters, key, "bob", &said), [ALICE]);
        assert_eq!(known_to(&mut filters, key, "carol", &said), [ALICE, BOB]);
        assert_eq!(known_to(&mut filters, key, "bob", &said), [ALICE, BOB]);
    }

    #[test]
    fn what_a_server_said_is_in_its_own_filter_or_in_everybodys() {
        let key = Key::new();
        let texts = [ALICE, BOB, CAROL].map(ended);
        let [alice, bob, carol] = texts.each_ref().map(Vec::as_slice);
        let said = [("alice", alice), ("bob", bob), ("carol", carol)];
        let own = |filters: &Filters, server: &str| {
            let filter = filters.get(filters.own(server));
            [ALICE, BOB].map(|said| filter.has(key.gram(said.as_bytes(), 0).expect("a piece")))
        };
        let mut filters = Filters::default();
        assert_eq!(own(&filters, "alice"), [false, false]);
        filters.fill(key, &said[..2], 0).expect("memory");
        assert_eq!(own(&filters, "alice"), [true, false]);
        assert_eq!(own(&filters, "bob"), [false, true]);
        assert_eq!(own(&filters, "carol"), [false, false]);
        filters.fill(key, &said, 2).expect("memory");
        assert_eq!(own(&filters, "alice"), [true, true]);
    }

    #[test]
    fn what_has_room_is_told_by_server() {
        let key = Key::new();
        let text = |bytes: usize| [vec![b'x'; bytes - 1], vec![END]].concat();
        let (full, short) = (text(1 << 14), text(20));
        let mut filters = Filters::default();
        assert!(filters.have_room(&[("a", 1 << 20)]));
        filters.fill(key, &[("a", &full)], 0).expect("memory");
        assert!(filters.have_room(&[("a", 0), ("b", 1 << 20)]));
        // By eights.
        assert!(filters.have_room(&[("a", 7)]));
        assert!(!filters.have_room(&[("a", 4), ("a", 4)]));
        let said: [Said<'_>; 2] = [("a", &full), ("b", &short)];
        filters.fill(key, &said, 1).expect("memory");
        assert!(filters.have_room(&[("b", 1 << 12)]));
        assert!(!filters.have_room(&[("b", 1 << 14)]));
        // All would be made anew, with everybody's words.
        assert!(!filters.have_room(&[("c", 1)]));
    }

    #[test]
    fn a_filter_is_not_made_larger_for_what_others_say() {
        let key = Key::new();
        // With its end, one byte more than a filter of 2,048 words is for.
        let (long, short) = (vec![b'x'; 1 << 14], vec![b'y'; 20]);
        let [long, short] = [long, short].map(|text| [text, vec![END]].concat());
        let said: [Said<'_>; 2] = [("a", &long), ("b", &short)];
        let mut filters = Filters::default();
        let mut room = |said: &[Said<'_>], known| {
            filters.fill(key, said, known).expect("memory");
            filters.get(filters.own("a")).room()
        };
        let before = room(&said[..1], 0);
        assert_eq!(room(&said, 1), before);
    }

    #[test]
    fn a_filter_that_is_made_anew_has_what_was_in_it() {
        let key = Key::new();
        let text = |server: &str| {
            let words = (0..4_000).map(|nth| format!("{server} and the word number {nth};"));
            ended(&words.collect::<String>())
        };
        let (first, second, other) = (text("first"), text("second"), text("other"));
        let said: [Said<'_>; 3] = [("a", &first), ("b", &other), ("a", &second)];
        let mut filters = Filters::default();
        filters.fill(key, &said[..2], 0).expect("memory");
        let for_b = others(&mut filters, key, "b", &said);
        let room = filters.get(for_b).room();
        filters.fill(key, &said, 2).expect("memory");
        let for_b = others(&mut filters, key, "b", &said);
        let filter = filters.get(for_b);
        assert!(filter.room() > room);
        for text in [&first, &second] {
            let mut grams = (0..text.len()).filter_map(|at| key.gram(&text[..text.len() - 1], at));
            assert!(grams.all(|gram| filter.has(gram)));
        }
    }
}
