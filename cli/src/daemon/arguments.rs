//! What a client's words become: options, and paths below the module.
//!
//! Wire: protocol/doc/03-daemon.md#34-argument-block

use bstr::ByteSlice;
use suisei_engine::source::sanitise;
use suisei_protocol::limits::ARGUMENTS_MAX;
use suisei_protocol::session::{ArgumentBlock, Version};

use super::conversation::{Broken, Conversation};
use crate::glob::{self, Names};

/// The words of a client, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words {
    /// Options of the first block.
    pub options: Vec<Vec<u8>>,
    /// Options of the second block, if there was one.
    pub secluded: Option<Vec<Vec<u8>>>,
    /// What stands behind the dot, as sent.
    pub paths: Vec<Vec<u8>>,
}

/// Reads the blocks. `wants_second` tells from the first options whether another block follows.
pub fn read(
    conversation: &mut Conversation<'_>,
    version: Version,
    wants_second: impl Fn(&[Vec<u8>]) -> bool,
) -> Result<Words, Broken> {
    let mut block = ArgumentBlock::of_daemon(version);
    let mut list = Vec::new();
    while let Some(word) = conversation.word(&mut block)? {
        list.push(word);
    }
    let (options, paths) = at_dot(list);
    let options: Vec<Vec<u8>> = options.iter().map(|word| without_backslashes(word)).collect();
    if !wants_second(&options) {
        return Ok(Words { options, secluded: None, paths });
    }
    let mut block = ArgumentBlock::secluded();
    let mut list = Vec::new();
    while let Some(word) = conversation.word(&mut block)? {
        list.push(word);
    }
    if options.len() + list.len() > ARGUMENTS_MAX {
        return Err(Broken::TooMany);
    }
    // The first word stands for the program's name.
    let (secluded, paths) = at_dot(list.split_off(1.min(list.len())));
    Ok(Words { options, secluded: Some(secluded), paths })
}

fn at_dot(mut list: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    match list.iter().position(|word| word == b".") {
        Some(dot) => {
            let paths = list.split_off(dot + 1);
            list.pop();
            (list, paths)
        }
        None => (list, Vec::new()),
    }
}

/// Undoes the escaping for a shell that is not there.
fn without_backslashes(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut bytes = word.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => out.extend(bytes.next()),
            byte => out.push(*byte),
        }
    }
    out
}

impl Words {
    /// Returns what the client asked for, for logs and hooks.
    pub fn request(&self) -> Vec<u8> {
        let mut request = self.paths.join(&b' ');
        request.truncate(1023);
        request
    }

    /// Returns the paths below the module, wildcards expanded among `names`.
    pub fn below(&self, module: &[u8], names: &dyn Names) -> Result<Vec<Vec<u8>>, Broken> {
        let mut found = Vec::new();
        for word in &self.paths {
            let rest = word.strip_prefix(module).unwrap_or(word);
            for part in self.split(rest, module) {
                if part.is_empty() {
                    continue;
                }
                match sanitise(part).as_slice() {
                    b"./" => found.push(b".".to_vec()),
                    path => found.extend(glob::expand_in(names, path)),
                }
            }
            if found.len() > ARGUMENTS_MAX {
                return Err(Broken::TooMany);
            }
        }
        Ok(found)
    }

    /// Splits a word where another path of the module begins; those of a second block are whole.
    fn split<'a>(&self, word: &'a [u8], module: &[u8]) -> Vec<&'a [u8]> {
        if self.secluded.is_some() {
            return vec![word];
        }
        let mark = [b" ", module, b"/"].concat();
        word.split_str(&mark).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Module(&'static [&'static str]);

    impl Names for Module {
        fn members(&self, dir: &[u8]) -> Vec<Vec<u8>> {
            let all = self.0.iter().map(|name| name.as_bytes());
            all.filter_map(|name| Some(name.strip_prefix(dir)?.to_vec()))
                .filter(|name| !name.contains(&b'/'))
                .collect()
        }

        fn exists(&self, path: &[u8]) -> bool {
            self.0.iter().any(|name| name.as_bytes() == path)
        }
    }

    fn below(secluded: bool, paths: &[&str]) -> Vec<String> {
        let words = Words {
            options: Vec::new(),
            secluded: secluded.then(Vec::new),
            paths: paths.iter().map(|path| path.as_bytes().to_vec()).collect(),
        };
        let module = Module(&["A", "Ab", "foo", "src/A"]);
        let found = words.below(b"pub", &module).unwrap();
        found.into_iter().map(|path| String::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn what_a_stock_daemon_was_seen_to_make_of_paths() {
        for (path, expected) in [
            ("pub/A pub/foo", &["A", "foo"][..]),
            ("pub/A[ ]pub/foo", &["A[ ]pub/foo"]),
            ("pub/../src/A", &["src/A"]),
            ("pub/./A", &["./A"]),
            ("pub/", &["."]),
            ("pub", &[]),
            ("pubA", &["A"]),
            ("pub/../../../etc/passwd", &["etc/passwd"]),
            ("/etc/passwd", &["etc/passwd"]),
            ("pub/A*", &["A", "Ab"]),
            ("pub/[x]*", &["[x]*"]),
        ] {
            assert_eq!(below(false, &[path]), expected, "{path}");
        }
        assert_eq!(below(true, &["pub/A pub/foo"]), ["A pub/foo"]);
        assert_eq!(below(true, &["pub/A*"]), ["A", "Ab"]);
    }

    #[test]
    fn escapes_of_options_are_undone() {
        assert_eq!(without_backslashes(b"--x=a\\ b\\\\c\\"), b"--x=a b\\c");
    }
}
