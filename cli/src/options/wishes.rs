//! What is made of [`Wishes`]: the engine's options, and what is brought to the handshake.
//!
//! Wire: protocol/doc/02-session-start.md#224-other-version-dependent-defaults-settled-here

use std::time::Duration;

use suisei_engine::filter::LineEnd;
use suisei_engine::options::{
    self as engine, AlternateKind, DeleteWhen, Fuzzy, ItemDetail, Limits, Partial, Report, SourceLinks,
    TransferOptions,
};
use suisei_engine::run::{allows_incremental, layout, needs};
use suisei_engine::sys::identity::Identity;
use suisei_engine::tree::Trust;
use suisei_protocol::charset::Charset;
use suisei_protocol::filter::Rule;
use suisei_protocol::session::{
    Capabilities, CompressWish, Direction, Layout, Offer, Side, SumChoice, Version,
};

use super::environment::Environment;
use super::meaning::{misuse, BatchUse, Protection, Wishes};
use super::typed::{Append, BasisKind, During, Recorded, Remove, Stderr};
use crate::exit::Refusal;
use crate::output::format::Format;
use crate::output::info::Info;

impl Wishes {
    /// What ends a line of a filter file.
    pub fn filter_lines(&self) -> LineEnd {
        if self.typed.select.from0 {
            LineEnd::Nul
        } else {
            LineEnd::Newline
        }
    }

    /// The charset of forwarded names of `--files-from`, if they travel in UTF-8: those of
    /// `--iconv` do with `-s` alone.
    pub fn names_charset(&self) -> Option<Charset> {
        let secluded = self.protection == Protection::Secluded;
        self.conversion.as_ref().filter(|_| secluded).map(|conversion| conversion.charset)
    }

    /// How far paths of options are trusted.
    pub fn trust(&self) -> Trust {
        let s = &self.typed.select;
        Trust { insecure_links: s.insecure_links, confine_root: s.confine_root.clone() }
    }

    /// The same for files that are read before anything is transferred: stock confines only what
    /// is opened later.
    pub fn trust_in_files(&self) -> Trust {
        Trust { confine_root: None, ..self.trust() }
    }

    /// Where messages go.
    pub fn stderr(&self) -> Stderr {
        self.typed.output.stderr.unwrap_or(Stderr::Errors)
    }

    /// Whether replaced files stay in their directories.
    pub fn backs_up_in_place(&self) -> bool {
        self.backup && self.backup_dir.is_none()
    }

    /// Whether an item format is active: one was typed, or names are shown.
    pub fn shows_items(&self) -> bool {
        self.format.is_some() || self.info.of(Info::Name) >= 1
    }

    /// Whether item lines hold `%i`.
    pub fn itemizes(&self) -> bool {
        self.has_escape(b"i")
    }

    fn logs_escape(&self, letter: &[u8]) -> bool {
        let output = &self.typed.output;
        let format = output.log_file_format.as_ref().filter(|_| output.log_file.is_some());
        format.is_some_and(|format| Format::parse(format).has(letter))
    }

    fn has_escape(&self, letter: &[u8]) -> bool {
        self.format.as_ref().is_some_and(|format| Format::parse(format).has(letter))
    }

    /// Returns the engine's options. `filters` are this end's rules; `local`: no peer is involved.
    pub fn transfer(&self, filters: Vec<Rule>, version: Version, local: bool) -> TransferOptions {
        let t = &self.typed;
        TransferOptions {
            select: self.selection(filters),
            compare: engine::Compare {
                checksum: t.select.checksum,
                size_only: t.select.size_only,
                ignore_times: t.select.ignore_times,
                modify_window: t.select.modify_window.unwrap_or(0),
            },
            preserve: self.preservation(),
            rewrite: engine::Rewrite {
                chmod: t.preserve.chmod.clone(),
                user_map: t.preserve.user_map.clone(),
                group_map: t.preserve.group_map.clone(),
            },
            delete: engine::Delete {
                when: self.deletion_time(version),
                excluded: t.change.delete_excluded,
                max: t.change.max_delete.map(|max| max as u64),
                force: t.change.force,
                ignore_errors: t.change.ignore_errors,
            },
            place: self.placement(),
            delta: engine::Delta {
                whole_file: self.whole_file.unwrap_or(local && !self.is_recorded())
                    && t.change.append == Append::Off,
                block_size: Some(t.delta.block_size).filter(|&size| size > 0),
            },
            alternates: self.alternates(),
            limits: Limits {
                timeout: Some(t.delta.timeout).filter(|&s| s > 0).map(|s| Duration::from_secs(s as u64)),
                bytes_per_second: Some(t.delta.bwlimit * 1024).filter(|&rate| rate > 0),
            },
            report: Report {
                items: if self.reports_all_items() { ItemDetail::All } else { ItemDetail::Changed },
                up_to_date: self.info.of(Info::Name) >= 2,
                list_only: self.listing,
                progress: self.info.of(Info::Progress) >= 1,
                sums: self.has_escape(b"C") || self.logs_escape(b"C"),
                traces: crate::output::trace::topics(&self.debug),
                long_names: self.has_escape(b"f") || self.logs_escape(b"f"),
            },
            trust: self.trust(),
            dry_run: t.change.dry_run || self.records_only(),
            batch_only: !t.change.dry_run && self.records_only(),
        }
    }

    /// Whether this client's run is recorded in a batch file.
    pub fn is_recorded(&self) -> bool {
        matches!(self.batch, BatchUse::Write(..)) && !self.typed.connect.server
    }

    /// Whether data goes into a batch file only.
    fn records_only(&self) -> bool {
        matches!(self.batch, BatchUse::Write(_, Recorded::Only))
    }

    /// Whether a sender keeps data to its batch file: a client does, and its server knows.
    pub fn withholds(&self, side: Side, direction: Direction) -> bool {
        let sends = matches!(
            (side, direction),
            (Side::Client, Direction::Sending) | (Side::Server, Direction::Receiving)
        );
        sends && self.records_only() && !self.typed.change.dry_run
    }

    /// Returns whether and how content is compressed.
    pub fn compress_wish(&self) -> Result<CompressWish, Refusal> {
        Ok(match &self.compressor {
            _ if !self.compress => CompressWish::Off,
            None => CompressWish::Negotiate,
            Some(name) => CompressWish::parse(name).map_err(misuse)?,
        })
    }

    fn reports_all_items(&self) -> bool {
        // A server is told by `%I`.
        let told = self.typed.connect.server && self.has_escape(b"I");
        self.itemizes() && (told || self.typed.output.itemize > 1 || self.info.of(Info::Name) >= 2)
    }

    fn selection(&self, filters: Vec<Rule>) -> engine::Select {
        let s = &self.typed.select;
        engine::Select {
            recursive: self.recursive,
            dirs: self.dirs,
            relative: self.relative,
            implied_dirs: !s.no_implied_dirs,
            one_file_system: s.one_file_system,
            filters,
            filter_lines: self.filter_lines(),
            cvs_names: Vec::new(),
            existing_only: s.existing,
            ignore_existing: s.ignore_existing,
            update_only: s.update,
            max_size: s.max_size,
            min_size: s.min_size,
            prune_empty_dirs: s.prune_empty_dirs,
            symlinks: match () {
                () if s.copy_links => SourceLinks::FollowAll,
                () if s.copy_unsafe_links => SourceLinks::FollowUnsafe,
                () if s.copy_dirlinks => SourceLinks::FollowDirs,
                () => SourceLinks::Keep,
            },
            safe_links: s.safe_links,
            keep_dirlinks: s.keep_dirlinks,
            ignore_missing_args: s.ignore_missing_args || s.delete_missing_args,
            delete_missing_args: s.delete_missing_args,
            incremental: !s.no_incremental && !s.qsort,
            copy_devices: self.typed.change.copy_devices,
            munge_links: s.munge_links,
            confined_links: false,
            ignore_unreadable: false,
            hidden: None,
            trust_sender: self.typed.connect.trust_sender,
        }
    }

    fn preservation(&self) -> engine::Preserve {
        let p = &self.typed.preserve;
        let root = match &self.typed.connect.copy_as {
            None => rustix::process::geteuid().is_root(),
            // Who is not there is refused later, where stock does.
            Some(named) => Identity::find(named).is_ok_and(|identity| identity.is_root()),
        };
        engine::Preserve {
            links: p.links,
            perms: p.perms,
            executability: p.executability,
            owner: p.owner,
            group: p.group,
            times: p.times,
            omit_dir_times: p.omit_dir_times || self.backs_up_in_place(),
            omit_link_times: p.omit_link_times,
            devices: p.devices,
            specials: p.specials,
            drop_devices: p.drop_devices,
            hard_links: p.hard_links > 0,
            atimes: p.atimes > 0,
            acls: p.acls,
            xattrs: match p.xattrs {
                0 => engine::Xattrs::Off,
                1 => engine::Xattrs::Plain,
                _ => engine::Xattrs::All,
            },
            open_noatime: p.open_noatime,
            numeric_ids: p.numeric_ids,
            super_user: p.super_user.unwrap_or(root) || p.fake_super,
            fake_super: p.fake_super,
        }
    }

    /// When deletion happens at a version, if it does.
    pub fn deletion_time(&self, version: Version) -> Option<DeleteWhen> {
        let c = &self.typed.change;
        let explicit = match (c.delete_during, c.delete_before, c.delete_after) {
            (Some(During::Plain), ..) => Some(DeleteWhen::During),
            (Some(During::Delay), ..) => Some(DeleteWhen::Delay),
            (None, true, _) => Some(DeleteWhen::Before),
            (None, _, true) => Some(DeleteWhen::After),
            (None, false, false) => None,
        };
        let plain = if version.deletes_during() { DeleteWhen::During } else { DeleteWhen::Before };
        self.deleting.then(|| explicit.unwrap_or(plain))
    }

    fn placement(&self) -> engine::Place {
        let c = &self.typed.change;
        engine::Place {
            inplace: self.inplace,
            append: match c.append {
                Append::Off => engine::Append::Off,
                Append::Plain => engine::Append::Plain,
                Append::Verify => engine::Append::Verify,
            },
            partial: match &self.partial_dir {
                Some(dir) => Partial::Dir(dir.clone()),
                None if self.partial => Partial::Keep,
                None => Partial::Discard,
            },
            delay_updates: c.delay_updates,
            temp_dir: c.temp_dir.clone(),
            backup: self.backup,
            backup_dir: self.backup_dir.clone(),
            backup_suffix: self.suffix.clone(),
            sparse: c.sparse,
            preallocate: c.preallocate,
            fsync: c.fsync,
            remove: match c.remove {
                Remove::Nothing => engine::Remove::Nothing,
                Remove::SourceFiles => engine::Remove::SourceFiles,
                Remove::SentFiles => engine::Remove::SentFiles,
            },
            write_devices: c.write_devices,
            mkpath: c.mkpath,
        }
    }

    fn alternates(&self) -> engine::Alternates {
        let dirs = &self.typed.change.basis_dirs;
        engine::Alternates {
            // All are of one kind.
            kind: match dirs.first() {
                Some((BasisKind::Copy, _)) => AlternateKind::Copy,
                Some((BasisKind::Link, _)) => AlternateKind::Link,
                Some((BasisKind::Compare, _)) | None => AlternateKind::Compare,
            },
            dirs: dirs.iter().map(|(_, dir)| dir.clone()).collect(),
            fuzzy: match self.typed.delta.fuzzy {
                0 => Fuzzy::Off,
                1 => Fuzzy::Beside,
                _ => Fuzzy::Everywhere,
            },
        }
    }

    /// Returns what a client offers, in its direction.
    pub fn capabilities(&self, direction: Direction) -> Capabilities {
        let options = self.transfer(Vec::new(), self.version, false);
        Capabilities::ours(allows_incremental(&options, direction))
    }

    /// Returns what this end brings to the handshake.
    pub fn offer(
        &self,
        side: Side,
        direction: Direction,
        environment: &Environment,
    ) -> Result<Offer, Refusal> {
        let text = |name| environment.value(name).map(|list| String::from_utf8_lossy(list).into_owned());
        let options = self.transfer(Vec::new(), self.version, false);
        Ok(Offer {
            side,
            direction,
            version: self.version,
            agreed: None,
            capabilities: self.capabilities(direction),
            recursion: allows_incremental(&options, direction),
            sums: self.sums()?,
            compress: self.compress_wish()?,
            compress_level: self.typed.delta.compress_level,
            seed: self.typed.delta.checksum_seed,
            checksum_list: text("RSYNC_CHECKSUM_LIST"),
            compress_list: text("RSYNC_COMPRESS_LIST"),
            recorded: self.is_recorded() && side == Side::Client,
            charset: self.conversion.as_ref().map(|conversion| conversion.charset),
            layout: Layout { withheld: self.withholds(side, direction), ..layout(&options) },
            needs: needs(&options),
        })
    }

    /// Returns the checksums that were chosen by name.
    pub fn sums(&self) -> Result<Option<SumChoice>, Refusal> {
        match &self.typed.delta.checksum_choice {
            Some(names) => SumChoice::parse(&String::from_utf8_lossy(names)).map_err(misuse),
            None => Ok(None),
        }
    }
}
