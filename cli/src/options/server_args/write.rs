//! Writing the words, byte for byte as stock does.
//!
//! Wire: protocol/doc/02-session-start.md#211-the-option-words-in-exact-order

use bstr::ByteSlice;
use suisei_protocol::session::{Direction, Version};

use super::escape::{self, Tilde};
use super::info;
use crate::options::iconv;
use crate::options::meaning::{BatchUse, FilesFrom, Protection, Wishes};
use crate::options::typed::{Append, During, Recorded, Remove, Stderr, Typed};

/// What travels to the server before the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteWords {
    /// Words of the command line, `--server` first.
    pub line: Vec<Vec<u8>>,
    /// Words that follow on stdin (`-s`), `rsync` first.
    pub secluded: Option<Vec<Vec<u8>>>,
}

/// What stands between the two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Far {
    /// A remote shell, which expands and splits; the version is not agreed yet.
    Shell,
    /// A daemon, whose greeting agreed on a version; paths are ready to be sent.
    Daemon(Version),
}

/// Writes the words of a server. `direction` is this client's; `paths` are the remote path
/// arguments, without their host.
pub fn write(wishes: &Wishes, direction: Direction, paths: &[Vec<u8>], far: Far) -> RemoteWords {
    let version = match far {
        Far::Shell => wishes.version,
        Far::Daemon(version) => version,
    };
    let push = direction == Direction::Sending;
    let mut writer = Writer { wishes, push, version, words: vec![b"--server".to_vec()] };
    if !writer.push {
        writer.word("--sender");
    }
    let bundle = writer.bundle(direction);
    if bundle.len() > 1 {
        writer.word(&bundle);
    }
    let secluded = wishes.protection == Protection::Secluded;
    if let Some(remote) = iconv::there(&wishes.typed) {
        writer.value("--iconv=", remote);
    }
    let line = secluded.then(|| std::mem::replace(&mut writer.words, vec![b"rsync".to_vec()]));
    writer.reporting();
    writer.limits();
    writer.backups_and_algorithms();
    if writer.push {
        writer.push_changes();
    } else if let Some(list) = &wishes.typed.delta.skip_compress {
        writer.value("--skip-compress=", list);
    }
    writer.either_way();
    if writer.push {
        writer.push_basis();
    }
    writer.rest();
    writer.word(".");
    for path in paths {
        let tilde = tilde(wishes, direction, path);
        writer.words.push(match far {
            Far::Shell => escape::path(path, wishes.protection, tilde),
            Far::Daemon(_) => path.clone(),
        });
    }
    match line {
        Some(line) => {
            // An empty word would end the list.
            let words =
                writer.words.into_iter().map(|word| if word.is_empty() { b".".to_vec() } else { word });
            let words = words.map(|word| match &wishes.conversion {
                Some(conversion) => conversion.charset.message_to_utf8(&word),
                None => word,
            });
            RemoteWords { line, secluded: Some(words.collect()) }
        }
        None => RemoteWords { line: writer.words, secluded: None },
    }
}

fn tilde(wishes: &Wishes, direction: Direction, path: &[u8]) -> Tilde {
    let whole_is_name = !path.contains(&b'/') || (wishes.relative && path.find(b"/./").is_none());
    if direction == Direction::Receiving && !wishes.typed.connect.trust_sender && whole_is_name {
        Tilde::Literal
    } else {
        Tilde::Expand
    }
}

struct Writer<'a> {
    wishes: &'a Wishes,
    push: bool,
    version: Version,
    words: Vec<Vec<u8>>,
}

impl Writer<'_> {
    fn typed(&self) -> &Typed {
        &self.wishes.typed
    }

    fn word(&mut self, word: &str) {
        self.words.push(word.as_bytes().to_vec());
    }

    fn word_if(&mut self, given: bool, word: &str) {
        if given {
            self.word(word);
        }
    }

    fn value(&mut self, option: &str, value: &[u8]) {
        let value = escape::value(value, self.wishes.protection);
        self.words.push([option.as_bytes(), &value].concat());
    }

    fn pair(&mut self, option: &str, value: &[u8]) {
        self.word(option);
        self.value("", value);
    }

    fn bundle(&self, direction: Direction) -> String {
        let (w, t) = (self.wishes, self.typed());
        let (s, p) = (&t.select, &t.preserve);
        let mut letters = String::from("-");
        let mut add = |given: bool, letter: &str| {
            if given {
                letters.push_str(letter);
            }
        };
        add(w.protection == Protection::Secluded, "s");
        add(true, &"v".repeat(t.output.verbose.min(9) as usize));
        add(t.output.quiet > 0 && w.stderr() != Stderr::Client, "q");
        add(w.backup, "b");
        add(s.update, "u");
        add(t.change.dry_run, "n");
        add(p.links, "l");
        let typed_dirs = s.dirs == Some(true) && !w.recursive;
        add(typed_dirs || (w.dirs && (w.listing || (w.deleting && self.push))), "d");
        if self.push {
            let fuzzy_in_all = t.delta.fuzzy > 1 && !t.change.basis_dirs.is_empty();
            add(s.keep_dirlinks, "K");
            add(s.prune_empty_dirs, "m");
            add(p.omit_dir_times && !w.backs_up_in_place(), "O");
            add(p.omit_link_times, "J");
            add(t.delta.fuzzy > 0, if fuzzy_in_all { "yy" } else { "y" });
        } else {
            add(s.copy_links, "L");
            add(s.copy_dirlinks, "k");
        }
        add(w.whole_file == Some(true), "W");
        add(true, &"H".repeat(p.hard_links.into()));
        add(p.owner, "o");
        add(p.group, "g");
        add(p.devices, "D");
        add(p.times, "t");
        add(true, &"U".repeat(p.atimes.into()));
        add(p.crtimes, "N");
        add(p.perms, "p");
        add(!p.perms && p.executability && self.push, "E");
        add(p.acls, "A");
        add(true, &"X".repeat(p.xattrs.into()));
        add(w.recursive, "r");
        add(s.checksum, "c");
        add(s.cvs_exclude, "C");
        add(s.ignore_times, "I");
        add(w.relative, "R");
        add(true, &"x".repeat(s.one_file_system.into()));
        add(t.change.sparse, "S");
        let negotiates = w.compress && w.compressor.is_none() && t.delta.compress;
        add(negotiates || w.compressor.as_deref() == Some("zlib"), "z");
        if self.version.has_compat_flags() {
            add(true, "e");
            add(true, &w.capabilities(direction).to_text());
        }
        letters
    }

    fn reporting(&mut self) {
        let (w, t) = (self.wishes, &self.wishes.typed);
        self.word_if(t.select.list_only, "--list-only");
        self.word_if(self.push && w.deleting && w.dirs, "--no-r");
        if let Some(level) = t.delta.compress_level {
            self.word(&format!("--compress-level={level}"));
        }
        match (t.preserve.devices, t.preserve.specials) {
            (true, false) => self.word("--no-specials"),
            (false, true) => self.word("--specials"),
            _ => {}
        }
        if self.push && w.shows_items() {
            let format = crate::output::format::Format::parse(w.format.as_deref().unwrap_or(b"%n%L"));
            let twice = t.output.itemize > 1 && t.output.out_format.is_none();
            match () {
                () if format.has(b"i") => {
                    self.word(if twice { "--log-format=%i%I" } else { "--log-format=%i" })
                }
                () if format.has(b"o") => self.word("--log-format=%o"),
                () => self.word_if(t.output.verbose == 0, "--log-format=X"),
            }
        }
        self.word_if(w.typed.output.stderr == Some(Stderr::All), "--msgs2stderr");
        self.word_if(w.typed.output.stderr == Some(Stderr::Client), "--no-msgs2stderr");
    }

    fn limits(&mut self) {
        let d = &self.wishes.typed.delta;
        for (option, number) in
            [("-B", u64::from(d.block_size)), ("--timeout=", d.timeout as u64), ("--bwlimit=", d.bwlimit)]
        {
            self.word_if(number > 0, &format!("{option}{number}"));
        }
    }

    fn backups_and_algorithms(&mut self) {
        let (w, t) = (self.wishes, &self.wishes.typed);
        if let Some(dir) = &w.backup_dir {
            self.pair("--backup-dir", dir);
        }
        let default: &[u8] = if w.backup_dir.is_some() { b"" } else { b"~" };
        if w.suffix != default {
            self.value("--suffix=", &w.suffix);
        }
        if let Some(names) =
            t.delta.checksum_choice.as_deref().filter(|names| !names.eq_ignore_ascii_case(b"auto"))
        {
            self.value("--checksum-choice=", names);
        }
        let choice = t.delta.compress_choice.as_deref().filter(|name| !name.eq_ignore_ascii_case(b"auto"));
        match (w.compressor.as_deref(), choice) {
            (Some("zlibx"), _) => self.word("--new-compress"),
            (Some("zlib"), _) => self.word("--old-compress"),
            (_, Some(name)) => self.value("--compress-choice=", name),
            (_, None) => {}
        }
    }

    fn push_changes(&mut self) {
        let t = &self.wishes.typed;
        match t.change.max_delete {
            Some(0) => self.word("--max-delete=-1"),
            Some(n) => self.word(&format!("--max-delete={n}")),
            None => {}
        }
        if let Some(n) = t.select.min_size {
            self.word(&format!("--min-size={n}"));
        }
        if let Some(n) = t.select.max_size {
            self.word(&format!("--max-size={n}"));
        }
        let c = &t.change;
        match () {
            () if c.delete_before => self.word("--delete-before"),
            () if c.delete_during == Some(During::Delay) => self.word("--delete-delay"),
            () if c.delete_during == Some(During::Plain) => self.word("--delete-during"),
            () if c.delete_after => self.word("--delete-after"),
            () => self.word_if(c.delete && !c.delete_excluded, "--delete"),
        }
        self.word_if(c.delete_excluded, "--delete-excluded");
        self.word_if(c.force, "--force");
        let records_only = matches!(self.wishes.batch, BatchUse::Write(_, Recorded::Only));
        self.word_if(records_only, "--only-write-batch=X");
        self.word_if(t.preserve.super_user == Some(true), "--super");
        self.word_if(t.select.size_only, "--size-only");
        self.word_if(t.output.stats, "--stats");
    }

    fn either_way(&mut self) {
        let (w, t) = (self.wishes, &self.wishes.typed);
        if let Some(limit) = &t.delta.max_alloc {
            self.value("--max-alloc=", limit);
        }
        if t.select.delete_missing_args {
            self.word("--delete-missing-args");
        } else {
            self.word_if(!self.push && t.select.ignore_missing_args, "--ignore-missing-args");
        }
        if let Some(window) = t.select.modify_window.filter(|_| self.push) {
            self.word(&if window < 0 { format!("-@{window}") } else { format!("--modify-window={window}") });
        }
        self.word_if(t.delta.checksum_seed != 0, &format!("--checksum-seed={}", t.delta.checksum_seed));
        if self.push {
            match &w.partial_dir {
                Some(dir) if !w.partial_dir_is_default => self.pair("--partial-dir", dir),
                _ => self.word_if(w.partial && !t.change.delay_updates, "--partial"),
            }
            self.word_if(t.change.delay_updates, "--delay-updates");
        }
        self.word_if(t.change.ignore_errors, "--ignore-errors");
        self.word_if(t.select.copy_unsafe_links, "--copy-unsafe-links");
        self.word_if(t.select.safe_links, "--safe-links");
        self.word_if(t.preserve.numeric_ids, "--numeric-ids");
        self.word_if(t.select.qsort, "--use-qsort");
    }

    fn push_basis(&mut self) {
        let t = &self.wishes.typed;
        for (option, map) in [("--usermap=", &t.preserve.user_map), ("--groupmap=", &t.preserve.group_map)] {
            if let Some(map) = map {
                self.value(option, map);
            }
        }
        self.word_if(t.select.ignore_existing, "--ignore-existing");
        self.word_if(t.select.existing, "--existing");
        if let Some(dir) = &t.change.temp_dir {
            self.pair("--temp-dir", dir);
        }
        self.word_if(t.change.fsync, "--fsync");
        for (kind, dir) in &t.change.basis_dirs {
            self.pair(kind.option(), dir);
        }
    }

    fn rest(&mut self) {
        let (w, t) = (self.wishes, &self.wishes.typed);
        let server = if self.push { Direction::Receiving } else { Direction::Sending };
        if let Some(words) = info::for_server(&t.output.info, server) {
            self.word(&format!("--info={words}"));
        }
        match t.change.append {
            Append::Off if w.inplace => {
                self.word("--inplace");
                self.word_if(self.push && t.change.sparse && t.delta.whole_file == Some(false), "--no-W");
            }
            Append::Off => {}
            Append::Plain => self.word("--append"),
            Append::Verify => {
                self.word("--append");
                self.word("--append");
            }
        }
        self.files_from();
        let old_push = self.push && !self.version.has_incremental_recursion();
        self.word_if(w.relative && t.select.no_implied_dirs && !old_push, "--no-implied-dirs");
        self.word_if(self.push && t.change.write_devices, "--write-devices");
        match t.change.remove {
            Remove::Nothing => {}
            Remove::SourceFiles => self.word("--remove-source-files"),
            Remove::SentFiles => self.word("--remove-sent-files"),
        }
        self.word_if(!self.push && t.change.copy_devices, "--copy-devices");
        self.word_if(self.push && t.change.preallocate, "--preallocate");
        self.word_if(t.preserve.open_noatime && t.preserve.atimes < 2, "--open-noatime");
        self.word_if(self.push && t.change.mkpath, "--mkpath");
        for option in &t.connect.remote_options {
            match w.protection {
                Protection::Escape => self.value("", option),
                _ => self.words.push(option.clone()),
            }
        }
    }

    fn files_from(&mut self) {
        let (w, t) = (self.wishes, &self.wishes.typed);
        let sent = match &w.files_from {
            Some(FilesFrom::There { path, .. }) => {
                self.pair("--files-from", path);
                self.word_if(t.select.from0, "--from0");
                true
            }
            Some(FilesFrom::Here(_)) if !self.push => {
                self.word("--files-from=-");
                self.word("--from0");
                true
            }
            _ => false,
        };
        self.word_if(sent && !w.relative, "--no-relative");
    }
}
