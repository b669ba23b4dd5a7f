//! The words of `--info` and `--debug`, and what each verbosity adds.
//!
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

/// Words of `--info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the word itself
pub enum Info {
    Backup,
    Copy,
    Del,
    Flist,
    Misc,
    Mount,
    Name,
    Nonreg,
    Progress,
    Remove,
    Skip,
    Stats,
    Symsafe,
}

/// Words of `--debug`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the word itself
pub enum Debug {
    Acl,
    Backup,
    Bind,
    Chdir,
    Connect,
    Cmd,
    Del,
    Deltasum,
    Dup,
    Exit,
    Filter,
    Flist,
    Fuzzy,
    Genr,
    Hash,
    Hlink,
    Iconv,
    Io,
    Nstr,
    Own,
    Proto,
    Recv,
    Send,
    Time,
}

/// A word with its spelling and its highest level.
type Word<T> = (T, &'static str, u8);

const INFO_WORDS: [Word<Info>; 13] = [
    (Info::Backup, "BACKUP", 1),
    (Info::Copy, "COPY", 1),
    (Info::Del, "DEL", 1),
    (Info::Flist, "FLIST", 2),
    (Info::Misc, "MISC", 2),
    (Info::Mount, "MOUNT", 1),
    (Info::Name, "NAME", 2),
    (Info::Nonreg, "NONREG", 1),
    (Info::Progress, "PROGRESS", 2),
    (Info::Remove, "REMOVE", 1),
    (Info::Skip, "SKIP", 2),
    (Info::Stats, "STATS", 3),
    (Info::Symsafe, "SYMSAFE", 1),
];

const DEBUG_WORDS: [Word<Debug>; 24] = [
    (Debug::Acl, "ACL", 1),
    (Debug::Backup, "BACKUP", 2),
    (Debug::Bind, "BIND", 1),
    (Debug::Chdir, "CHDIR", 1),
    (Debug::Connect, "CONNECT", 2),
    (Debug::Cmd, "CMD", 2),
    (Debug::Del, "DEL", 3),
    (Debug::Deltasum, "DELTASUM", 4),
    (Debug::Dup, "DUP", 1),
    (Debug::Exit, "EXIT", 3),
    (Debug::Filter, "FILTER", 3),
    (Debug::Flist, "FLIST", 4),
    (Debug::Fuzzy, "FUZZY", 2),
    (Debug::Genr, "GENR", 1),
    (Debug::Hash, "HASH", 1),
    (Debug::Hlink, "HLINK", 3),
    (Debug::Iconv, "ICONV", 2),
    (Debug::Io, "IO", 4),
    (Debug::Nstr, "NSTR", 2),
    (Debug::Own, "OWN", 2),
    (Debug::Proto, "PROTO", 1),
    (Debug::Recv, "RECV", 1),
    (Debug::Send, "SEND", 1),
    (Debug::Time, "TIME", 2),
];

/// What each `-v` adds, by verbosity 0 to 2, later levels add no info words.
pub(crate) const INFO_BY_VERBOSITY: [&str; 3] =
    ["NONREG", "COPY,DEL,FLIST,MISC,NAME,STATS,SYMSAFE", "BACKUP,MISC2,MOUNT,NAME2,REMOVE,SKIP"];

/// The same for `--debug`, by verbosity 0 to 5.
pub(crate) const DEBUG_BY_VERBOSITY: [&str; 6] = [
    "",
    "",
    "BIND,CONNECT,CMD,DEL,DELTASUM,DUP,FILTER,FLIST,ICONV",
    "ACL,BACKUP,CONNECT2,DEL2,DELTASUM2,EXIT,FILTER2,FLIST2,FUZZY,GENR,OWN,RECV,SEND,TIME",
    "CMD2,DEL3,DELTASUM3,EXIT2,FLIST3,ICONV2,OWN2,PROTO,TIME2",
    "CHDIR,DELTASUM4,FLIST4,FUZZY2,HASH,HLINK",
];

/// The level of every word of one option: what verbosity implies, overridden by what was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels<const N: usize> {
    implied: [u8; N],
    typed: [Option<u8>; N],
}

/// Levels of `--info`.
pub type InfoLevels = Levels<13>;
/// Levels of `--debug`.
pub type DebugLevels = Levels<24>;

impl<const N: usize> Default for Levels<N> {
    fn default() -> Self {
        Levels { implied: [0; N], typed: [None; N] }
    }
}

impl<const N: usize> Levels<N> {
    fn level(&self, index: usize) -> u8 {
        self.typed[index].unwrap_or(self.implied[index])
    }

    /// Lowers every level to that of `most`.
    pub fn limit(&mut self, most: &Levels<N>) {
        for index in 0..N {
            let most = most.level(index);
            self.implied[index] = self.implied[index].min(most);
            self.typed[index] = self.typed[index].map(|level| level.min(most));
        }
    }

    /// Applies a list of words; returns the first unknown one.
    fn apply<T>(&mut self, list: &str, words: &[Word<T>; N], typed: bool) -> Result<(), String> {
        for item in list.split(',').filter(|item| !item.is_empty()) {
            let name = item.trim_end_matches(|c: char| c.is_ascii_digit());
            let digits = &item[name.len()..];
            let level = if digits.is_empty() { 1 } else { digits.parse::<u8>().unwrap_or(4).min(4) };
            let all = name.eq_ignore_ascii_case("ALL");
            let none = name.eq_ignore_ascii_case("NONE");
            let mut found = all || none;
            for (index, (_, word, max)) in words.iter().enumerate() {
                if all || none || name.eq_ignore_ascii_case(word) {
                    found = true;
                    let level = if none { 0 } else { level.min(*max) };
                    if typed {
                        self.typed[index] = Some(level);
                    } else {
                        self.implied[index] = self.implied[index].max(level);
                    }
                }
            }
            if !found {
                return Err(item.to_owned());
            }
        }
        Ok(())
    }
}

impl InfoLevels {
    /// Returns the level of a word.
    pub fn of(&self, word: Info) -> u8 {
        self.level(word as usize)
    }

    /// Applies the value of one `--info`; returns the first unknown word.
    pub fn set(&mut self, list: &str) -> Result<(), String> {
        self.apply(list, &INFO_WORDS, true)
    }

    /// Adds what `-v` repeated `verbosity` times implies.
    pub fn imply_verbosity(&mut self, verbosity: u32) {
        for list in INFO_BY_VERBOSITY.iter().take(verbosity as usize + 1) {
            self.imply(list);
        }
    }

    /// Adds words that another option implies, such as `STATS2` for `--stats`.
    pub fn imply(&mut self, list: &'static str) {
        self.apply(list, &INFO_WORDS, false).expect("implied words exist");
    }

    /// Returns the words that were typed, in table order, with their levels.
    pub fn typed(&self) -> impl Iterator<Item = (Info, &'static str, u8)> + '_ {
        INFO_WORDS
            .iter()
            .enumerate()
            .filter_map(|(i, (word, name, _))| self.typed[i].map(|level| (*word, *name, level)))
    }
}

impl DebugLevels {
    /// Whether a word was typed, rather than implied by verbosity.
    pub fn is_typed(&self, word: Debug) -> bool {
        self.typed[word as usize].is_some()
    }

    /// Returns the level of a word.
    pub fn of(&self, word: Debug) -> u8 {
        self.level(word as usize)
    }

    /// Applies the value of one `--debug`; returns the first unknown word.
    pub fn set(&mut self, list: &str) -> Result<(), String> {
        self.apply(list, &DEBUG_WORDS, true)
    }

    /// Adds what `-v` repeated `verbosity` times implies.
    pub fn imply_verbosity(&mut self, verbosity: u32) {
        for list in DEBUG_BY_VERBOSITY.iter().take(verbosity as usize + 1) {
            self.apply(list, &DEBUG_WORDS, false).expect("implied words exist");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_at_their_own_index() {
        assert!(INFO_WORDS.iter().enumerate().all(|(i, (word, ..))| *word as usize == i));
        assert!(DEBUG_WORDS.iter().enumerate().all(|(i, (word, ..))| *word as usize == i));
    }

    #[test]
    fn typed_words_win_over_verbosity_in_either_order() {
        let mut levels = InfoLevels::default();
        levels.set("name0,stats2").unwrap();
        levels.imply_verbosity(1);
        assert_eq!(levels.of(Info::Name), 0);
        assert_eq!(levels.of(Info::Stats), 2);
        assert_eq!(levels.of(Info::Del), 1);
        assert_eq!(levels.of(Info::Skip), 0);
        assert_eq!(levels.set("name,bogus3"), Err("bogus3".to_owned()));
    }
}
